"""The events that count after rewinds: a table, and the facts in which folds of them must agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.log_history import (
    counted_events,
    displaced,
    find_points,
    missing_visit,
    pick,
    reaches_behind,
)
from attractor_nb.model.events import PipelineRewound, StageCompleted, StageStarted
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.outcome import Outcome


def numbered(*events):
    for sequence, event in enumerate(events, start=1):
        event.sequence = sequence
    return LoggedEvents(events)


def began(name, visit=1, attempt=1):
    return StageStarted(name=name, visit=visit, attempt=attempt)


def ended(name, visit=1):
    return StageCompleted(name=name, visit=visit, outcome=Outcome.success())


def back(to_sequence, node="a", visit=1):
    return PipelineRewound(node=node, visit=visit, to_sequence=to_sequence)


def sequences(events):
    return [event.sequence for event in counted_events(events)]


def test_without_a_rewind_all_events_count_and_none_is_copied():
    events = numbered(began("a"), ended("a"))
    assert counted_events(events) is events


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ((began("a"), ended("a"), back(0)), [3]),
        ((began("a"), ended("a"), began("b"), back(2)), [1, 2, 4]),
        ((began("a"), back(0), began("a", 2), back(2), began("a", 3)), [2, 4, 5]),
        ((began("a"), ended("a"), back(0), began("a", 2), ended("a", 2), back(0)), [6]),
        ((began("a"), ended("a"), began("b"), back(2), began("b", 2), back(1)), [1, 6]),
    ],
    ids=["all", "last_stage", "behind_a_rewind", "before_a_rewind", "between"],
)
def test_a_rewind_sets_aside_what_came_after_its_place(events, expected):
    assert sequences(numbered(*events)) == expected


@st.composite
def logs(draw):
    """Logs in which each rewind goes to an event that counts."""
    events = []
    for sequence in range(1, draw(st.integers(1, 30)) + 1):
        way = [0, *(event.sequence for event in counted_events(events))]
        event = back(draw(st.sampled_from(way))) if draw(st.integers(0, 3)) == 0 else began("a", sequence)
        event.sequence = sequence
        events.append(event)
    return events


@given(logs())
def test_the_way_of_a_way_is_itself(events):
    way = counted_events(events)
    assert list(counted_events(way)) == list(way)


@given(logs(), st.integers(0, 30))
def test_the_way_after_a_checkpoint_is_the_rest_of_the_whole_way(events, cut):
    cut = min(cut, len(events))
    head, tail = events[:cut], events[cut:]
    if not reaches_behind(tail, cut):
        assert [*counted_events(head), *counted_events(tail)] == list(counted_events(events))


@given(logs())
def test_after_a_rewind_nothing_counts_that_came_after_its_place(events):
    for position, event in enumerate(events):
        if isinstance(event, PipelineRewound):
            before = counted_events(events[:position])
            expected = [entry for entry in before if entry.sequence <= event.to_sequence]
            assert list(counted_events(events[: position + 1])) == [*expected, event]


LOOP = numbered(
    began("a"), began("a", 1, 2), ended("a"), began("b"), ended("b"), began("a", 2), ended("a", 2), began("b", 2)
)


def test_a_place_is_before_the_first_attempt_of_a_visit():
    assert [(point.visit, point.sequence, point.stages) for point in find_points(LOOP, "a")] == [(1, 0, 3), (2, 5, 1)]


def test_the_latest_visit_is_meant_when_none_is_named():
    points = find_points(LOOP, "b")
    assert pick(points, None).visit == 2
    assert pick(points, 1).sequence == 3
    assert pick(points, 3) is None


@pytest.mark.parametrize(
    ("node_id", "visit", "message", "hint"),
    [("c", None, "never visited c", "visited: a, b"), ("a", 7, "no visit 7 of a", "visits of a: 1, 2")],
)
def test_a_visit_that_is_not_there_is_answered_with_those_that_are(node_id, visit, message, hint):
    error = missing_visit(find_points(LOOP, node_id), LOOP, node_id, visit)
    assert message in error.message
    assert error.hint == hint


def test_files_of_visits_that_were_set_aside_are_told_from_those_that_count():
    events = numbered(began("a"), ended("a"), began("b"), ended("b"), began("a", 2), ended("a", 2), back(2, "b"))
    assert displaced(events, counted_events(events)) == {"a": (1, 1), "b": None}
