"""The extension in a real JupyterLab: ``lab.py PART SIZE ROUNDS``; milliseconds, each figure the values of all rounds.

``opening`` opens notebooks of SIZE pipeline cells with the extension and without, turn by turn; ``squiggles`` sees how long
after the server's answer its findings are on the screen; ``sidebar`` opens the panel over SIZE runs; ``redraw`` types
in a graph document of SIZE nodes, from each key to the picture: a letter that moves nothing, and a new edge.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
sys.path.insert(0, str(HERE.parents[1] / "browser"))
sys.path.insert(0, str(REPOSITORY))

import driver  # noqa: E402 - found by the path above
import listing  # noqa: E402 - beside this file
import nbformat  # noqa: E402 - sorted with them

from hatch_build import make_files  # noqa: E402 - beside the package

CELL = """%%attractor p{number}
digraph P{number} {{
    start [shape=Mdiamond]
    plan  [label="Plan it", prompt="List what the reader must know: $goal"]
    write [prompt="Write it"]
    gate  [shape=hexagon, label="Publish it?"]
    done  [shape=Msquare]
    start -> plan -> write -> gate
    gate -> done  [label="[A] Approve"]
    gate -> write [label="[R] Again", condition="outcome=success"]
}}"""
SETTLED_MS = 2500
HELPERS = """
window.painted = () => new Promise((done) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => done(performance.now());
  port2.postMessage(0);
}));
window.until = async (isTrue) => {
  while (!isTrue()) await new Promise((done) => setTimeout(done, 2));
  return painted();
};
const asked = window.fetch;
window.fetch = async (...all) => {
  const response = await asked(...all);
  if (String(all[0]?.url ?? all[0]).includes("attractor-nb/validate")) {
    await response.clone().text();
    window.answeredAt = performance.now();
  }
  return response;
};
"""
OPEN = """async ([path, cells]) => {
  const begin = performance.now();
  const panel = await jupyterapp.commands.execute("docmanager:open", { path });
  const shown = await until(() => panel.content.widgets.length === cells && panel.content.node.querySelector(".cm-line")) - begin;
  await panel.sessionContext.ready;
  await new Promise((done) => setTimeout(done, SETTLED));
  return shown;
}""".replace("SETTLED", str(SETTLED_MS))
CLOSE = """async () => {
  const panel = jupyterapp.shell.currentWidget;
  await panel.sessionContext.shutdown();
  panel.dispose();
}"""
SQUIGGLE = """async (text) => {
  const panel = [...jupyterapp.shell.widgets("main")].find((each) => each.content?.model?.cells);
  const model = panel.content.model.cells.get(0).sharedModel;
  const isMarked = () => document.querySelector(".cm-attractor-error") !== null;
  model.setSource(text);
  await until(() => !isMarked());
  model.setSource(text.replace("-> gate\\n", "-> gaet\\n"));
  const seen = await until(isMarked);
  return seen - answeredAt;
}"""
SHOW = """async () => {
  const begin = performance.now();
  jupyterapp.commands.execute("attractor-nb:show-runs");
  const rows = () => document.querySelector("#attractor-nb-runs iframe")?.contentDocument?.querySelectorAll(".ap-side-run").length ?? 0;
  const shown = await until(() => rows() > 0) - begin;
  return [shown, rows()];
}"""
REDRAW = """async ([find, insert, place, wanted]) => {
  const panel = jupyterapp.shell.currentWidget;
  const editor = panel.content.text.editor.editor;
  const frame = panel.node.querySelector(".attractor-document-graph iframe");
  const at = editor.state.doc.toString().indexOf(find) + find.length;
  const title = () => frame.contentDocument.querySelector(`.ad-frame [${place}] > title`);
  const isShown = () => Boolean(title()?.textContent.includes(wanted));
  const before = frame.contentWindow.performance.getEntriesByType("resource").length;
  const begin = performance.now();
  editor.dispatch({ changes: { from: at, insert }, userEvent: "input.type" });
  const shown = (await until(isShown)) - begin;
  const asked = frame.contentWindow.performance.getEntriesByType("resource").slice(before);
  return [shown, asked.find(({ name }) => name.endsWith("/edit")).duration];
}"""


def labs(stack: ExitStack, root: Path, extensions: tuple[bool, ...]) -> list[Any]:
    """Servers with the extension of this checkout, or with none of it."""
    make_files()  # of the extension, which stand in no checkout
    found = []
    for has_it in extensions:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "labextensions").mkdir()
        (folder / "labextensions" / "attractor-nb").symlink_to(REPOSITORY / "attractor_nb" / "labextension")
        (folder / "labconfig").mkdir()
        config = {"disabledExtensions": {} if has_it else {"attractor-nb": True}}
        (folder / "labconfig" / "page_config.json").write_text(json.dumps(config))
        environment = {"PYTHONPATH": str(REPOSITORY), "JUPYTER_PATH": str(folder), "JUPYTER_CONFIG_DIR": str(folder)}
        found.append(stack.enter_context(driver.JupyterServer(root, environment=environment)))
    return found


def new_lab(stack: ExitStack, server: Any) -> Any:
    page = stack.enter_context(server.browser()).page
    page.set_default_timeout(120_000)
    page.add_init_script(HELPERS)
    page.goto(f"{server.url}/lab?reset&token={server.token}")
    page.wait_for_selector(".jp-LauncherCard")
    return page


def write_notebook(file: Path, cells: int) -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells = [nbformat.v4.new_code_cell(CELL.format(number=number)) for number in range(cells)]
    nbformat.write(notebook, file)


def opening(stack: ExitStack, root: Path, cells: int, rounds: int) -> dict[str, list[float]]:
    """Until a notebook is shown, and how long the page's thread worked until it had settled; the first round is for warmth."""
    pages = [new_lab(stack, server) for server in labs(stack, root, (True, False))]
    sessions = [page.context.new_cdp_session(page) for page in pages]
    for session in sessions:
        session.send("Performance.enable")

    def worked(session: Any) -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration") * 1000

    found: dict[str, list[float]] = {"with": [], "without": [], "worked with": [], "worked without": []}
    for number in range(rounds + 1):
        for name, page, session in zip(("with", "without"), pages, sessions, strict=True):
            file = root / f"{name}{number}.ipynb"
            write_notebook(file, cells)
            page.bring_to_front()
            before = worked(session)
            shown = page.evaluate(OPEN, [file.name, cells])
            work = worked(session) - before
            page.evaluate(CLOSE)
            if number:
                found[name].append(shown)
                found[f"worked {name}"].append(work)
    return found


