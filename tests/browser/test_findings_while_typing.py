"""Findings in the text while one types, in a real JupyterLab, with the server that Jupyter starts on demand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

CELL = r"""%%attractor review
digraph Review {
    start [shape=Mdiamond]
    plan  [label="Plän 🙂", promt="List <img src=x onerror=alert(1)>", prompt="List it"]
    plan -> wrte [condition="outcome=succes"]
    write [prompt="Write it"]
    start -> plan -> write -> done
    done [shape=Msquare]
}"""
BUSY = "import time; print('begun', flush=True); time.sleep(600)"
MARKED = "kind => [...document.querySelectorAll(`.cm-attractor-${kind}`)].map(each => each.textContent)"
SOURCE = "panel.context.model.cells.get(0).sharedModel.source"
PANEL = ".cm-attractor-panel"


@pytest.fixture
def typed(jupyter, open_notebook):
    notebook = open_notebook(jupyter, CELL, BUSY)
    notebook.page.wait_for_selector(f"{PANEL} button", timeout=60_000)
    return notebook


def marked(notebook, kind):
    return notebook.page.evaluate(MARKED, kind)


def place_of(text):
    """The offset of a text in the cell, in the editor's code units."""
    return len(CELL[: CELL.index(text)].encode("utf-16-le")) // 2


@pytest.mark.shows("JupyterLab", "lint")
@pytest.mark.shows("Notebook 7", "lint")
@pytest.mark.kind("JupyterLab")
def test_each_finding_is_marked_where_it_is_and_counted(typed, pictures):
    assert marked(typed, "error") == ["wrte"]
    assert "succes" in marked(typed, "warning")  # inside a string
    assert "promt" in [*marked(typed, "warning"), *marked(typed, "info")]  # behind a letter of two code units
    panel = typed.page.locator(PANEL)
    assert panel.inner_text().startswith("1 error, ")
    assert 'names "wrte", which is not declared' in panel.inner_text(), "the worst one is told"
    assert typed.page.locator(".cm-attractor-mark.is-error:visible").count() == 1
    typed.shoot(pictures / "findings-while-typing.png")


