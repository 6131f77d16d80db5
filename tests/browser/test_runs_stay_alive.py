"""Runs that have ended, were saved, or are opened again, in real Jupyter: alive where there is a kernel, read where not."""

from __future__ import annotations

import json

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = "%load_ext attractor_nb"
REVIEW = """%%attractor review --quiet
digraph review {
  start [shape=Mdiamond]
  plan  [label="Plan the change", prompt="Plan it"]
  gate  [shape=hexagon, label="Is the plan good?"]
  ship  [label="Ship", prompt="Ship it"]
  done  [shape=Msquare]
  start -> plan -> gate
  gate -> ship [label="[A] Approve"]
  gate -> plan [label="[R] Redo"]
  ship -> done
}"""
MODEL = """def model(node, prompt, context):
    return f"{node.id}: the report command writes JSON when --json is given."
"""
RUN = "run = review.run(backend=model)"
ANSWER = "run.answer('gate', 'approve')\nrun.wait()"
LIVE = ".attractor-stand-in .attractor-live"
PICTURE = '[data-attractor-run] > img[src^="data:image/svg+xml;base64,"]'


def hide_trust(server, notebook, name):
    """A copy of a saved notebook as another user has it, who does not trust it."""
    copy = nbformat.read(notebook.path, 4)
    copy.metadata["of"] = name  # another text, so no signature of ours fits
    nbformat.write(copy, server.root / name)
    return name


def test_an_inspector_that_is_read_outlives_the_end_and_the_run_stays_alive(jupyter, open_notebook, pictures, look):
    notebook = open_notebook(jupyter, LOAD, REVIEW, MODEL, RUN, ANSWER, look=look)
    notebook.run_cells(0, 1, 2, 3)
    page = notebook.page
    notebook.wait_for("[data-node=gate].state-waiting")
    page.locator(".al-canvas [data-node=plan]").click()
    notebook.wait_for_text("Plan it")
    page.evaluate("() => { document.querySelector('.al-inspector').dataset.mark = 'same'; }")
    words = page.locator(".al-tab-panel").first.text_content()
    notebook.run_cells(4)
    notebook.wait_for(".al-line[data-status=success]")
    notebook.wait_for_text("ship: the report command writes JSON")
    assert page.locator(".al-inspector[data-mark=same]").is_visible(), "the same element, not one made anew"
    assert page.locator(".al-tab-panel").first.text_content() == words
    page.locator(".al-canvas [data-node=ship]").dispatch_event("click")
    notebook.wait_for_text("Ship it")
    assert page.locator(".al-stop:visible").count() == 0
    page.screenshot(path=pictures / f"stay-ended-{jupyter.app}-{look.name}.png")
    assert page.locator(PICTURE).locator("visible=true").count() == 0, "stood in for"
    assert notebook.browser.our_errors == []


def test_a_run_that_has_ended_has_its_replay_timeline_and_table(jupyter, open_notebook):
    notebook = open_notebook(jupyter, LOAD, REVIEW, MODEL, RUN, ANSWER)
    notebook.run_cells(0, 1, 2, 3, 4)
    page = notebook.page
    notebook.wait_for(".al-after")
    page.get_by_role("button", name="Replay").click()
    notebook.wait_for(".al-panel .ar-slider")
    assert page.locator(f"{LIVE} > .al-stage > .al-canvas").locator("visible=true").count() == 0
    page.locator(".al-panel .ar-slider").first.fill("4")
    notebook.wait_for(".al-panel [data-node=plan].state-running, .al-panel [data-node=plan].state-success")
    page.get_by_role("button", name="Timeline").click()
    notebook.wait_for(".al-panel .at-lanes svg")
    assert page.locator(".al-panel .ar-slider").locator("visible=true").count() == 0
    page.get_by_role("button", name="Timeline").click()
    notebook.wait_for(f"{LIVE} .al-canvas [data-node=ship].state-success")
    page.get_by_role("button", name="The states as a table").first.click()
    assert "success" in notebook.wait_for(".al-table table").text_content()
    page.evaluate("() => jupyterapp.serviceManager.sessions.shutdownAll()")
    page.wait_for_function(
        "() => ['dead', 'unknown', 'terminating'].includes("
        "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status ?? 'dead')"
    )
    page.locator(f"{LIVE} .al-canvas [data-node=ship]").click()
    assert "The kernel is gone." in notebook.wait_for(".al-lost").text_content()
    assert notebook.browser.our_errors == []


