"""A fork: a run of its own that begins with the way of another, and goes another way from there."""

import hashlib
import json
import shutil
import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run, Usage
from attractor_nb.errors import ContextValueError, GraphChanged, OptionError, RunError, StorageError, UntrustedSource
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import PipelineForked, PipelineStarted
from attractor_nb.stage import current_stage
from attractor_nb.storage.stored_run import read_run

LINE = "a b c start -> a -> b -> c -> done"
LOOP = """a b start -> a -> b  b -> a [condition="context.b=1"]  b -> done [condition="context.b!=1"]"""
FAN = """fan [shape=component] left right join [shape=tripleoctagon] after
start -> fan  fan -> left -> join  fan -> right -> join  join -> after -> done"""
RESTARTING = """a b start -> a -> b  b -> a [condition="context.left=again", loop_restart=true]
b -> done [condition="context.left!=again"]"""


def content(root):
    """Every file of a directory, by what is in it."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def calls():
    return []


@pytest.fixture
def counting(calls):
    def answer(node, prompt, context):
        calls.append((current_stage().idempotency_key, prompt))
        count = context.get(node.id, 0) + 1
        context.set(node.id, count)
        return Response(f"{node.id} {count}", usage=Usage(10))

    return answer


@pytest.fixture
def parent(make, counting, tmp_path):
    """A run of a loop that has ended: a, b, a, b."""
    run = make(LOOP, backend=counting).run(logs_root=tmp_path / "parent", params={"ticket": "T-1"})
    run.result(60)
    return run


def test_a_fork_goes_on_from_before_a_visit_and_leaves_its_parent_as_it_is(parent, calls):
    before = content(parent.logs_root)
    del calls[:]
    fork = parent.fork("b", visit=1, context={"b": 4, "note": "other"})
    result = fork.result(60)
    assert content(parent.logs_root) == before
    assert result.completed_nodes == ("start", "a", "b", "done")
    assert (result.context["b"], result.context["note"], result.context["ticket"]) == (5, "other", "T-1")
    assert [key for key, _ in calls] == [f"{fork.id}:b:1"]
    assert fork.id != parent.id


def test_without_changes_it_does_again_what_its_parent_did(parent):
    fork = parent.fork("b", visit=1)
    assert fork.result(60).completed_nodes == parent.result().completed_nodes
    assert parent.fork("b").result(60).visits == {"start": 1, "a": 2, "b": 2, "done": 1}


def test_the_changed_prompt_holds_for_that_node_from_there_on(parent, calls):
    del calls[:]
    parent.fork("a", visit=1, prompt="Do it better").result(60)
    asked = [(key.split(":")[1], prompt.endswith("Do it better")) for key, prompt in calls]
    assert asked == [("a", True), ("b", False), ("a", True), ("b", False)]


def test_its_log_is_whole_and_says_where_it_comes_from(parent):
    fork = parent.fork("b", visit=2, context={"b": 0}, prompt="other", stop_after=1)
    fork.result(60)
    stored = read_run(fork.logs_root)
    assert [event.sequence for event in stored.events] == list(range(1, len(stored.events) + 1))
    assert {event.run_id for event in stored.events} == {fork.id}
    (forked,) = [event for event in stored.events if isinstance(event, PipelineForked)]
    assert forked.description == f"forked from {parent.id} before b, visit 2; changed: b, the prompt"
    assert (forked.node, forked.visit, forked.spent.total_tokens) == ("b", 2, 30)
    facts = stored.manifest["fork_of"]
    assert facts == {
        "run_id": parent.id,
        "directory": str(parent.logs_root),
        "node": "b",
        "visit": 2,
        "sequence": forked.parent_sequence,
    }


def test_what_it_spends_is_its_own(parent):
    fork = parent.fork("b", visit=2, max_tokens_total=15)
    result = fork.result(60)
    assert (result.status, result.usage.total_tokens, fork.view.usage.total_tokens) == ("success", 10, 10)
    assert Run.load(fork.logs_root).result().usage.total_tokens == 10


def test_steps_and_visits_count_on_the_whole_way(parent):
    result = parent.fork("b", visit=2, max_steps=4).result(60)
    assert result.status == "fail"
    assert "max_steps" in result.reason


def test_it_has_the_evidence_of_the_way_and_nothing_of_what_came_later(parent):
    fork = parent.fork("b", visit=2, stop_after=1, backend=lambda *_: Outcome.fail("stop here"))
    fork.result(60)
    shutil.rmtree(parent.logs_root)
    loaded = Run.load(fork.logs_root)
    assert (loaded["a"].response, loaded["a"].visits) == ("a 2", 2)
    assert (fork.logs_root / "a/visits/1.1/response.md").read_text() == "a 1"
    assert (fork.logs_root / "b/visits/1.1/response.md").read_text() == "b 1"
    assert not (fork.logs_root / "done").exists()


def test_a_visit_in_the_middle_has_the_files_of_that_visit(parent):
    fork = parent.fork("b", visit=1, stop_after=1, context={"b": 9})
    fork.result(60)
    assert fork["a"].response == "a 1"
    assert not (fork.logs_root / "a/visits").exists()


def test_a_fork_can_be_resumed_rewound_and_forked(parent):
    fork = parent.fork("b", visit=1, stop_after=1)
    assert fork.result(60).status == "paused"
    resumed = fork.resume(stop_after=None)
    assert resumed.result(60).completed_nodes[-1] == "done"
    assert resumed.rewind("a", visit=1).result(60).status == "success"
    again = resumed.fork("b")
    assert again.result(60).status == "success"
    assert read_run(again.logs_root).manifest["fork_of"]["run_id"] == fork.id


def test_a_fork_of_a_rewound_run_has_the_way_that_was_taken(parent):
    rewound = parent.rewind("b", visit=1)
    rewound.result(60)
    fork = rewound.fork("a")
    assert fork.result(60).completed_nodes == ("start", "a", "b", "a", "b", "done")
    assert Run.load(fork.logs_root).result().completed_nodes == fork.result().completed_nodes


def test_a_running_parent_is_forked_up_to_its_last_commit(make, tmp_path):
    reached, go_on = threading.Event(), threading.Event()

    def answer(node, prompt, context):
        if node.id == "c" and not reached.is_set():
            reached.set()
            go_on.wait(60)
        return node.id

    parent = make(LINE, backend=answer).run(logs_root=tmp_path / "parent")
    try:
        assert reached.wait(60)
        fork = parent.fork("c")
        assert fork.result(60).status == "success"
        assert parent.status == "running"
    finally:
        go_on.set()
    assert parent.result(60).status == "success"


def test_after_branches_the_fork_has_their_files_and_results(make, counting, tmp_path):
    parent = make(FAN, backend=counting).run(logs_root=tmp_path / "parent")
    parent.result(60)
    fork = parent.fork("after")
    result = fork.result(60)
    assert result.status == "success"
    assert result.context["parallel.results"] == parent.result().context["parallel.results"]
    assert list((fork.logs_root / "branches").rglob("response.md"))
    with pytest.raises(RunError, match="visited in a branch only") as caught:
        parent.fork("left")
    assert "go back to fan" in caught.value.hint


def test_a_fork_behind_a_restart_begins_with_that_directory(make, tmp_path):
    def answer(node, prompt, context):
        if node.id == "b":
            seen = (tmp_path / "seen").exists()
            (tmp_path / "seen").touch()
            context.set("left", "none" if seen else "again")
        return node.id

    parent = make(RESTARTING, backend=answer).run(logs_root=tmp_path / "parent", max_restarts=3)
    assert parent.result(60).status == "success"
    fork = parent.fork("b", runs_dir=tmp_path / "runs")
    assert fork.result(60).completed_nodes[-1] == "done"
    assert fork.logs_root.parent == tmp_path / "runs"
    assert Run.load(fork.logs_root).result().status == "success"


def test_large_values_and_threads_are_there(make, tmp_path):
    def answer(node, prompt, context):
        if node.id == "a":
            context.set("book", "x" * 200_000)
        return str(len(context.get("book", "")))

    parent = make(LINE, backend=answer).run(logs_root=tmp_path / "parent")
    parent.result(60)
    fork = parent.fork("b")
    fork.result(60)
    shutil.rmtree(parent.logs_root)
    assert len(Run.load(fork.logs_root).result().context["book"]) == 200_000


def test_another_pipeline_goes_on_with_it(parent, dot, counting):
    other = Pipeline(dot(LOOP.replace("b -> done", "b -> extra -> done")), backend=counting)
    with pytest.raises(GraphChanged):
        parent.fork("b", pipeline=other, on_graph_change="error")
    fork = parent.fork("b", visit=2, pipeline=other)
    assert fork.result(60).completed_nodes[-2:] == ("extra", "done")
    assert "extra" in (fork.logs_root / "pipeline.dot").read_text()


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"node": "strat"}, OptionError, 'did you mean "start"'),
        ({"node": "b", "visit": 7}, RunError, "no visit 7 of b"),
        ({"node": "b", "visit": 0}, OptionError, "whole number"),
        ({"node": None}, OptionError, "before a visit of a node"),
        ({"node": "b", "context": ["x"]}, OptionError, "context must be a dict"),
        ({"node": "b", "context": {"graph.goal": "x"}}, OptionError, "engine's own"),
        ({"node": "b", "context": {"x": object()}}, ContextValueError, "x"),
        ({"node": "b", "prompt": "  "}, OptionError, "the prompt is empty"),
        ({"node": "start", "prompt": "x"}, OptionError, "has no prompt"),
        ({"node": "b", "params": {"x": 1}}, OptionError, "inputs of its parent"),
        ({"node": "b", "durability": "none"}, RunError, "a fork needs durability"),
        ({"node": "b", "on_graph_change": "never"}, OptionError, "on_graph_change"),
        ({"node": "b", "max_stops": 1}, OptionError, "unknown option"),
    ],
)
def test_what_cannot_be_forked_is_refused_and_leaves_nothing(parent, how, error, message):
    before = sorted(path.name for path in parent.logs_root.parent.iterdir())
    with pytest.raises(error) as caught:
        parent.fork(**how)
    assert message in f"{caught.value}"
    assert sorted(path.name for path in parent.logs_root.parent.iterdir()) == before


def test_a_place_that_is_taken_is_refused(parent, tmp_path):
    (tmp_path / "there").mkdir()
    fork = parent.fork("b", logs_root=tmp_path / "there")
    fork.result(60)
    with pytest.raises(StorageError, match="there already") as caught:
        parent.fork("b", logs_root=tmp_path / "there")
    assert caught.value.hint


def test_a_run_of_which_nothing_is_stored_cannot_be_forked(make):
    run = make(LINE).run(durability="none")
    run.result(60)
    with pytest.raises(RunError, match="a fork needs durability"):
        run.fork("a")


def test_commands_of_a_stranger_are_asked_about(tmp_path, dot, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "state"))
    source = tmp_path / "theirs.dot"
    source.write_text(dot('a [shape=parallelogram, tool_command="echo hi"] start -> a -> done'))
    run = Pipeline(source).run(logs_root=tmp_path / "parent", trust=True)
    run.result(60)
    moved = tmp_path / "moved"
    shutil.move(run.logs_root, moved)
    with pytest.raises(UntrustedSource):
        Run.load(moved).fork("a")
    assert Run.load(moved).fork("a", trust=True, runs_dir=tmp_path / "runs").result(60).status == "success"


def test_a_stored_source_without_its_key_is_refused_before_anybody_is_asked_to_trust_it(tmp_path, dot):
    key = "sk-ant-api03-" + "a1B2c3D4" * 11 + "-Qw4xYzAA"
    text = dot(f'a [shape=parallelogram, tool_command="echo {key}"] start -> a -> done')
    Pipeline(text).run(logs_root=tmp_path / "parent", stop_after=1).result(20)
    loaded = Run.load(tmp_path / "parent")
    with pytest.raises(GraphChanged, match="keeps is not the one that ran"):
        loaded.fork("start", on_graph_change="error")


def test_a_rewind_takes_values_and_a_prompt_as_a_fork_does(parent, calls):
    del calls[:]
    run = parent.rewind("b", visit=1, context={"b": 7}, prompt="Do it otherwise")
    result = run.result(60)
    assert result.completed_nodes == ("start", "a", "b", "done")
    assert result.context["b"] == 8
    assert [prompt.endswith("Do it otherwise") for _, prompt in calls] == [True]
    assert Run.load(parent.logs_root).result().context["b"] == 8


def test_changes_of_a_rewind_hold_after_a_resume_from_the_log_alone(parent, calls):
    run = parent.rewind("a", visit=1, context={"b": 3}, prompt="Otherwise", stop_after=1)
    run.result(60)
    for checkpoint in parent.logs_root.glob("checkpoint*"):
        checkpoint.unlink()
    result = parent.pipeline.resume(parent.logs_root, stop_after=None).result(60)
    assert (result.context["b"], result.completed_nodes) == (4, ("start", "a", "b", "done"))
    with pytest.raises(OptionError, match="needs the node"):
        parent.pipeline.resume(parent.logs_root, context={"b": 3})


def test_a_damaged_manifest_is_made_again_from_the_log(parent):
    fork = parent.fork("b", visit=1, stop_after=1)
    fork.result(60)
    for name in ("manifest.json", "manifest.previous.json"):
        (fork.logs_root / name).unlink(missing_ok=True)
    stored = read_run(fork.logs_root)
    assert stored.manifest["fork_of"]["run_id"] == parent.id
    assert stored.manifest["run_id"] == fork.id
    started = next(event for event in stored.events if isinstance(event, PipelineStarted))
    assert started.id == fork.id
    json.dumps([event.to_plain() for event in stored.events])
