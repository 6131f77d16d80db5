"""A long notebook as JupyterLab shows it by default: cells that are far from the view are not in the page."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

BODY = """digraph P%d {
    start [shape=Mdiamond]
    plan%d [prompt="Plan it"]
    write%d [prompt="Write it"]
    done [shape=Msquare]
    start -> plan%d -> write%d -> don
}"""
CELLS = [f"%%attractor p{number}\n" + BODY.replace("%d", str(number)) for number in range(40)]
LAST = 39
TRACKER = "@jupyterlab/notebook-extension:tracker"
CURSOR = """index => {
  const panel = [...jupyterapp.shell.widgets('main')].find(each => each.content?.model?.cells);
  const view = panel.content.widgets[index].editor?.editor;
  return view?.state.doc.lineAt(view.state.selection.main.head).text ?? '';
}"""

SOME_ARE_AWAY = """() => [...jupyterapp.shell.widgets('main')]
  .find(each => each.content?.model?.cells).content.widgets.some(({ node }) => !node.checkVisibility())"""


@pytest.mark.parametrize("mode", ["full", "contentVisibility", "defer"])
def test_cells_far_away_get_everything_when_they_come_into_view(make_server, write_notebook, tmp_path, mode, pictures):
    write_notebook(tmp_path, "long.ipynb", "%load_ext attractor_nb", *CELLS[1:])
    settings = {TRACKER: {"windowingMode": mode}}
    with make_server(tmp_path, settings=settings) as server, server.browser() as browser:
        notebook = browser.open("long.ipynb")
        page = notebook.page
        page.set_default_timeout(60_000)
        assert notebook.script("panel.content.notebookConfig.windowingMode") == mode
        page.locator(".cm-attractor-error", has_text="don").first.wait_for()
        notebook.script(f"(panel.content.activeCellIndex = {LAST}, panel.content.scrollToItem({LAST}), 0)")
        far = page.locator(f".jp-Cell[data-windowed-list-index='{LAST}']")
        far.locator(".cm-attractor-error", has_text="don").wait_for()
        far.locator(".cm-attractor-panel button").wait_for()
        if mode == "full":
            page.wait_for_function(SOME_ARE_AWAY)
        far.locator(".cm-line", has_text="start ->").click()
        page.keyboard.press("Home")
        page.keyboard.press("Control+ArrowRight")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("F12")
        page.wait_for_function(f"index => ({CURSOR})(index).includes('plan{LAST} [')", arg=LAST)
        page.keyboard.press("F9")
        far.locator(".cm-attractor-breakpoint").wait_for()
        page.screenshot(path=str(pictures / f"windowing-{mode}.png"))

        notebook.command("toc:show-panel")
        page.locator(".jp-tocItem-content", has_text="write2").first.click()
        page.wait_for_function(f"([index, text]) => ({CURSOR})(index).includes(text)", arg=[2, "write2 ["])
        page.locator(".jp-Cell[data-windowed-list-index='2'] .cm-attractor-error").wait_for()
        page.keyboard.press("Shift+F1")
        page.get_by_role("dialog", name="About this place").wait_for()
        page.keyboard.press("Escape")

        notebook.script(f"(panel.content.activeCellIndex = {LAST}, panel.content.scrollToItem({LAST}), 0)")
        far.locator(".cm-attractor-breakpoint").wait_for()
        assert far.locator(".cm-content").get_attribute("data-language") == "attractor"
        assert browser.our_errors == []
