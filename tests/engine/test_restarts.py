"""``loop_restart``: a fresh run directory in the first one's root (ruling 21)."""

import json

import pytest

from attractor_nb import Outcome, Run, StageStatus, Usage, load_checkpoint
from attractor_nb.errors import RunError
from attractor_nb.model.events import PipelineRestarted, PipelineRewound, PipelineStarted
from attractor_nb.stage import current_stage
from attractor_nb.storage.sealed_file import seal, unseal
from attractor_nb.storage.stored_run import read_run

LOOP = """a b start -> a -> b
b -> a [condition="context.round!=3", loop_restart=true]
b -> done [condition="context.round=3"]"""


def restarting(make, rounds, **options):
    """A pipeline that restarts until its ``rounds`` have been used up; it remembers outside its context."""
    left = list(rounds)

    def answer(node, prompt, context):
        if node.id == "a":
            return Outcome.success(context_updates={"left_over": context.get("left_over", "nothing") + "!"})
        return Outcome.success(context_updates={"round": left.pop(0)})

    return make(f'goal="Go" {LOOP}', backend=answer, **options)


def plain(path):
    return json.loads(path.read_text())


def test_ruling_21_a_restart_begins_in_a_directory_of_its_own(make, tmp_path):
    result = restarting(make, [1, 2, 3]).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "success"
    assert result.logs_root == tmp_path / "run" / "restart-2"
    assert result.completed_nodes == ("a", "b", "done")
    assert (tmp_path / "run" / "restart-1" / "b" / "status.json").is_file()


def test_ruling_21_the_context_is_the_graphs_and_the_inputs_alone(make, tmp_path):
    result = restarting(make, [1, 3]).run(wait=True, logs_root=tmp_path / "run", params={"ticket": "42"})
    assert result.context["left_over"] == "nothing!"
    assert (result.context["ticket"], result.context["graph.goal"]) == ("42", "Go")


def test_ruling_21_the_directories_are_linked_both_ways(make, tmp_path):
    restarting(make, [1, 3]).run(wait=True, logs_root=tmp_path / "run")
    first, second = plain(tmp_path / "run/manifest.json"), plain(tmp_path / "run/restart-1/manifest.json")
    assert (first["status"], first["restarted_as"]) == ("restarted", "restart-1")
    assert (second["status"], second["restart_of"]) == ("completed", "..")


def test_ruling_21_the_events_tell_of_the_restart(make, tmp_path):
    seen = []
    pipeline = restarting(make, [1, 3])
    pipeline.on_event(seen.append)
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    (restarted,) = (event for event in seen if isinstance(event, PipelineRestarted))
    assert (restarted.target, restarted.restarts) == ("a", 1)
    starts = [event for event in seen if isinstance(event, PipelineStarted)]
    assert [(event.start_node, bool(event.restart_of)) for event in starts] == [("start", False), ("a", True)]


def test_ruling_18_restarts_are_bounded_and_the_cycle_is_named(make, tmp_path):
    result = restarting(make, [1] * 20).run(wait=True, logs_root=tmp_path / "run", max_restarts=2)
    assert result.status == "fail"
    assert "max_restarts=2" in result.reason
    assert "a -> b -> a" in result.reason


@pytest.mark.parametrize("where", ["run", "run/restart-1"], ids=["first_directory", "restart_directory"])
@pytest.mark.parametrize("stop_after", [4, 5])
def test_ruling_21_a_run_that_was_stopped_after_a_restart_goes_on_there(make, tmp_path, where, stop_after):
    pipeline = restarting(make, [1, 3])
    stopped = pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=stop_after)
    assert stopped.status == "paused"
    result = pipeline.resume(tmp_path / where).result(60)
    assert result.status == "success"
    assert result.completed_nodes == ("a", "b", "done")


