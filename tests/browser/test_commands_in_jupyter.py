"""The commands of the extension in a real JupyterLab: by keys, in the palette and in the menu."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

LOAD = "%load_ext attractor_nb"
CELL = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    plan  [prompt="Plan it"]
    write [prompt="Write it"]
    done  [shape=Msquare]
    start -> plan -> write -> done
}"""
SOURCES = "[...panel.context.model.cells].map(cell => cell.sharedModel.getSource())"
IS_DOT = "() => [...jupyterapp.shell.widgets('main')].some(each => [...(each.content?.model?.cells ?? [])].some(cell => cell.mimeType.includes('graphviz')))"
PLACE = """offset => {
  const panel = [...jupyterapp.shell.widgets('main')].find(each => each.content?.model?.cells);
  return panel.content.widgets[1].editor.editor.coordsAtPos(offset);
}"""
MARKS = "() => [...document.querySelectorAll('.cm-attractor-breakpoint')].filter(each => each.getClientRects().length).length"


@pytest.fixture
def typed(jupyter, open_notebook):
    notebook = open_notebook(jupyter, LOAD, CELL)
    notebook.page.set_default_timeout(60_000)
    notebook.page.wait_for_function(IS_DOT)
    notebook.run_cell(0)
    notebook.wait_until_idle()
    return notebook


def put_cursor(notebook, text):
    place = notebook.page.evaluate(PLACE, CELL.index(text) + 1)
    notebook.page.mouse.click(place["left"] + 1, (place["top"] + place["bottom"]) / 2)


def wait_for_cell(notebook, source):
    """Waits until a cell has this text, and has been run."""
    notebook.page.wait_for_function(
        "source => [...jupyterapp.shell.widgets('main')].some(each => [...(each.content?.model?.cells ?? [])].some("
        "cell => cell.sharedModel.getSource() === source && cell.executionCount))",
        arg=source,
    )


def test_a_key_runs_the_pipeline_in_a_cell_beneath_and_the_next_time_in_the_same(typed):
    put_cursor(typed, "plan")
    typed.page.keyboard.press("Control+Shift+Enter")
    wait_for_cell(typed, "review_run = review.run()\nreview_run")
    typed.wait_until_idle()
    put_cursor(typed, "plan")
    typed.page.keyboard.press("Control+Shift+Enter")
    typed.page.wait_for_function(
        "() => [...[...jupyterapp.shell.widgets('main')][0].content.model.cells].at(-1).executionCount > 3"
    )
    assert len(typed.script(SOURCES)) == 3
    typed.wait_for_text("completed")


def test_what_the_user_wrote_into_the_running_cell_stays(typed):
    own = 'review_run = review.run(backend="simulated", max_steps=1)\nreview_run'
    typed.script(f"panel.context.model.sharedModel.insertCell(2, {{ cell_type: 'code', source: {own!r} }}) && 0")
    put_cursor(typed, "plan")
    typed.page.keyboard.press("F9")
    typed.page.wait_for_function(f"() => ({MARKS})() === 1")
    typed.page.keyboard.press("Control+Shift+Enter")
    wait_for_cell(typed, own.replace("run(", 'run(breakpoints=["plan"], '))
    assert len(typed.script(SOURCES)) == 3


def test_a_breakpoint_on_the_node_at_the_cursor_stops_the_run_and_is_saved(typed, pictures):
    page = typed.page
    put_cursor(typed, "write")
    page.keyboard.press("F9")
    page.wait_for_function(f"() => ({MARKS})() === 1")
    assert page.locator(".cm-attractor-breakpoint[title*=write]").count() == 1
    page.keyboard.press("Control+Shift+Enter")
    wait_for_cell(typed, 'review_run = review.run(breakpoints=["write"])\nreview_run')
    page.locator(".db-said", has_text="write").first.wait_for()
    typed.shoot(pictures / "breakpoint-in-a-cell.png")
    typed.save()
    assert '"write"' in typed.path.read_text().partition('"breakpoints"')[2]
    put_cursor(typed, "write")
    page.keyboard.press("F9")
    page.wait_for_function(f"() => ({MARKS})() === 0")
    page.keyboard.press("Control+Shift+Enter")
    wait_for_cell(typed, "review_run = review.run()\nreview_run")
    typed.save()
    assert "breakpoints" not in typed.path.read_text().partition('"outputs"')[0]


def test_a_run_begins_at_the_node_of_the_cursor_with_the_text_as_it_is_now(typed):
    page = typed.page
    put_cursor(typed, "write")
    page.keyboard.press("Control+Alt+Enter")
    page.locator(".jp-Dialog", has_text="has not been run").wait_for()
    page.keyboard.press("Enter")
    page.locator(".jp-Dialog").wait_for(state="detached")
    put_cursor(typed, "write")
    page.keyboard.press("Control+Shift+Enter")
    wait_for_cell(typed, "review_run = review.run()\nreview_run")
    typed.wait_until_idle()
    cell = "panel.context.model.cells.get(1).sharedModel"
    typed.script(f"{cell}.setSource({cell}.getSource().replace('Write it', 'Write it shorter'))")
    put_cursor(typed, "write")
    page.keyboard.press("Control+Alt+Enter")
    wait_for_cell(typed, 'review_fork = review_run.fork("write", pipeline=review)\nreview_fork')
    typed.wait_until_idle()
    sources = typed.script(SOURCES)
    assert [text.partition(" =")[0] for text in sources[2:]] == ["review_run", "review_fork"]
    typed.script(
        "panel.context.model.sharedModel.insertCell(4, { cell_type: 'code', source: 'print(await review_fork and review_fork[\"write\"].prompt)' }) && 0"
    )
    typed.run_cell(4)
    typed.wait_for_text("Write it shorter")


