"""Failed runs in a real JupyterLab: the cell, the saved notebook, a loaded run, the list of runs, a rerun by a click."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = "%load_ext attractor_nb"
PIPELINE = """from attractor_nb import Outcome, Pipeline, Run, runs
table = {"found": 1}
def look_up(table):
    value = table["found"]
    return table["missing"], value
class Load:
    def execute(self, node, context, graph, logs_root):
        return Outcome.success(f"{look_up(table)}")
pipeline = Pipeline('digraph import_table { start [shape=Mdiamond] done [shape=Msquare]'
  ' plan [label="Plan the import", prompt="Plan it"] load [label="Load the table", type=mine]'
  ' start -> plan -> load -> done }', handlers={"mine": Load()}, backend="simulated")"""
RUN = 'run = pipeline.run(logs_root="kept/one")'
LOADED = 'Run.load("kept/one")'
FIXED = 'table["missing"] = 2'
WAITING = """asking = Pipeline('digraph ask { start [shape=Mdiamond] done [shape=Msquare] gate [shape=hexagon, label="Ok?"]'
  ' start -> gate -> done }', backend="simulated")
waits = asking.run(logs_root="kept/two", is_shown=False, interviewer="deferred")
waits.wait_for_gate("gate", timeout=30)
runs("kept")"""


@pytest.mark.shows("JupyterLab", "inspector")
def test_a_failed_run_is_seen_fixed_and_rerun(lab, open_notebook, pictures, look):
    run, loaded = (cell.replace("kept", f"failed-{look.name}") for cell in (RUN, LOADED))
    notebook = open_notebook(lab, LOAD, PIPELINE, run, loaded, FIXED, look=look)
    page = notebook.page
    notebook.run_cells(0, 1, 2)
    failure = page.locator(".al-failure").first
    failure.wait_for()
    assert failure.locator(".al-failure-words").text_content() == "load failed: KeyError: 'missing'"
    assert failure.locator(".al-code.is-failed").text_content().strip().endswith('return table["missing"], value')
    assert failure.locator(".al-text-name").first.text_content() == "cell:5, in look_up"
    assert not failure.locator("details").first.evaluate("one => one.open")
    notebook.shoot(pictures / f"failure-cell-{look.name}.png")

    notebook.run_cells(3)
    page.locator(".al-failure").nth(1).wait_for()
    notebook.save()
    saved = nbformat.read(notebook.path, 4).cells[2].outputs[0]["data"]
    for words in (
        "load failed: KeyError: 'missing'",
        '> 5      return table["missing"], value',
        "A rewind to load runs it",
    ):
        assert words in saved["text/plain"]
    assert "load failed: KeyError" in saved["text/html"]

    notebook.run_cells(4)
    page.get_by_role("button", name="Rerun this stage").first.click()
    page.get_by_role("button", name="Rewind and run").first.click()
    notebook.wait_for(".an-run .al-line[data-status=success]")


def test_a_waiting_run_is_answered_where_the_list_opens_it(lab, open_notebook, pictures):
    notebook = open_notebook(lab, LOAD, PIPELINE.partition("\n")[0] + "\n" + WAITING)
    page = notebook.page
    notebook.run_cells(0, 1)
    page.locator("tr[data-run=two]").get_by_text("Open").click()
    notebook.wait_for(".ah-panel [data-node=gate].state-waiting")
    assert page.locator(".ah-panel .ag-about").text_content().startswith("gate · run ")
    notebook.shoot(pictures / "failure-open-waiting.png")
    page.locator(".ah-panel .attractor-choice").first.click()
    notebook.wait_for(".ah-panel .al-line[data-status=success]")
