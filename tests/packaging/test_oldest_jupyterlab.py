"""The built wheel beside the oldest JupyterLab that is claimed, in an environment of its own."""

import sys

import pytest

pytestmark = [pytest.mark.installs, pytest.mark.browser, pytest.mark.timeout(900)]

OLDEST = "jupyterlab==4.4.*"
CELL = """%%attractor review
digraph Review {
    start [shape=Mdiamond]
    plan  [prompt="Plan it"]
    done  [shape=Msquare]
    start -> plan -> doen
}"""

AT_PLAN = """() => {
  const panel = [...jupyterapp.shell.widgets("main")].find((each) => each.content?.model?.cells);
  const { editor } = panel.content.activeCell.editor;
  return editor.hasFocus && editor.state.doc.lineAt(editor.state.selection.main.head).text.includes("plan  [");
}"""

COLOURS = """words => words.map((word) => {
  const walker = document.createTreeWalker(document.querySelector(".jp-Notebook"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (walker.currentNode.data.trim() === word) return getComputedStyle(walker.currentNode.parentElement).color;
  }
  return null;
})"""


@pytest.fixture
def driver(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "tests" / "browser"))
    import driver

    yield driver
    driver.close_chromium()
    del sys.modules["driver"]


@pytest.mark.shows("JupyterLab 4.4", "picture", "live view", "lint")
def test_each_part_of_the_extension_works_there(wheel, make_environment, repository, tmp_path, driver):
    import nbformat

    environment = make_environment()
    pins = [
        line
        for line in (repository / "constraints.txt").read_text().splitlines()
        if not line.startswith(("jupyterlab==", "notebook=="))
    ]
    (tmp_path / "pins.txt").write_text("\n".join(pins))
    environment.install("-c", tmp_path / "pins.txt", f"attractor_nb[proxy] @ {wheel.as_uri()}", OLDEST, "ipykernel")
    listed = environment.run("jupyter", "labextension", "list", cwd=tmp_path)
    line = next(line for line in listed.splitlines() if "attractor-nb" in line)
    assert "enabled" in line
    assert "OK" in line

    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("%load_ext attractor_nb"), nbformat.v4.new_code_cell(CELL)]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (tmp_path / "root").mkdir()
    nbformat.write(notebook, tmp_path / "root" / "old.ipynb")
    python = str(environment.directory / "bin" / "python")
    with driver.JupyterServer(tmp_path / "root", python=python) as server, server.browser() as browser:
        opened = browser.open("old.ipynb")
        page = opened.page
        page.set_default_timeout(120_000)
        assert page.evaluate("() => jupyterapp.version").startswith("4.4.")
        page.wait_for_function("() => document.querySelector('.cm-attractor-error')?.textContent === 'doen'")
        colours = page.evaluate(COLOURS, ["digraph", "shape", "plan", '"Plan it"'])
        assert None not in colours
        assert len(set(colours)) == 4, "keyword, attribute, node and text are told apart"
        page.locator(".cm-attractor-error").hover()
        page.locator(".cm-attractor-tooltip button", has_text="Fix").click()
        page.wait_for_function("() => !document.querySelector('.cm-attractor-error')")
        opened.command("toc:show-panel")
        page.locator(".jp-tocItem-content", has_text="plan").click()
        page.wait_for_function(AT_PLAN)
        page.keyboard.press("F9")
        page.locator(".cm-attractor-breakpoint").wait_for()
        opened.run_cell(0)
        opened.wait_until_idle(120)
        page.locator(".cm-line", has_text="plan  [").click()
        page.keyboard.press("Control+Shift+Enter")
        page.locator(".db-said", has_text="plan").first.wait_for()
        opened.command("attractor-nb:show-runs")
        page.frame_locator("#attractor-nb-runs iframe").locator(".ap-side-run").first.wait_for()
        assert [line for line in browser.console if "attractor-nb" in line and "is off" in line] == []
        assert browser.our_errors == []