def squiggles(stack: ExitStack, root: Path, cells: int, rounds: int) -> dict[str, list[float]]:
    (server,) = labs(stack, root, (True,))
    page = new_lab(stack, server)
    write_notebook(root / "squiggles.ipynb", cells)
    page.evaluate(OPEN, ["squiggles.ipynb", cells])
    text = CELL.format(number=0)
    page.evaluate(SQUIGGLE, text)
    taken = [page.evaluate(SQUIGGLE, text) for _ in range(rounds)]
    page.evaluate(CLOSE)
    return {"taken": taken}


def sidebar(stack: ExitStack, root: Path, runs: int, rounds: int) -> dict[str, list[float]]:
    """Each round in a new JupyterLab; the server behind it has started in the first, and knows the runs."""
    base = root / ".attractor" / "runs"
    base.mkdir(parents=True)
    listing.make(base, runs)
    (server,) = labs(stack, root, (True,))
    taken: list[float] = []
    rows: list[float] = []
    for _ in range(rounds + 1):
        with ExitStack() as once:
            shown, count = new_lab(once, server).evaluate(SHOW)
            taken.append(shown)
            rows.append(count)
    return {"cold": taken[:1], "taken": taken[1:], "rows": rows}


def redraw(stack: ExitStack, root: Path, nodes: int, rounds: int) -> dict[str, list[float]]:
    """In milliseconds from the key on, and how much of them the server was asked; the first rounds are for warmth."""
    (server,) = labs(stack, root, (True,))
    middle = "".join(f'    n{number} [label="Node {number}", prompt="Do {number}"]\n' for number in range(nodes - 2))
    chain = " -> ".join(f"n{number}" for number in range(nodes - 2))
    ends = "    start [shape=Mdiamond]\n    done [shape=Msquare]\n"
    (root / "big.dot").write_text(f"digraph big {{\n{ends}{middle}    start -> {chain} -> done\n}}\n")
    page = new_lab(stack, server)
    page.evaluate("async () => { await jupyterapp.commands.execute('docmanager:open', { path: 'big.dot' }); }")
    page.frame_locator(".attractor-document-graph iframe").locator("[data-node=done]").wait_for()
    found: dict[str, list[float]] = {"letter": [], "letter asked": [], "edge": [], "edge asked": []}
    text = "Do 40"
    for number in range(-2, rounds):
        longer = f"{text}."
        ends = f"n3 -> n{20 + number}"
        changes = {
            "letter": [f'prompt="{text}', ".", "data-node=n40", longer],
            "edge": ["-> done\n", f"    {ends}\n", f"data-edge='{nodes - 1}'", ends.replace("->", "→")],
        }
        text = longer
        for kind, change in changes.items():
            shown, asked = page.evaluate(REDRAW, change)
            if number >= 0:
                found[kind].append(shown)
                found[f"{kind} asked"].append(asked)
    return found


if __name__ == "__main__":
    part, size, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with ExitStack() as main_stack:
        place = Path(main_stack.enter_context(tempfile.TemporaryDirectory()))
        main_stack.callback(driver.close_chromium)
        parts = {"opening": opening, "squiggles": squiggles, "sidebar": sidebar, "redraw": redraw}
        print(json.dumps(parts[part](main_stack, place, size, times)))
