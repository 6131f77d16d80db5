"""``loop_restart``: a fresh run directory in the first one's root (ruling 21)."""

import json

import pytest

from attractor_nb import Outcome, Run, load_checkpoint
from attractor_nb.errors import RunError
from attractor_nb.model.events import PipelineRestarted, PipelineStarted

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
    result = pipeline.resume(tmp_path / where).result(20)
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
    result = pipeline.resume(tmp_path / "run").result(20)
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
    with pytest.raises(RunError, match="ended in success"):
        pipeline.resume(tmp_path / "run")


def test_ruling_21_a_run_that_stores_nothing_restarts_too(make):
    assert restarting(make, [1, 2, 3]).run(wait=True, durability="none").status == "success"
