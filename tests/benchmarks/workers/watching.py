"""The live view in a browser: ``watching.py PART NODES ROUNDS``; milliseconds, each figure the values of all rounds.

The page has no Jupyter in it. It loads the widget's module as JupyterLab does, from its text, and the worker is
the kernel: what a network and JupyterLab add is not in the figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import texts
from playwright.sync_api import Page, sync_playwright

from attractor_nb import parse_dot
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import script, styles

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PAGE = """<!doctype html><meta charset="utf-8"><style>STYLES</style><div id="view"></div><script>
const SOURCE = SCRIPT;
window.makeModel = (values) => {
  const heard = {};
  return {
    values, sent: [],
    get: (name) => values[name],
    on: (name, listener) => (heard[name] ||= []).push(listener),
    off: () => {},
    send(message) { this.sent.push(message); },
    tell: (message) => { for (const listener of heard["msg:custom"] || []) listener(message); },
  };
};
// The next frame is on the screen when a task that was posted in it runs.
window.painted = () => new Promise((done) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => done(performance.now());
  port2.postMessage(0);
}));
window.open_ = async (values) => {
  const place = URL.createObjectURL(new Blob([SOURCE], { type: "text/javascript" }));
  const widget = (await import(place)).default();
  const el = document.getElementById("view");
  if (window.end) window.end();
  el.dataset.attractorPlace = values.place;
  const model = window.makeModel(values);
  window.end = widget.initialize({ model });
  window.model = model;
};
</script>"""


def values_of(nodes: int, seed: int) -> dict[str, object]:
    graph = parse_dot(texts.drawn_pipeline(nodes, seed))
    return {
        "svg": render_svg(graph),
        "marks": {status.value: path for status, path in MARK_PATHS.items()},
        "caption": "bench",
        "has_output": True,
        "place": "bench",
        "states": {"nodes": {}, "edges": {}, "line": {"status": "running"}, "tails": {}},
    }


def first_drawing(page: Page, nodes: int, rounds: int) -> dict[str, list[float]]:
    """From the graph to the first frame with its drawing; each round a graph of its own."""
    drawn, shown = [], []
    for number in range(rounds + 1):
        begin = time.perf_counter()
        values = values_of(nodes, number)
        drawn.append((time.perf_counter() - begin) * 1000)
        shown.append(
            page.evaluate(
                "async (values) => { const begin = performance.now(); await open_(values); return await painted() - begin; }",
                values,
            )
        )
    return {"whole": [a + b for a, b in zip(drawn, shown, strict=True)][1:], "drawn": drawn[1:], "shown": shown[1:]}


def clicks(page: Page, nodes: int, rounds: int) -> dict[str, list[float]]:
    """From a click on a node to the frame in which it is selected and its panel is open."""
    page.evaluate("values => open_(values)", values_of(nodes, 1))
    taken = page.evaluate(
        """async (rounds) => {
          const taken = [];
          for (let number = 0; number < rounds; number += 1) {
            const node = document.querySelector(`[data-node=n${number % 40}]`);
            const begin = performance.now();
            node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
            taken.push(await painted() - begin);
            if (!node.classList.contains("selected")) throw new Error("nothing was selected");
          }
          return taken;
        }""",
        max(rounds * 4, 8),
    )
    return {"taken": taken}


def changes(page: Page, nodes: int, seconds: int) -> dict[str, list[float]]:
    """400 changes a second, handed on 50 times a second as a kernel does: from each change to its frame."""
    page.evaluate("values => open_(values)", values_of(nodes, 1))
    lags = page.evaluate(
        """async ([nodes, seconds]) => {
          const lags = [], begin = performance.now();
          const statuses = ["running", "success", "retrying", "fail"];
          let made = 0;
          let batch = {}, times = [];
          await new Promise((done) => {
            const maker = setInterval(() => {
              const due = Math.floor((performance.now() - begin) * 0.4);
              for (; made < due; made += 1) {
                const status = statuses[made % 4];
                batch[`n${(made * 7) % nodes}`] = { status, visits: 2, since: Date.now() / 1000 };
                times.push(begin + made / 0.4);
              }
            }, 2);
            const sender = setInterval(() => {
              if (!times.length) return;
              const [sent, all] = [times, batch];
              [times, batch] = [[], {}];
              const line = { status: "running", node: "n1", at: Date.now() / 1000, elapsed: 1, stages: made };
              model.tell({ kind: "delta", nodes: all, edges: { [made % nodes]: 1 }, line });
              painted().then((at) => lags.push(...sent.map((time) => at - time)));
            }, 20);
            setTimeout(() => { clearInterval(maker); clearInterval(sender); setTimeout(done, 200); }, seconds * 1000);
          });
          return lags;
        }""",
        [nodes, seconds],
    )
    return {"lags": lags, "applied": [len(lags) / seconds]}


def zooms(page: Page, nodes: int, rounds: int) -> dict[str, list[float]]:
    """A step of zooming and a step of moving, each to its frame."""
    page.evaluate("values => open_(values)", values_of(nodes, 1))
    return page.evaluate(
        """async (rounds) => {
          const frame = document.querySelector(".ad-frame"), zoomed = [], moved = [];
          const press = async (key, into) => {
            const begin = performance.now();
            frame.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            into.push(await painted() - begin);
          };
          for (let number = 0; number < rounds; number += 1) {
            for (const key of ["0", "+", "+", "+", "1"]) await press(key, zoomed);
            for (let step = 0; step < 5; step += 1) await press("ArrowDown", moved);
          }
          return { zoomed, moved };
        }""",
        rounds,
    )


PARTS = {"first_drawing": first_drawing, "clicks": clicks, "changes": changes, "zooms": zooms}


def main(part: str, nodes: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        source = json.dumps(script("live_view")).replace("<", "\\u003c")
        file = Path(folder) / "page.html"
        file.write_text(PAGE.replace("STYLES", styles("live_view")).replace("SCRIPT", source), encoding="utf-8")
        page.goto(file.as_uri())
        print(json.dumps(PARTS[part](page, nodes, rounds)))
        browser.close()


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
