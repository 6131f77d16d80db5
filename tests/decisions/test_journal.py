"""The past of a run, from its events alone."""

from __future__ import annotations

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.decisions.history.journal import Journal
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage.stored_run import read_run

LOOP = """digraph loop {
  start [shape=Mdiamond] done [shape=Msquare]
  draft [max_retries=1] check
  start -> draft -> check
  check -> done [condition="context.n=2"]
  check -> draft [condition="context.n!=2"]
}"""
FAN = """digraph fan {
  start [shape=Mdiamond] done [shape=Msquare] fork [shape=component] join [shape=tripleoctagon] a b
  start -> fork; fork -> a -> join; fork -> b -> join; join -> done
}"""


def journal_of(text, answer, tmp_path):
    Pipeline(text, backend=FunctionBackend(answer)).run(wait=True, logs_root=tmp_path / "run", params={"n": 0})
    return Journal(read_run(tmp_path / "run").events, {"graph.goal": ""})


def test_each_visit_has_its_attempts_and_the_contexts_around_it(tmp_path):
    failures = ["busy"]

    def answer(node, prompt, context):
        if node.id == "draft" and failures:
            return Outcome.retry(failures.pop())
        updates = {"n": context.get("n") + 1} if node.id == "check" else {}
        return Outcome.success(context_updates=updates)

    journal = journal_of(LOOP, answer, tmp_path)
    assert [(visit.node_id, visit.number) for visit in journal.visits] == [
        ("start", 1), ("draft", 1), ("check", 1), ("draft", 2), ("check", 2), ("done", 1),
    ]  # fmt: skip
    first, second = journal.visits_of("draft")
    assert [attempt.ended.outcome.status.value for attempt in first.attempts] == ["retry", "success"]
    assert len(second.attempts) == 1
    one, two = journal.visits_of("check")
    assert [journal.context_before(one)["n"], journal.context_after(one)["n"]] == [0, 1]
    assert [journal.context_before(two)["n"], journal.context_after(two)["n"]] == [1, 2]
    assert journal.values_at(0) == {"graph.goal": ""}


def test_a_branch_sees_what_its_fan_out_had_and_what_it_wrote_itself(tmp_path):
    def answer(node, prompt, context):
        return Outcome.success(context_updates={"n": node.id})

    journal = journal_of(FAN, answer, tmp_path)
    (a,) = journal.visits_of("a")
    assert a.branch
    assert journal.visits_of("a", "") == []
    assert journal.context_before(a)["n"] == 0
    assert journal.context_after(a)["n"] == "a"
    assert journal.values_at(10**6)["n"] == 0
