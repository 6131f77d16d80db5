"""What a fresh session is told of the run so far (spec 5.4)."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.notes import Note
from attractor_nb.decisions.preamble import (
    TOKEN_BUDGETS,
    StageSummary,
    build_preamble,
    without_incidents,
)
from attractor_nb.model.attributes import FIDELITY_MODES
from attractor_nb.model.tokens import estimated_tokens

STAGES = (
    StageSummary("plan", "Plan the work", "success", "three steps", "1. read\n2. write\n3. test"),
    StageSummary("implement", "implement", "fail", "tests are red", attempts=3),
    StageSummary("review", "Review", "partial_success", "", "Looks fine apart from names"),
)
VALUES = {
    "graph.goal": "Ship it",
    "tests.passed": 3,
    "ok": True,
    "internal.retry_count.plan": 1,
    "files": ["a.py", "b.py"],
    "who": "Ada\nLovelace",
}
EVENTS = (
    Note("retry", "implement, attempt 1 failed: tests are red"),
    Note("answer", "approve was answered: Yes"),
    Note("tool call", 'implement: run(command="make test") failed: exit code 1'),
    Note("failure", "implement failed: tests are red"),
)
HEAD = "Goal: Ship it\nRun: r-1"
CONTEXT = """\
Context:
- tests.passed: 3
- ok: true
- files: ["a.py", "b.py"]
- who: Ada Lovelace"""
COMPACT = f"""{HEAD}
Completed stages:
- plan (Plan the work): success - three steps
  response: 1. read 2. write 3. test
- implement: fail after 3 attempts - tests are red
- review (Review): partial_success
  response: Looks fine apart from names
{CONTEXT}"""
NOTABLE = f"""{COMPACT}
Notable events:
- approve was answered: Yes
- implement failed: tests are red
Attempts and tool calls:
- implement, attempt 1 failed: tests are red"""
EXPECTED = {
    "full": "",
    "truncate": HEAD,
    "compact": COMPACT,
    "summary:low": f"""{HEAD}
Recent stages: 1 success, 1 fail, 1 partial_success.
Notable events: 1 answer, 1 failure.
The last stages:
- plan (Plan the work): success - three steps
- implement: fail after 3 attempts - tests are red
- review (Review): partial_success""",
    "summary:medium": NOTABLE,
    "summary:high": f"""{NOTABLE}
- implement: run(command="make test") failed: exit code 1""",
}
FULLY_TOLD = ("compact", "summary:low", "summary:medium", "summary:high")


def tell(mode, stages=STAGES, values=VALUES, events=EVENTS, goal="Ship it", run_id="r-1"):
    return build_preamble(mode, goal=goal, run_id=run_id, stages=stages, values=values, events=events)


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_a_mode_tells_what_it_promises(mode):
    assert tell(mode) == EXPECTED[mode]


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_a_run_without_a_past_has_nothing_to_tell(mode):
    assert tell(mode, (), {}, (), "", "") == ""


def test_an_unknown_mode_counts_as_compact():
    assert tell("loud") == EXPECTED["compact"]


@pytest.mark.parametrize("mode", FULLY_TOLD)
def test_the_newest_stages_are_kept_when_the_budget_is_short(mode):
    stages = [
        StageSummary(f"stage_{number}", "", "success", "note " * 100, "text " * 200) for number in range(200)
    ]
    text = tell(mode, stages)
    assert "stage_199:" in text
    assert "stage_0:" not in text


def test_a_shortened_list_says_that_it_is_one():
    stages = [StageSummary(f"stage_{number}", "", "success", "note " * 40) for number in range(100)]
    assert "Completed stages (the newest " in tell("compact", stages)


def test_the_newest_values_are_kept_when_the_budget_is_short():
    text = tell("compact", values={f"key_{number}": "x" * 100 for number in range(500)})
    assert "key_499:" in text
    assert "key_0:" not in text


def test_a_higher_summary_tells_more_of_a_long_run():
    stages = [
        StageSummary(f"stage_{number}", "", "success", "note " * 100, "text " * 200) for number in range(200)
    ]
    lengths = [len(tell(mode, stages)) for mode in ("summary:low", "summary:medium", "summary:high")]
    assert lengths == sorted(lengths)


TEXTS = st.text(max_size=3000)
SUMMARIES = st.lists(
    st.builds(
        StageSummary, st.text("abc", max_size=9), TEXTS, st.just("success"), TEXTS, TEXTS, st.integers(1, 9)
    ),
    max_size=30,
)


NOTES = st.lists(
    st.builds(Note, st.sampled_from(["failure", "answer", "way back", "retry", "tool call"]), TEXTS),
    max_size=40,
)
PASTS = st.tuples(
    SUMMARIES,
    st.dictionaries(st.text(max_size=200), TEXTS | st.integers() | st.lists(st.booleans()), max_size=20),
    NOTES,
    TEXTS,
    st.text(max_size=300),
)


@given(st.sampled_from(sorted(TOKEN_BUDGETS)), PASTS)
def test_no_preamble_exceeds_its_budget(mode, past):
    assert estimated_tokens(tell(mode, *past)) <= TOKEN_BUDGETS[mode]


@given(st.sampled_from(FIDELITY_MODES), PASTS)
def test_a_preamble_is_pure(mode, past):
    before = copy.deepcopy(past)
    assert tell(mode, *past) == tell(mode, *past)
    assert past == before


@given(st.sampled_from(FULLY_TOLD), SUMMARIES)
def test_of_the_stages_the_newest_are_kept_without_a_gap(mode, stages):
    stages = [replace(stage, node_id=f"stage_{number:03}") for number, stage in enumerate(stages)]
    told = [number for number in range(len(stages)) if f"\n- stage_{number:03}" in tell(mode, stages, {}, ())]
    assert told == list(range(len(stages)))[len(stages) - len(told) :]


def test_a_higher_summary_tells_more_events_and_the_newest():
    events = [Note("failure", f"stage_{number} failed") for number in range(40)]
    counts = [tell(mode, events=events).count("failed") for mode in ("summary:medium", "summary:high")]
    assert counts == [8, 20]
    assert "stage_39 failed" in tell("summary:medium", events=events)


def test_only_the_highest_summary_tells_of_tool_calls():
    told = [mode for mode in FIDELITY_MODES if "make test" in tell(mode)]
    assert told == ["summary:high"]


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_without_incidents_a_preamble_is_that_of_a_run_that_had_none(mode):
    calm = [note for note in EVENTS if note.kind not in {"retry", "tool call"}]
    assert without_incidents(tell(mode)) == tell(mode, events=calm)


def test_branches_are_told_by_what_they_said_each_in_its_share():
    results = [
        {"id": "a", "status": "success", "context_updates": {"last_response": "Fine."}, "usage": {"cost": 1}},
        {"id": "b", "status": "fail", "context_updates": {}, "failure_reason": "no network"},
        {"id": "c", "status": "success", "context_updates": {"last_response": "long " * 99}},
        "no result",
    ]
    text = tell("summary:high", (), {"parallel.results": results, "parallel.branch.a.status": "success"}, ())
    (line,) = [line for line in text.splitlines() if line.startswith("- ")]
    assert line.startswith(
        "- parallel.results: a success - Fine.; b fail - no network; c success - long long"
    )
    assert len(line) <= len("- parallel.results: ") + 400
    assert tell("compact", (), {"parallel.results": "of the user's own"}, ()).endswith("of the user's own")


def test_a_note_that_says_what_the_status_says_is_left_out():
    assert "Stage completed" not in tell("compact", [StageSummary("a", "", "success", "Stage completed: a")])