FUNCTIONS = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    count [function=count_words, promt="List it"]
    send  [type=function]
    done  [shape=Msquare]
    start -> count -> send -> done
}"""


def test_a_function_of_the_notebook_is_no_error_while_one_types(jupyter, open_notebook):
    notebook = open_notebook(jupyter, FUNCTIONS)
    notebook.page.wait_for_selector(".cm-attractor-error", timeout=60_000)
    assert marked(notebook, "error") == ["function"], "a stage that names no function is one"


def test_a_fix_in_the_tooltip_is_the_smallest_change_and_can_be_undone(typed):
    page = typed.page
    page.locator(".cm-attractor-error").hover()
    page.locator(".cm-attractor-tooltip button", has_text='Fix: write "write"').click()
    page.wait_for_function("() => !document.querySelector('.cm-attractor-error')")
    assert typed.script(SOURCE) == CELL.replace("wrte", "write")
    assert page.evaluate("() => document.querySelectorAll('img[src=x]').length") == 0
    page.keyboard.press("Control+z")
    page.wait_for_function("() => document.querySelector('.cm-attractor-error')")
    assert typed.script(SOURCE) == CELL


def test_findings_are_gone_to_and_mended_by_keys(typed):
    page = typed.page
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Home")
    cursor = "panel.content.widgets[0].editor.getOffsetAt(panel.content.widgets[0].editor.getCursorPosition())"
    places = []
    while not places or places[-1] not in places[:-1]:
        page.keyboard.press("F8")
        places.append(typed.script(cursor))
    wanted = [place_of("promt"), place_of("wrte"), place_of("succes")]
    assert set(wanted) <= {*places}, "each finding is come by, and the first follows the last"
    while typed.script(cursor) != wanted[1]:
        page.keyboard.press("F8")
    said = page.locator(".jp-CodeCell .cm-announced").first.inner_text()
    assert 'names "wrte", which is not declared' in said, "a screen reader says it"
    page.keyboard.press("Control+.")
    page.wait_for_function("() => !document.querySelector('.cm-attractor-error')")
    assert typed.script(SOURCE) == CELL.replace("wrte", "write")


def test_a_fix_is_reached_by_keys_and_tells_the_rule(typed, pictures):
    page = typed.page
    page.locator(".cm-attractor-error").click()
    page.keyboard.press("Shift+F1")
    told = page.get_by_role("dialog", name="About this place")
    assert "edge_target_exists: An edge names a node that does not exist." in told.inner_text()
    assert page.evaluate("() => document.activeElement.textContent") == 'Fix: write "write"'
    page.screenshot(path=str(pictures / "fix-by-keys.png"))
    page.keyboard.press("Enter")
    page.wait_for_function("() => !document.querySelector('.cm-attractor-error')")
    assert typed.script(SOURCE) == CELL.replace("wrte", "write")
    page.keyboard.press("Control+z")
    assert typed.script(SOURCE) == CELL, "the editor has the focus again"


def test_a_fix_that_is_shown_is_the_one_that_is_made_when_the_text_has_changed(typed):
    page = typed.page
    page.locator(".cm-attractor-error").hover()
    button = page.locator(".cm-attractor-tooltip button", has_text='Fix: write "write"')
    button.wait_for()
    page.route("**/attractor-nb/validate", lambda _: None)  # the answer that is awaited never comes
    more = "start -> nowhere\n    start -> nobody\n    "
    broken = CELL.replace("start [", f"{more}start [")
    page.evaluate(
        """more => {
          const view = [...jupyterapp.shell.widgets('main')][0].content.widgets[0].editor.editor;
          const placeOf = (text) => view.state.doc.toString().indexOf(text);
          view.dispatch({ changes: { from: placeOf('start ['), insert: more } });
          view.dispatch({ selection: { anchor: placeOf('wrte') + 1 } });
          view.focus();
        }""",
        more,
    )
    page.unroute("**/attractor-nb/validate")
    page.keyboard.press("Control+.")
    page.wait_for_function(
        f"() => {{ const panel = [...jupyterapp.shell.widgets('main')][0]; return !{SOURCE}.includes('wrte'); }}"
    )
    assert typed.script(SOURCE) == broken.replace("wrte", "write"), "not another finding of that number"


def test_findings_come_while_the_kernel_is_busy_and_go_when_the_text_is_right(typed):
    page = typed.page
    typed.run_cell(1)
    page.wait_for_function("() => document.body.innerText.includes('[*]')")
    typed.script(f"panel.context.model.cells.get(0).sharedModel.setSource({SOURCE}.replace('wrte', 'write'))")
    expect(page.locator(".cm-attractor-error")).to_have_count(0)
    typed.script(f"panel.context.model.cells.get(0).sharedModel.setSource({SOURCE}.replace('-> done', '-> don'))")
    expect(page.locator(".cm-attractor-error").first).to_have_text("don")
    typed.wait_for_text("begun")
    typed.script("panel.sessionContext.session.kernel.interrupt()")
    typed.wait_until_idle()


def test_without_a_server_there_are_no_findings_and_the_cell_runs(jupyter, open_notebook):
    notebook = open_notebook(jupyter, "%load_ext attractor_nb", "x = 1")
    page = notebook.page
    page.route("**/attractor-nb/validate", lambda route: route.fulfill(status=404, body="{}"))
    with page.expect_response("**/attractor-nb/validate"):
        notebook.script(
            "panel.context.model.cells.get(1).sharedModel.setSource('%%attractor x\\ndigraph X { a -> b }')"
        )
    notebook.run_all()
    notebook.wait_until_idle()
    assert "start" in notebook.output_text()
    assert page.locator(f"{PANEL}, .cm-attractor-error").count() == 0


def test_a_server_that_stops_answering_is_said(typed):
    page = typed.page
    page.route("**/attractor-nb/validate", lambda route: route.abort())
    typed.script(f"panel.context.model.cells.get(0).sharedModel.setSource({SOURCE} + ' ')")
    expect(page.locator(PANEL)).to_contain_text("does not answer")
    page.unroute("**/attractor-nb/validate")
    typed.script(f"panel.context.model.cells.get(0).sharedModel.setSource({SOURCE} + ' ')")
    expect(page.locator(PANEL)).not_to_contain_text("does not answer")
    expect(page.locator(".cm-attractor-error")).to_have_text("wrte")
