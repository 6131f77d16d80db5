"""A run that is cut and resumed ends as one that was not (ruling 29)."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb import Outcome, Pipeline, Run, StageStatus, load_checkpoint
from attractor_nb.errors import CheckpointCorrupt, GraphChanged, OptionError, RunError, RunNotFound
from attractor_nb.model.events import PipelineResumed, RunWarning, StageStarted
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.testing import ManualClock, ScriptedBackend, SeededRandomness
from tests.engine.scripted_graphs import scripted_pipelines

STATUSES = [StageStatus.SUCCESS, StageStatus.FAIL, StageStatus.PARTIAL_SUCCESS, StageStatus.RETRY, StageStatus.SKIPPED]


class Replies:
    """Replies by node and by how often it was called so far; what was called is in the context alone."""

    def __init__(self, table):
        self._table = table

    async def run(self, node, prompt, context):
        calls = context.get(f"calls.{node.id}", 0)
        replies = self._table.get(node.id, [StageStatus.SUCCESS])
        status = replies[min(calls, len(replies) - 1)]
        context.set(f"calls.{node.id}", calls + 1)
        reason = f"{node.id} {calls}" if status in {StageStatus.FAIL, StageStatus.RETRY} else ""
        return Outcome(status, failure_reason=reason, context_updates={f"note.{node.id}": calls})


PIPELINES = scripted_pipelines(("a", "b", "c", "d"), STATUSES, Replies)


def options():
    return {"clock": ManualClock(), "randomness": SeededRandomness(), "durability": "fast", "max_steps": 25}


def told(result):
    """The facts that two runs must agree in."""
    context = {key: value for key, value in result.context.snapshot().items() if not key.startswith("internal.")}
    return (
        result.status,
        result.reason,
        result.completed_nodes,
        result.node_outcomes,
        result.visits,
        context,
        result.next_node,
    )


@settings(max_examples=25, deadline=None)
@given(pipeline=PIPELINES, cuts=st.lists(st.integers(1, 8), min_size=1, max_size=4))
def test_resume_equals_an_uninterrupted_run(pipeline, cuts):
    with tempfile.TemporaryDirectory() as folder:
        whole = pipeline.run(wait=True, logs_root=Path(folder) / "whole", **options())
        root = Path(folder) / "cut"
        result = pipeline.run(wait=True, logs_root=root, stop_after=cuts[0], **options())
        for cut in [*cuts[1:], None]:
            if result.status != "paused":
                break
            result = pipeline.resume(root, stop_after=cut, **options()).result(30)
        assert told(result) == told(whole)
        assert told(Run.load(root).result()) == told(whole)


@settings(max_examples=15, deadline=None)
@given(pipeline=PIPELINES, cut=st.integers(1, 8))
def test_the_log_alone_is_enough_to_go_on(pipeline, cut):
    with tempfile.TemporaryDirectory() as folder:
        whole = pipeline.run(wait=True, logs_root=Path(folder) / "whole", **options())
        root = Path(folder) / "cut"
        result = pipeline.run(wait=True, logs_root=root, stop_after=cut, **options())
        for name in ("checkpoint.json", "checkpoint.json.prev", "manifest.json"):
            (root / name).unlink(missing_ok=True)
        for other in root.glob("checkpoint*.json"):
            other.unlink()
        if result.status == "paused":
            result = pipeline.resume(root, **options()).result(30)
        assert told(result) == told(whole)


KILLED = """
import os, signal, sys
from pathlib import Path
from attractor_nb import Pipeline, Outcome

kill_at = int(sys.argv[2])

def work(node, prompt, context):
    (Path(sys.argv[3]) / "calls").open("a").write(node.id + "\\n")
    count = context.get("count", 0) + 1
    if count == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome.success(context_updates={"count": count})

