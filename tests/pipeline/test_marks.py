"""A result that a pipeline did not reach by itself says so wherever it is shown (ruling 48)."""

import json

import pytest

from attractor_nb import (
    Outcome,
    Pipeline,
    Run,
    SimulatedBackend,
    StageStatus,
    diagnose_run,
    lineage,
    load_pipeline,
    runs,
)
from attractor_nb.pipeline.compare import diff
from attractor_nb.storage.run_index import forget_lists
from attractor_nb.storage.run_listing import summarize
from attractor_nb.studio.timeline.heat_view import heat
from attractor_nb.studio.timeline.run_timeline import timeline_values
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


LOOPING = """digraph G { start [shape=Mdiamond] a [prompt=a] b [prompt=b] done [shape=Msquare]
    start -> a -> b  b -> done [condition="preferred_label=on"]  b -> a }"""
VIEWS = {
    "details": lambda run: run.details(),
    "timeline": lambda run: run.timeline(),
    "timeline drawn": lambda run: run.timeline().to_svg(),
    "timeline of a page": lambda run: timeline_values(run.timeline())["timeline"]["mark"],
    "heat": lambda run: run.heat(),
    "heat drawn": lambda run: run.heat().to_svg(),
    "path": lambda run: run.explain(),
    "path as JSON": lambda run: run.explain().to_plain()["mark"],
    "explained stage": lambda run: run.explain("a"),
    "explained stage as JSON": lambda run: run.explain("a").to_plain()["mark"],
    "loop": lambda run: run.explain_loop("a"),
    "loop as JSON": lambda run: run.explain_loop("a").to_plain()["mark"],
    "stage": lambda run: run.inspect("a"),
    "stage as JSON": lambda run: run.inspect("a").to_plain()["mark"],
    "replay": lambda run: run.replay(),
    "moment": lambda run: run.replay().at(-1),
    "comparison": lambda run: diff(run, run),
    "comparison with times": lambda run: diff(run, run).details(),
    "comparison as HTML": lambda run: diff(run, run).to_html(),
    "comparison as JSON": lambda run: [diff(run, run).to_plain()[side]["mark"] for side in "ab"],
    "lineage": lineage,
    "diagnosis": lambda run: diagnose_run(run.logs_root),
    "page": lambda run: run.export_html(run.logs_root.parent / "page.html").read_text(),
}


@pytest.fixture(scope="module")
def marked_runs(tmp_path_factory):
    """A run of a backend, one that was simulated, and one that was simulated from its second stage on."""
    base = tmp_path_factory.mktemp("runs")
    real, made_up = (
        Pipeline(LOOPING).run(wait=True, logs_root=base / name, backend=backend, max_steps=8)
        for name, backend in (("real", labelled_on), ("made up", None))
    )
    assert (real.mark, made_up.mark) == ("", "simulated")
    Pipeline(LOOPING).run(wait=True, logs_root=base / "partly", backend=labelled_on, stop_after=2)
    Pipeline(LOOPING).resume(base / "partly", backend="simulated", max_steps=8).result()
    return {"": base / "real", "simulated": base / "made up", "partly simulated": base / "partly"}


@pytest.mark.parametrize("mark", ["", "simulated", "partly simulated"])
@pytest.mark.parametrize("view", VIEWS)
def test_ruling_48_each_view_of_a_run_says_the_mark(view, mark, marked_runs):
    text = str(VIEWS[view](Run.load(marked_runs[mark])))
    assert "simulated" in text if mark else "simulated" not in text
    assert ("partly simulated" in text) == (mark == "partly simulated")


@pytest.mark.parametrize("backend", [None, "simulated", SimulatedBackend()], ids=repr)
def test_ruling_48_a_replay_of_simulated_answers_is_simulated(backend, tmp_path):
    how = {"wait": True, "durability": "none", "cassette": tmp_path / "answers.json"}
    Pipeline(SOURCE).run(**how, cassette_mode="record")
    assert Pipeline(SOURCE).run(**how, cassette_mode="replay", backend=backend).mark == "simulated"


def test_a_replay_of_real_answers_has_no_mark(tmp_path):
    how = {"wait": True, "durability": "none", "cassette": tmp_path / "answers.json"}
    Pipeline(SOURCE).run(**how, cassette_mode="record", backend=answer)
    assert Pipeline(SOURCE).run(**how, cassette_mode="replay").mark == ""


def test_ruling_48_the_heat_of_a_real_and_a_simulated_run_is_partly_simulated(marked_runs):
    assert "partly simulated" in str(heat([marked_runs[""], marked_runs["simulated"]]))


def test_ruling_48_a_comparison_says_which_of_two_runs_is_simulated(marked_runs):
    plain = diff(marked_runs[""], marked_runs["simulated"]).to_plain()
    assert [(plain[side]["is_simulated"], plain[side]["mark"]) for side in "ab"] == [(False, ""), (True, "simulated")]


def test_ruling_48_a_manifest_that_is_made_again_from_the_log_has_the_mark(tmp_path):
    root = tmp_path / "run"
    Pipeline(SOURCE).run(wait=True, logs_root=root)
    for name in root.glob("manifest.json*"):
        name.unlink()
    assert everywhere(root) == {"simulated"}
