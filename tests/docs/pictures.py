"""Makes the pictures of docs/images anew, in a real JupyterLab and on a real server, light and dark.

    make pictures
    python tests/docs/pictures.py debugger terminal    # some of them, by the words behind draw_

Look at each of them before you commit: nothing compares them.
"""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image, ImageChops

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
        notebook.run_cells(*range(4))
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
        notebook.run_cells(*range(4 + len(STUDIO)))
        page.mouse.move(0, 0)
        for position, name in enumerate(STUDIO):
            area = page.locator(".jp-CodeCell").nth(4 + position).locator(".jp-Cell-outputArea")
            area.evaluate("(element) => element.scrollIntoView({ block: 'center' })")
            page.wait_for_timeout(800)
            area.screenshot(path=IMAGES / f"{name}{end}.png")


def draw_debugger(driver: Any, folder: Path) -> None:
    """docs/debugger.md: a run that is stopped before a stage, with its bar and the editor of what comes next."""
    write_notebook(
        folder / "stopped.ipynb", "%load_ext attractor_nb", f"%%attractor release --quiet\n{RELEASE}", MODEL,
        'run = release.run(backend=model, breakpoints=["write"], trust=True)',
    )  # fmt: skip
    for end, notebook, page in in_themes(driver, folder, "stopped.ipynb", width=1180, height=1100):
        notebook.run_cells(*range(4))
        bar = page.locator(".db-bar").first
        bar.locator(".db-stop", has_text="Stopped before write").wait_for()
        bar.locator(".db-editor summary").click()
        bar.get_by_label("Prompt of write").fill("Write the code, and no comments")
        bar.locator(".db-prompt").get_by_role("button", name="Set").click()
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        notebook.shoot(IMAGES / f"debugger{end}.png", ".jp-OutputArea-output:has(.attractor-live)")
        bar.get_by_role("button", name="Continue", exact=True).click()
        notebook.click("Approve")
        notebook.wait_for(".al-line[data-status=success]")


QUESTIONS = """from attractor_nb import Pipeline, gates
def waiting(name, prompt, question, answer):
    text = f'digraph {name} {{ start [shape=Mdiamond] write [prompt="{prompt}"] gate [shape=hexagon, label="{question}"] done [shape=Msquare]'
    text += ' start -> write -> gate  gate -> done [label="[A] Approve"] gate -> write [label="[R] Revise"] }'
    run = Pipeline(text, backend=lambda prompt: answer).run(is_shown=False, interviewer="deferred", runs_dir=RUNS)
    run.wait_for_gate("gate", 60)
    return run
RUNS = ".attractor/runs"
first = waiting("announcement", "Announce version 2", "Publish it?", "**Version 2 is here.** Search is twice as fast, and it works offline.")
second = waiting("refund", "Answer the customer", "Send this answer?", "We are sorry. The refund of 40 EUR is on its way and arrives within three days.")"""


def draw_questions(driver: Any, folder: Path) -> None:
    """docs/gates.md: the inbox of two runs. docs/jupyterlab.md: the window with the panel beside the notebook."""
    graph = CELL.replace("%%attractor review", "%%attractor review --quiet")
    write_notebook(
        folder / "inbox.ipynb", "%load_ext attractor_nb", QUESTIONS, "gates()", graph, "review.run(backend='simulated')"
    )
    for end, notebook, page in in_themes(driver, folder, "inbox.ipynb", width=1400, height=860):
        shutil.rmtree(folder / ".attractor", ignore_errors=True)  # the runs of the picture before
        notebook.run_cells(*range(3))
        inbox = page.locator(".jp-CodeCell").nth(2).locator(".jp-OutputArea-output")
        inbox.locator(".ag-card").nth(1).wait_for()
        inbox.evaluate("(element) => element.scrollIntoView({ block: 'center' })")
        page.wait_for_timeout(800)
        inbox.screenshot(path=IMAGES / f"inbox{end}.png")
        notebook.run_cells(3, 4)
        notebook.wait_for(".attractor-gate.is-open .ag-material")
        page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:show-runs'); }")
        panel = page.frame_locator("#attractor-nb-runs iframe")
        panel.locator(".ap-side-run").nth(2).wait_for()
        panel.locator(".ag-card").nth(2).wait_for()
        page.locator(".jp-CodeCell").nth(3).evaluate("(element) => element.scrollIntoView({ block: 'start' })")
        page.evaluate("() => document.querySelectorAll('.Toastify').forEach((element) => element.remove())")
        page.mouse.move(0, 0)
        page.wait_for_timeout(1500)
        page.screenshot(path=IMAGES / f"panel{end}.png")


