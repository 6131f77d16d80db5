"""The debugger in a real front-end, in one scenario: breakpoint, step, context, prompt, pin, and on to the end."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = "%load_ext attractor_nb"
FIXING = """%%attractor fixing
digraph fixing {
  start [shape=Mdiamond]; done [shape=Msquare]
  plan   [label="Plan it", prompt="Plan the repair."]
  repair [label="Repair it", prompt="Repair as planned."]
  check  [label="Green?", prompt="Are all tests green?"]
  start -> plan -> repair -> check
  check -> done   [condition="context.green=true"]
  check -> repair [label="again"]
}"""
RUN = 'run = fixing.run(backend="simulated", breakpoints=["plan"])'
SEEN = """result = run.result(timeout=20)
print(result.status, result["check"].prompt.splitlines()[-1], "|", result.context.get("green"))
print(run.debugger.pins, [event.change for event in run.journal().events if event.type == "DebuggerChanged"])"""


def test_a_run_is_stopped_stepped_changed_and_let_go_by_clicks(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, LOAD, FIXING, RUN, SEEN)
    page = notebook.page
    page.set_default_timeout(30000)
    for cell in range(3):
        notebook.run_cell(cell)
    bar = page.locator(".db-bar").first
    bar.locator(".db-stop").filter(has_text="Stands before plan").wait_for()
    bar.get_by_role("button", name="Step", exact=True).click()
    bar.locator(".db-stop").filter(has_text="Stands before repair").wait_for()
    page.locator(".al-canvas [data-node=check]").first.click(modifiers=["Alt"])
    bar.locator(".db-point").filter(has_text="check").wait_for()
    bar.get_by_role("button", name="Continue", exact=True).click()
    bar.locator(".db-stop").filter(has_text="Stands before check").wait_for()

    bar.locator(".db-editor summary").click()
    bar.get_by_label("Prompt of check").fill("Are they green? Say yes.")
    bar.locator(".db-prompt").get_by_role("button", name="Set").click()
    page.locator(".ad-badge title").filter(has_text="another prompt").first.wait_for(state="attached")
    bar.get_by_label("New key").fill("green")
    bar.get_by_label("New value").fill("true")
    bar.get_by_role("button", name="Add").click()
    bar.get_by_label("Value of green", exact=True).wait_for()
    notebook.shoot(pictures / "debugger_in_jupyter.png")
    bar.get_by_role("button", name="Continue", exact=True).click()
    page.locator(".db-bar").first.wait_for(state="hidden")
    notebook.run_cell(3)
    notebook.wait_for_text("success Are they green? Say yes. | True")
    notebook.wait_for_text("{} ['prompt', 'context']")
