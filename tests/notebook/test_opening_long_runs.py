"""A long run that is opened: its picture is sent first, and what is sent grows with the graph, not with the run."""

from __future__ import annotations

import json

import pytest

MAKE = """
from attractor_nb import Outcome, Pipeline, Run
%load_ext attractor_nb
class Count:
    def __init__(self, steps):
        self.left = steps
    async def execute(self, node, context, graph, logs_root):
        self.left -= 1
        return Outcome(status="success", context_updates={"left": self.left}, preferred_label="Again" if self.left > 0 else "Enough")
SOURCE = '''digraph Loop { graph [max_steps=9999, max_node_visits=9999] start [shape=Mdiamond] done [shape=Msquare]
  node [type="count"] start -> a -> b
  b -> a [label="Again"]
  b -> done [label="Enough"] }'''
for steps in (20, 2000):
    Pipeline(SOURCE, handlers={"count": Count(steps)}).run(wait=True, durability="fast", logs_root=f"run{steps}")
"""
GROWTH_BYTES = 20_000


def opened(kernel, code):
    """The JSON of what a cell has sent up to its picture, and of all, in bytes, without binary buffers."""
    cell = kernel.run(code)
    kinds = [message["msg_type"] for message in cell.messages]
    picture = kinds.index("display_data")
    assert "comm_open" not in kinds[:picture], "the picture waits for no widget"
    assert "comm_open" in kinds[picture:]
    assert "<img" in cell.messages[picture]["content"]["data"]["text/html"]
    sizes = [len(json.dumps(message["content"])) for message in cell.messages]
    return sum(sizes[: picture + 1]), sum(sizes)


@pytest.mark.parametrize("call", ["", ".replay()"], ids=["run", "replay"])
@pytest.mark.campaign
def test_the_picture_comes_first_and_what_is_sent_does_not_grow_with_the_run(kernel, call):
    kernel.run(MAKE)
    opened(kernel, f"Run.load('run20'){call}")
    short = opened(kernel, f"Run.load('run20'){call}")
    long = opened(kernel, f"Run.load('run2000'){call}")
    assert [b - a < GROWTH_BYTES for a, b in zip(short, long, strict=True)] == [True, True], (short, long)


WATCH = """
import sys
publisher, loaded = get_ipython().display_pub, []
publish = publisher.publish
def watched(*given, **more):
    loaded.append([name for name in ("live.live_run", "view_actions", "live.graph_view") if f"attractor_nb.notebook.{name}" in sys.modules])
    return publish(*given, **more)
publisher.publish = watched
"""


@pytest.mark.campaign
def test_what_a_first_view_needs_is_imported_behind_its_picture(cold_kernel):
    kernel = cold_kernel
    kernel.run(MAKE.replace("(20, 2000)", "(20,)").replace("wait=True", "wait=True, is_shown=False"))
    kernel.run(WATCH)
    kernel.run("Run.load('run20')")
    assert kernel.run("print(loaded)").text.strip() == "[[]]"
    assert kernel.run("print('attractor_nb.notebook.live.live_run' in sys.modules)").text.strip() == "True"
