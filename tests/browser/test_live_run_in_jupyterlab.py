"""A pipeline in a real JupyterLab: seen, clicked, typed at, stopped, saved and opened again."""

from __future__ import annotations

import getpass

import nbformat
import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

LOAD = "%load_ext attractor_nb"
REVIEW = """%%attractor review
digraph review {
  graph [goal="Add a --json flag to the report command"]
  start     [shape=Mdiamond, label="Start"]
  plan      [label="Plan the change", prompt="Plan: $goal"]
  implement [label="Implement", prompt="Implement the plan", goal_gate=true, max_retries=2]
  tests     [shape=parallelogram, label="Run the tests", tool_command="echo 48 passed in 2.31 s"]
  green     [shape=diamond, label="Green?"]
  review    [shape=hexagon, label="Is the change good?", human.prompt="+ parser.add_argument('--json')", human.timeout=15m]
  done      [shape=Msquare, label="Done"]

  start -> plan -> implement -> tests -> green
  green -> review    [condition="outcome=success"]
  green -> implement [condition="outcome!=success", label="fix"]
  review -> done      [label="[A] Approve"]
  review -> implement [label="[R] Request changes"]
}"""
BACKEND = """import asyncio
async def model(node, prompt, context):
    await asyncio.sleep(PAUSE)
    return f"{node.id}: the report command writes JSON when --json is given."
"""
PRICED = """import asyncio
from attractor_nb import Usage
from attractor_nb.model.calls.call_content import Response
async def model(node, prompt, context):
    await asyncio.sleep(0.4)
    return Response("Done.", usage=Usage(input_tokens=410, output_tokens=210, cost_usd=0.0015, calls=1))
"""
RUN = "run = review.run(backend=model)"
AWAIT = "result = await run\nresult"


def quick(seconds=0.05):
    return BACKEND.replace("PAUSE", str(seconds))


@pytest.mark.kind("JupyterLab")
def test_a_click_on_the_gate_while_the_run_waits_takes_the_chosen_edge(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(), RUN, AWAIT, "print(result.completed_nodes[-2:])")
    notebook.run_all()
    notebook.click("Approve")
    notebook.wait_for_text("('review', 'done')")
    notebook.wait_until_idle()
    assert notebook.browser.our_errors == []


def test_the_gate_can_be_answered_with_its_underlined_key(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(), RUN)
    notebook.run_all()
    button = notebook.wait_for(".attractor-choice")
    assert button.locator("u").text_content() == "A"
    button.focus()
    notebook.page.keyboard.press("r")
    notebook.wait_for_text(f"Request changes, by {getpass.getuser()}, after")
    assert notebook.script("panel.content.widgets.length") == 4, "no shortcut of the notebook was triggered"
    button = notebook.wait_for(".attractor-gate.is-open .attractor-choice")
    button.focus()
    notebook.page.keyboard.press("a")
    notebook.wait_for_text("success")


def test_a_comment_goes_with_the_choice(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(), RUN, AWAIT, "print(result.context['human.gate.text'])")
    notebook.run_all()
    notebook.wait_for(".attractor-gate textarea").fill("ship it on Monday")
    notebook.page.keyboard.press("Tab")
    notebook.click("Approve")
    expect(notebook.page.locator(".jp-Cell-outputArea").last).to_contain_text("ship it on Monday")


def test_the_saved_notebook_shows_the_finished_picture_without_a_kernel(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(), RUN)
    notebook.run_all()
    notebook.click("Approve")
    notebook.wait_for(".al-line[data-status=success]")
    notebook.save()
    saved = nbformat.read(notebook.path, 4)
    shown = [output for cell in saved.cells for output in cell.get("outputs", []) if "data" in output]
    assert not any("widget-view" in kind for output in shown for kind in output["data"])
    assert "state-success" in "".join(shown[-1]["data"]["image/svg+xml"])


def test_stop_in_the_status_line_interrupts_the_run(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(30), RUN, "run.wait()\nprint(run.status)")
    notebook.run_cell(0)
    notebook.run_cells(1, 2, 3)
    notebook.wait_for("[data-node=plan].state-running")
    notebook.click("Stop")
    expect(notebook.page.locator(".al-line[data-status=interrupted]").first).to_be_visible()
    notebook.run_cell(4)
    expect(notebook.page.locator(".jp-Cell-outputArea").last).to_contain_text("interrupted")


