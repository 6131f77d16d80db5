"""The inspector in a real JupyterLab: a run is clicked through while it waits, then asked from cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PICTURES = Path(os.environ.get("ATTRACTOR_PICTURES", Path(__file__).resolve().parents[2] / ".venv" / "pictures"))
LOAD = "%load_ext attractor_nb"
PIPELINE = """from attractor_nb import FunctionBackend, Outcome, Pipeline
grades, failures = ["C", "A"], ["503: overloaded"]
def model(node, prompt, context):
    if node.id == "draft" and failures:
        return Outcome.retry(failures.pop())
    if node.id == "check":
        return Outcome.success(context_updates={"grade": grades.pop(0)})
    return "A page about <img src=x onerror='window.hit=1'>"
pipeline = Pipeline('''digraph manual {
  start [shape=Mdiamond] done [shape=Msquare]
  draft [label="Draft the page", prompt="Write a page for newcomers", max_retries=2]
  check [label="Grade it"]
  review [shape=hexagon, label="Ship it?"]
  start -> draft -> check
  check -> review [condition="context.grade=A"]
  check -> draft  [condition="context.grade!=A"]
  review -> done  [label="[Y] Yes"]
  review -> draft [label="[N] No"]
}''', backend=FunctionBackend(model))"""
RUN = 'run = pipeline.run(logs_root="runs/look")'
ASK = 'run.inspect("draft", 1)'
WHY = 'print(run.explain_loop("draft").statement)\nrun.explain("check", 1)'


@pytest.mark.shows("JupyterLab", "inspector")
@pytest.mark.shows("Notebook 7", "inspector")
def test_a_run_is_looked_into_while_it_waits_and_from_cells_when_it_has_ended(jupyter, open_notebook):
    notebook = open_notebook(jupyter, LOAD, PIPELINE, RUN, ASK, WHY)
    page = notebook.page
    notebook.run_cells(0, 1, 2)
    notebook.wait_for("[data-node=review].state-waiting")
    inspector = page.locator(".al-inspector")

    page.locator("[data-node=draft]").first.click()
    assert notebook.wait_for(".al-tab-panel .pr-shown").text_content().endswith("Write a page for newcomers")
    inspector.get_by_role("tab", name="Response").click()
    assert "<img src=x" in page.locator(".al-tab-panel").text_content()
    inspector.get_by_role("tab", name="Attempts").click()
    page.get_by_role("button", name="visit 1").click()
    notebook.wait_for(".al-inspector-state >> text=visit 1 of 2")
    page.get_by_role("button", name="attempt 1").click()
    notebook.wait_for(".al-inspector-state >> text=attempt 1 of 2")
    inspector.get_by_role("tab", name="Status").click()
    assert "503: overloaded" in page.locator(".al-tab-panel").text_content()
    inspector.get_by_role("tab", name="Files").click()
    page.get_by_role("button", name="status.json").click()
    assert '"outcome": "retry"' in notebook.wait_for(".al-file-text .pr-shown").text_content()
    link = page.locator(".al-edit").first.get_attribute("href")
    assert link.endswith("/runs/look/draft/visits/1.1/prompt.md"), link

    page.locator("[data-node=check]").first.click()
    notebook.wait_for(".al-inspector-state >> text=visit 2 of 2")
    inspector.get_by_role("tab", name="Context").click()
    assert "grade" in page.locator(".al-context tr.is-changed").all_text_contents()[-1]
    inspector.get_by_role("tab", name="Why").click()
    assert "the condition `context.grade=A` holds" in page.locator(".al-tab-panel").text_content()
    notebook.shoot(PICTURES / "inspector_in_jupyter.png")
    page.locator("[data-edge='3']").first.dispatch_event("click")
    notebook.wait_for(".al-inspector-title >> text=check → draft")
    assert "taken once" in page.locator(".al-inspector-state").text_content()
    assert page.evaluate("() => window.hit") is None

    notebook.click("Yes")
    notebook.wait_for(".al-line[data-status=success]")
    notebook.run_cells(3, 4)
    notebook.wait_for_text("draft was visited twice because check found grade=C")
    assert page.locator(".attractor-inspection").count() == 2
    assert notebook.browser.our_errors == []
