"""A replayed log leaves the state that the live run had."""

import pytest

from attractor_nb.context import Context
from attractor_nb.decisions.commits import commit_record
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.decisions.routing import ConditionOutcome
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import diamonds_of
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.outcome import Outcome, StageStatus

SOURCE = """digraph g {
    start [shape=Mdiamond] test check [shape=diamond] done [shape=Msquare]
    start -> test -> check
    check -> done [condition="outcome=success"]
    check -> test [condition="outcome=fail"]
}"""


@pytest.mark.parametrize("status", list(StageStatus))
def test_ruling_16_a_diamond_shows_the_same_outcome_live_and_replayed(status):
    plan = compile_plan(parse_dot(SOURCE))
    live, replayed = RunState("check"), RunState("check")
    live.seen = replayed.seen = ConditionOutcome(StageStatus.PARTIAL_SUCCESS)
    event, is_passed_through = commit_record(
        plan, plan.nodes["check"], live, Context(), Outcome(status), (1, 1, 1, 0.0)
    )
    live.apply(event, is_passed_through=is_passed_through)
    replayed.apply_all([event], diamonds_of(plan))
    assert replayed.seen == live.seen
