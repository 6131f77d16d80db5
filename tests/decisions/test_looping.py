"""The reason why a node was visited again and again, from the events."""

from __future__ import annotations

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.decisions.history.journal import Journal
from attractor_nb.decisions.history.looping import explain_looping
from attractor_nb.decisions.history.route_explanation import all_route_reasons
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.storage.stored_run import read_run

FRAME = "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def looping(tmp_path, body, answer, node="draft", **options):
    pipeline = Pipeline(FRAME.format(body=body), backend=FunctionBackend(answer))
    pipeline.run(wait=True, logs_root=tmp_path / "run", params={"n": -1}, **options)
    events = read_run(tmp_path / "run").events
    journal, plan = Journal(events, pipeline.graph.mirrored()), compile_plan(pipeline.graph)
    ways = {id(commit): way for commit, way in all_route_reasons(plan, journal)}
    return explain_looping(plan, node, journal.counted, ways, is_ended=True)


def counting(node, prompt, context):
    """``check`` counts up from 0."""
    return Outcome.success(context_updates={"n": context.get("n") + 1} if node.id == "check" else {})


LOOP = 'draft check start -> draft -> check; check -> done [condition="context.n=2"]; check -> draft'


def test_the_shortest_statement_names_who_decided_and_what_it_found(tmp_path):
    told = looping(tmp_path, LOOP, counting)
    assert told.statement == "draft was visited 3 times because check found n=0, n=1"
    assert [one.path for one in told.rounds] == [("draft", "check", "draft")] * 2
    assert told.rounds[0].words == ("check found n=0: to draft (only_edge: the only unconditional edge)")
    assert told.ending == "then check found n=2: to done (condition: context.n=2)"


def test_the_node_that_decided_is_found_behind_a_chain_of_only_edges(tmp_path):
    body = """draft check fix polish start -> draft -> check; check -> done [condition="context.n=1"]
      check -> fix [condition="context.n!=1"]; fix -> polish -> draft"""
    told = looping(tmp_path, body, counting)
    assert told.statement == "draft was visited twice because check found n=0"
    assert told.rounds[0].path == ("draft", "check", "fix", "polish", "draft")
    assert looping(tmp_path / "2", body, counting, "fix").statement == ("fix was visited once: nothing led back to it")


def test_choices_failures_and_goal_gates_are_told_apart(tmp_path):
    labels = ["Revise", "Revise", "Approve"]

    def chooses(node, prompt, context):
        return Outcome(StageStatus.SUCCESS, labels.pop(0)) if node.id == "check" else Outcome.success()

    body = 'draft check start -> draft -> check; check -> done [label="Approve"]; check -> draft [label="Revise"]'
    assert looping(tmp_path / "1", body, chooses).statement == (
        'draft was visited 3 times because check chose "Revise" twice'
    )
    fails = [1, 1]

    def flaky(node, prompt, context):
        return Outcome.fail("exit code 2") if node.id == "check" and fails and fails.pop() else Outcome.success()

    jump = "draft check [retry_target=draft] start -> draft -> check -> done"
    told = looping(tmp_path / "2", jump, flaky)
    assert told.statement == "draft was visited 3 times because check failed twice (exit code 2)"
    fails[:] = [1]
    gate = "draft check [goal_gate=true, retry_target=draft] start -> draft -> check -> done [default=true]"
    told = looping(tmp_path / "3", gate, flaky)
    assert told.statement == "draft was visited twice because goal gate `check` was not satisfied"


def test_attempts_within_a_visit_are_no_visits(tmp_path):
    fails = ["busy"]

    def busy(node, prompt, context):
        return Outcome.retry(fails.pop()) if node.id == "draft" and fails else counting(node, prompt, context)

    told = looping(tmp_path, LOOP.replace("draft check", "draft [max_retries=1] check", 1), busy)
    assert told.retries == ("visit 1: attempt 1 failed and was tried again: busy",)
    assert told.statement.endswith("check found n=0, n=1, and tried again once within a visit")


def test_a_loop_that_a_bound_ended_says_which(tmp_path):
    told = looping(
        tmp_path, 'draft check start -> draft -> check; check -> done [condition="context.n=99"]; check -> draft',
        counting, max_node_visits=3,
    )  # fmt: skip
    assert told.visits == 3
    assert told.ending.startswith("the run ended there: max_node_visits=3 reached")
    many = looping(
        tmp_path / "2", 'draft check start -> draft -> check; check -> done [condition="outcome=fail"]; check -> draft',
        counting, max_node_visits=5,
    )  # fmt: skip
    assert many.statement == "draft was visited 5 times because check found outcome=success 4 times"


def test_a_node_that_was_never_reached_was_not_visited(tmp_path):
    body = 'draft check start -> draft -> done; draft -> check [condition="outcome=fail"]; check -> done'
    assert looping(tmp_path, body, counting, "check").statement == "check was not visited"