PARENT_AND_CHILD = """from attractor_nb import Pipeline
article = '''digraph article {
  start [shape=Mdiamond]
  draft [label="Draft", prompt="Write it"]
  look  [shape=hexagon, label="Good enough?"]
  done  [shape=Msquare]
  start -> draft -> look
  look -> done  [label="[Y] Yes"]
  look -> draft [label="[N] No"]
}'''
editing = Pipeline('''digraph editing {
  start [shape=Mdiamond]
  boss  [shape=house, label="Editor", "stack.child_pipeline"=article]
  done  [shape=Msquare]
  start -> boss -> done
}''', pipelines={"article": article})"""


def test_a_child_run_is_followed_in_the_picture_of_its_parent(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, PARENT_AND_CHILD, quick(), "run = editing.run(backend=model)", AWAIT)
    notebook.run_all()
    notebook.wait_for(".al-canvas [data-child=boss] [data-node=look].state-waiting")
    assert notebook.page.locator(".al-canvas [data-child=boss] .edge.taken").count() == 2
    notebook.page.locator(".al-canvas [data-child=boss] [data-node=draft]").click()
    assert notebook.wait_for(".al-inspector-body .pr-shown").text_content() == "Write it"
    notebook.click("Yes")
    notebook.wait_until_idle()
    assert notebook.browser.our_errors == []
    notebook.save()
    saved = [output.get("data", {}) for output in nbformat.read(notebook.path, 4).cells[3].outputs]
    (svg,) = ["".join(data["image/svg+xml"]) for data in saved if "image/svg+xml" in data]
    assert 'state-success" data-node="draft"' in svg.split('data-child="boss"')[1]


def test_a_view_that_is_shown_again_starts_from_the_truth(lab, open_notebook):
    notebook = open_notebook(lab, LOAD, REVIEW, quick(), RUN, "run")
    notebook.run_cells(0, 1, 2, 3)
    notebook.wait_for(".attractor-gate.is-open")
    notebook.run_cell(4)
    page = notebook.page
    expect(page.locator(".attractor-live")).to_have_count(2)
    expect(page.locator(".al-canvas [data-node=tests].state-success")).to_have_count(2)
    expect(page.locator(".al-canvas [data-node=review].state-waiting")).to_have_count(2)
    notebook.click("Approve")
    expect(page.locator(".al-line[data-status=success]")).to_have_count(2)


def test_the_live_view_follows_the_theme(lab, open_notebook):
    wide = REVIEW.replace("graph [", "graph [rankdir=LR, ")
    notebook = open_notebook(lab, LOAD, wide, PRICED, RUN)
    notebook.run_all()
    notebook.wait_for(".attractor-gate.is-open")
    change = "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})"
    try:
        for theme in ("Light", "Dark"):
            notebook.page.evaluate(change, f"JupyterLab {theme}")
            is_light = str(theme == "Light").lower()
            notebook.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{is_light}'")
            page = notebook.script("getComputedStyle(document.querySelector('.attractor-live')).color")
            lightness = sum(int(part) for part in page[4:-1].split(",")[:3])
            assert (lightness > 380) == (theme == "Dark")
            kept = notebook.script("getComputedStyle(document.querySelector('[data-attractor-run] > img')).colorScheme")
            assert kept == theme.lower(), "the image that is kept follows the theme, whatever the system's is"
    finally:
        notebook.page.evaluate(change, "JupyterLab Light")
    notebook.click("Approve")
    notebook.wait_for(".al-line[data-status=success]")


def test_it_works_the_same_in_notebook_7(make_server, write_notebook, tmp_path):
    pytest.importorskip("notebook", reason="Notebook 7 is not installed")
    write_notebook(tmp_path, "demo.ipynb", LOAD, REVIEW, quick(), RUN, AWAIT)
    with make_server(tmp_path, app="notebook") as server, server.browser() as browser:
        notebook = browser.open("demo.ipynb")
        notebook.run_all()
        notebook.click("Approve")
        expect(notebook.page.locator(".jp-Notebook")).to_contain_text("✓ completed", use_inner_text=True)
