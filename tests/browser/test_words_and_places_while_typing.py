"""What a word of a pipeline means, where a node is declared, and another id for it, in a real JupyterLab."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELL = """%%attractor review
digraph Review {
    graph [model_stylesheet="#plan { llm_model: haiku }"]
    start [shape=Mdiamond]
    start -> plan -> write -> done
    write -> plan [condition="outcome=fail"]
    plan  [label="Plan it", max_retries=2, retry_target=write]
    write [prompt="Say it: ${plan.response}"]
    done [shape=Msquare]
}"""
SOURCE = "panel.context.model.cells.get(0).sharedModel.source"
CURSOR = "panel.content.widgets[0].editor.getOffsetAt(panel.content.widgets[0].editor.getCursorPosition())"
PLACE = """offset => {
  const panel = [...jupyterapp.shell.widgets('main')].find(each => each.content?.model?.cells);
  return panel.content.widgets[0].editor.editor.coordsAtPos(offset);
}"""


@pytest.fixture
def typed(jupyter, open_notebook):
    notebook = open_notebook(jupyter, CELL)
    notebook.page.wait_for_function(
        "() => [...jupyterapp.shell.widgets('main')].some(each => each.content?.model?.cells?.get(0).mimeType.includes('graphviz'))"
    )
    return notebook


def point_at(notebook, text, nth=0):
    """The middle of a place in the cell's text."""
    offset = -1
    for _ in range(nth + 1):
        offset = CELL.index(text, offset + 1)
    place = notebook.page.evaluate(PLACE, offset + 1)
    return (place["left"] + place["right"]) / 2 + 1, (place["top"] + place["bottom"]) / 2


def put_cursor(notebook, text, nth=0):
    notebook.page.mouse.click(*point_at(notebook, text, nth))


def meaning(notebook, text, nth=0):
    """What hovering a word shows."""
    notebook.page.mouse.move(5, 5)
    notebook.page.locator(".cm-attractor-meaning").wait_for(state="detached")
    notebook.page.mouse.move(*point_at(notebook, text, nth), steps=4)
    return notebook.wait_for(".cm-attractor-meaning").inner_text()


def test_a_word_tells_what_it_means(typed, pictures):
    attribute = meaning(typed, "max_retries")
    assert attribute.startswith("max_retries (of a node · integer")
    assert "attempts" in attribute
    assert "start: where a run begins" in meaning(typed, "Mdiamond")
    node = meaning(typed, "plan", nth=1)
    assert node.splitlines() == ["plan: Plan it (codergen)", "from start, write outcome=fail", "to write"]
    typed.page.screenshot(path=str(pictures / "meaning-of-a-node.png"))


def test_f12_and_a_click_with_control_go_to_where_a_node_is_declared(typed):
    page = typed.page
    put_cursor(typed, "plan", nth=2)
    page.keyboard.press("F12")
    page.wait_for_function(
        f"() => {{ const panel = [...jupyterapp.shell.widgets('main')][0]; return {CURSOR} === {CELL.index('plan  [')}; }}"
    )
    page.keyboard.down("Control")
    page.mouse.click(*point_at(typed, "write ->"))
    page.keyboard.up("Control")
    page.wait_for_function(
        f"() => {{ const panel = [...jupyterapp.shell.widgets('main')][0]; return {CURSOR} === {CELL.index('write [')}; }}"
    )


def test_f2_renames_a_node_wherever_it_is_named(typed):
    page = typed.page
    put_cursor(typed, "plan  [")
    page.keyboard.press("F2")
    field = page.locator(".jp-Dialog input")
    field.fill("draft")
    field.press("Enter")
    page.wait_for_function(
        f"() => {{ const panel = [...jupyterapp.shell.widgets('main')][0]; return !{SOURCE}.includes('plan'); }}"
    )
    assert typed.script(SOURCE) == CELL.replace("#plan", "#draft").replace("plan", "draft")
    page.keyboard.press("Control+z")
    assert typed.script(SOURCE) == CELL, "one undo takes it back"


def test_an_id_that_is_taken_is_refused_and_the_text_stays(typed):
    page = typed.page
    put_cursor(typed, "plan  [")
    page.keyboard.press("F2")
    field = page.locator(".jp-Dialog input")
    field.fill("done")
    field.press("Enter")
    page.locator(".jp-Dialog", has_text="The text was not changed").wait_for()
    assert "done" in page.locator(".jp-Dialog-body").inner_text()
    page.locator(".jp-Dialog button").click()
    assert typed.script(SOURCE) == CELL
