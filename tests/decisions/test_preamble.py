"""What a fresh session is told of the run so far (spec 5.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.preamble import StageSummary, build_preamble
from attractor_nb.model.attributes import FIDELITY_MODES

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
LOGS = ("cloned", "built")
HEAD = "Goal: Ship it\nRun: r-1"
CONTEXT = """\
Context:
- tests.passed: 3
- ok: true
- files: ["a.py", "b.py"]
- who: Ada Lovelace"""
DETAILED = f"""{HEAD}
Completed stages:
- plan (Plan the work): success - three steps
  response: 1. read 2. write 3. test
- implement: fail after 3 attempts - tests are red
- review (Review): partial_success
  response: Looks fine apart from names
{CONTEXT}
Notable events:
- cloned
- built"""
GOLDEN = {
    "full": "",
    "truncate": HEAD,
    "compact": f"""{HEAD}
Completed stages:
- plan (Plan the work): success - three steps
  response: 1. read 2. write 3. test
- implement: fail after 3 attempts - tests are red
- review (Review): partial_success
  response: Looks fine apart from names
{CONTEXT}""",
    "summary:low": f"""{HEAD}
Recent stages: 1 success, 1 fail, 1 partial_success.
The last of them:
- plan (Plan the work): success - three steps
- implement: fail after 3 attempts - tests are red
- review (Review): partial_success""",
    "summary:medium": DETAILED,
    "summary:high": DETAILED,
}
TOKENS = {"compact": 1000, "summary:low": 600, "summary:medium": 1500, "summary:high": 3000}


def tell(mode, stages=STAGES, values=VALUES, logs=LOGS, goal="Ship it", run_id="r-1"):
    return build_preamble(mode, goal=goal, run_id=run_id, stages=stages, values=values, logs=logs)


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_a_mode_tells_what_it_promises(mode):
    assert tell(mode) == GOLDEN[mode]


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_a_run_without_a_past_has_nothing_to_tell(mode):
    assert tell(mode, (), {}, (), "", "") == ""


def test_an_unknown_mode_counts_as_compact():
    assert tell("loud") == GOLDEN["compact"]


@pytest.mark.parametrize("mode", TOKENS)
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


@given(
    st.sampled_from(sorted(TOKENS)),
    SUMMARIES,
    st.dictionaries(st.text(max_size=200), TEXTS | st.integers() | st.lists(st.booleans()), max_size=20),
    st.lists(TEXTS, max_size=20),
    TEXTS,
)
def test_no_preamble_exceeds_its_budget(mode, stages, values, logs, goal):
    assert len(tell(mode, stages, values, logs, goal)) <= TOKENS[mode] * 4
