"""Timelines: bars, waits, cuts and calls from events; pictures that are whole, equal and harmless."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from attractor_nb.decisions.history.journal import Journal
from attractor_nb.errors import OptionError
from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    ModelCallEnded,
    PipelineCompleted,
    PipelineInterrupted,
    PipelineResumed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome
from attractor_nb.studio.timeline.run_timeline import timeline_table
from attractor_nb.studio.timeline.timeline import timeline_of
from attractor_nb.studio.timeline.timeline_svg import timeline_svg

MAX_LANES = 200

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x00</title><script>alert(2)</script>"


def numbered(*timed):
    """A journal of events at their times."""
    for number, (moment, event) in enumerate(timed, 1):
        event.sequence, event.time = number, 1000.0 + moment
    return Journal([event for _, event in timed])


def began(name="plan", **where):
    return StageStarted(name=name, **where)


def ended(name="plan", **where):
    return StageCompleted(name=name, outcome=Outcome.success(), **where)


def failed(name="plan", error="no money", **where):
    return StageFailed(name=name, outcome=Outcome.fail(error), error=error, **where)


START = PipelineStarted(name="g", id="a")


def shown(timeline):
    return [(bar.node, bar.kind, bar.status, bar.start - 1000, bar.end - 1000) for bar in timeline.bars]


def test_each_attempt_is_a_bar_and_the_wait_between_two_is_one_of_its_own():
    journal = numbered(
        (0, START),
        (1, began()),
        (2, failed(will_retry=True)),
        (2, StageRetrying(name="plan", attempt=2, delay=3)),
        (5, began(attempt=2)),
        (7, ended(attempt=2)),
        (7, PipelineCompleted(duration=7)),
    )
    timeline = timeline_of(journal, name="g")
    assert shown(timeline) == [
        ("plan", "attempt", "fail", 1, 2),
        ("plan", "retry wait", "waited", 2, 5),
        ("plan", "attempt", "success", 5, 7),
    ]
    assert "no money" in str(timeline_table(timeline))


def test_a_wait_for_a_person_lies_in_its_attempt():
    journal = numbered(
        (0, START),
        (1, began("gate")),
        (2, InterviewStarted(question="Good?", stage="gate")),
        (9, InterviewCompleted(question="Good?", answer="A", duration=7, stage="gate")),
        (10, ended("gate")),
    )
    assert ("gate", "human wait", "answered", 2, 9) in shown(timeline_of(journal))


def test_time_in_which_the_run_stood_still_is_cut_out_and_told():
    journal = numbered(
        (0, START),
        (1, began()),
        (3, PipelineInterrupted(reason="cancelled")),
        (3603, PipelineResumed(next_node="plan")),
        (3604, began(visit=1, attempt=2)),
        (3606, ended(visit=1, attempt=2)),
        (3606, PipelineCompleted(duration=6)),
    )
    timeline = timeline_of(journal)
    assert timeline.seconds == 6
    assert shown(timeline)[0] == ("plan", "attempt", "cut off", 1, 3)
    assert "inactive for 1 h 0 min after 3.00 s" in str(timeline_table(timeline))
    assert 'class="tl-cut"' in timeline_svg(timeline)


def test_a_live_run_grows_to_the_present_and_one_that_stands_does_not():
    journal = numbered((0, START), (1, began()), (2, ended()), (2, began("write")))
    live = timeline_of(journal, now=1010.0)
    assert shown(live)[-1] == ("write", "attempt", "running", 2, 10)
    assert (live.is_live, live.seconds) == (True, 10)
    dead = timeline_of(journal)
    assert shown(dead)[-1] == ("write", "attempt", "cut off", 2, 2)
    assert not dead.is_live


def test_a_retry_that_is_waited_for_is_shown():
    journal = numbered(
        (0, START), (1, began()), (2, failed(will_retry=True)), (2, StageRetrying(name="plan", attempt=2, delay=30))
    )
    assert shown(timeline_of(journal, now=1007.0))[-1] == ("plan", "retry wait", "waits", 2, 7)


def test_lanes_are_nodes_or_branches():
    journal = numbered(
        (0, START),
        (1, began("fan")),
        (1, began("safe", branch="fan/safe")),
        (2, ended("safe", branch="fan/safe")),
        (2, began("why", branch="fan/safe")),
        (3, ended("why", branch="fan/safe")),
        (3, ended("fan")),
    )
    lanes = [lane.key for lane in timeline_of(journal).lanes]
    assert lanes == ["fan", "fan/safe/safe", "fan/safe/why"]
    assert [lane.key for lane in timeline_of(journal, by="branch").lanes] == ["run", "fan/safe"]


def test_calls_are_drawn_inside_their_attempt():
    journal = numbered(
        (0, START),
        (1, began()),
        (4, ModelCallEnded(name="plan", model="openai:gpt", duration=2.0)),
        (5, ModelCallEnded(name="plan", model="openai:gpt", duration=0.5, error="429")),
        (6, ended()),
    )
    (bar,) = timeline_of(journal).bars
    assert [(call.start, call.end) for call in bar.calls] == [(1002, 1004), (1004.5, 1005)]
    assert "model openai:gpt, 0.50 s failed: 429" in bar.words
    assert timeline_svg(timeline_of(journal)).count("tl-call is-model") == 2


@pytest.mark.parametrize("theme", ["light", "dark", "auto"])
def test_hostile_texts_stay_texts(theme):
    journal = numbered((0, START), (1, began(HOSTILE)), (2, failed(HOSTILE, error=HOSTILE)))
    drawn = timeline_svg(timeline_of(journal, name=HOSTILE), theme=theme)
    root = ET.fromstring(drawn)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "style", "defs", "pattern", "path", "circle", "rect", "text", "title", "g"}
    assert "\u202e" not in drawn
    assert drawn == timeline_svg(timeline_of(journal, name=HOSTILE), theme=theme)


def test_a_run_without_a_stage_and_one_with_very_many_are_drawn():
    assert "Nothing was started yet" in timeline_svg(timeline_of(numbered((0, START))))
    assert "Nothing was started yet" in timeline_svg(timeline_of(Journal([])))
    many = [(n, event) for n in range(MAX_LANES + 5) for event in (began(f"n{n}"), ended(f"n{n}"))]
    drawn = timeline_svg(timeline_of(numbered((0, START), *many)))
    assert "5 more lanes" in drawn
    with pytest.raises(OptionError, match="theme"):
        timeline_svg(timeline_of(Journal([])), theme="neon")


def legend_of(svg):
    """The words of the legend, each with the classes of the piece beside it and how its box is filled."""
    root, found = ET.fromstring(svg), {}
    for entry in root.iterfind(".//{*}g[@class='tl-entry']"):
        piece, words = entry.find("{*}g"), entry.find("{*}text")
        found[words.text] = (piece.get("class"), [box.get("style") or box.get("fill") for box in piece])
    return found


def test_a_legend_shows_a_piece_of_each_kind_of_bar_that_is_there():
    first = StageStarted(name="plan")
    journal = numbered(
        (0, START),
        (0, first),
        (1, failed(will_retry=True)),
        (1, StageRetrying(name="plan", attempt=2, delay=1)),
        (2, began(attempt=2)),
        (3, InterviewStarted(question="q", stage="plan", question_id="q")),
    )
    svg = timeline_svg(timeline_of(journal, now=1009.0))
    legend = legend_of(svg)
    assert list(legend) == ["wait before the next attempt", "wait for a person", "running"]
    hatched, dotted, running = legend.values()
    assert hatched[0] == "tl-bar is-retry-wait tl-wait"
    assert "-hatch)" in hatched[1][0]
    assert dotted[0] == "tl-bar is-answered tl-human"
    assert "-dots)" in dotted[1][1]
    assert running == ("tl-bar is-running", [None])
    bars = ET.fromstring(svg).iterfind(".//{*}g[@data-bar]")
    assert {"tl-wait", "tl-human", "is-running"} <= {name for bar in bars for name in bar.get("class").split()}


SIGNS = {
    "tl-wait": "wait before the next attempt",
    "tl-human": "wait for a person",
    "tl-call": "calls",
    "is-running": "running",
    "is-cut-off": "cut off",
    "is-cached": "cached",
}
QUESTION = InterviewStarted(question="q", stage="plan", question_id="q")
CALL = ModelCallEnded(name="plan", model="openai:gpt", duration=1.0)
JOURNALS = {
    "plain": [(0, START), (0, began()), (4, ended())],
    "a failure": [(0, START), (0, began()), (4, failed())],
    "a retry": [
        (0, START),
        (0, began()),
        (1, failed(will_retry=True)),
        (1, StageRetrying(name="plan", attempt=2, delay=1)),
        (2, began(attempt=2)),
        (3, ended(attempt=2)),
    ],
    "a question": [(0, START), (0, began()), (1, QUESTION)],
    "a call": [(0, START), (0, began()), (2, CALL), (3, ended())],
    "killed": [
        (0, START),
        (0, began()),
        (2, PipelineInterrupted()),
        (9, PipelineResumed()),
        (9, began()),
        (10, ended()),
    ],
    "cached": [(0, START), (0, began()), (1, StageCompleted(name="plan", outcome=Outcome.success(), is_cached=True))],
}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_legend_has_all_signs_of_the_bars_and_only_them(name):
    svg = timeline_svg(timeline_of(numbered(*JOURNALS[name]), now=1012.0))
    bars = list(ET.fromstring(svg).iterfind(".//{*}g[@data-bar]"))
    drawn = {found for bar in bars for part in bar.iter() for found in (part.get("class") or "").split()}
    assert bars
    assert set(legend_of(svg)) == {words for sign, words in SIGNS.items() if sign in drawn}


def test_what_is_not_there_is_not_in_the_legend():
    journal = numbered((0, START), (0, began()), (4, ended()), (4, PipelineCompleted(duration=4)))
    assert legend_of(timeline_svg(timeline_of(journal))) == {}
