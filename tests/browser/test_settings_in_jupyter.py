"""The settings of the extension in a real JupyterLab: each part can be switched off; the delay of findings is kept."""

from __future__ import annotations

import time

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CELL = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    done  [shape=Msquare]
    start -> doen
}"""
TEXT = CELL.partition("\n")[2].replace("doen", "done")
ALL_OFF = {
    "attractor-nb:language": {"colours": False},
    "attractor-nb:findings": {"findings": False, "hover": False},
    "attractor-nb:outline": {"outline": False},
    "attractor-nb:commands": {"commands": False},
    "attractor-nb:runs": {"panel": False},
    "attractor-nb:documents": {"graph": False},
}
OTHERS = {
    "attractor-nb:findings": {"delay": 3000},
    "attractor-nb:runs": {"panel": False},
    "attractor-nb:documents": {"default": False},
}
COMMANDS = "() => jupyterapp.commands.listCommands().filter(id => id.startsWith('attractor-nb:'))"
OPEN = "([path, factory]) => { jupyterapp.commands.execute('docmanager:open', { path, factory }); }"


@pytest.fixture
def open_with(make_server, write_notebook, tmp_path):
    """Opens a notebook of one pipeline in a JupyterLab of such settings, beside which there is a file."""
    opened = []

    def open_(settings):
        write_notebook(tmp_path, "cells.ipynb", CELL)
        (tmp_path / "alone.dot").write_text(TEXT)
        server = make_server(tmp_path, settings=settings)
        opened.append(server)
        browser = server.__enter__().browser()
        opened.append(browser)
        page = browser.__enter__()
        page.page.set_default_timeout(60_000)
        return page, page.open("cells.ipynb")

    yield open_
    for context in reversed(opened):
        context.__exit__(None, None, None)


def test_what_is_switched_off_is_not_there_and_asks_nothing(open_with):
    browser, notebook = open_with(ALL_OFF)
    page, asked = notebook.page, []
    page.on("request", lambda request: asked.append(request.url))
    cell = "panel.content.model.cells.get(0)"
    notebook.script(f"{cell}.sharedModel.setSource({cell}.sharedModel.getSource() + ' ') && 0")
    notebook.command("toc:show-panel")
    page.evaluate(OPEN, ["alone.dot", None])
    page.locator(".jp-FileEditor .cm-line", has_text="Mdiamond").wait_for()
    page.wait_for_timeout(1500)  # three times as long as findings take
    assert "python" in notebook.script(f"{cell}.mimeType")
    assert page.locator("[class*=cm-attractor], .attractor-document, #attractor-nb-runs").count() == 0
    assert page.evaluate(COMMANDS) == []
    assert page.locator(".jp-tocItem", has_text="start").count() == 0
    assert [url for url in asked if "attractor-nb/" in url and "/lab/extensions/" not in url] == []
    assert browser.our_errors == []


def test_delay_default_and_panel_are_as_the_settings_say(open_with):
    browser, notebook = open_with(OTHERS)
    page = notebook.page
    page.locator(".cm-attractor-error").first.wait_for()
    cell = "panel.content.model.cells.get(0).sharedModel"
    begun = time.monotonic()
    with page.expect_request("**/attractor-nb/validate"):
        notebook.script(f"{cell}.setSource({cell}.getSource() + ' ') && 0")
    assert time.monotonic() - begun > 2.5

    page.evaluate(OPEN, ["alone.dot", None])
    page.locator(".jp-FileEditor .cm-line", has_text="Mdiamond").wait_for()
    assert page.locator(".attractor-document").count() == 0

    page.evaluate(OPEN, ["alone.dot", "Attractor graph"])
    graph = page.frame_locator(".attractor-document-graph iframe")
    graph.get_by_role("button", name="Run…").click()
    graph.get_by_role("button", name="Run", exact=True).click()
    graph.locator(".al-line[data-status=success]").wait_for()
    assert page.locator("#attractor-nb-runs").count() == 0
    graph.get_by_role("button", name="Open the run").click()
    page.frame_locator(".jp-MainAreaWidget[id^=attractor-nb-run] iframe").locator(
        "[data-node=done].state-success"
    ).wait_for()
    assert browser.our_errors == []
