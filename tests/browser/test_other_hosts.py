"""Runs in hosts beside JupyterLab: marimo, Voila, and outputs that cannot reach one another (``ATTRACTOR_LIVE=inline``)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).resolve().parents[2]
REVIEW = """digraph Review {
  start [shape=Mdiamond]
  write [prompt="Write it"]
  ok    [shape=hexagon, label="Is it good?"]
  done  [shape=Msquare]
  start -> write -> ok
  ok -> done  [label="[A] Approve"]
  ok -> write [label="[R] Revise"]
}"""
OF_MARIMO = f"""import marimo

app = marimo.App()

@app.cell
def _():
    from attractor_nb import Pipeline
    return (Pipeline,)

@app.cell
def _(Pipeline):
    pipeline = Pipeline('''{REVIEW}''')
    pipeline
    return (pipeline,)

@app.cell
def _(pipeline):
    run = pipeline.run()
    return (run,)

@app.cell
def _(run):
    run
    return
"""
MARIMO_SETTINGS = """[display]
theme = "THEME"
[runtime]
auto_instantiate = true
[server]
disable_file_downloads = true
"""


@contextmanager
def served(driver: ModuleType, command: list[str], home: Path, path: str = "/") -> Iterator[str]:
    """A program that serves HTTP on loopback, in a process group of its own, and its address."""
    port = driver.free_port()
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "XDG_STATE_HOME": str(home),
        "XDG_CACHE_HOME": str(home),
    }
    for name in ("CI", "ATTRACTOR_LIVE"):
        environment.pop(name, None)
    command = [each.replace("PORT", str(port)) for each in command]
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}{path}"
    try:
        driver.wait_until(lambda: process.poll() is not None or _answers(address), 90, f"{command[2]} to answer")
        assert process.poll() is None, (home / "server.log").read_text()[-2000:]
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


@pytest.fixture
def open_marimo(driver: ModuleType, tmp_path: Path) -> Callable[..., Any]:
    """Opens the notebook of a run in marimo, as ``edit`` or ``run`` does."""

    @contextmanager
    def open_(mode: str, *, dark: bool) -> Iterator[Any]:
        (tmp_path / "review.py").write_text(OF_MARIMO)
        (tmp_path / "marimo").mkdir()
        (tmp_path / "marimo" / "marimo.toml").write_text(MARIMO_SETTINGS.replace("THEME", "dark" if dark else "light"))
        address = ("--headless", "--no-token", "--host", "127.0.0.1", "--port", "PORT")
        command = [sys.executable, "-m", "marimo", "-q", mode, "review.py", *address]
        with (
            served(driver, command, tmp_path, "/health") as health,
            driver.new_page(width=1100, height=1300, dark=dark) as page,
        ):
            page.goto(health.removesuffix("health"))
            yield page

    return open_


@pytest.mark.shows("marimo", "picture", "live view", "gate by click", "inspector")
@pytest.mark.parametrize(
    ("mode", "dark"), [("run", False), pytest.param("edit", True, marks=pytest.mark.campaign)], ids=["run", "edit"]
)
def test_a_run_lives_in_marimo_and_its_gate_takes_a_click(open_marimo, mode, dark, pictures):
    with open_marimo(mode, dark=dark) as page:
        approve = page.get_by_role("button", name="Approve").last
        approve.wait_for(timeout=120_000)
        page.locator("[data-node=ok].state-waiting").last.wait_for()
        assert page.locator(".attractor-own").last.get_attribute("data-jp-theme-light") == str(not dark).lower()
        page.screenshot(path=str(pictures / f"marimo_{mode}_waiting.png"))
        approve.click()
        page.locator(".al-line", has_text="completed").last.wait_for(timeout=60_000)
        page.locator(".ag-answers", has_text="Approve, by").last.wait_for()
        page.locator(".attractor-own [data-node=write]").last.click()
        page.get_by_text("Write it").last.wait_for(timeout=30_000)
        page.screenshot(path=str(pictures / f"marimo_{mode}_ended.png"))


@pytest.mark.shows("Voila", "picture", "live view", "gate by ipywidgets")
def test_voila_shows_a_run_as_widgets_and_its_gate_takes_a_click(driver, write_notebook, tmp_path, pictures):
    write_notebook(
        tmp_path,
        "review.ipynb",
        "%load_ext attractor_nb\nfrom attractor_nb import Pipeline",
        f"pipeline = Pipeline('''{REVIEW}''')\npipeline",
        "run = pipeline.run(interviewer='deferred', is_shown=False)\nrun.widget()",
    )
    command = [sys.executable, "-m", "voila", "review.ipynb", "--no-browser", "--port=PORT", "--Voila.ip=127.0.0.1"]
    with (
        served(driver, command, tmp_path, "/voila/static/voila.js") as address,
        driver.new_page(width=1000, height=1200) as page,
    ):
        page.goto(address.removesuffix("voila/static/voila.js"))
        approve = page.get_by_role("button", name="[A] Approve")
        approve.wait_for(timeout=120_000)
        expect(page.locator(".widget-html [data-node=ok].state-waiting")).to_be_visible()
        page.screenshot(path=str(pictures / "voila_waiting.png"))
        approve.click()
        expect(page.locator(".widget-html", has_text="Approve, by").first).to_be_visible()
        expect(page.locator(".widget-html [data-node=done].state-success")).to_be_visible()
        page.screenshot(path=str(pictures / "voila_ended.png"))


INLINE = f"""%load_ext attractor_nb
%env ATTRACTOR_LIVE=inline
from attractor_nb import Pipeline
pipeline = Pipeline('''{REVIEW}''')"""


def test_a_view_inline_is_in_the_output_of_its_own_cell(lab, open_notebook, pictures):
    notebook = open_notebook(lab, INLINE, "run = pipeline.run()", "run")
    page = notebook.page
    notebook.run_cells(0, 1)
    approve = page.get_by_role("button", name="Approve")
    approve.wait_for(timeout=60_000)
    own = page.locator(".jp-OutputArea-output .attractor-own")
    assert own.count() == 1
    assert page.locator(".attractor-stand-in").count() == 0
    page.get_by_placeholder("Comment").fill("as it is")
    approve.click()
    notebook.wait_for_text("Approve, by")
    page.locator(".al-line", has_text="completed").wait_for(timeout=60_000)
    notebook.run_cell(2)
    notebook.wait_until_idle()
    page.wait_for_function("() => document.querySelectorAll('.attractor-own').length === 2")
    page.screenshot(path=str(pictures / "inline.png"))
    notebook.save()
    saved = notebook.path.read_text()
    assert "application/vnd.jupyter.widget-view+json" in saved
    assert "To open it again" in saved, "the picture and the call are beside the widget"
    assert not notebook.browser.our_errors
