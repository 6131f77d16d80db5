"""The breakpoint that holds at each moment, from tables; an invalid one is refused with its remedy."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.decisions.breakpoints import WalkMoment, first_to_stop, holding, read_breakpoint
from attractor_nb.decisions.log_folds import check_key, overrides_of, what_a_resume_loses
from attractor_nb.errors import ConditionSyntaxError, OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import DebuggerChanged, DebuggerStopped, PipelineInterrupted, StageStarted
from attractor_nb.model.outcome import Outcome

GRAPH = parse_dot(
    "digraph { start [shape=Mdiamond] done [shape=Msquare] start -> plan -> review -> done review -> plan }"
)


@pytest.mark.parametrize(
    ("text", "moment", "holds"),
    [
        ("plan", WalkMoment("plan", 1), True),
        ("plan", WalkMoment("plan", 7), True),
        ("plan", WalkMoment("review", 1), False),
        ("plan", WalkMoment("plan", 1, is_after=True), False),
        ("plan@2", WalkMoment("plan", 1), False),
        ("plan@2", WalkMoment("plan", 2), True),
        ("plan->review", WalkMoment("review", 1, came_from="plan"), True),
        (" plan -> review ", WalkMoment("review", 1, came_from="plan"), True),
        ("plan->review", WalkMoment("review", 1, came_from="start"), False),
        ("plan->review", WalkMoment("review", 1), False),
        ("after:plan", WalkMoment("plan", 1, is_after=True), True),
        ("after:plan", WalkMoment("plan", 1), False),
        ("after:plan", WalkMoment("review", 1, is_after=True), False),
        ("on:error", WalkMoment("plan", 1, is_after=True, is_error=True), True),
        ("on:error", WalkMoment("plan", 1, is_after=True), False),
        ("on:error", WalkMoment("plan", 1), False),
        ("context.n=3", WalkMoment("plan", 1, lookup={"n": 3}.get), True),
        ("context.n=3", WalkMoment("plan", 1, lookup={"n": 4}.get), False),
        ("context.n=3", WalkMoment("plan", 1, is_after=True, lookup={"n": 3}.get), False),
        ("outcome=fail && context.n", WalkMoment("plan", 1, status="fail", lookup={"n": True}.get), True),
        ("preferred_label=Fix", WalkMoment("plan", 1, label="fix"), True),
    ],
)
def test_a_breakpoint_holds_at_its_moments(text, moment, holds):
    breakpoint_ = read_breakpoint(text, GRAPH)
    assert (breakpoint_.text in holding([breakpoint_], moment)) is holds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plann", "no node 'plann'; did you mean"),
        ("after:nobody", "no node 'nobody'"),
        ("plan->done", "no edge plan->done"),
        ("before:plan", '"plan" alone stops before it'),
        ("when:nobody", "is not a breakpoint"),
        ("", "a breakpoint must be text"),
        (3, "a breakpoint must be text"),
        ("plan>draft", "has no child pipeline"),
    ],
)
def test_what_is_no_breakpoint_is_refused(text, words):
    with pytest.raises(OptionError) as refused:
        read_breakpoint(text, GRAPH)
    assert words in str(refused.value)
    assert refused.value.hint


def test_a_condition_outside_the_language_shows_where():
    with pytest.raises(ConditionSyntaxError) as refused:
        read_breakpoint("context.n > 2", GRAPH)
    assert "^" in str(refused.value)


def test_a_breakpoint_in_a_child_names_its_way():
    ends = "start [shape=Mdiamond] done [shape=Msquare]"
    parent = f"digraph {{ {ends} sub [type=pipeline, pipeline.name=child] start -> sub -> done }}"
    child = f"digraph {{ {ends} start -> draft -> done }}"
    graph = Pipeline(parent, pipelines={"child": child}).graph
    for given, kept in (("sub>draft", "sub>draft"), ("sub > start -> draft", "sub>start->draft")):
        found = read_breakpoint(given, graph)
        assert (found.text, found.path) == (kept, "sub>")
    with pytest.raises(OptionError, match="no node 'nobody'"):
        read_breakpoint("sub>nobody", graph)


def test_a_condition_stops_when_it_begins_to_hold_and_others_each_time():
    node, condition = read_breakpoint("plan", GRAPH), read_breakpoint("context.n=3", GRAPH)
    both = [condition, node]
    holds = frozenset({"plan", "context.n=3"})
    assert first_to_stop(both, holds, frozenset()) is condition
    assert first_to_stop(both, holds, holds) is node
    assert first_to_stop([condition], holds, holds) is None
    assert first_to_stop(both, frozenset(), frozenset()) is None


@pytest.mark.parametrize("key", ["outcome", "current_node", "internal.x", "graph.goal", "", 3])
def test_keys_of_the_engine_cannot_be_set_by_hand(key):
    with pytest.raises(OptionError):
        check_key(key)


def test_pins_prompts_and_mocks_are_folded_from_the_log():
    done = Outcome.success("by hand")
    events = [
        DebuggerChanged(change="pin", node="a", outcome=done, text="said"),
        DebuggerChanged(change="prompt", node="b", text="Ask otherwise."),
        DebuggerChanged(change="mock", node="c"),
        DebuggerChanged(change="pin", node="d", outcome=done),
        DebuggerChanged(change="unpin", node="d"),
        DebuggerChanged(change="context", context={"x": 1}),
    ]
    found = overrides_of(events)
    assert (dict(found.pins), found.prompts, list(found.mocks)) == (
        {"a": (done, "said")},
        {"b": "Ask otherwise."},
        ["c"],
    )
    again = overrides_of(found.to_events())
    assert (again.pins, again.prompts, again.mocks) == (found.pins, found.prompts, found.mocks)


def test_a_resume_says_what_it_goes_on_without():
    stood = DebuggerStopped(node="plan", breakpoint="plan")
    mocked = DebuggerChanged(change="mock", node="c")
    ended = PipelineInterrupted(reason="cancelled", next_node="plan", duration=1.0)
    said = [warning.message for warning in what_a_resume_loses([mocked, stood, ended], has_breakpoints=False)]
    assert "was stopped before plan (plan) and continues without stopping" in said[0]
    assert "mock of c ended with its process" in said[1]
    assert len(what_a_resume_loses([mocked, stood, ended], has_breakpoints=True)) == 1
    assert not what_a_resume_loses([stood, StageStarted(name="plan"), ended], has_breakpoints=False)
