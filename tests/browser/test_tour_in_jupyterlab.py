"""The first notebooks of the tour in a real JupyterLab, their gates answered by clicks.

A cell tagged ``answers-the-gate`` answers by a call, for readers and tests without a browser; here it is
left out, so that only the click can end the wait.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).resolve().parents[2]
TOUR = sorted((REPOSITORY / "notebooks").glob("0[12]_*.ipynb"))
ANSWER_TAG = "answers-the-gate"
LEFT_OUT = {ANSWER_TAG, "before-a-restart", "after-a-restart"}
OPEN_CHOICE = ".attractor-gate.is-open .attractor-choice:visible:enabled"
SECONDS = 120


@pytest.mark.parametrize("source", TOUR, ids=lambda path: path.stem)
def test_a_notebook_of_the_tour_runs_to_its_end_with_clicks_on_its_gates(lab, source):
    folder = lab.root / source.stem
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    original = nbformat.read(source, 4)
    tags = [tag for cell in original.cells for tag in cell.metadata.get("tags", [])]
    original.cells = [cell for cell in original.cells if not LEFT_OUT & set(cell.metadata.get("tags", []))]
    (folder / "notebooks").mkdir()
    shutil.copy(source.with_name("written_answers.py"), folder / "notebooks")
    nbformat.write(original, folder / "notebooks" / source.name)
    with lab.browser() as browser:
        notebook = browser.open(f"{source.stem}/notebooks/{source.name}")
        notebook.run_all()
        for _ in range(tags.count(ANSWER_TAG)):
            notebook.page.locator(OPEN_CHOICE).first.click(timeout=SECONDS * 1000)
        wait_for_last_cell(notebook)
        assert browser.our_errors == []


def wait_for_last_cell(notebook):
    """JupyterLab clears the ``[*]`` of all cells in line when one raises, so the count is the truth."""
    try:
        notebook.page.wait_for_function(
            "() => { const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];"
            " return /\\[\\d+\\]/.test(prompts.at(-1).textContent); }",
            timeout=SECONDS * 1000,
        )
    except Exception as error:
        raise AssertionError(f"the last cell did not run; the outputs are:\n{notebook.output_text()}") from error


def test_what_the_quickstart_says_of_looking_around_is_so(lab):
    """The run of the quick start is moved in, searched, clicked, replayed, and opened tomorrow."""
    quickstart = nbformat.read(TOUR[0], 4)
    code = {cell.id: cell for cell in quickstart.cells if cell.cell_type == "code"}
    quickstart.cells = [code[name] for name in ("load", "pipeline", "run", "answer", "await")]
    nbformat.write(quickstart, lab.root / "looking_around.ipynb")
    shutil.copy(TOUR[0].with_name("written_answers.py"), lab.root)
    with lab.browser(width=1366, height=768) as browser:
        notebook = browser.open("looking_around.ipynb")
        page = notebook.page
        for index in range(5):
            notebook.run_cell(index)
            notebook.wait_until_idle(SECONDS)
        notebook.wait_for(".al-line[data-status=success]")
        run = page.locator(".attractor-live").first
        drawing = "document.querySelector('.al-canvas svg').getBoundingClientRect()"
        run.locator(".ad-frame").focus()
        before = page.evaluate(f"() => {drawing}.width")
        page.keyboard.press("+")
        page.wait_for_function(f"(width) => {drawing}.width > width + 1", arg=before)
        page.keyboard.press("0")
        page.wait_for_function(f"(width) => Math.abs({drawing}.width - width) < 2", arg=before)
        page.keyboard.press("/")
        page.keyboard.type("from these points")
        assert run.locator(".is-found-here").get_attribute("data-node") == "write", "by the words of a prompt"
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        notebook.wait_for_text("List three points that users care about")
        run.locator("[data-node=write]").first.click()
        notebook.wait_for_text("Write a release note from these points")
        page.keyboard.press("Escape")
        run.get_by_label("The states as a table").click()
        notebook.wait_for(".al-table table")
        page.get_by_role("button", name="Replay").first.click()
        notebook.wait_for(".al-panel .ar-slider")
        page.get_by_role("button", name="Timeline").first.click()
        notebook.wait_for(".al-panel .at-lanes svg")
        page.get_by_role("button", name="Timeline").first.click()
        notebook.save()
        page.evaluate("() => jupyterapp.serviceManager.sessions.shutdownAll()")
        assert browser.our_errors == []
    with lab.browser(width=1366, height=768, is_new=True) as browser:
        tomorrow = browser.open("looking_around.ipynb")
        tomorrow.wait_for('img[src^="data:image/svg+xml;base64,"]')
        assert "Run.load(" in tomorrow.output_text()
        tomorrow.run_cell(0)
        tomorrow.click("Open this run")
        tomorrow.wait_for(".attractor-live [data-node=write].state-success")
        assert browser.our_errors == []
