"""The nodes of pipelines in the table of contents of a real JupyterLab, among a notebook's own headings and of a file."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

CELL = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    start -> plan -> write -> done
    plan  [label="Plan <img src=x onerror=alert(1)>"]
    write [prompt="Write it"]
    done  [shape=Msquare]
}"""
FAR = "\n".join(f'    far_{n} [prompt="far"]' for n in range(80))
LONG = f"%%attractor long\ndigraph Long {{\n    start [shape=Mdiamond]\n    done [shape=Msquare]\n{FAR}\n    start -> far_0 -> done\n}}"
ITEMS = """() => [...document.querySelectorAll('.jp-TableOfContents-tree .jp-tocItem')].map(item => {
  let depth = 0;
  for (let up = item.parentElement.closest('.jp-tocItem'); up; up = up.parentElement.closest('.jp-tocItem')) depth += 1;
  return '  '.repeat(depth) + item.querySelector('.jp-tocItem-content').textContent;
})"""
CURSOR = """index => {
  const panel = [...jupyterapp.shell.widgets('main')].find(each => each.content?.model?.cells);
  const { editor } = panel.content.widgets[index].editor;
  const { head } = editor.state.selection.main;
  const place = editor.coordsAtPos(head);
  const isSeen = place && place.top > 60 && place.bottom < innerHeight - 20;
  return [editor.state.doc.lineAt(head).text, Boolean(isSeen)];
}"""


@pytest.fixture
def contents(jupyter, driver, request):
    """The table of contents of a notebook with headings around its pipelines."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells = [
        nbformat.v4.new_markdown_cell("# Reviews\n\n## Design"),
        nbformat.v4.new_code_cell(CELL),
        nbformat.v4.new_markdown_cell("# After"),
        nbformat.v4.new_code_cell(LONG),
        nbformat.v4.new_markdown_cell("## Slow"),
        nbformat.v4.new_code_cell("import time; print('begun', flush=True); time.sleep(600)"),
    ]
    nbformat.write(notebook, jupyter.root / "outline.ipynb")
    with jupyter.browser() as browser:
        opened = browser.open("outline.ipynb")
        opened.page.set_default_timeout(60_000)
        opened.command("toc:show-panel")
        yield opened
        assert browser.our_errors == []
        opened.script("panel.sessionContext.shutdown().then(() => 0)")  # the next test opens this name again


def items(notebook, count):
    notebook.page.wait_for_function(f"count => ({ITEMS})().length === count", arg=count)
    return notebook.page.evaluate(ITEMS)


def test_nodes_stand_below_the_heading_of_their_section_and_headings_stay(contents, pictures):
    listed = items(contents, 4 + 5 + 1 + 82)
    assert listed[:9] == [
        "Reviews",
        "  Design",
        "    review",
        "      start",
        "      plan: Plan <img src=x onerror=alert(1)>",
        "      write",
        "      done",
        "After",
        "  long",
    ]
    assert listed[-1] == "  Slow"
    contents.page.screenshot(path=str(pictures / "outline.png"))
    contents.command("toc:display-numbering")
    contents.page.wait_for_function(f"() => ({ITEMS})().includes('2. After')")
    numbered = contents.page.evaluate(ITEMS)
    assert [text.strip() for text in numbered if text.strip()[0].isdigit()] == [
        "1. Reviews",
        "1.1. Design",
        "2. After",
        "2.1. Slow",
    ]
    contents.command("toc:display-numbering")
    contents.page.wait_for_function(f"() => ({ITEMS})().includes('After')")


def test_a_click_goes_to_the_node_also_in_a_long_cell(contents):
    page = contents.page
    items(contents, 92)
    page.locator(".jp-tocItem-content", has_text="write").click()
    page.wait_for_function(f"() => ({CURSOR})(1)[0].trim().startsWith('write [')")
    page.locator(".jp-tocItem-content", has_text="far_79").click()
    page.wait_for_function(
        f"() => {{ const [text, isSeen] = ({CURSOR})(3); return text.includes('far_79') && isSeen; }}"
    )
    page.keyboard.type("x")
    assert "xfar_79" in contents.script("panel.content.model.cells.get(3).sharedModel.source")


def test_the_heading_of_a_cell_that_runs_is_the_one_that_says_so(contents):
    page = contents.page
    items(contents, 92)
    contents.run_cell(5)
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(1)
    expect(page.locator('.jp-tocItem-content[data-running]:not([data-running="-1"])')).to_have_text(["Slow"])
    contents.wait_for_text("begun")  # a kernel that has yet to begin a cell does not hear an interrupt
    contents.script("panel.sessionContext.session.kernel.interrupt()")
    contents.wait_until_idle()


def test_nodes_follow_the_text_and_a_text_that_does_not_parse_has_none(contents):
    items(contents, 92)
    cell = "panel.content.model.cells.get(1).sharedModel"
    contents.script(f"{cell}.setSource({cell}.source.replace('write', 'sum'))")
    contents.page.wait_for_function(f"() => ({ITEMS})().includes('      sum')")
    contents.script(f"{cell}.setSource({cell}.source.replace('digraph', 'graph of'))")
    assert items(contents, 87)[:3] == ["Reviews", "  Design", "After"]


def test_without_a_server_the_headings_are_there(contents):
    page = contents.page
    items(contents, 92)
    page.route("**/attractor-nb/validate", lambda route: route.abort())
    cell = "panel.content.model.cells.get(1).sharedModel"
    contents.script(f"{cell}.setSource({cell}.source + ' ')")
    listed = items(contents, 87)
    assert listed[:3] == ["Reviews", "  Design", "After"]


@pytest.mark.parametrize("factory", ["default", "Editor"], ids=["beside-its-graph", "alone"])
def test_a_dot_file_has_an_outline_of_its_nodes(jupyter, factory):
    if jupyter.app != "lab":
        pytest.skip("Notebook 7 shows a file in a page of its own, without a table of contents")
    (jupyter.root / "outlined.dot").write_text(CELL.partition("\n")[2])
    with jupyter.browser() as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        page.goto(f"{jupyter.url}/lab?reset&token={jupyter.token}")
        page.wait_for_selector(".jp-LauncherCard")
        page.evaluate(
            "factory => { jupyterapp.commands.execute('docmanager:open', { path: 'outlined.dot', factory }); }", factory
        )
        page.wait_for_selector(".jp-FileEditor .cm-line")
        assert page.locator(".attractor-document").count() == (factory == "default")
        page.evaluate("() => { jupyterapp.commands.execute('toc:show-panel'); }")
        page.wait_for_function(f"() => ({ITEMS})().length === 4")
        assert page.evaluate(ITEMS)[-2:] == ["write", "done"]
        page.locator(".jp-tocItem-content", has_text="write").click()
        page.wait_for_function(
            "() => { const editor = [...jupyterapp.shell.widgets('main')].map(each => (each.content?.text ?? each.content)?.editor?.editor).find(Boolean);"
            " return editor.state.doc.lineAt(editor.state.selection.main.head).text.includes('write ['); }"
        )
        assert browser.our_errors == []
