"""The rows of a map and of an evaluation in real Jupyter: in the cell that ran them, as a value, and in the list of runs."""

from __future__ import annotations

import re

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = '''%load_ext attractor_nb
from attractor_nb import Pipeline, Outcome, runs
async def answers(node, prompt, context):
    return Outcome.fail("no <b>luck</b>") if context["n"] == "7" else f"answer {context['n']}"
talk = Pipeline("""digraph talk { inputs="n" start [shape=Mdiamond] plan [label="Plan", prompt="$n"]
    done [shape=Msquare] start -> plan -> done }""", backend=answers)
rows = [{"n": str(number)} for number in range(200)]'''
MAP = 'talk.map(rows, map_dir="rowsview/many", wait=True, durability="fast", outputs=["last_response"])'
SCORED = 'talk.evaluate(rows[5:9], {"lucky": lambda output: "7" not in output}, map_dir="rowsview/scored", wait=True)'
LIST = 'runs("rowsview")'


@pytest.mark.kind("JupyterLab")
def test_rows_are_found_in_the_cell_and_a_row_opens_its_live_view_beside(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, SETUP, MAP, SCORED, LIST)
    notebook.run_cells(0, 1)
    page = notebook.page
    notebook.wait_for(".am-view tr[data-place]")
    view = page.locator(".am-view").first
    assert view.locator("tr[data-place] td:first-child").first.inner_text() == "7"
    assert view.locator("tr[data-place]").count() < 120, "those in sight"
    assert page.locator(".attractor-map:visible").count() == 0, "the table is stood in for"
    view.get_by_label("Filter the rows by any text").fill("answer 123")
    view.locator(".am-count", has_text="1 of 200 rows").wait_for()
    view.get_by_label("Filter the rows by any text").fill("")
    view.locator(".am-count", has_text=re.compile("^200 rows")).wait_for()
    view.locator("tr[data-place]").first.click()
    beside = view.locator(".am-beside")
    beside.locator(".attractor-live [data-node=plan].state-fail").wait_for()
    page.screenshot(path=str(pictures / "cell_map_rows.png"))
    page.keyboard.press("j")
    beside.locator(".attractor-live [data-node=plan].state-success").wait_for()
    page.keyboard.press("Escape")
    assert beside.is_hidden()

    notebook.run_cells(2)
    scored = page.locator(".am-view", has_text="lucky")
    scored.locator("tr[data-place]").first.wait_for()
    assert scored.locator(".am-view-line").inner_text().startswith("4 rows   lucky 3 of 4")

    notebook.run_cells(3)
    notebook.wait_for("tr[data-run=many]")
    row = page.locator("tr[data-run=many]")
    assert "200 rows" in row.text_content()
    row.get_by_text("Open", exact=True).click()
    panel = page.locator(".ah-panel")
    panel.locator("tr[data-place]").first.wait_for()
    panel.locator("tr[data-place]").first.click()
    panel.locator(".attractor-live [data-node=plan].state-fail").wait_for()
    page.screenshot(path=str(pictures / "cell_list_map.png"))
    assert notebook.browser.our_errors == []

    notebook.save()
    saved = nbformat.read(notebook.path, 4).cells[1].outputs
    assert "1 failed" in saved[0]["data"]["text/html"], "what is kept is the summary"