Pipeline(Path(sys.argv[1]), backend=work).run(wait=True, logs_root=Path(sys.argv[3]) / "run")
"""
KILL_SOURCE = (
    "digraph g { start [shape=Mdiamond] done [shape=Msquare] a b [max_retries=1] start -> a -> b "
    'b -> a [condition="context.count!=4"] b -> done [condition="context.count=4"] }'
)


@pytest.mark.parametrize("kill_at", [1, 2, 4])
def test_a_killed_run_goes_on_and_repeats_only_the_stage_that_was_under_way(tmp_path, kill_at):
    (tmp_path / "g.dot").write_text(KILL_SOURCE)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "g.dot"), str(kill_at), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL
    assert Run.load(tmp_path / "run").status == "interrupted"

    def work(node, prompt, context):
        with (tmp_path / "calls").open("a") as calls:
            calls.write(node.id + "\n")
        return Outcome.success(context_updates={"count": context.get("count", 0) + 1})

    result = Pipeline(tmp_path / "g.dot", backend=work).resume(tmp_path / "run").result(30)
    assert result.status == "success"
    assert result.completed_nodes == ("start", "a", "b", "a", "b", "done")
    assert result.context["count"] == 4
    assert len((tmp_path / "calls").read_text().split()) == 5


def test_step_runs_one_stage_again_and_again(make):
    pipeline = make("a b start -> a -> b -> done")
    seen = []
    while (result := pipeline.step()).status == "paused":
        seen.append(result.completed_nodes[-1])
    assert seen == ["start", "a", "b"]
    assert (result.status, result.completed_nodes[-1]) == ("success", "done")
    assert pipeline.step().completed_nodes == ("start",)


def test_step_goes_through_retries_and_gates(make, seams):
    pipeline = make(
        'a [max_retries=1] g [shape=hexagon] start -> a -> g g -> done [label="[Y] Yes"]',
        {"a": [Outcome.retry("busy"), "fine"]},
        interviewer="auto",
    )
    results = [pipeline.step(**seams()) for _ in range(4)]
    assert [result.completed_nodes[-1] for result in results] == ["start", "a", "g", "done"]


def test_step_ends_with_a_failure_and_then_begins_anew(make):
    pipeline = make("a start -> a -> done", {"a": Outcome.fail("no")})
    assert [pipeline.step().status for _ in range(3)] == ["paused", "fail", "paused"]


def test_steps_share_one_run_directory(make):
    pipeline = make("a start -> a -> done")
    assert len({pipeline.step().run_id for _ in range(3)}) == 1


def stopped(pipeline, tmp_path, after=2, **more):
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=after, **more)
    return tmp_path / "run"


def test_a_resume_is_told_in_the_log(make, tmp_path):
    pipeline = make("a b start -> a -> b -> done")
    run = pipeline.resume(stopped(pipeline, tmp_path))
    run.result(60)
    (resumed,) = (event for event in run.events() if isinstance(event, PipelineResumed))
    assert resumed.next_node == "b"
    sequences = [event.sequence for event in Run.load(tmp_path / "run").events()]
    assert sequences == list(range(1, len(sequences) + 1))


def test_a_resumed_run_keeps_its_id_and_inputs(make, tmp_path):
    pipeline = make("a b start -> a -> b -> done")
    root = stopped(pipeline, tmp_path, params={"ticket": "42"})
    before = Run.load(root)
    result = pipeline.resume(root).result(60)
    assert result.run_id == before.id
    assert result.context["ticket"] == "42"


def test_the_first_model_stage_after_a_resume_degrades_full_fidelity_for_one_hop(make, tmp_path):
    pipeline = make("default_fidelity=full a b c start -> a -> b -> c -> done")
    run = pipeline.resume(stopped(pipeline, tmp_path))
    run.result(60)
    modes = {event.name: event.fidelity for event in run.events() if isinstance(event, StageStarted)}
    assert (modes["a"], modes["b"], modes["c"]) == ("full", "summary:high", "full")


def test_a_run_that_has_succeeded_cannot_go_on(make, tmp_path):
    pipeline = make("start -> done")
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    with pytest.raises(RunError, match="has completed"):
        pipeline.resume(tmp_path / "run")


def test_a_run_that_has_failed_for_good_cannot_go_on(make, tmp_path):
    pipeline = make("a start -> a -> done", {"a": Outcome.fail("no")})
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    with pytest.raises(RunError, match="failed permanently: no"):
        pipeline.resume(tmp_path / "run")


def test_ruling_18_a_run_that_a_bound_ended_goes_on_with_a_higher_one(make, tmp_path):
    pipeline = make("a b start -> a -> b -> done")
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", max_steps=2)
    assert (result.status, result.next_node) == ("fail", "b")
    assert pipeline.resume(tmp_path / "run", max_steps=9).result(60).completed_nodes == ("start", "a", "b", "done")


def test_a_resume_warns_when_the_file_of_the_run_was_edited(make, tmp_path):
    file = tmp_path / "review.dot"
    file.write_text(make("a b start -> a -> b -> done").to_dot())
    root = tmp_path / "run"
    Pipeline(file).run(logs_root=root, stop_after=2, wait=True)
    file.write_text(make(CHANGED).to_dot())
    run = Run.load(root).resume()
    assert run.result(60).status == "success"
    (warning,) = (event.message for event in run.events() if isinstance(event, RunWarning))
    assert warning.startswith(f"{file} has changed since this run began")
    assert 'on_graph_change="accept"' in warning


CHANGED = "a b c start -> a -> b -> c -> done"


def test_ruling_29_a_changed_graph_is_refused_unless_told(make, tmp_path):
    root = stopped(make("a b start -> a -> b -> done"), tmp_path)
    with pytest.raises(GraphChanged) as caught:
        make(CHANGED).resume(root)
    assert "pipeline.dot" in caught.value.hint
    assert Run.load(root).status == "paused"


@pytest.mark.parametrize(("choice", "warnings"), [("warn", 1), ("accept", 0)])
def test_ruling_29_a_changed_graph_may_be_taken(make, tmp_path, choice, warnings):
    root = stopped(make("a b start -> a -> b -> done"), tmp_path)
    run = make(CHANGED).resume(root, on_graph_change=choice)
    assert run.result(60).completed_nodes == ("start", "a", "b", "c", "done")
    assert len([event for event in run.events() if isinstance(event, RunWarning)]) == warnings


def test_ruling_29_a_changed_graph_may_have_lost_nodes_and_edges(make, tmp_path):
    """Edges are found again by where they lead, not by their place in the text."""
    root = stopped(make("x y a b start -> x -> y -> a a -> b [weight=3] b -> done"), tmp_path, after=4)
    result = make("b start -> b -> done").resume(root, on_graph_change="accept").result(60)
    assert result.status == "success"
    assert result.completed_nodes == ("start", "x", "y", "a", "b", "done")


def test_ruling_29_comments_and_layout_are_no_change(dot, make, tmp_path):
    root = stopped(make("a b start -> a -> b -> done"), tmp_path)
    again = Pipeline(dot("// a comment\n a\n\n b start->a->b->done"), backend=ScriptedBackend())
    assert again.resume(root).result(60).status == "success"


def test_the_place_to_go_on_must_be_in_the_graph(make, tmp_path):
    root = stopped(make("a b start -> a -> b -> done"), tmp_path)
    with pytest.raises(GraphChanged, match="would resume at b, which the graph does not have"):
        make("a start -> a -> done").resume(root, on_graph_change="accept")


def test_an_unknown_choice_is_an_option_error(make, tmp_path):
    pipeline = make("a start -> a -> done")
    root = stopped(pipeline, tmp_path)
    with pytest.raises(OptionError, match="on_graph_change"):
        pipeline.resume(root, on_graph_change="maybe")


def test_nothing_to_resume_is_said(make, tmp_path):
    with pytest.raises(RunNotFound):
        make("start -> done").resume(tmp_path / "nothing")


def test_a_checkpoint_of_a_foreign_shape_is_named(make, tmp_path):
    pipeline = make("a b start -> a -> b -> done")
    root = stopped(pipeline, tmp_path)
    store = DirectoryRunStore.open(root, durability="fast", clock=ManualClock())
    plain = {"current_node": "a", "next_node": "b", "completed_nodes": ["start", "a"], "context": {}}
    store.save_checkpoint({**plain, "state": {"odd": 1}}, is_forced=True)
    store.close()
    with pytest.raises(CheckpointCorrupt, match="foreign shape"):
        pipeline.resume(root)


TOOL = 't [shape=parallelogram, tool_command="echo x"{more}] start -> t -> done'


def cut_off_in_a_tool(make, tmp_path, more=""):
    """A run whose log ends with the intent of a tool stage, as a power loss leaves it."""
    pipeline = make(TOOL.format(more=more))
    root = stopped(pipeline, tmp_path, after=1)
    store = DirectoryRunStore.open(root, durability="fast", clock=ManualClock())
    last = store.read_events()[-1].sequence
    store.append(
        StageStarted(sequence=last + 1, run_id=Run.load(root).id, name="t", index=2, handler_type="tool"),
        is_synced=True,
    )
    store.close()
    return pipeline, root


def test_a_command_that_was_cut_off_is_not_repeated_unasked(make, tmp_path):
    pipeline, root = cut_off_in_a_tool(make, tmp_path)
    with pytest.raises(RunError, match="may have taken effect already") as caught:
        pipeline.resume(root)
    assert 'on_interrupted="rerun"' in caught.value.hint


@pytest.mark.parametrize(
    ("more", "choice", "status"),
    [
        ("", "rerun", "success"),
        ("", "fail", "fail"),
        (", idempotent=true", None, "success"),
        (", on_interrupted=fail", None, "fail"),
        (", on_interrupted=rerun", None, "success"),
    ],
)
def test_what_happens_to_a_command_that_was_cut_off_is_the_authors_choice(make, tmp_path, more, choice, status):
    pipeline, root = cut_off_in_a_tool(make, tmp_path, more)
    assert pipeline.resume(root, on_interrupted=choice).result(60).status == status


def test_a_resumed_gate_is_asked_again_until_it_is_answered(make, tmp_path):
    pipeline = make('g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]', interviewer="deferred")
    run = pipeline.run(logs_root=tmp_path / "run")
    run.wait_for_gate("g", 60)
    run.cancel()
    run.result(60)
    again = run.resume()
    assert again.wait_for_gate("g", 60).id == "g:1"
    again.answer("g", "Y")
    assert again.result(60).status == "success"


def test_the_checkpoint_of_a_waiting_gate_is_on_disk(make, tmp_path):
    run = make('a g [shape=hexagon] start -> a -> g g -> done [label="[Y] Yes"]', interviewer="deferred").run(
        logs_root=tmp_path / "run"
    )
    run.wait_for_gate("g", 60)
    assert load_checkpoint(tmp_path / "run").next_node == "g"
    run.answer("g", "Y")
    run.result(60)
