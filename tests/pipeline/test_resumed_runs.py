"""A resumed run is the run that an uninterrupted one would have been."""

import asyncio
import json
import shutil
import threading

import pytest

from attractor_nb.errors import OptionError, RunError, RunNotFound, StorageError
from attractor_nb.model.outcome import Outcome
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.pipeline.run import Run
from attractor_nb.runtime.resume import AGENT_TASK_FILE, _requests, request_file
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.testing import ScriptedBackend
from tests.disks.faulty_disk import FaultyDisk

LIMIT_SECONDS = 60
LOOP = """digraph g {
    start [shape=Mdiamond] work [type=custom] again done [shape=Msquare]
    start -> work
    again -> work
    work -> done [condition="context.rounds=3"]
    work -> again [condition="context.rounds!=3", loop_restart=true]
}"""


class Rounds:
    """Counts its calls over restarts and keeps what it saw of the context."""

    def __init__(self):
        self.count, self.tickets = 0, []

    def __call__(self, node, context, graph, logs_root):
        self.count += 1
        self.tickets.append(context.get("ticket"))
        return Outcome.success(context_updates={"context.rounds": self.count})


def restarted_run(root):
    """A run of three rounds, in ``root``, ``root/restart-1`` and ``root/restart-2``."""
    rounds = Rounds()
    pipeline = Pipeline(LOOP, handlers={"custom": rounds}, backend="simulated")
    result = pipeline.run(wait=True, logs_root=root, params={"ticket": "42"})
    assert result.status == "success"
    return pipeline, rounds, result


def forget_end(logs_root, keep):
    """Leave a directory as a kill would, with the first ``keep`` records of its log."""
    log = logs_root / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:keep]))
    for stale in (*logs_root.glob("checkpoint*"), *logs_root.glob("manifest*")):
        stale.unlink()


def forget_restart(root):
    """Leave the run as a kill just after the first ``PipelineRestarted`` would."""
    shutil.rmtree(root / "restart-2")
    forget_end(root / "restart-1", keep=0)


def test_ruling_21_a_restart_that_was_killed_before_its_first_record_begins_at_its_target(tmp_path):
    pipeline, rounds, _ = restarted_run(tmp_path / "run")
    forget_restart(tmp_path / "run")
    rounds.count = 1
    result = pipeline.resume(tmp_path / "run").result(LIMIT_SECONDS)
    assert result.status == "success"
    assert result.completed_nodes == ("again", "work", "done")
    assert rounds.tickets[-1] == "42"


def test_ruling_18_restarts_before_a_kill_count_after_it(tmp_path):
    pipeline, rounds, _ = restarted_run(tmp_path / "run")
    forget_restart(tmp_path / "run")
    rounds.count = 1
    result = pipeline.resume(tmp_path / "run", max_restarts=1).result(LIMIT_SECONDS)
    assert result.status == "fail"
    assert "max_restarts=1 reached: 1 restart made" in result.reason
    assert result.bound == "max_restarts"


def test_a_restarted_run_that_was_moved_goes_on_where_it_was_moved_to(tmp_path):
    pipeline, rounds, _ = restarted_run(tmp_path / "old")
    forget_end(tmp_path / "old" / "restart-2", keep=1)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    rounds.count = 2
    result = pipeline.resume(tmp_path / "new").result(LIMIT_SECONDS)
    assert result.status == "success"
    assert result.logs_root == tmp_path / "new" / "restart-2"