@pytest.mark.shows("JupyterLab", "stored output")
@pytest.mark.shows("Notebook 7", "stored output")
def test_saved_while_a_gate_waits_it_says_which_run_and_a_button_opens_it(jupyter, open_notebook, pictures, look):
    inbox = "from attractor_nb import gates\ngates()"
    notebook = open_notebook(jupyter, LOAD, REVIEW, MODEL, "run = review.run()", inbox, look=look)
    notebook.run_cells(0, 1, 2, 3, 4)
    page = notebook.page
    notebook.wait_for("[data-node=gate].state-waiting")
    notebook.wait_for(".attractor-gate:not(.has-gates) .ag-card")
    line = "getComputedStyle(document.querySelector('.attractor-live .al-line')).display"
    assert notebook.script(line) == "flex", "a second kind of view takes no style from the first"
    page.wait_for_timeout(1500)  # what is kept follows the gate at its own pace
    notebook.save()
    saved = nbformat.read(notebook.path, 4)
    kinds = {kind for cell in saved.cells for output in cell.get("outputs", ()) for kind in output.get("data", {})}
    assert not any("widget" in kind for kind in kinds)
    kept = saved.cells[3].outputs[0]["data"]
    assert kept["text/plain"].splitlines()[-1] == "run.resume()", "each call is a line that can be copied"
    for words in ("waits for an answer: Is the plan good?", "Run.load(", "run.resume()"):
        assert words in kept["text/plain"]
        assert words in kept["text/html"].replace("&#34;", '"')
    copy = hide_trust(jupyter, notebook, "untrusted.ipynb")
    notebook.shoot(pictures / f"stay-waiting-{jupyter.app}-{look.name}.png")
    page.evaluate("() => jupyterapp.serviceManager.sessions.shutdownAll()")
    with jupyter.browser(**look.window, is_new=True) as browser:
        again = browser.open(copy)
        assert not again.script("panel.content.widgets[3].model.trusted")
        again.wait_for('.jp-OutputArea-output img[src^="data:image/svg+xml;base64,"]')
        again.wait_for_text("gate `gate` waits for an answer")
        assert "model not found" not in again.output_text()
        assert "Is the plan good?" in again.output_text()
        assert browser.our_errors == []
        again.shoot(pictures / f"stay-untrusted-{jupyter.app}-{look.name}.png")
        browser.page.evaluate("() => jupyterapp.serviceManager.sessions.shutdownAll()")
    with jupyter.browser(**look.window, is_new=True) as browser:
        again = browser.open(notebook.path.name)
        page = browser.page
        look.dress(page)
        again.wait_for(PICTURE)
        assert page.locator(LIVE).count() == 0
        again.shoot(pictures / f"stay-reopened-{jupyter.app}-{look.name}.png")
        again.run_cell(0)
        again.wait_for(".al-reopen")
        page.screenshot(path=pictures / f"stay-with-a-button-{jupyter.app}-{look.name}.png")
        again.click("Open this run")
        again.wait_for(f"{LIVE} .al-line[data-status=interrupted]")
        page.locator(f"{LIVE} [data-node=plan]").click()
        again.wait_for_text("Plan it")
        page.screenshot(path=pictures / f"stay-opened-{jupyter.app}-{look.name}.png")
        page.wait_for_function("() => !document.querySelector('.al-reopen')")
        page.get_by_role("button", name="Resume").click()
        again.click("Approve")
        again.wait_for(".al-panel .al-line[data-status=success]")
        assert browser.our_errors == []


