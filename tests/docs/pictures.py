"""Makes the pictures of docs/images anew, in a real JupyterLab and on a real server, light and dark.

    make pictures

Look at each of them before you commit: nothing compares them.
"""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGES = REPOSITORY / "docs" / "images"
THEMES = {"": False, "-dark": True}

RELEASE = """digraph Release {
    graph [label="Release", goal="Add a --json flag to the report command"]
    start  [shape=Mdiamond, label="Start"]
    plan   [label="Plan the change", prompt="Plan it: $goal"]
    write  [label="Implement it", prompt="Write the code"]
    tests  [shape=parallelogram, tool_command="echo 48 passed"]
    review [shape=hexagon, label="Is the change good?"]
    done   [shape=Msquare, label="Done"]

    start -> plan -> write -> tests
    tests -> review [condition="outcome=success"]
    tests -> write  [condition="outcome=fail", label="fix"]
    review -> done  [label="[A] Approve"]
    review -> write [label="[R] Request changes"]
}"""
SLIP = RELEASE.replace("tests -> review", "tests -> revew")
MODEL = """import asyncio
from attractor_nb import Usage
from attractor_nb.model.calls.call_content import Response
ANSWERS = {
    "plan": "1. `report.py`: a `--json` flag beside `--csv`.\\n2. One object for each row of the table.\\n3. Tests: no rows, one row, other scripts.",
    "write": "```diff\\n+ parser.add_argument(\\"--json\\", action=\\"store_true\\")\\n+ if args.json:\\n+     print(json.dumps(rows, ensure_ascii=False))\\n```",
}
async def model(node, prompt, context):
    await asyncio.sleep(0.6)
    return Response(ANSWERS[node.id], usage=Usage(input_tokens=410, output_tokens=210, cost_usd=0.0015, calls=1))"""


