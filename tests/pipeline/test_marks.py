"""A result that a pipeline did not reach by itself says so wherever it is shown (ruling 48)."""

import json

import pytest

from attractor_nb import Outcome, Pipeline, Run, SimulatedBackend, StageStatus, load_pipeline, runs
from attractor_nb.storage.run_lists.listing import summarize
from attractor_nb.storage.run_lists.run_index import forget_lists
from attractor_nb.testing import FakeProcesses

SOURCE = """digraph G { start [shape=Mdiamond] plan [prompt=plan] check [prompt=check, goal_gate=true]
    done [shape=Msquare] start -> plan -> check -> done }"""
NO_MODEL = "digraph G { start [shape=Mdiamond] t [shape=parallelogram, tool_command=true] done [shape=Msquare] start -> t -> done }"
RESTARTING = """digraph G { start [shape=Mdiamond] a [prompt=a] done [shape=Msquare]
    start -> a  a -> done [condition="preferred_label=on"]  a -> a [loop_restart=true] }"""


def answer(prompt):
    return f"answered {prompt}"


def everywhere(root):
    """The mark in the result as read again, in the manifest's list, in JSON of the list and in its table."""
    forget_lists()
    table = runs(root.parent)
    row = next(row for row in table if row.logs_root == root)
    return {Run.load(root).result().mark, summarize(root).mark, row.mark, *(m for m in (row.mark,) if m in str(table))}


@pytest.mark.parametrize("backend", [None, "simulated", SimulatedBackend()], ids=repr)
def test_ruling_48_a_simulated_run_is_marked_where_nothing_is_kept_too(backend):
    result = Pipeline(SOURCE).run(wait=True, backend=backend, durability="none")
    assert (result.mark, result.is_simulated) == ("simulated", True)
    assert "simulated" in str(result)


@pytest.mark.parametrize("source", [SOURCE, NO_MODEL], ids=["a backend", "no model"])
def test_what_nobody_simulated_has_no_mark(source, tmp_path):
    result = Pipeline(source).run(wait=True, backend=answer, logs_root=tmp_path / "run")
    assert (result.mark, result.is_simulated, everywhere(tmp_path / "run")) == ("", False, {""})


def test_ruling_48_commands_that_are_not_run_are_simulated(tmp_path):
    options = {"wait": True, "logs_root": tmp_path / "run", "processes": FakeProcesses()}
    assert Pipeline(NO_MODEL).run(**options).mark == "simulated"
    assert everywhere(tmp_path / "run") == {"simulated"}


def test_ruling_48_a_run_that_was_simulated_from_a_resume_on_is_partly_simulated_everywhere(tmp_path):
    root = tmp_path / "run"
    Pipeline(SOURCE).run(wait=True, backend=answer, logs_root=root, stop_after=2)
    result = Pipeline(SOURCE).resume(root, backend="simulated").result()
    assert (result.status, result.mark) == ("success", "partly simulated")
    assert everywhere(root) == {"partly simulated"}


def test_ruling_48_what_a_rewind_sets_aside_leaves_no_mark(tmp_path):
    root = tmp_path / "run"
    Pipeline(SOURCE).run(wait=True, backend=answer, logs_root=root, stop_after=2)
    Pipeline(SOURCE).resume(root, backend="simulated").result()
    result = Pipeline(SOURCE).resume(root, rewind_to="check", backend=answer).result()
    assert result["check"].response.startswith("answered")
    assert (result.mark, everywhere(root)) == ("", {""})


def test_ruling_48_a_pinned_goal_gate_is_named_everywhere(tmp_path):
    root = tmp_path / "run"
    result = Pipeline(SOURCE, backend=answer).run(wait=True, logs_root=root, pins={"check": "all is well"})
    assert (result.status, result.mark, result.is_simulated) == ("success", "pinned: check", False)
    assert everywhere(root) == {"pinned: check"}
    assert "pinned: check" in str(result)