def test_after_a_restart_the_bar_that_says_so_opens_the_run(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, MODEL, "run = review.run()")
    notebook.run_cells(0, 1, 2, 3)
    notebook.wait_for("[data-node=gate].state-waiting")
    notebook.script("(panel.sessionContext.session.kernel.restart(), 0)")
    notebook.wait_for(".al-lost:visible")
    notebook.run_cell(0)
    button = notebook.wait_for(".al-lost .al-reopen button")
    drawing = notebook.page.locator(f"{LIVE} .ad-frame").bounding_box()
    assert button.bounding_box()["y"] < drawing["y"], "above the picture"
    button.click()
    notebook.page.wait_for_function("() => !document.querySelector('.al-lost:not([hidden])')")
    notebook.wait_for(f"{LIVE} .al-line[data-status=interrupted]", 20)
    assert notebook.page.locator(LIVE).count() == 1, "the view that was lost has given its place away"
    notebook.page.wait_for_function("() => !document.querySelector('.al-reopen')")
    assert notebook.browser.our_errors == []


def test_a_notebook_that_was_closed_does_not_offer_to_open_runs_of_another(lab, open_notebook, write_notebook, driver):
    notebook = open_notebook(lab, LOAD, "1")
    notebook.run_cells(0, 1)
    write_notebook(lab.root, "second.ipynb", LOAD, REVIEW, MODEL, "run = review.run()")
    notebook.page.evaluate(driver.OPEN_ALONE, "second.ipynb")
    driver.wait_until(lambda: notebook.kernel_status == "idle", 60, "the kernel of the second notebook")
    notebook.run_cells(0, 1, 2, 3)
    notebook.wait_for("[data-node=gate].state-waiting")
    notebook.script("(panel.sessionContext.session.kernel.restart(), 0)")
    notebook.wait_for(".al-lost:visible")
    notebook.run_cell(0)
    notebook.wait_for(".al-lost .al-reopen button").click()
    notebook.wait_for(f"{LIVE} .al-line[data-status=interrupted]", 20)
    assert notebook.browser.our_errors == []


def test_a_run_that_still_waits_is_named_by_the_next_one_with_stop_and_show(jupyter, open_notebook):
    notebook = open_notebook(jupyter, LOAD, REVIEW, MODEL, RUN)
    notebook.run_cells(0, 1, 2, 3)
    notebook.wait_for("[data-node=gate].state-waiting")
    notebook.run_cells(3)
    notebook.wait_for_text("another run of this pipeline")
    page = notebook.page
    notebook.click("Show")
    notebook.wait_for(".al-other .attractor-live [data-node=gate].state-waiting")
    page.locator(".al-other").get_by_role("button", name="Stop").first.click()
    page.wait_for_function("() => !document.querySelector('.al-other')")
    assert page.locator(f"{LIVE} [data-node=gate].state-waiting").count() == 1
    notebook.click("Approve")
    notebook.wait_for(".al-line[data-status=success]")
    assert notebook.browser.our_errors == []


def test_views_of_older_runs_let_go_to_their_pictures(lab, open_notebook):
    many = "import attractor_nb.notebook.live.live_runs as live\nlive.LiveRuns.__init__.__defaults__ = (2,)"
    notebook = open_notebook(lab, LOAD, many, REVIEW, MODEL, *["review.run(backend=model, interviewer='auto')"] * 4)
    notebook.run_cells(*range(8))
    notebook.page.wait_for_function("document.querySelectorAll('.attractor-stand-in .attractor-live').length === 2")
    assert notebook.page.locator(PICTURE).locator("visible=true").count() == 2
    notebook.page.get_by_role("button", name="Open this run").first.click()
    notebook.wait_for("#x, .jp-Cell:nth-child(5) .attractor-live, [data-attractor-run] .attractor-live")
    assert notebook.browser.our_errors == []
    assert json.dumps(notebook.output_text()).count("Javascript Error") == 0
