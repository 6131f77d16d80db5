"""A run as frames: whoever adds them up stands where the run stood."""

import json

import pytest

from attractor_nb import Outcome, Pipeline, redact_also
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import ChildEvent, ChildStarted, PipelineStarted, StageCompleted, StageStarted
from attractor_nb.storage.stored_run import read_run
from attractor_nb.studio.replay_frames import context_at, replay_of, view_at
from attractor_nb.testing import ScriptedBackend
from attractor_nb.views.folding import merge_deltas

VALUE_CHARS = 2000

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
LOOP = """a b start -> a -> b  b -> a [condition="context.b=1"]  b -> done [condition="context.b!=1"]"""
FAN = """fan [shape=component] left right join [shape=tripleoctagon]
start -> fan  fan -> left -> join  fan -> right -> join  join -> done"""


def counted(node, prompt, context):
    context.set(node.id, context.get(node.id, 0) + 1)
    return f"{node.id} says {context.get(node.id)}"


def summed(replay, count):
    """The picture and the context of a view that has taken that number of frames."""
    delta = {"nodes": {}, "edges": {}, "run": "ready"}
    contexts = {"": dict(replay["base"])}
    for frame in replay["frames"][:count]:
        delta = merge_deltas([delta, frame["delta"]])
        branch = frame.get("branch", "")
        if frame.get("begins"):
            contexts[branch] = dict(contexts[""])
        for key in frame.get("dropped", ()):
            del contexts[branch][key]
        contexts[branch].update(frame.get("context", {}))
    shown = {
        "nodes": {node: state for node, state in delta["nodes"].items() if state != {"status": "pending"}},
        "edges": {edge: passes for edge, passes in delta["edges"].items() if passes},
        "run": delta["run"],
    }
    return shown, contexts[""]


def run_of(kind, folder):
    body = {"loop": LOOP, "rewound": LOOP, "fan": FAN}[kind]
    run = Pipeline(FRAME.format(body=body), backend=counted).run(logs_root=folder / "run", params={"who": "me"})
    run.result(60)
    if kind == "rewound":
        run = run.rewind("b", visit=1)
        run.result(60)
    return run


@pytest.mark.parametrize("kind", ["loop", "rewound", "fan"])
def test_frames_add_up_to_every_moment_of_the_run(kind, tmp_path):
    run = run_of(kind, tmp_path)
    events = read_run(run.logs_root).events
    replay = replay_of(run.graph, events)
    assert [frame["n"] for frame in replay["frames"]] == [event.sequence for event in events]
    for count in range(len(events) + 1):
        shown, context = summed(replay, count)
        plain = view_at(events, count).to_plain()
        wanted = {key: value for key, value in plain["nodes"].items() if value != {"status": "pending"}}
        assert shown == {**plain, "nodes": wanted}, f"after event {count}"
        assert context == context_at(run.graph, events, count)
    assert context == dict(run.result().context.snapshot())
    assert shown["run"] == "success"


def test_a_rewind_takes_back_what_came_after(tmp_path):
    run = run_of("rewound", tmp_path)
    (frame,) = [
        frame
        for frame in replay_of(run.graph, read_run(run.logs_root).events)["frames"]
        if frame["type"] == "PipelineRewound"
    ]
    assert frame["delta"]["nodes"]["done"] == {"status": "pending"}
    assert frame["delta"]["edges"] == {"1": 1, "2": 0, "3": 0}
    assert frame["dropped"] == ["b", "b.response"]
    assert frame["context"]["a"] == 1


def test_a_restart_begins_with_a_context_of_its_own_and_the_way_stays_seen():
    graph = parse_dot("digraph g { a [shape=Mdiamond] b [shape=Msquare] a -> b }")
    before = [
        PipelineStarted(name="g", id="1", sequence=1, inputs={"x": 1}),
        StageStarted(name="a", sequence=2, visit=1),
        StageCompleted(name="a", sequence=3, visit=1, outcome=Outcome.success(), context={"y": 2}, edge=0),
    ]
    again = PipelineStarted(name="g", id="1", sequence=1, inputs={"x": 1}, restart_of="before")
    replay = replay_of(graph, [*before, again])
    assert replay["frames"][-1]["dropped"] == ["y"]
    assert summed(replay, 4)[1] == {"graph.goal": "", "x": 1}
    assert view_at([*before, again], 4).nodes["a"].visits == 1


def test_what_happens_in_a_child_run_is_told_under_the_path_of_its_node():
    graph = parse_dot("digraph g { a [shape=Mdiamond] b [shape=Msquare] a -> b }")
    events = [
        PipelineStarted(name="g", id="1", sequence=1),
        StageStarted(name="a", sequence=2, visit=1),
        ChildStarted(name="a", child_id="c", sequence=3),
        ChildEvent(name="a", child_id="c", event=StageStarted(name="inner", visit=1)),
    ]
    frame = replay_of(graph, events)["frames"][-1]
    assert (frame["node"], frame["type"], frame["visit"]) == ("a>inner", "StageStarted", 1)
    assert frame["delta"]["children"]["a"]["nodes"]["inner"]["status"] == "running"
    assert "context" not in frame


def test_frames_are_json_and_hold_neither_secrets_nor_whole_books(tmp_path):
    redact_also("hunter2-the-password")
    long = "x" * 10 * VALUE_CHARS
    pipeline = Pipeline(
        FRAME.format(body="a start -> a -> done"), backend=ScriptedBackend({"a": [f"{long} hunter2-the-password"]})
    )
    run = pipeline.run(logs_root=tmp_path / "run")
    run.result(60)
    text = json.dumps(replay_of(run.graph, read_run(run.logs_root).events))
    assert "hunter2" not in text
    assert len(text) < 5 * VALUE_CHARS


def test_a_clock_that_is_set_back_moves_no_frame_back():
    graph = parse_dot("digraph g { a [shape=Mdiamond] b [shape=Msquare] a -> b }")
    events = [
        PipelineStarted(name="g", id="1", sequence=1, time=100.0),
        StageStarted(name="a", sequence=2, time=103.0),
        StageCompleted(name="a", sequence=3, time=90.0, outcome=Outcome.success()),
    ]
    replay = replay_of(graph, events)
    assert [frame["at"] for frame in replay["frames"]] == [0.0, 3.0, 3.0]
    assert (replay["started"], replay["seconds"]) == (100.0, 3.0)


def test_nothing_happened_is_no_frame():
    graph = parse_dot("digraph g { a [shape=Mdiamond] b [shape=Msquare] a -> b }")
    assert replay_of(graph, [])["frames"] == []