def test_ruling_48_a_loop_restart_keeps_the_mark(tmp_path):
    root, labels = tmp_path / "run", iter(["again", "on"])

    def labelled(prompt):
        return Outcome(StageStatus.SUCCESS, next(labels))

    run = Pipeline(RESTARTING, backend=labelled).run(logs_root=root, pins={})
    assert run.result().mark == ""
    other = Pipeline(RESTARTING).run(wait=True, logs_root=tmp_path / "other", max_restarts=1)
    assert other.mark == "simulated"
    assert everywhere(tmp_path / "other") == {"simulated"}
    going = load_pipeline(tmp_path / "other").resume(tmp_path / "other", backend=labelled_on, max_restarts=2)
    resumed = going.result()
    assert (resumed.status, resumed.mark) == ("success", "partly simulated")
    assert everywhere(tmp_path / "other") == {"partly simulated"}


def labelled_on(prompt):
    return Outcome(StageStatus.SUCCESS, "on")


CHILD = "digraph Child { start [shape=Mdiamond] inner [prompt=x] done [shape=Msquare] start -> inner -> done }"
PARENT = """digraph Parent { start [shape=Mdiamond] own [prompt=own] house [type=pipeline, pipeline.name=child]
    done [shape=Msquare] start -> own -> house -> done }"""


@pytest.mark.parametrize("durability", ["none", "fast"])
def test_ruling_48_a_simulated_child_marks_its_parent(durability, tmp_path):
    root = tmp_path / "runs" / "run"
    options = {} if durability == "none" else {"logs_root": root}
    child = Pipeline(CHILD, backend="simulated")
    parent = Pipeline(PARENT, backend=answer, pipelines={"child": child})
    result = parent.run(wait=True, durability=durability, **options)
    assert (result.status, result.mark) == ("success", "partly simulated")
    if options:
        assert everywhere(root) == {"partly simulated"}


@pytest.mark.parametrize(("backend", "mark"), [(answer, ""), (None, "simulated")], ids=["a backend", "nobody"])
def test_a_child_that_answers_as_its_parent_says_nothing_new(backend, mark):
    parent = Pipeline(PARENT, backend=backend, pipelines={"child": Pipeline(CHILD)})
    assert parent.run(wait=True, durability="none").mark == mark


def test_ruling_48_a_map_says_what_its_rows_say(tmp_path):
    root = tmp_path / "runs" / "map"
    result = Pipeline(SOURCE).map([{"n": 1}, {"n": 2}], wait=True, map_dir=root)
    assert (result.mark, result.is_simulated, {row.mark for row in result}) == ("simulated", True, {"simulated"})
    assert "simulated" in str(result)
    assert "simulated" in result.table()
    assert json.loads((root / "map.json").read_text())["is_simulated"] is True
    assert runs(root.parent)[0].mark == "simulated"
    assert "simulated" in str(runs(root))


def test_ruling_48_a_map_with_some_simulated_rows_is_partly_simulated(tmp_path):
    root, is_down = tmp_path / "map", [True]

    def sometimes(prompt):
        if "2" in prompt and is_down[0]:
            raise ValueError("not now")
        return "answered"

    source = SOURCE.replace("prompt=plan", 'prompt="plan $n"')
    first = Pipeline(source).map([{"n": 1}, {"n": 2}], backend=sometimes, wait=True, map_dir=root)
    assert (first.status, first.mark) == ("fail", "")
    result = Pipeline(source).resume_map(root, backend="simulated", failed="retry").result()
    assert (result.status, result.mark) == ("success", "partly simulated")
    assert [row.mark for row in result] == ["", "simulated"]
    assert summarize(root).mark == "partly simulated"


def test_ruling_48_a_manifest_that_is_made_again_from_the_log_has_the_mark(tmp_path):
    root = tmp_path / "run"
    Pipeline(SOURCE).run(wait=True, logs_root=root)
    for name in root.glob("manifest.json*"):
        name.unlink()
    assert everywhere(root) == {"simulated"}
