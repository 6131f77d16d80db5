"""Editing in a real JupyterLab: a finding fixed by a click and put back into the cell, then a graph changed in the editor."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = "%load_ext attractor_nb"
CELL = """%%attractor review
digraph review {
    start [shape=Mdiamond]
    plan  [label="Plan", promt="Plan it"]  // think first
    done  [shape=Msquare]
    start -> plan -> done
}"""
EDIT = "editor = review.edit()\neditor"
SHOW = "print(editor.diff())"


def test_a_fix_goes_back_into_the_cell_and_a_graph_is_changed_by_clicks(jupyter, open_notebook, tmp_path):
    notebook = open_notebook(jupyter, LOAD, CELL, EDIT, SHOW)
    page = notebook.page
    notebook.run_cells(0, 1)

    # The finding's fix, shown as a difference, goes into the cell.
    notebook.click("Fix")
    notebook.wait_for(".aq-offer .sp-added")
    notebook.click("Put it into the cell")
    notebook.wait_for_text("The cell has the new text. Run it again.")
    cell = notebook.script("panel.context.model.cells.get(1).sharedModel.source")
    assert cell == CELL.replace("promt", "prompt")
    notebook.run_cell(1)
    notebook.wait_until_idle()
    assert page.locator(".jp-CodeCell >> nth=1").locator(".af-table").count() == 0

    # The editor: a node's prompt, a new node, undo.
    notebook.run_cell(2)
    notebook.wait_for(".ax-editor [data-node=plan]").click()
    prompt = notebook.wait_for(".ae-form textarea[data-name=prompt]")
    prompt.fill("Plan it in three steps.")
    prompt.press("Control+Enter")
    notebook.wait_for(".sp-line.is-changed")
    page.get_by_label("Id of a new node").fill("test")
    page.get_by_label("Id of a new node").press("Enter")
    notebook.wait_for(".ax-editor [data-node=test]")
    page.get_by_role("button", name="Undo").click()
    page.locator(".ax-editor [data-node=test]").wait_for(state="detached")
    notebook.shoot(tmp_path / "editing.png")
    notebook.run_cell(3)
    notebook.wait_for_text('+    plan  [label="Plan", prompt="Plan it in three steps."]  // think first')
    notebook.wait_until_idle()

    # What is saved needs no kernel.
    notebook.save()
    saved = nbformat.read(notebook.path, 4)
    shown = [output for code in saved.cells for output in code.get("outputs", []) if "data" in output]
    assert not any("widget-view" in kind for output in shown for kind in output["data"])
    assert notebook.browser.our_errors == []
