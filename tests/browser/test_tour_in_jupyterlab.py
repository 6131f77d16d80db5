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
OPEN_CHOICE = ".attractor-gate.is-open .attractor-choice:visible:enabled"
SECONDS = 120


@pytest.mark.parametrize("source", TOUR, ids=lambda path: path.stem)
def test_a_notebook_of_the_tour_runs_to_its_end_with_clicks_on_its_gates(lab, source):
    folder = lab.root / source.stem
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    original = nbformat.read(source, 4)
    answers = [cell for cell in original.cells if ANSWER_TAG in cell.metadata.get("tags", [])]
    original.cells = [cell for cell in original.cells if cell not in answers]
    (folder / "notebooks").mkdir()
    nbformat.write(original, folder / "notebooks" / source.name)
    with lab.browser() as browser:
        notebook = browser.open(f"{source.stem}/notebooks/{source.name}")
        notebook.run_all()
        for _ in answers:
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
        raise AssertionError(
            f"the last cell did not run; the outputs are:\n{notebook.output_text()}"
        ) from error
