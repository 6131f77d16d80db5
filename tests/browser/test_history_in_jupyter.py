"""The list of runs and the timeline in real Jupyter: every button clicked once, and what is saved needs no kernel."""

from __future__ import annotations

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = '''%load_ext attractor_nb
from attractor_nb import Pipeline, Outcome, heat, runs
talk = Pipeline("""digraph talk { start [shape=Mdiamond] plan [label="Plan", prompt="a"] say [prompt="b"]
    done [shape=Msquare] start -> plan -> say -> done }""", backend="simulated")
async def refuses(node, prompt, context):
    return Outcome.fail("no <b>words</b>") if node.id == "say" else "ok"
for name, options in [("well", {}), ("badly", {"backend": refuses}), ("half", {"stop_after": 2})]:
    talk.run(wait=True, is_shown=False, logs_root=f"history/{name}", **options)'''
LIST = 'runs("history")'
TIMELINE = 'runs("history").where(text="well")[0].load().timeline()'
LEFT = 'sorted((row.logs_root.name, row.status, row.tags) for row in runs("history"))'


def test_runs_are_filtered_opened_tagged_resumed_and_deleted_by_clicks(jupyter, open_notebook):
    notebook = open_notebook(jupyter, SETUP, LIST, TIMELINE, LEFT)
    notebook.run_cells(0, 1, 2)
    page = notebook.page
    notebook.wait_for(".ah-history tr[data-run=half]")
    assert page.locator("[data-attractor-place] > .attractor-table:visible").count() == 0, "the table is stood in for"

    assert page.locator(".ah-panel").is_hidden(), "no false alarm about the kernel"

    page.locator(".ah-filter").fill("failed")
    page.wait_for_function("document.querySelectorAll('tr[data-run]').length === 1")
    page.locator("tr[data-run=badly]").get_by_text("Open", exact=True).click()
    notebook.wait_for(".ah-panel [data-node=say].state-fail")
    assert "no <b>words</b>" in notebook.wait_for(".ah-panel .al-failure-words").text_content()
    page.locator(".ah-filter").fill("")

    page.locator("tr[data-run=well]").get_by_text("Tag", exact=True).click()
    page.locator(".ah-tag-field").fill("good")
    page.keyboard.press("Enter")
    notebook.wait_for("tr[data-run=well] .ah-tag")
    page.locator("tr[data-run=half]").get_by_text("Resume", exact=True).click()
    page.wait_for_function("document.querySelector('tr[data-run=half]').textContent.includes('completed')")
    delete = page.locator("tr[data-run=badly]").get_by_text("Delete", exact=True)
    delete.click()
    page.locator("tr[data-run=badly]").get_by_text("Sure?", exact=True).click()
    page.wait_for_function("!document.querySelector('tr[data-run=badly]')")

    assert page.locator("[data-attractor-place] > img:visible").count() == 0, "the picture is stood in for"
    page.locator(".at-timeline [data-bar][data-for=plan]").click()
    notebook.wait_for(".at-timeline [data-node=plan].selected")
    page.locator(".at-heats").get_by_text("visits", exact=True).click()
    notebook.wait_for(".at-timeline [data-node=plan].is-tinted")

    notebook.run_cell(3)
    notebook.wait_for_text("('half', 'completed', ()), ('well', 'completed', ('good',))")
    assert notebook.browser.our_errors == []
    notebook.save()
    saved = [output for cell in nbformat.read(notebook.path, 4).cells for output in cell.get("outputs", [])]
    kinds = {kind for output in saved for kind in output.get("data", {})}
    assert not any("widget-view" in kind for kind in kinds)
    assert "attractor-table" in "".join(saved[0]["data"]["text/html"])
    assert "data:image/svg+xml;base64," in "".join(saved[1]["data"]["text/html"])


def test_two_runs_are_chosen_by_keys_and_compared_by_a_button(jupyter, open_notebook, pictures, look):
    base = f"compared-{look.name}"
    notebook = open_notebook(jupyter, *(cell.replace("history", base) for cell in (SETUP, LIST)), look=look)
    notebook.run_cells(0, 1)
    page = notebook.page
    notebook.wait_for(".ah-history tr[data-run=half]")
    compare = page.get_by_role("button", name="Compare", exact=True)
    assert compare.is_disabled()
    for name in ("well", "badly"):
        page.locator(f"tr[data-run={name}] .ah-check").focus()
        page.keyboard.press("Space")
    assert page.locator("tr[data-run=badly] .ah-side").text_content() == "B"
    assert page.locator("tr[data-run=half] .ah-check").is_disabled()
    compare.click()
    notebook.wait_for(".ah-panel .attractor-compared [data-node=say]")
    assert page.locator(".ah-panel code").text_content() == f'diff("{base}/well", "{base}/badly")'
    page.locator(".ah-panel [data-node=say]").click()
    sides = page.locator(".ac-panel .ac-side")
    assert sides.count() == 2
    assert "no <b>words</b>" in sides.nth(1).text_content()
    page.locator(".ah-panel").scroll_into_view_if_needed()
    page.screenshot(path=pictures / f"history-compare-{jupyter.app}-{look.name}.png")
    assert notebook.browser.our_errors == []
