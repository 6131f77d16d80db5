"""A finished run opened: ``finished.py STEPS ROUNDS``; milliseconds, the first time and each of the rounds.

In JupyterLab with a kernel of its own: from running the cell to the frame with its picture, for ``Run.load(…)`` and for
its ``replay()``. In the page of the server: from the address to the frame with the drawing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import lab
import nbformat

from attractor_nb import Outcome, Pipeline
from attractor_nb.server.asgi_app import Server
from attractor_nb.server.server_settings import ServerSettings, hosts_of
from attractor_nb.server.serving import ServerProcess, listen

NAMES = "abcdefgh"
SOURCE = """digraph Loop {{
    graph [max_steps={most}, max_node_visits={most}]
    start [shape=Mdiamond]
    done  [shape=Msquare]
    node  [type="count"]
    start -> {way}
    h -> a    [label="Again"]
    h -> done [label="Enough"]
}}"""
CELLS = {"cell": "Run.load('run')", "replay": "Run.load('run').replay()"}
TOKEN = "s" * 43
SHOWN = """async (index) => {
  const isDrawn = (one) => (one.tagName === "IMG" ? one.complete && one.naturalWidth > 0 : one.querySelector(".node") !== null);
  const panel = jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = index;
  const begin = performance.now();
  jupyterapp.commands.execute("notebook:run-cell");
  const area = panel.content.widgets[index].outputArea.node;
  return await until(() => [...area.querySelectorAll("img, svg.attractor-graph")].some(isDrawn)) - begin;
}"""


class Count:
    """A step that says when it was enough."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    async def execute(self, node: Any, context: Any, graph: Any, logs_root: Any) -> Outcome:
        self.left -= 1
        label = "Again" if self.left > 0 else "Enough"
        return Outcome(status="success", context_updates={f"said.{node.id}": str(self.left)}, preferred_label=label)


def make(place: Path, steps: int) -> None:
    """A run that went round a loop."""
    source = SOURCE.format(most=2 * steps, way=" -> ".join(NAMES))
    run = Pipeline(source, handlers={"count": Count(steps)})
    result = run.run(wait=True, durability="fast", logs_root=place)
    assert result.status == "success", result.reason


def in_cells(stack: ExitStack, root: Path, rounds: int) -> dict[str, list[float]]:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    texts = ["%load_ext attractor_nb\nfrom attractor_nb import Run", *list(CELLS.values()) * (rounds + 1)]
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in texts]
    nbformat.write(notebook, root / "finished.ipynb")
    (server,) = lab.labs(stack, root, (True,))
    page = lab.new_lab(stack, server)
    page.evaluate(lab.OPEN, ["finished.ipynb", len(texts)])
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")
    found: dict[str, list[float]] = {name: [] for name in CELLS}
    for number in range(rounds + 1):
        for place, name in enumerate(CELLS):
            page.wait_for_timeout(lab.SETTLED_MS)
            found[name].append(page.evaluate(SHOWN, 1 + number * len(CELLS) + place))
    return found


def in_the_page(stack: ExitStack, root: Path, rounds: int) -> list[float]:
    """Each round with a page of its own; nothing of the run is known to the server before the first."""
    listening = stack.enter_context(closing(listen("127.0.0.1", 0)))
    port = listening.getsockname()[1]
    settings = ServerSettings(root=root, tokens={"ada": TOKEN}, hosts=hosts_of("127.0.0.1", port))
    ready = threading.Event()
    process = ServerProcess(Server(settings), ready.set)
    thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    stack.callback(thread.join, 60)
    stack.callback(setattr, process, "should_exit", True)
    assert ready.wait(60)
    taken = []
    for _ in range(rounds + 1):
        with lab.driver.new_page(width=1180, height=1000, dark=False) as page:
            page.add_init_script(lab.HELPERS)
            page.goto(f"http://127.0.0.1:{port}/#token={TOKEN}")
            page.wait_for_selector(".ap-runs")
            taken.append(
                page.evaluate(
                    "async () => { const begin = performance.now(); location.hash = '#run=run';"
                    " return await until(() => document.querySelector('.al-canvas .node')) - begin; }"
                )
            )
    return taken


def main(steps: int, rounds: int) -> None:
    with ExitStack() as stack:
        stack.callback(lab.driver.close_chromium)
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make(root / "run", steps)
        found = in_cells(stack, root, rounds)
        found["page"] = in_the_page(stack, root, rounds)
        print(json.dumps(found))


main(int(sys.argv[1]), int(sys.argv[2]))