WITHOUT_WEBGL = """(() => {
    const known = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...more) {
        return kind.startsWith("webgl") ? null : known.call(this, kind, ...more);
    };
})()"""
"""No screenshot shows what WebGL has drawn; without it a terminal draws its text otherwise."""


def trim(screenshot: bytes) -> Image.Image:
    """A picture of a terminal without the empty lines below its text."""
    picture = Image.open(io.BytesIO(screenshot)).convert("RGB")
    inner = picture.crop((4, 4, picture.width - 4, picture.height - 24))  # without the frame
    text = ImageChops.difference(inner, Image.new("RGB", inner.size, inner.getpixel((0, 0)))).getbbox()
    assert text, "the terminal shows nothing"
    return picture.crop((0, 2, picture.width - 2, text[3] + 18))


def draw_terminal(driver: Any, folder: Path) -> None:
    """docs/cli.md: a run that asks at a terminal, and a second terminal that watches it; JupyterLab's own terminals."""
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    for end, is_dark in THEMES.items():
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {"PYTHONPATH": str(REPOSITORY), "SHELL": "/bin/sh"}
        with (
            driver.JupyterServer(folder, environment=environment) as server,
            server.browser(width=1000, height=440, dark=is_dark, is_new=True) as browser,
        ):
            page = browser.page
            page.add_init_script(WITHOUT_WEBGL)
            page.goto(f"{server.url}/lab?reset&token={server.token}")
            page.wait_for_selector(".jp-LauncherCard")
            _set_theme(page, is_dark)
            page.evaluate("() => jupyterapp.shell.collapseLeft()")
            run = "attractor-nb run examples/code_review_loop.dot --simulate --logs-root review"
            commands = {"terminal-run": run, "terminal-watch": "attractor-nb watch review"}
            for number, (name, command) in enumerate(commands.items()):
                page.evaluate("() => { jupyterapp.commands.execute('terminal:create-new'); }")
                terminal = page.locator(".jp-Terminal").nth(number)
                terminal.locator(".xterm-screen").wait_for()
                terminal.click()
                ready = folder / f"{name}-is-ready"
                driver.wait_until(partial(_types, page, ready), 60, "the shell of a terminal")
                page.keyboard.type(f"cd {folder}; PATH='{path}' PS1='$ '; clear\n")
                page.wait_for_timeout(2500)
                page.keyboard.type(f"{command}\n")
                driver.wait_until(partial(_asks, folder / "review"), 60, "the question of the run")
                page.wait_for_timeout(5000)
                trim(terminal.screenshot()).save(IMAGES / f"{name}{end}.png")
        shutil.rmtree(folder / "review", ignore_errors=True)  # the run of the picture before, which may still write


def _types(page: Any, file: Path) -> bool:
    page.keyboard.type(f"touch {file}\n")
    page.wait_for_timeout(1500)
    return file.exists()


def _asks(directory: Path) -> bool:
    log = directory / "events.jsonl"
    return log.is_file() and "InterviewStarted" in log.read_text("utf-8")


def _set_theme(page: Any, is_dark: bool) -> None:
    theme = f"JupyterLab {'Dark' if is_dark else 'Light'}"
    page.evaluate("(theme) => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }", theme)
    page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{str(not is_dark).lower()}'")


def main() -> None:
    """Make all of them, or those that are named."""
    driver = load_driver()
    drawn = (draw_first_minute, draw_live_run, draw_studio, draw_debugger, draw_questions, draw_terminal, draw_pages)
    for draw in drawn:
        if sys.argv[1:] and draw.__name__.removeprefix("draw_") not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            draw(driver, Path(folder))
    driver.close_chromium()


if __name__ == "__main__":
    main()
