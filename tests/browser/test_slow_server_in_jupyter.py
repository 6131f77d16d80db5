"""A server that takes its time, and one that is gone, in a real JupyterLab: what is said, and that nothing waits for it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CELL = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    plan  [prompt="List it"]
    start -> plan -> doen
    done [shape=Msquare]
}"""
PANEL = ".cm-attractor-panel"
SOURCE = "panel.context.model.cells.get(1).sharedModel.source"
ASKED = "**/attractor-nb/validate"


@contextmanager
def held(page, pattern):
    """Holds the answers of the server back, until the end."""
    waiting = []

    def hold(route):
        waiting.append(route)

    page.route(pattern, hold)
    yield waiting
    page.unroute(pattern)  # which lets go of those that wait


@pytest.fixture
def typed(jupyter, open_notebook):
    notebook = open_notebook(jupyter, "%load_ext attractor_nb", CELL)
    notebook.page.wait_for_selector(f"{PANEL} button", timeout=60_000)
    return notebook


def type_behind(notebook, line, text):
    notebook.page.locator(".cm-line", has_text=line).click()
    notebook.page.keyboard.press("End")
    notebook.page.keyboard.type(text)


def test_a_slow_answer_is_said_and_typing_and_running_go_on(typed, pictures):
    page = typed.page
    with held(page, ASKED) as waiting:
        type_behind(typed, "List it", " // one")
        page.locator(PANEL, has_text="the server of attractor_nb is slow").wait_for()
        assert page.locator(".cm-attractor-error").all_inner_texts() == ["doen"], "the marks stay"
        page.keyboard.type(" two")
        page.wait_for_timeout(1000)  # longer than the delay after a key
        page.keyboard.type(" three")
        assert "// one two three" in typed.script(SOURCE)
        page.screenshot(path=str(pictures / "slow-server.png"))
        assert len(waiting) == 1, "one question at a time"
        typed.run_all()
        typed.wait_until_idle()
        assert "doen" in typed.output_text(), "the cell has run, and says what is wrong"
    page.wait_for_function(f"() => !document.querySelector('{PANEL}').textContent.includes('slow')")
    typed.script(f"panel.context.model.cells.get(1).sharedModel.setSource({SOURCE}.replace('doen', 'done'))")
    page.locator(PANEL).wait_for(state="detached")


def test_what_was_asked_for_by_a_key_is_dropped_when_one_types_on(typed):
    page = typed.page
    with held(page, ASKED):
        type_behind(typed, "List it", " ")
        page.keyboard.press("Home")
        page.keyboard.press("F2")
        page.get_by_text("The server of attractor_nb is being asked…").wait_for()
        page.keyboard.press("End")
        page.get_by_text("The server of attractor_nb is being asked…").wait_for(state="detached")
        page.keyboard.type("// mine")
    page.wait_for_timeout(1500)
    assert page.locator(".jp-Dialog").count() == 0
    page.keyboard.type(" too")
    assert "// mine too" in typed.script(SOURCE)


def test_a_rename_by_a_slow_server_comes_when_one_waits(typed):
    page = typed.page
    with held(page, ASKED):
        type_behind(typed, "List it", "  ")  # a text that was not asked for yet: answers are kept
        page.keyboard.press("Home")
        page.keyboard.press("F2")
        expect(page.get_by_text("The server of attractor_nb is being asked…")).to_be_visible()
        expect(page.locator(".jp-Dialog")).to_have_count(0)
    expect(page.locator(".jp-Dialog input")).to_be_visible()
    page.keyboard.press("Escape")


def test_a_server_that_was_never_there_to_answer_is_said_and_asked_again(jupyter, open_notebook):
    notebook = open_notebook(jupyter, "x = 1")
    page = notebook.page
    page.route(ASKED, lambda route: route.fulfill(status=502, body="{}"))
    notebook.script(f"panel.context.model.cells.get(0).sharedModel.setSource({CELL!r})")
    expect(page.locator(PANEL)).to_contain_text("does not answer")
    page.unroute(ASKED)
    expect(page.locator(".cm-attractor-error")).to_have_text("doen", timeout=40_000)


@pytest.fixture
def document(lab):
    name = "slow_document.dot"
    (lab.root / name).write_text(CELL.partition("\n")[2].replace("doen", "done"))
    with lab.browser(width=1500, height=800) as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        browser.show(name)
        page.frame_locator(".attractor-document-graph iframe").locator("[data-node=done]").wait_for()
        yield page
        page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        assert browser.our_errors == []


def put(page, text):
    page.locator(".attractor-document .cm-line", has_text="List it").click()
    page.keyboard.press("End")
    page.keyboard.type(text)


def lines(page):
    return page.locator(".attractor-document .cm-line").all_inner_texts()


def test_a_graph_document_says_that_its_drawing_is_of_an_earlier_text(document, pictures):
    graph = document.frame_locator(".attractor-document-graph iframe")
    with held(document, "**/attractor-nb/edit"):
        put(document, "\nmore [prompt=more]")
        graph.get_by_role("status").get_by_text("the drawing is of an earlier text").wait_for()
        document.screenshot(path=str(pictures / "slow-server-document.png"))
        document.keyboard.type(" // typed")
        assert any("// typed" in line for line in lines(document))
    graph.locator("[data-node=more]").wait_for()
    graph.get_by_text("the drawing is of an earlier text").wait_for(state="detached")


def test_a_graph_document_whose_server_is_gone_keeps_the_text_and_comes_back(document, pictures):
    graph = document.frame_locator(".attractor-document-graph iframe")
    document.route("**/attractor-nb/**", lambda route: route.abort())
    put(document, "\nmore [prompt=more]")
    graph.get_by_text("does not answer").first.wait_for()
    document.screenshot(path=str(pictures / "lost-server-document.png"))
    document.keyboard.type(" // typed")
    assert any("// typed" in line for line in lines(document))
    document.keyboard.press("Control+s")
    document.wait_for_function(
        "() => ![...jupyterapp.shell.widgets('main')].find(one => one.content?.text?.editor).context.model.dirty"
    )
    document.unroute("**/attractor-nb/**")
    graph.locator("[data-node=more]").wait_for()
