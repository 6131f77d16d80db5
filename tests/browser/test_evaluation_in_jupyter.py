"""An evaluation in a cell of real Jupyter: a click on a row shows its run beneath; what is saved is the table."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = '''%load_ext attractor_nb
from attractor_nb import Pipeline
def team(node, prompt, context):
    return "billing" if "pay" in context["ticket"] else "sales"
triage = Pipeline("""digraph triage { inputs="ticket"
    start [shape=Mdiamond] classify [prompt="Which team is this for? $ticket"] done [shape=Msquare]
    start -> classify -> done }""", backend=team)
rows = [{"id": "t1", "ticket": "I cannot pay", "expected": "billing"},
        {"id": "t2", "ticket": "It crashes", "expected": "support"}]
def correct(output, expected):
    return output == expected
found = triage.evaluate(rows, correct, wait=True, is_shown=False)'''


def test_a_row_opens_its_run_in_place_and_the_table_is_what_is_saved(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, SETUP, "found", look=look)
    page = notebook.page
    notebook.run_cells(0, 1)
    notebook.wait_for(".av-evaluation:visible")
    assert page.locator(".av-row .av-id").all_text_contents() == ["t2", "t1"], "the row that failed is the first"
    page.locator(".av-row", has_text="t2").locator("td").last.click()
    notebook.wait_for(".an-run [data-node=classify].state-success")
    assert page.locator(".an-title").text_content() == "Row t2"
    page.locator(".an-run [data-node=classify]").click()
    notebook.wait_for(".an-run .as-actions:visible")
    assert page.locator(".an-run").get_by_role("button", name="Save as row in rows.jsonl").is_visible()
    page.locator(".av-evaluation").scroll_into_view_if_needed()
    page.screenshot(path=pictures / f"evaluation-row-{jupyter.app}-{look.name}.png")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    page.get_by_role("button", name="t1", exact=True).press("Enter")
    page.get_by_text("Row t1", exact=True).wait_for()
    assert page.locator(".an-run").count() == 1, "another row takes the place of the first"
    page.get_by_role("button", name="t1", exact=True).press("Enter")
    page.locator(".an-run").wait_for(state="detached")
    assert notebook.browser.our_errors == []
    notebook.save()
    (output,) = nbformat.read(notebook.path, 4).cells[1].outputs
    assert "Failures: 1 of 2 rows" in output["data"]["text/html"]
    assert set(output["data"]) == {"text/html", "text/plain"}
