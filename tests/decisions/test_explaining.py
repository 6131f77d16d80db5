"""The reason for the edge that a stage took, from the record and the graph alone."""

from __future__ import annotations

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.decisions.history.journal import Journal
from attractor_nb.decisions.history.route_explanation import (
    all_route_reasons,
    arrival_of,
    route_reasons_of,
    views_at_commits,
)
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.model.events import DebuggerChanged, PipelineForked, PipelineStarted, StageCompleted, StageStarted
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.storage.stored_run import read_run

FRAME = "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"


def ran(tmp_path, body, answer=lambda node, prompt, context: Outcome.success(), *, as_now=""):
    """Journal and plan of a run; ``as_now`` is the graph as it was changed since."""
    pipeline = Pipeline(FRAME.format(body=body), backend=FunctionBackend(answer))
    pipeline.run(wait=True, logs_root=tmp_path / "run", params={"n": 1})
    plan = compile_plan(Pipeline(FRAME.format(body=as_now or body)).graph)
    return Journal(read_run(tmp_path / "run").events, pipeline.graph.mirrored()), plan


def left(tmp_path, node, body, answer=lambda node, prompt, context: Outcome.success(), **options):
    """The reason for the edge that the latest visit of a node took."""
    journal, plan = ran(tmp_path, body, answer, **options)
    return reasons_of(plan, journal, journal.visits_of(node)[-1].commit)


def reasons_of(plan, journal, commit):
    """The reason for the edge that the visit with this commit took."""
    return route_reasons_of(plan, journal, commit, views_at_commits(plan, journal)[commit.sequence])


def verdicts(way):
    return {candidate.target: candidate.words for candidate in way.candidates}


def test_a_condition_that_holds_wins_and_each_edge_says_what_it_saw(tmp_path):
    body = """a b c e start -> a; b -> done; c -> done
      a -> b [condition="context.n=2"]; a -> c [condition="context.n=1 && outcome=success", weight=3]
      a -> done [condition="context.n!=7"]; a -> e; e -> done"""
    way = left(tmp_path, "a", body)
    assert (way.target, way.route, way.mismatch) == ("c", "condition", "")
    by_target = {candidate.target: candidate for candidate in way.candidates}
    assert by_target["b"].words == 'does not hold: `context.n=2` saw "1"'
    assert [(one.clause, one.value, one.holds) for one in by_target["c"].values] == [
        ("context.n=1", "1", True),
        ("outcome=success", "success", True),
    ]
    assert by_target["c"].is_taken
    assert by_target["done"].words == "holds, too, but weight 0 is lower than 3"
    assert by_target["e"].words == "not asked: the condition of c holds"
    assert [(rule.name, rule.decides) for rule in way.rules] == [("condition", True)]


def test_a_preferred_label_comes_before_suggested_ids_and_those_before_weight(tmp_path):
    body = 'a b c start -> a; a -> b [label="Fix"]; a -> c [weight=9]; a -> done; b -> done; c -> done'
    label = left(tmp_path, "a", body, lambda *_: Outcome(StageStatus.SUCCESS, "fix", ("done",)))
    assert (label.target, label.words) == ("b", 'to b: the stage preferred the label "fix"')
    assert verdicts(label)["c"] == "the stage asked for b"
    ids = left(tmp_path / "2", "a", body, lambda *_: Outcome(StageStatus.SUCCESS, "", ("nowhere", "done")))
    assert (ids.target, ids.route) == ("done", "suggested_id")
    weight = left(tmp_path / "3", "a", body, lambda *_: Outcome(StageStatus.SUCCESS, "Ship"))
    assert (weight.target, weight.route) == ("c", "weight")
    assert verdicts(weight)["done"] == "weight 0 is lower than 9"
    assert [(rule.name, rule.words) for rule in weight.rules][1] == (
        "preferred label, suggested ids",
        'no edge for "Ship"',
    )
    lexical = left(tmp_path / "4", "a", "a b start -> a; a -> done; a -> b; b -> done")
    assert (lexical.target, lexical.route) == ("b", "lexical")
    assert verdicts(lexical)["done"] == "b comes first by target id"


def fails_at(name):
    return lambda node, prompt, context: Outcome.fail("no luck") if node.id == name else Outcome.success()


def test_after_a_failure_only_the_edges_that_are_for_failures_count(tmp_path):
    body = "a b c start -> a; a -> b; a -> c [default=true]; b -> done; c -> done"
    way = left(tmp_path, "a", body, fails_at("a"))
    assert (way.target, way.route, way.mismatch) == ("c", "default", "")
    assert verdicts(way)["b"] == "not for a failure: c is default=true"
    jump = left(tmp_path / "2", "a", "a [retry_target=b] b start -> b -> a -> done", _fails_once("a"))
    assert jump.route == "only_edge"
    journal, plan = ran(tmp_path / "3", "a [retry_target=b] b start -> b -> a -> done", _fails_once("a"))
    first = reasons_of(plan, journal, journal.visits_of("a")[0].commit)
    assert (first.target, first.edge, first.route, first.mismatch) == ("b", None, "retry_target", "")
    assert first.words == "to b: it failed, and retry_target of a leads there"
    assert first.rules[-1].decides
    assert verdicts(first) == {"done": "not for a failure"}
    assert arrival_of(journal, journal.visits_of("b")[1]).words == (
        "from a, visit 1: it failed, and retry_target of a leads there"
    )