def test_a_new_pipeline_begins_as_an_example_in_a_cell_or_a_file(typed, jupyter):
    page = typed.page
    typed.command("attractor-nb:new-cell")
    page.locator(".jp-Dialog select, .jp-Dialog input").first.wait_for()
    page.locator(".jp-Dialog select").select_option(
        label=page.locator(".jp-Dialog option", has_text="bug_triage").inner_text()
    )
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.wait_for_function("() => document.querySelectorAll('.jp-CodeCell').length === 3")
    (added,) = [text for text in typed.script(SOURCES) if "bug_triage" in text]
    assert added.startswith("%%attractor bug_triage\n// ")
    Pipeline(added.partition("\n")[2])
    if jupyter.app != "lab":
        return
    typed.command("attractor-nb:new-file")
    page.locator(".jp-Dialog select").select_option(
        label=page.locator(".jp-Dialog option", has_text="bug_triage").inner_text()
    )
    page.locator(".jp-Dialog .jp-mod-accept").click()
    page.locator(".lm-TabBar-tabLabel", has_text="bug_triage.dot").wait_for()
    assert (jupyter.root / "bug_triage.dot").read_text() == added.partition("\n")[2] + "\n"


def test_the_menu_and_the_palette_have_all_commands_and_say_the_keys(typed, pictures):
    page = typed.page
    put_cursor(typed, "plan")
    commands = page.evaluate("() => jupyterapp.commands.listCommands().filter(id => id.startsWith('attractor-nb:'))")
    hidden = {"attractor-nb:undo-in-document", "attractor-nb:redo-in-document"}  # of the Edit menu, by its own names
    labels = page.evaluate("ids => ids.map(id => jupyterapp.commands.label(id))", sorted({*commands} - hidden))
    assert len(labels) == 9
    page.locator(".lm-MenuBar-itemLabel", has_text="Attractor").click()
    menu = page.locator(".lm-Menu")
    assert sorted(menu.locator(".lm-Menu-itemLabel").all_inner_texts()) == sorted(
        ["", "", *labels]
    )  # two lines between
    keys = {one for one in menu.locator(".lm-Menu-itemShortcut").all_inner_texts() if one}
    assert keys == {"Ctrl+Shift+Enter", "Ctrl+Alt+Enter", "F9", "Ctrl+Alt+R"}
    page.screenshot(path=str(pictures / "commands-menu.png"))
    page.keyboard.press("Escape")
    typed.command("apputils:activate-command-palette")
    page.locator(".jp-ModalCommandPalette input").first.fill("attractor")
    offered = page.locator(".jp-ModalCommandPalette .lm-CommandPalette-itemLabel")
    offered.first.wait_for()
    assert {*labels} <= {*offered.all_inner_texts()}
    page.screenshot(path=str(pictures / "commands-palette.png"))
    page.keyboard.press("Escape")


def test_the_last_run_is_opened(jupyter, typed):
    """As a tab; in Notebook 7, which has none, as a page of the browser."""
    place = jupyter.root / ".attractor" / "runs" / "commands-last"  # newer than what was run before it
    Pipeline(CELL.partition("\n")[2].replace("Review", "newest"), backend="simulated").run(
        logs_root=place, is_shown=False
    ).result(60)
    if jupyter.app == "lab":
        typed.page.keyboard.press("Control+Alt+r")
        expect(typed.page.locator(".lm-TabBar-tabLabel", has_text="newest")).to_be_visible()
        run = typed.page.frame_locator(".jp-MainAreaWidget iframe")
        expect(run.locator("[data-node=write].state-success")).to_be_visible()
        return
    with typed.page.context.expect_page() as opened:
        typed.page.keyboard.press("Control+Alt+r")
    expect(opened.value.locator("[data-node=write].state-success")).to_be_visible()
    opened.value.close()


def test_a_page_that_the_browser_does_not_open_is_offered_once_more(jupyter, typed):
    if jupyter.app == "lab":
        pytest.skip("a run is a tab of JupyterLab: no page is opened")
    page = typed.page
    page.evaluate("() => { window.opened = window.open; window.open = () => null; }")
    typed.command("attractor-nb:open-page")
    told = page.locator(".Toastify__toast", has_text="did not open")
    expect(told).to_be_visible()
    page.evaluate("() => { window.open = window.opened; }")
    with page.context.expect_page() as opened:
        told.get_by_role("button", name="Show").click()
    expect(opened.value.get_by_role("heading").first).to_be_visible()
    opened.value.close()
