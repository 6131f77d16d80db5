"""The meaning of a word of a pipeline, the declaration of a node, and its renaming, in a real JupyterLab."""

from __future__ import annotations

import pytest

from tests.waiting import wait_until
from tests.word_meanings import BEGINNINGS, CELL, MEANINGS, PLAN, PROSE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

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
    """The text that hovering a word shows."""
    notebook.page.mouse.move(5, 5)
    notebook.page.locator(".cm-attractor-meaning").wait_for(state="detached")
    notebook.page.mouse.move(*point_at(notebook, text, nth), steps=4)
    return notebook.wait_for(".cm-attractor-meaning").inner_text()


def test_a_word_tells_what_it_means(typed, pictures):
    attribute = meaning(typed, "max_retries")
    assert attribute.startswith(BEGINNINGS["max_retries"])
    assert "attempts" in attribute
    assert meaning(typed, "plan ->").splitlines() == PLAN
    typed.page.screenshot(path=str(pictures / "meaning-of-a-node.png"))


def test_shapes_variables_keys_and_rules_of_a_stylesheet_tell_what_they_mean(typed, pictures):
    assert {text: meaning(typed, text).splitlines() for text in MEANINGS} == MEANINGS
    assert meaning(typed, "temperature:").startswith(BEGINNINGS["temperature:"])
    meaning(typed, "${plan")
    typed.page.screenshot(path=str(pictures / "meaning-of-a-variable.png"))


def test_a_key_tells_what_is_at_the_cursor_and_escape_leads_back(typed, pictures):
    page = typed.page
    put_cursor(typed, "max_retries")
    page.keyboard.press("Shift+F1")
    told = page.get_by_role("dialog", name="About this place")
    assert told.inner_text().startswith("max_retries (of a node")
    assert told.evaluate("each => each === document.activeElement"), "a screen reader reads it"
    page.screenshot(path=str(pictures / "told-by-a-key.png"))
    page.keyboard.press("Escape")
    told.wait_for(state="detached")
    page.keyboard.type("x")
    assert "xmax_retries" in typed.script(SOURCE) or "mxax_retries" in typed.script(SOURCE)
    page.keyboard.press("Control+z")
    put_cursor(typed, "digraph")
    page.keyboard.press("Shift+F1")
    page.get_by_text("Nothing is known about this place.").wait_for()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Nothing is known about this place.").wait_for(state="detached")


def test_words_of_a_prompt_are_prose(typed):
    page = typed.page
    for text in PROSE:
        page.mouse.move(*point_at(typed, text), steps=4)
        page.wait_for_timeout(800)  # a hover takes 300 ms
    assert page.locator(".cm-attractor-meaning").count() == 0


def test_f12_and_a_click_with_control_go_to_where_a_node_is_declared(typed):
    page = typed.page
    put_cursor(typed, "plan ->")
    page.keyboard.press("F12")
    assert wait_until(lambda: typed.script(CURSOR) == CELL.index("plan  ["), "the cursor's way to the declaration")
    page.keyboard.down("Control")
    page.mouse.click(*point_at(typed, "write ->", nth=1))
    page.keyboard.up("Control")
    assert wait_until(lambda: typed.script(CURSOR) == CELL.index("write ["), "the cursor's way to the declaration")


def test_f2_renames_a_node_wherever_it_is_named(typed):
    page = typed.page
    put_cursor(typed, "plan  [")
    page.keyboard.press("F2")
    field = page.locator(".jp-Dialog input")
    field.fill("draft")
    field.press("Enter")
    page.wait_for_function(
        f"() => {{ const panel = [...jupyterapp.shell.widgets('main')][0]; return !{SOURCE}.includes('plan  ['); }}"
    )
    prose = "label = plan"
    assert typed.script(SOURCE) == CELL.replace("plan", "draft").replace(prose.replace("plan", "draft"), prose)
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