def test_a_restarted_run_is_loaded_with_its_real_end(tmp_path):
    _, _, live = restarted_run(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.status == "completed"
    assert loaded.result().completed_nodes == live.completed_nodes


def test_a_run_stopped_while_its_backend_opens_keeps_its_parameters(tmp_path):
    opening = threading.Event()

    class Slow:
        async def open(self):
            opening.set()
            await asyncio.get_running_loop().create_future()

        async def close(self):
            pass

        def run(self, node, prompt, context):
            return "text"

    pipeline = Pipeline("digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    run = pipeline.run(logs_root=tmp_path / "run", backend=Slow(), params={"ticket": "42"})
    assert opening.wait(LIMIT_SECONDS)
    run.cancel()
    assert run.result(LIMIT_SECONDS).status == "interrupted"
    for checkpoint in (tmp_path / "run").glob("checkpoint*"):
        checkpoint.unlink()
    result = run.resume(backend="simulated").result(LIMIT_SECONDS)
    assert result.context["ticket"] == "42"
    first = json.loads((tmp_path / "run" / "events.jsonl").read_bytes().splitlines()[0])
    assert first["type"] == "PipelineStarted"


@pytest.mark.parametrize("is_checkpoint_kept", [True, False], ids=["checkpoint", "log-alone"])
def test_ruling_29_a_stage_that_was_cut_off_leaves_nothing_in_the_context(is_checkpoint_kept, tmp_path):
    reached, seen = threading.Event(), []

    async def work(node, context, graph, logs_root):
        seen.append((context.get("half"), context.get("ticket"), context.logs))
        context.set("half", "done")
        context.set("ticket", "changed")
        context.append_log("half done")
        if len(seen) == 1:
            reached.set()
            await asyncio.get_running_loop().create_future()
        return Outcome.success()

    source = "digraph g { start [shape=Mdiamond] work [type=custom] done [shape=Msquare] start -> work -> done }"
    run = Pipeline(source, handlers={"custom": work}).run(logs_root=tmp_path / "run", params={"ticket": "42"})
    assert reached.wait(LIMIT_SECONDS)
    run.cancel()
    stopped = run.result(LIMIT_SECONDS)
    assert (stopped.context.get("half"), stopped.context["ticket"]) == (None, "42")
    if not is_checkpoint_kept:
        for checkpoint in (tmp_path / "run").glob("checkpoint*"):
            checkpoint.unlink()
    result = run.resume().result(LIMIT_SECONDS)
    assert seen == [(None, "42", ()), (None, "42", ())]
    assert (result.context["half"], result.context["ticket"], result.context.logs) == (
        "done",
        "changed",
        ("half done",),
    )


BEFORE = """digraph g {
    start [shape=Mdiamond] first [prompt="one"] second [prompt="two"] done [shape=Msquare]
    start -> first -> second -> done
}"""
AFTER = {
    "fewer-edges": """digraph g {
        start [shape=Mdiamond] second [prompt="two"] done [shape=Msquare]
        second -> done
        start -> second
    }""",
    "another-edge-in-its-place": """digraph g {
        start [shape=Mdiamond] second [prompt="two"] third [prompt="three"] done [shape=Msquare]
        start -> second
        third -> second [loop_restart=true]
        second -> done
        start -> third
    }""",
}


@pytest.mark.parametrize("text", AFTER.values(), ids=AFTER.keys())
def test_a_run_goes_on_with_a_changed_graph_that_was_accepted(text, tmp_path):
    run = Pipeline(BEFORE).run(logs_root=tmp_path / "run", stop_after=2)
    assert run.result(LIMIT_SECONDS).next_node == "second"
    changed = Pipeline(text).resume(tmp_path / "run", on_graph_change="accept", backend="simulated")
    result = changed.result(LIMIT_SECONDS)
    assert result.status == "success"
    assert result.completed_nodes == ("start", "first", "second", "done")
    assert "<svg" in result.to_svg()


def test_a_file_that_is_named_as_a_run_directory_is_not_told_to_be_removed(tmp_path):
    path = tmp_path / "review.dot"
    path.write_text("digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    with pytest.raises(RunNotFound, match="no run directory") as caught:
        Pipeline(path).resume(path)
    assert "remove" not in caught.value.hint


def test_a_resume_that_would_keep_nothing_is_refused_with_what_to_say_instead(tmp_path):
    pipeline = Pipeline("digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast", stop_after=1)
    with pytest.raises(OptionError, match="keeps none") as caught:
        pipeline.resume(tmp_path / "run", durability="none")
    assert 'durability="fast"' in caught.value.hint


LINE = "a b c start -> a -> b -> c -> done"


def test_ruling_18_bounds_given_to_the_run_hold_for_its_resume(make, tmp_path):
    pipeline = make(LINE)
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", max_steps=2, max_duration="1h")
    assert ended.bound == "max_steps"
    again = pipeline.resume(tmp_path / "run").result(60)
    assert (again.bound, again.completed_nodes) == ("max_steps", ended.completed_nodes)
    raised = pipeline.resume(tmp_path / "run", max_steps=3).result(60)
    assert (raised.bound, len(raised.completed_nodes)) == ("max_steps", 3)
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["bounds"] == {"max_steps": 3, "max_duration": "1h"}
    assert pipeline.resume(tmp_path / "run").result(60).bound == "max_steps"
    assert pipeline.resume(tmp_path / "run", max_steps=50).result(60).status == "success"


def test_ruling_18_bounds_hold_in_a_restart_directory_too(make, tmp_path):
    body = """a start -> a  a -> a [loop_restart=true, condition="context.left!=yes"]
              a -> done [condition="context.left=yes"]"""
    pipeline = make(body)
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", max_restarts=2, max_steps=40)
    assert ended.bound == "max_restarts"
    again = pipeline.resume(tmp_path / "run").result(60)
    assert (again.bound, again.logs_root) == ("max_restarts", ended.logs_root)


@pytest.mark.parametrize("name", ["params", "logs_root", "runs_dir"])
def test_what_is_a_runs_own_is_refused_by_its_resume(make, tmp_path, name):
    pipeline = make(LINE)
    run = pipeline.run(logs_root=tmp_path / "run", stop_after=2)
    run.result(60)
    given = {"params": {"ticket": "43"}, "logs_root": tmp_path / "other", "runs_dir": tmp_path}[name]
    for resume in (run.resume, lambda **more: run.rewind("a", **more)):
        with pytest.raises(OptionError, match=f"{name} cannot be changed") as caught:
            resume(**{name: given})
        assert caught.value.hint
    assert not (tmp_path / "other").exists()
    assert run.resume().result(60).status == "success"


JUDGED = """digraph loop { start [shape=Mdiamond] judge [prompt=Judge] done [shape=Msquare] start -> judge
    judge -> judge [condition="outcome=fail", loop_restart=true] judge -> done [condition="outcome=success"] }"""


def test_restarts_that_lead_to_one_another_without_end_are_refused_and_nothing_stays_owned(tmp_path, monkeypatch):
    backend = ScriptedBackend({"judge": [Outcome.fail("1"), Outcome.fail("2"), "fine"]})
    pipeline = Pipeline(JUDGED, backend=backend)
    pipeline.run(logs_root=tmp_path / "run", stop_after=4, wait=True)
    monkeypatch.setattr("attractor_nb.runtime.stored_state.MAX_RESTART_HOPS", 2)
    places = [tmp_path / "run", *sorted((tmp_path / "run").glob("restart-*"))]
    for options in ({}, {"take_over": True}):  # the first is looked at before anybody owns it
        with pytest.raises(RunError, match=r"the restarts of .*restart-2 have no end"):
            pipeline.resume(tmp_path / "run", **options)
        assert [place for place in places if is_owned(place)] == []


def test_what_the_disk_refuses_of_a_run_that_had_begun_is_its_own_error(tmp_path):
    pipeline = Pipeline(JUDGED, backend=ScriptedBackend({}))
    pipeline.run(logs_root=tmp_path / "run", stop_after=1, wait=True)
    with pytest.raises(StorageError, match=r"owner.lock: input/output error"):
        pipeline.resume(tmp_path / "run", disk=FaultyDisk(fail_at=1))
    assert not is_owned(tmp_path / "run")
    assert pipeline.resume(tmp_path / "run").result(60).status == "success"


@pytest.mark.parametrize("name", [request_file(1), AGENT_TASK_FILE])
def test_what_is_no_file_in_the_place_of_a_request_is_no_request(tmp_path, name):
    """Requests that a stage made before its process ended are counted by the files that it left."""
    (tmp_path / name).mkdir()
    assert _requests(lambda file: read_stage_text(tmp_path, file, tmp_path)) == 0
    (tmp_path / name).rmdir()
    (tmp_path / name).write_text("{}")
    assert _requests(lambda file: read_stage_text(tmp_path, file, tmp_path)) == 1
