"""The meaning of a word of a pipeline, the declaration of a node, and its renaming, in a real JupyterLab."""

from __future__ import annotations

import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELL = """%%attractor review
digraph Review {
    graph [goal="Ship it", inputs="ticket, tone=plain", model_stylesheet="#plan { llm_model: haiku }
        .fast { llm_provider: local } box { temperature: 0 } .none { max_tokens: 5 }"]
    start [shape=Mdiamond]
    start -> plan -> write -> done
    write -> plan [condition="outcome=fail && context.tool.exit_code!=0"]
    plan  [label="Plan it", max_retries=2, retry_target=write, class="fast"]
    write [prompt="Say it for $goal as $ticket in $tone: ${plan.response:tail 400} ${tool.output} $other label = plan"]
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
    """The text that hovering a word shows."""
    notebook.page.mouse.move(5, 5)
    notebook.page.locator(".cm-attractor-meaning").wait_for(state="detached")
    notebook.page.mouse.move(*point_at(notebook, text, nth), steps=4)
    return notebook.wait_for(".cm-attractor-meaning").inner_text()


def test_a_word_tells_what_it_means(typed, pictures):
    attribute = meaning(typed, "max_retries")
    assert attribute.startswith("max_retries (of a node · integer")
    assert "attempts" in attribute
    assert "start: the start of a run" in meaning(typed, "Mdiamond")
    node = meaning(typed, "plan ->")
    assert node.splitlines() == [
        "plan: Plan it (codergen)",
        "from start, write outcome=fail && context.tool.exit_code!=0",
        "to write",
    ]
    typed.page.screenshot(path=str(pictures / "meaning-of-a-node.png"))


def test_variables_keys_and_rules_of_a_stylesheet_tell_what_they_mean(typed, pictures):
    variable = {
        text: meaning(typed, text).splitlines()
        for text in ("$goal", "$ticket", "$tone", "${plan", "${tool", "$other", "outcome=", "tool.exit_code")
    }
    assert variable == {
        "$goal": ["goal (variable)", "the goal of the graph: Ship it"],
        "$ticket": ["ticket (input · string · required)"],
        "$tone": ["tone (input · string · default plain)"],
        "${plan": [
            "plan.response (variable)",
            "the complete response of the stage plan",
            "plan: Plan it (codergen)",
            "from start, write outcome=fail && context.tool.exit_code!=0",
            "to write",
        ],
        "${tool": ["tool.output (variable)", "the output of the last command"],
        "$other": ["other (variable)", "a value of the context: a parameter of the run, or set by a stage"],
        "outcome=": ["outcome (variable)", "the status of the last stage"],
        "tool.exit_code": ["tool.exit_code (variable)", "the exit code of the last command"],
    }
    assert meaning(typed, "fast {").splitlines() == [".fast (rule of the stylesheet)", "selects plan"]
    assert meaning(typed, "box {").splitlines() == ["box (rule of the stylesheet)", "selects plan, write"]
    assert meaning(typed, "none {").splitlines() == [".none (rule of the stylesheet)", "selects no node"]
    assert "selects plan" in meaning(typed, "plan {")
    assert meaning(typed, "temperature:").startswith("temperature (of a node")
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
    page.mouse.move(*point_at(typed, "label = plan"), steps=4)
    page.wait_for_timeout(800)  # a hover takes 300 ms
    page.mouse.move(*point_at(typed, 'plan"'), steps=4)
    page.wait_for_timeout(800)
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
