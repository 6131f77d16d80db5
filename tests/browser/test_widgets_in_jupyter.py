"""Gates and runs by ipywidgets in a real notebook: clicked, filled in, slid, and read in light and dark."""

from __future__ import annotations

import getpass

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LOAD = "%load_ext attractor_nb"
PIPELINE = """from typing import Literal
from pydantic import BaseModel, Field
from attractor_nb import Pipeline

class Verdict(BaseModel):
    score: int = Field(ge=0, le=10, description="10 is ready to print")
    risk: Literal["low", "high"] = "low"
    findings: list[str] = []
    sure: bool = True

async def model(node, prompt, context):
    return "# A plan\\n\\n- of **caching**\\n- and <b>nothing</b> else"

article = Pipeline('''digraph article {
  start [shape=Mdiamond]
  draft [label="Draft", prompt="Write it"]
  judge [shape=hexagon, label="Is the article good?", human.form="Verdict"]
  done  [shape=Msquare]
  start -> draft -> judge
  judge -> done  [label="[P] Print"]
  judge -> draft [label="[B] Back"]
}''', schemas={"Verdict": Verdict}, backend=model)"""
CONTROLS = "run = article.run(interviewer='widgets')"
BOX = "other = article.run(interviewer='deferred', is_shown=False)\nbox = other.widget()\nbox"


@pytest.mark.shows("JupyterLab", "gate by ipywidgets")
@pytest.mark.shows("Notebook 7", "gate by ipywidgets")
def test_a_gate_is_answered_by_standard_controls_and_a_run_is_a_box(jupyter, open_notebook, look, pictures):
    notebook = open_notebook(jupyter, LOAD, PIPELINE, CONTROLS, BOX, look=look)
    page = notebook.page
    notebook.run_cells(0, 1, 2)
    print_it = page.get_by_role("button", name="[P] Print")
    print_it.wait_for(timeout=60_000)
    assert page.locator(".ag-card").count() == 0, "the live view has no card beside the controls"
    page.get_by_text("A plan", exact=True).wait_for()
    print_it.click()
    page.locator(".problem", has_text="Field required").wait_for(timeout=30_000)
    print_it.scroll_into_view_if_needed()
    page.screenshot(path=str(pictures / f"widgets_gate_{look.name}.png"))
    page.locator(".widget-text input").first.fill("9")
    page.locator(".widget-text input").first.press("Tab")
    print_it.click()
    notebook.wait_for_text(f"✓ Print (score=9, risk=low, findings=[], sure=true), by {getpass.getuser()}, after")

    notebook.run_cell(3)
    back = page.get_by_role("button", name="[B] Back")
    back.wait_for(timeout=60_000)
    page.locator(".widget-html .state-waiting").first.wait_for(timeout=30_000)
    back.scroll_into_view_if_needed()
    page.screenshot(path=str(pictures / f"widgets_run_{look.name}.png"))
    page.locator(".widget-text input").first.fill("3")
    page.locator(".widget-text input").first.press("Tab")
    back.click()
    notebook.wait_for_text("Back (score=3")
    slider = page.locator(".widget-hslider [role=slider], .widget-hslider .noUi-handle").first
    slider.focus()
    page.keyboard.press("Home")
    notebook.wait_for_text("before the first stage")
    page.locator(".widget-hslider").scroll_into_view_if_needed()
    page.screenshot(path=str(pictures / f"widgets_slider_{look.name}.png"))
    assert not notebook.browser.our_errors
