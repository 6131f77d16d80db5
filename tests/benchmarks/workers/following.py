"""A live run followed through a real kernel: ``following.py NODES SECONDS``; milliseconds, each figure one change.

In JupyterLab, on the live view of a run that changes 400 times a second: from the time that the log gives a change to
the frame that shows it. A change that a newer one of the same node has replaced is shown with that one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import lab
import nbformat
import texts

from attractor_nb import Run
from attractor_nb.model.events import StageEnd, StageStarted

STAGES_A_SECOND = 200  # each begins and ends
OPENING_SECONDS = 3  # until the view is there
MOST_WAITED_MS = 60_000
PREPARE = """%load_ext attractor_nb
import asyncio, time
from attractor_nb import Outcome, Pipeline

class Paced:
    def __init__(self, stages):
        self.left, self.due = stages, 0.0

    async def execute(self, node, context, graph, logs_root):
        self.left -= 1
        self.due = (self.due or time.monotonic()) + 1 / {rate}
        await asyncio.sleep(max(0.0, self.due - time.monotonic()))
        return Outcome(status="success", preferred_label="Again" if self.left > 0 else "")

pipeline = Pipeline({source!r}, handlers={{"paced": Paced({stages})}})"""
FOLLOW = "run = pipeline.run(logs_root='followed', durability='fast')"
WATCH = """async (most) => {
  const seen = [];
  const panel = jupyterapp.shell.currentWidget;
  const area = panel.content.widgets[1].outputArea.node;
  const read = (node) => ({
    node: node.dataset.node,
    visits: node.querySelector(".again")?.getAttribute("d") ? parseInt(node.querySelector(".counts").textContent) : 1,
    isEnded: node.classList.contains("state-success"),
  });
  new MutationObserver((records) => {
    const changed = [...new Set(records.map((record) => record.target))].filter((each) => each.matches("[data-node]:not(.state-pending)")).map(read);
    painted().then(() => seen.push({ at: Date.now(), changed }));
  }).observe(area, { subtree: true, attributes: true, attributeFilter: ["aria-label"] });
  panel.content.activeCellIndex = 1;
  jupyterapp.commands.execute("notebook:run-cell");
  const until_ = performance.now() + most;
  await until(() => area.querySelector(".al-line[data-status=success]") || performance.now() > until_);
  await new Promise((done) => setTimeout(done, 500));
  return seen;
}"""


def source_of(nodes: int, stages: int) -> str:
    """The graph of the bare page's row as a loop: its skips are never taken."""
    text = texts.drawn_pipeline(nodes, 1).replace("node [shape=box]", 'node [type="paced"]')
    text = text.replace('[label="skip"]', '[label="skip", condition="outcome=fail"]')
    limits = f"graph [max_steps={2 * stages}, max_node_visits={2 * stages}]"
    again = f'n{nodes - 1} -> n0 [label="Again"]'
    return text.replace("digraph bench {", f"digraph bench {{\n  {limits}").replace("\n}\n", f"\n  {again}\n}}\n")


def watched(stack: ExitStack, root: Path, source: str, stages: int) -> list[dict[str, Any]]:
    """The content of each frame, with its time."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    prepare = PREPARE.format(rate=STAGES_A_SECOND, source=source, stages=stages)
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (prepare, FOLLOW)]
    nbformat.write(notebook, root / "following.ipynb")
    (server,) = lab.labs(stack, root, (True,))
    page = lab.new_lab(stack, server)
    page.evaluate(lab.OPEN, ["following.ipynb", 2])
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")
    page.wait_for_timeout(lab.SETTLED_MS)
    return page.evaluate(WATCH, MOST_WAITED_MS)


def lags_of(frames: list[dict[str, Any]], place: Path) -> dict[str, list[float]]:
    """From each change to its frame; those from before the view was there are left out."""
    shown: dict[tuple[str, int, bool], float] = {}
    for frame in frames:
        for each in frame["changed"]:
            for is_ended in (False, True)[: 1 + each["isEnded"]]:
                shown.setdefault((each["node"], each["visits"], is_ended), frame["at"])
    first = min(frame["at"] for frame in frames)
    lags, times = [], []
    for event in Run.load(place).events():
        if isinstance(event, StageStarted | StageEnd) and event.time * 1000 > first:
            at = shown.get((event.name, event.visit, isinstance(event, StageEnd)))
            times.append(event.time)
            if at is not None:
                lags.append(at - event.time * 1000)
    return {"lags": lags, "applied": [len(lags) / (times[-1] - times[0])]}


def main(nodes: int, seconds: int) -> None:
    stages = STAGES_A_SECOND * (OPENING_SECONDS + seconds)
    with ExitStack() as stack:
        stack.callback(lab.driver.close_chromium)
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        frames = watched(stack, root, source_of(nodes, stages), stages)
        print(json.dumps(lags_of(frames, root / "followed")))


main(int(sys.argv[1]), int(sys.argv[2]))
