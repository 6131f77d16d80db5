"""Child runs in the drawing: their graphs beside the one that runs them, with their own states."""

import re

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.views.drawings.svg import MAX_SHOWN_WIDTH, render_svg

INNER = "digraph inner { start [shape=Mdiamond]; deep; done [shape=Msquare]; start -> deep -> done }"
MIDDLE = """digraph middle {
  graph [label="The middle"]
  start [shape=Mdiamond]; write; check [type=pipeline, "pipeline.name"=inner]; done [shape=Msquare]
  start -> write -> check -> done
}"""
OUTER = """digraph outer {
  start [shape=Mdiamond]; boss [shape=house, "stack.child_pipeline"=middle]; done [shape=Msquare]
  start -> boss -> done
}"""


@pytest.fixture
def outer():
    return Pipeline(OUTER, pipelines={"middle": MIDDLE, "inner": INNER})


def states_in(svg, child):
    """Node ids and statuses in a child's drawing, those of its own children left out."""
    body = svg.split(f'data-child="{child}"')[1].split("data-child=")[0]
    return dict(reversed(pair) for pair in re.findall(r'state-(\w+)" data-node="(\w+)"', body))


def sizes(svg):
    return tuple(float(part) for part in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())


def test_a_pipeline_is_drawn_with_the_pipelines_that_it_runs(outer):
    svg = outer.to_svg()
    assert re.findall(r'data-child="([^"]+)"', svg) == ["boss", "boss&gt;check"]
    assert ">boss: The middle<" in svg
    assert states_in(svg, "boss&gt;check") == {"start": "pending", "deep": "pending", "done": "pending"}


def test_a_result_shows_what_became_of_each_child(outer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = outer.run(wait=True, logs_root="run")
    assert result.is_success
    svg = result.to_svg()
    assert states_in(svg, "boss")["write"] == "success"
    assert states_in(svg, "boss&gt;check") == {"start": "success", "deep": "success", "done": "success"}


def test_a_loaded_run_has_its_children_in_the_picture(outer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outer.run(wait=True, logs_root="run")
    svg = Run.load("run").to_svg()
    assert re.findall(r'data-child="([^"]+)"', svg) == ["boss", "boss&gt;check"]


@pytest.mark.parametrize("direction", ["TB", "LR"])
def test_a_child_stands_beside_its_parent_where_there_is_room_else_below(direction):
    chain = " -> ".join(["start", *(f"step_{number}" for number in range(12)), "done"])
    wide = f"digraph wide {{ rankdir={direction}; start [shape=Mdiamond]; done [shape=Msquare]; {chain} }}"
    pipeline = Pipeline(OUTER, pipelines={"middle": wide})
    width, height = sizes(pipeline.to_svg())
    own_width, own_height = sizes(Pipeline(wide).to_svg())
    if direction == "TB":
        assert width > own_width
        assert height < own_height + 60
    else:
        assert own_width > MAX_SHOWN_WIDTH / 2
        assert (
            height
            > own_height + sizes(Pipeline("digraph { a [shape=Mdiamond]; b [shape=Msquare]; a -> b }").to_svg())[1]
        )


def test_secrets_of_a_child_are_not_drawn():
    key = "sk-" + "q" * 40
    child = MIDDLE.replace("The middle", f"middle {key}").replace("inner", "middle2")
    graph = Pipeline(OUTER, pipelines={"middle": child, "middle2": INNER}).graph
    assert graph.children["boss"].label == f"middle {key}"
    assert key not in render_svg(graph)
