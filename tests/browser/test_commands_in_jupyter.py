"""The commands of the extension in a real JupyterLab: by keys, in the palette and in the menu."""

from __future__ import annotations

import pytest

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
    typed.script(
        f"panel.context.model.sharedModel.insertCell(2, {{ cell_type: 'code', source: {own!r} }}) && 0"
    )
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


def test_the_menu_and_the_palette_have_the_commands_and_say_the_keys(typed, jupyter):
    page = typed.page
    put_cursor(typed, "plan")
    page.locator(".lm-MenuBar-itemLabel", has_text="Attractor").click()
    menu = page.locator(".lm-Menu").inner_text()
    for words in (
        "New pipeline in a cell",
        "Run this cell's pipeline",
        "Run from the node at the cursor",
        "F9",
        "Open the last run",
    ):
        assert words in menu, words
    page.keyboard.press("Escape")
    if jupyter.app == "lab":
        typed.command("apputils:activate-command-palette")
        page.locator(".lm-CommandPalette-input, .jp-ModalCommandPalette input").first.fill(
            "attractor breakpoint"
        )
        assert "breakpoint" in page.locator(".lm-CommandPalette-itemLabel").first.inner_text()


def test_the_last_run_is_opened(lab, typed):
    if not (lab.root / ".attractor" / "runs" / "commands-last").exists():
        Pipeline(CELL.partition("\n")[2].replace("Review", "newest"), backend="simulated").run(
            logs_root=lab.root / ".attractor" / "runs" / "commands-last", is_shown=False
        ).result(60)
    typed.command("attractor-nb:open-last-run")
    typed.page.locator(".lm-TabBar-tabLabel", has_text="newest").wait_for()
    typed.page.frame_locator(".jp-MainAreaWidget iframe").locator(
        "[data-node=write].state-success"
    ).wait_for()
