"""The debugger in a real front-end, in one scenario: breakpoint, step, context, prompt, pin, and on to the end."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

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
SEEN = """result = run.result(timeout=60)
print(result.status, result["check"].prompt.splitlines()[-1], "|", result.context.get("green"))
print(run.debugger.pins, [event.change for event in run.journal().events if event.type == "DebuggerChanged"])"""


def test_a_run_is_stopped_stepped_changed_and_let_go_by_clicks(jupyter, open_notebook, pictures):
    notebook = open_notebook(jupyter, LOAD, FIXING, RUN, SEEN)
    page = notebook.page
    page.set_default_timeout(30000)
    for cell in range(3):
        notebook.run_cell(cell)
    bar = page.locator(".db-bar").first
    expect(bar.locator(".db-stop", has_text="Stopped before plan")).to_be_visible()
    bar.get_by_role("button", name="Step", exact=True).click()
    expect(bar.locator(".db-stop", has_text="Stopped before repair")).to_be_visible()
    page.locator(".al-canvas [data-node=check]").first.click(modifiers=["Alt"])
    expect(bar.locator(".db-point", has_text="check")).to_be_visible()
    bar.get_by_role("button", name="Continue", exact=True).click()
    expect(bar.locator(".db-stop", has_text="Stopped before check")).to_be_visible()

    bar.locator(".db-editor summary").click()
    bar.get_by_label("Prompt of check").fill("Are they green? Say yes.")
    bar.locator(".db-prompt").get_by_role("button", name="Set").click()
    expect(page.locator(".ad-badge title").filter(has_text="another prompt").first).to_be_attached()
    bar.get_by_label("New key").fill("green")
    bar.get_by_label("New value").fill("true")
    bar.get_by_role("button", name="Add").click()
    expect(bar.get_by_label("Value of green", exact=True)).to_be_visible()
    notebook.shoot(pictures / "debugger_in_jupyter.png")
    bar.get_by_role("button", name="Continue", exact=True).click()
    expect(page.locator(".db-bar").first).to_be_hidden()
    notebook.run_cell(3)
    output = notebook.page.locator(".jp-Cell-outputArea").last
    expect(output).to_contain_text("success Are they green? Say yes. | True")
    expect(output).to_contain_text("{} ['prompt', 'context']")


LINES = 'run = fixing.run(backend="simulated", breakpoints=["repair"], params={"green": True, "notes": "first\\nsecond\\n\\nlast"})'
KEPT = """result = run.result(timeout=60)
print(result.status, repr(result.context["notes"]), repr(result["repair"].prompt.splitlines()[-2:]))"""


def test_texts_of_many_lines_are_edited_and_keep_their_lines(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, LOAD, FIXING, LINES, KEPT, look=look)
    page = notebook.page
    for cell in range(3):
        notebook.run_cell(cell)
        notebook.wait_until_idle()
    bar = page.locator(".db-bar").first
    bar.locator(".db-stop").filter(has_text="Stopped before repair").wait_for()
    bar.locator(".db-editor summary").click()
    notes = bar.get_by_label("Value of notes", exact=True)
    assert notes.input_value() == "first\nsecond\n\nlast"
    notes.focus()
    page.keyboard.press("Control+End")
    page.keyboard.press("Enter")
    page.keyboard.type("one more")
    page.keyboard.press("Control+Enter")
    prompt = bar.get_by_label("Prompt of repair")
    prompt.fill("Repair as planned.\n\nThen say what was done.")
    assert prompt.evaluate("(field) => field.scrollHeight <= field.clientHeight + 1"), "all of its lines are in sight"
    prompt.scroll_into_view_if_needed()
    page.screenshot(path=pictures / f"debugger-lines-{jupyter.app}-{look.name}.png")
    bar.locator(".db-prompt").get_by_role("button", name="Set").click()
    page.locator(".ad-badge title").filter(has_text="another prompt").first.wait_for(state="attached")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    bar.get_by_role("button", name="Continue", exact=True).click()
    page.locator(".db-bar").first.wait_for(state="hidden")
    notebook.run_cell(3)
    notebook.wait_for_text(r"'first\nsecond\n\nlast\none more'")
    notebook.wait_for_text("Then say what was done.")
    assert notebook.browser.our_errors == []