def test_ruling_21_a_restart_that_was_cut_off_before_its_first_record_begins_at_its_target(make, tmp_path):
    """Killed between the old log's last record and the new log's first."""
    pipeline = restarting(make, [1, 3])
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=4, params={"ticket": "42"})
    fresh = tmp_path / "run/restart-1"
    (fresh / "events.jsonl").write_bytes(b"")
    for path in fresh.glob("checkpoint*"):
        path.unlink()
    for path in fresh.glob("manifest*"):  # as it was made: it knew of no record yet
        manifest = unseal(path.read_bytes())
        path.write_bytes(seal({**manifest, "log_sequence": 0}))
    result = pipeline.resume(tmp_path / "run").result(60)
    assert result.status == "success"
    assert result.completed_nodes == ("a", "b", "done")
    assert result.context["ticket"] == "42"


def test_ruling_21_a_loaded_run_shows_where_it_went_on(make, tmp_path):
    restarting(make, [1, 3]).run(wait=True, logs_root=tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert (loaded.status, loaded.logs_root) == ("completed", tmp_path / "run" / "restart-1")
    assert load_checkpoint(tmp_path / "run/restart-1").current_node == "done"


def test_ruling_21_a_finished_restart_cannot_go_on(make, tmp_path):
    pipeline = restarting(make, [1, 3])
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    with pytest.raises(RunError, match="has completed"):
        pipeline.resume(tmp_path / "run")


def test_ruling_21_a_run_that_stores_nothing_restarts_too(make):
    assert restarting(make, [1, 2, 3]).run(wait=True, durability="none").status == "success"


def test_each_visit_has_a_key_of_its_own_in_every_directory(make, tmp_path):
    """A tool that remembers keys must not take the visit after a restart for the one before."""
    keys, left = [], [1, 2, 3]

    def answer(node, prompt, context):
        keys.append(current_stage().idempotency_key)
        return Outcome.success(context_updates={"round": left.pop(0) if node.id == "b" else 0})

    result = make(LOOP, backend=answer).run(wait=True, logs_root=tmp_path / "run")
    assert len(set(keys)) == len(keys) == 6
    assert result.visits == {"a": 1, "b": 1, "done": 1}


@pytest.mark.parametrize("where", ["run", "run/restart-1"], ids=["first_directory", "restart_directory"])
def test_ruling_18_the_log_of_a_restart_alone_knows_what_came_before(make, tmp_path, where):
    pipeline = restarting(make, [1] * 20)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=4)
    for path in tmp_path.rglob("checkpoint*"):
        path.unlink()
    result = pipeline.resume(tmp_path / where, max_restarts=1).result(60)
    assert result.status == "fail"
    assert "max_restarts=1" in result.reason


@pytest.mark.parametrize("where", ["new", "new/restart-1", "new/restart-2"])
@pytest.mark.parametrize("is_log_alone", [False, True])
def test_ruling_21_the_links_hold_after_the_whole_directory_was_moved(make, tmp_path, where, is_log_alone):
    pipeline = restarting(make, [1, 2, 3])
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=6)
    (tmp_path / "run").rename(tmp_path / "new")
    if is_log_alone:
        for pattern in ("checkpoint*", "manifest*"):
            for path in tmp_path.rglob(pattern):
                path.unlink()
    assert Run.load(tmp_path / where).logs_root == tmp_path / "new/restart-2"
    result = pipeline.resume(tmp_path / where).result(60)
    assert (result.status, result.logs_root) == ("success", tmp_path / "new/restart-2")
    assert not (tmp_path / "run").exists()


def rewinding(make, tmp_path, rounds):
    """A run that has restarted; ``prepare`` was visited before that alone."""
    body = LOOP.replace("start -> a", "prepare start -> prepare -> a")
    left, calls = list(rounds), []

    def answer(node, prompt, context):
        calls.append(current_stage().idempotency_key.partition(":")[2])
        return Outcome.success(context_updates={"round": left.pop(0)} if node.id == "b" else {})

    run = make(body, backend=answer).run(logs_root=tmp_path / "run")
    assert run.result(60).status == "success"
    return run, calls