def load_driver() -> Any:
    """The driver of the browser tests, which is a file and no package."""
    spec = importlib.util.spec_from_file_location("pictures_driver", REPOSITORY / "tests/browser/driver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write_notebook(path: Path, *cells: str) -> None:
    """A notebook of code cells."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)


def in_themes(driver: Any, folder: Path, name: str, **size: int) -> Iterator[tuple[str, Any, Any]]:
    """A notebook in a JupyterLab of its own for each theme: the end of a picture's name, the notebook, its page."""
    environment = {"PYTHONPATH": str(REPOSITORY), "ATTRACTOR_LIVE": "auto"}
    for end, is_dark in THEMES.items():
        with (
            driver.JupyterServer(folder, environment=environment) as server,
            server.browser(**size, dark=is_dark, is_new=True) as browser,
        ):
            notebook = browser.open(name)
            _set_theme(browser.page, is_dark)
            yield end, notebook, browser.page


def draw_live_run(driver: Any, folder: Path) -> None:
    """docs/gates.md: a run that waits at a gate, with its question beside the drawing."""
    write_notebook(
        folder / "run.ipynb", "%load_ext attractor_nb", f"%%attractor release --quiet\n{RELEASE}", MODEL,
        "run = release.run(backend=model)",
    )  # fmt: skip
    for end, notebook, page in in_themes(driver, folder, "run.ipynb", width=1180, height=1100):
        for cell in range(4):
            notebook.run_cell(cell)
            notebook.wait_until_idle()
        notebook.wait_for(".attractor-gate.is-open .ag-material")
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        notebook.shoot(IMAGES / f"live-graph{end}.png", ".jp-OutputArea-output:has(.attractor-live)")
        notebook.click("Approve")  # or the next run would say that this one waits
        notebook.wait_for(".al-line[data-status=success]")


CELL = """%%attractor review
digraph Review {
    graph [goal="Announce version 2: search is twice as fast and works offline"]
    start [shape=Mdiamond]
    plan  [prompt="List what the reader must know: $goal"]
    write [prompt="Write it from these points: ${plan.response}"]
    gate  [shape=hexagon, label="Publish it?"]
    done  [shape=Msquare]
    start -> plan -> write -> gate
    gate -> done  [label="[A] Approve"]
    gate -> write [label="[R] Write it again"]
}"""
SLOWLY = """import sys, asyncio
sys.path.insert(0, NOTEBOOKS)
from written_answers import written
async def model(node, prompt, context):
    await asyncio.sleep(3)
    return written(node, prompt, context)"""
POINTER = """([x, y]) => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="22" height="30" viewBox="0 0 11 15">
      <path d="M1 1v12l3-3 2 4.5 2-.9-2-4.4h4z" fill="black" stroke="white"/></svg>`;
    const pointer = document.getElementById("pointer") || document.body.appendChild(document.createElement("div"));
    pointer.id = "pointer";
    pointer.innerHTML = svg;
    pointer.style.cssText = `position: fixed; z-index: 99999; pointer-events: none; left: ${x}px; top: ${y}px`;
}"""


def draw_first_minute(driver: Any, folder: Path) -> None:
    """README: a cell is run, the run waits, a click approves it; eight seconds, and the still of the question."""
    write_notebook(
        folder / "minute.ipynb", SLOWLY.replace("NOTEBOOKS", repr(str(REPOSITORY / "notebooks"))),
        "%load_ext attractor_nb", CELL, "run = review.run(backend=model)",
    )  # fmt: skip
    for end, notebook, page in in_themes(driver, folder, "minute.ipynb", width=1000, height=880):
        notebook.run_cells(0, 1)
        notebook.wait_until_idle()
        notebook.script("panel.content.widgets[0].hide()")
        frames = [(_frame(page), 900)]
        notebook.run_cell(2)
        notebook.wait_until_idle()
        frames.append((_frame(page), 1300))
        notebook.run_cell(3)
        for node in ("plan", "write"):
            notebook.wait_for(f".al-canvas [data-node={node}].state-running")
            frames.append((_frame(page), 800))
        notebook.wait_for(".attractor-gate.is-open .ag-material")
        waiting = _frame(page)
        frames.append((waiting, 1700))
        button = page.locator(".attractor-gate button", has_text="Approve").first
        box = button.bounding_box()
        page.evaluate(POINTER, [box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5])
        button.hover()
        frames.append((_frame(page), 700))
        button.click()
        notebook.wait_for(".al-line[data-status=success]")
        page.evaluate("() => document.getElementById('pointer').remove()")
        page.mouse.move(0, 0)
        frames.append((_frame(page), 1800))
        write_animation(IMAGES / f"first-minute{end}.png", frames)
        (IMAGES / f"first-minute-still{end}.png").write_bytes(waiting)


def _frame(page: Any) -> bytes:
    """The visible part of the notebook, once it stands still."""
    page.wait_for_timeout(700)
    return page.locator(".jp-NotebookPanel-notebook").first.screenshot()


def write_animation(path: Path, frames: list[tuple[bytes, int]]) -> None:
    """Write an APNG of 256 colours that repeats; each frame with its milliseconds."""
    pictures = [Image.open(io.BytesIO(data)).convert("RGB") for data, _ in frames]
    palette = pictures[-2].quantize(256)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [milliseconds for _, milliseconds in frames]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


@contextmanager
def served(folder: Path, port: int) -> Iterator[str]:
    """The printed line of a server of its own."""
    command = [sys.executable, "-m", "attractor_nb", "serve", "--runs-dir", str(folder), "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as one:
        assert one.stdout is not None
        try:
            yield one.stdout.readline().strip()
        finally:
            one.terminate()


def draw_pages(driver: Any, folder: Path) -> None:
    """docs/server.md: the form with a slip in its text, then the run of the text that has none."""
    for end, is_dark in THEMES.items():
        with (
            served(folder / f"runs{end}", driver.free_port()) as line,
            driver.new_page(width=1180, height=820, dark=is_dark) as page,
        ):
            page.goto(line)
            page.get_by_role("button", name="New run").click()
            text = page.get_by_label("DOT text")
            text.fill(SLIP)
            page.locator(".af-table tbody tr").first.wait_for()
            page.locator(".an-sketch [data-node=plan]").wait_for()
            page.screenshot(path=IMAGES / f"new-run{end}.png")
            text.fill(RELEASE)
            page.wait_for_function("() => !document.querySelector('.af-error')")
            page.locator(".an-commands input[type=checkbox]").first.check()
            page.get_by_role("button", name="Run", exact=True).click()
            page.locator(".attractor-gate.is-open .ag-card").wait_for()
            page.locator(".al-canvas [data-node=plan]").first.click()
            page.locator(".al-tab-panel").first.wait_for()
            page.evaluate("() => document.activeElement.blur()")
            page.mouse.move(0, 0)
            page.wait_for_timeout(1000)
            page.screenshot(path=IMAGES / f"page{end}.png")


STUDIO = {
    "inspector": 'run.inspect("write")',
    "difference": "diff(run, fork)",
    "replay": "fork.replay()",
    "timeline": "run.timeline()",
    "heat": 'run.heat("cost")',
    "runs": "runs()",
    "editor": "release.edit()",
    "estimate": "release.estimate()",
    "evaluation": "evaluation",
}
"""Pictures of views: the name of a file, and the call that shows the view."""
SETTING = """from attractor_nb import Pipeline, diff, runs
fork = run.fork("write", prompt="Write the code, and nothing else", backend=model, interviewer="auto")
fork.result()
rows = [{"id": f"t{n}", "ticket": text, "expected": team} for n, (text, team) in enumerate([
    ("I cannot pay", "billing"), ("It crashes", "support"), ("I want a refund", "billing"), ("Where is my bill?", "billing")])]
triage = Pipeline('digraph triage { inputs="ticket" start [shape=Mdiamond] sort [prompt="$ticket"] done [shape=Msquare] start -> sort -> done }')
def correct(output, expected):
    return output == expected
def team(node, prompt, context):
    return "billing" if "pay" in context["ticket"] or "bill" in context["ticket"] else "support"
evaluation = triage.evaluate(rows, correct, backend=team, wait=True)"""


def draw_studio(driver: Any, folder: Path) -> None:
    """The views of a run, each as its call shows it in a cell."""
    write_notebook(
        folder / "studio.ipynb", "%load_ext attractor_nb", f"%%attractor release --quiet\n{RELEASE}", MODEL,
        'run = release.run(backend=model, interviewer="auto", trust=True)\nrun.result()\n' + SETTING, *STUDIO.values(),
    )  # fmt: skip
    for end, notebook, page in in_themes(driver, folder, "studio.ipynb", width=1180, height=1600):
        for cell in range(4 + len(STUDIO)):
            notebook.run_cell(cell)
            notebook.wait_until_idle()
        page.mouse.move(0, 0)
        for position, name in enumerate(STUDIO):
            area = page.locator(".jp-CodeCell").nth(4 + position).locator(".jp-Cell-outputArea")
            area.evaluate("(element) => element.scrollIntoView({ block: 'center' })")
            page.wait_for_timeout(800)
            area.screenshot(path=IMAGES / f"{name}{end}.png")


def _set_theme(page: Any, is_dark: bool) -> None:
    theme = f"JupyterLab {'Dark' if is_dark else 'Light'}"
    page.evaluate("(theme) => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }", theme)
    page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{str(not is_dark).lower()}'")


def main() -> None:
    """Make all of them."""
    driver = load_driver()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lab").mkdir()
        draw_first_minute(driver, Path(folder) / "lab")
        draw_live_run(driver, Path(folder) / "lab")
        draw_studio(driver, Path(folder) / "lab")
        draw_pages(driver, Path(folder))
    driver.close_chromium()


if __name__ == "__main__":
    main()
