"""The form of a pipeline's inputs in real Jupyter: filled in, refused, run, and read without a kernel."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = '''%load_ext attractor_nb
from attractor_nb import Pipeline
answer = Pipeline("""digraph answer { inputs="ticket, tone=plain"
    start [shape=Mdiamond] write [label="Write", prompt="Answer $ticket in a $tone voice."] done [shape=Msquare]
    start -> write -> done }""", backend="simulated")
form = answer.form()'''


def test_a_form_is_filled_in_and_its_run_appears_below_it(jupyter, open_notebook):
    notebook = open_notebook(jupyter, SETUP, "form", 'form.run.result()["write"].prompt[-37:]')
    notebook.run_cells(0, 1)
    page = notebook.page
    notebook.wait_for(".jp-OutputArea textarea")
    run = page.locator(".jp-OutputArea button", has_text="Run")
    run.click()
    notebook.wait_for("pre[role=alert]")
    assert "ticket" in page.locator("pre[role=alert]").text_content()
    page.locator(".jp-OutputArea textarea").first.fill("the printer")
    run.click()
    notebook.wait_for("[data-node=write].state-success")
    assert page.locator("pre[role=alert]").text_content() == ""
    notebook.run_cell(2)
    notebook.wait_for_text("Answer the printer in a plain voice.")
    assert notebook.browser.our_errors == []
    notebook.save()
    (output,) = nbformat.read(notebook.path, 4).cells[1]["outputs"]
    assert set(output["data"]) == {"text/html", "text/plain"}
    assert "run it with pipeline.run" in output["data"]["text/plain"]
    assert "write said:" in output["data"]["text/plain"], "what it started is kept below it"