def test_ruling_21_a_rewind_after_a_restart_works_in_the_directory_where_the_run_is(make, tmp_path):
    run, calls = rewinding(make, tmp_path, [1, 3, 3])
    del calls[:]
    result = run.rewind("a").result(60)
    assert result.logs_root == tmp_path / "run/restart-1"
    assert calls == ["a:3", "b:3"]
    assert result.completed_nodes == ("a", "b", "done")


@pytest.mark.parametrize("where", ["run", "run/restart-1"], ids=["first_directory", "restart_directory"])
def test_ruling_21_a_rewind_goes_back_behind_a_restart_and_restarts_anew(make, tmp_path, where):
    run, calls = rewinding(make, tmp_path, [1, 3, 1, 3])
    del calls[:]
    again = run.pipeline.resume(tmp_path / where, rewind_to="prepare")
    result = again.result(60)
    assert calls == ["prepare:2", "a:3", "b:3", "a:4", "b:4"]
    assert result.logs_root == tmp_path / "run/restart-2"
    first, second = plain(tmp_path / "run/manifest.json"), plain(tmp_path / "run/restart-2/manifest.json")
    assert (first["status"], first["restarted_as"], second["restart_of"]) == ("restarted", "restart-2", "..")
    (rewound,) = (event for event in read_run(tmp_path / "run").events if isinstance(event, PipelineRewound))
    assert (rewound.visit, rewound.stages) == (1, 6)
    assert (tmp_path / "run/restart-1/b/status.json").is_file()
    assert Run.load(tmp_path / "run").logs_root == result.logs_root


def test_ruling_18_a_rewind_behind_a_restart_does_not_give_it_back(make, tmp_path):
    run, _ = rewinding(make, tmp_path, [1, 3, 1, 3])
    result = run.rewind("prepare", max_restarts=1).result(60)
    assert result.status == "fail"
    assert "max_restarts=1" in result.reason
    assert plain(tmp_path / "run/manifest.json")["restarted_as"] == ""


def test_ruling_21_a_directory_that_was_set_aside_does_not_go_on(make, tmp_path):
    run, _ = rewinding(make, tmp_path, [1, 3, 1, 3])
    run.rewind("prepare", stop_after=1).result(60)
    for name in ("resume", "rewind"):
        with pytest.raises(RunError, match="set aside") as caught:
            run.pipeline.resume(tmp_path / "run/restart-1", rewind_to="a" if name == "rewind" else None)
        assert str(tmp_path / "run") in caught.value.hint
    assert run.pipeline.resume(tmp_path / "run").result(60).logs_root == tmp_path / "run/restart-2"
    with pytest.raises(RunError, match="set aside"):
        run.pipeline.resume(tmp_path / "run/restart-1")


def test_ruling_21_a_node_that_no_directory_visited_is_said_to_be_so(make, tmp_path):
    run, _ = rewinding(make, tmp_path, [1, 3])
    with pytest.raises(RunError, match="no visit 5 of prepare") as caught:
        run.rewind("prepare", visit=5)
    assert caught.value.hint == "visits of prepare: 1"


def test_what_was_spent_before_a_restart_is_shown_wherever_the_run_goes_on(make, tmp_path):
    left = [1, 3]

    def answer(node, prompt, context):
        updates = {"round": left.pop(0)} if node.id == "b" else {}
        return Outcome(StageStatus.SUCCESS, context_updates=updates, usage=Usage(10, cost_usd=0.5))

    pipeline = make(LOOP, backend=answer)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=4)
    run = pipeline.resume(tmp_path / "run")
    result = run.result(60)
    assert result.usage == Usage(40, cost_usd=2.0)
    assert run["a"].usage == result["a"].usage == Usage(20, cost_usd=1.0)
    assert run.view.usage == result.usage
    assert Run.load(tmp_path / "run/restart-1").view.usage == result.usage
