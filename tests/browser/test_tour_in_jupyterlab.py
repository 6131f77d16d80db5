"""The first notebooks of the tour in a real JupyterLab, their gates answered by clicks.

A cell tagged ``answers-a-gate`` answers by a call, for readers and tests without a browser; here it is
left out, so that only the click can end the wait.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).resolve().parents[2]
TOUR = sorted((REPOSITORY / "notebooks").glob("0[12]_*.ipynb"))
ANSWER_TAG = "answers-a-gate"
OPEN_CHOICE = ".attractor-gate.is-open .attractor-choice:visible:enabled"
SECONDS = 200


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
        clicks = click_until_idle(notebook)
        unexecuted = notebook.script(
            "[...panel.content.widgets].filter(c => c.model.type === 'code' && c.model.sharedModel.source.trim() "
            "&& !c.model.executionCount).length"
        )
        assert unexecuted == 0, notebook.output_text()
        assert clicks >= len(answers)
        assert browser.our_errors == []


def click_until_idle(notebook):
    """Click the first choice of every gate that opens, until nothing runs; the number of clicks."""
    clicks = 0
    give_up = time.monotonic() + SECONDS
    while (
        notebook.busy_cells or notebook.kernel_status != "idle" or notebook.page.locator(OPEN_CHOICE).count()
    ):
        assert time.monotonic() < give_up, notebook.output_text()
        choice = notebook.page.locator(OPEN_CHOICE)
        if choice.count():
            choice.first.click()
            clicks += 1
        notebook.page.wait_for_timeout(100)
    return clicks