def _fails_once(name):
    left = [1]

    def answer(node, prompt, context):
        return Outcome.fail("no luck") if node.id == name and left and left.pop() else Outcome.success()

    return answer


def test_a_failure_goes_to_the_diamond_that_judges_it_and_the_diamond_sees_it(tmp_path):
    body = """a fix judge [shape=diamond] start -> a -> judge; fix -> done
      judge -> done [condition="outcome=success"]; judge -> fix [condition="outcome=fail"]"""
    journal, plan = ran(tmp_path, body, fails_at("a"))
    stage, diamond = (reasons_of(plan, journal, journal.visits_of(name)[0].commit) for name in ("a", "judge"))
    assert (stage.target, stage.route) == ("judge", "conditional_target")
    assert (diamond.target, diamond.mismatch) == ("fix", "")
    assert diamond.candidates[0].words == 'does not hold: `outcome=success` saw "fail"'


def test_a_failure_without_a_way_on_ends_the_run_and_says_so(tmp_path):
    way = left(tmp_path, "a", "a start -> a -> done", fails_at("a"))
    assert (way.target, way.route, way.mismatch) == ("", "failed", "")
    assert way.words == "the run failed here: no luck"
    assert [rule.name for rule in way.rules] == [
        "condition",
        "preferred label, suggested ids",
        "default=true",
        "a diamond behind it",
        "weight",
        "retry targets",
        "end",
    ]


def test_a_graph_that_was_changed_since_is_said_and_never_hidden(tmp_path):
    before = 'a b start -> a; a -> b [condition="context.n=1"]; a -> done; b -> done'
    way = left(tmp_path, "a", before, as_now=before.replace("n=1", "n=5"))
    assert way.target == "b"
    assert "went to b (condition), but by the graph as it is now it would go to done" in way.mismatch
    assert [candidate.is_taken for candidate in way.candidates] == [True, False]
    gone = left(tmp_path / "2", "a", before, as_now="start -> done")
    assert gone.mismatch == "the graph has no node a any more: it was changed since"


FAN = """fork [shape=component] join [shape=tripleoctagon] a b c start -> fork; fork -> a; fork -> b
  a -> c [condition="context.n=a"]; a -> join; c -> join; b -> join; join -> done"""


def test_stages_in_branches_are_explained_by_the_context_of_their_branch(tmp_path):
    def answer(node, prompt, context):
        return Outcome.success(context_updates={"n": node.id})

    journal, plan = ran(tmp_path, FAN, answer)
    told = {(commit.branch, commit.name): way for commit, way in all_route_reasons(plan, journal)}
    assert all(not way.mismatch for way in told.values())
    (branch,) = {branch for branch, name in told if name == "a"}
    assert told[branch, "a"].route == "condition"
    assert told["", "fork"].route == "join"
    assert verdicts(told["", "fork"]) == {"a": "begins a branch", "b": "begins a branch"}
    assert arrival_of(journal, journal.visits_of("a")[0]).words == "branch a of fork begins here"
    assert arrival_of(journal, journal.visits_of("start")[0]).words == "the run begins here"
    assert told[branch, "a"] == reasons_of(plan, journal, journal.visits_of("a")[0].commit)


def test_what_a_person_did_before_a_visit_is_told_with_how_the_run_came_there():
    start = StageStarted(name="start", sequence=2)
    ended = StageCompleted(name="start", sequence=3, outcome=Outcome.success(), next_node="a", route="only_edge")
    forked = PipelineForked(node="a", visit=1, context={"n": 5}, prompt="Write it", sequence=4)
    changed = DebuggerChanged(change="context", context={"grade": "A"}, sequence=5)
    visit = StageStarted(name="a", sequence=6)
    begun = PipelineStarted(name="g", id="1", start_node="start", sequence=1)
    journal = Journal([begun, start, ended, forked, changed, visit])
    assert arrival_of(journal, journal.visits_of("a")[0]).words == (
        "from start, visit 1: only_edge; the run began as a fork just before it with n, the prompt changed;"
        " grade set by hand"
    )


GATED = "draft [goal_gate=true, retry_target=draft] start -> draft -> done [default=true]"


def test_a_goal_gate_that_sends_the_run_back_is_why_the_next_visit_began(tmp_path):
    journal, plan = ran(tmp_path, GATED, _fails_once("draft"))
    second = journal.visits_of("draft")[1]
    assert (
        arrival_of(journal, second).words
        == "goal gate `draft` was not satisfied at the end, and sent the run back here"
    )
    for _, way in all_route_reasons(plan, journal):
        assert way.mismatch == ""


@pytest.mark.parametrize("policy", ["continue", ""])
def test_every_step_of_a_run_is_explained_without_a_mismatch(tmp_path, policy):
    head = f"graph [on_fail={policy}] " if policy else ""
    body = head + """a [max_retries=1] b start -> a; a -> b [condition="outcome=fail"]; a -> done; b -> a"""
    counts = {"a": 0}

    def answer(node, prompt, context):
        counts["a"] += node.id == "a"
        return Outcome.fail("no") if node.id == "a" and counts["a"] < 4 else Outcome.success()

    journal, plan = ran(tmp_path, body, answer)
    told = list(all_route_reasons(plan, journal))
    assert len(told) == len([visit for visit in journal.visits if visit.commit])
    assert [way.mismatch for _, way in told] == [""] * len(told)
    assert [way.to_plain()["target"] for _, way in told] == ["a", "b", "a", "done", ""]
