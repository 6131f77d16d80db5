"""The colours of JupyterLab's themes, measured where they are used: in a cell, in what is told of it, beside a graph, in the sidebar."""

from __future__ import annotations

from pathlib import Path

import pytest

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

CELL = r"""%%attractor review --run --param topic="tides"
// what a release needs
digraph Review {
    graph [goal="Don't stop", inputs="topic", model_stylesheet="* { llm_model: haiku; } .fast { llm_model: \"opus\" }"]
    start [shape=Mdiamond]
    plan  [prompt="List $topic, it's", max_retries=3, colour=red, promt="x", goal_gate=true]
    write [prompt="Write it"]
    start -> plan -> wrte -> done
    plan -> done [condition="outcome=succes && context.tone != 'dry'"]
    done  [shape=Msquare]
}"""
PYTHON = "def f(): return 1  # as in Python"
TEXT = """digraph there {
    start [shape=Mdiamond]
    ask   [shape=hexagon, label="Is it good?"]
    done  [shape=Msquare]
    start -> ask -> done [label="[A] Approve"]
}"""
THEMES = ["JupyterLab Light", "JupyterLab Dark", "JupyterLab Dark High Contrast"]
CONTRAST_MODULE = (Path(__file__).parent / "contrast.js").read_text().replace("export function", "function")
CONTRASTS = f"(root) => {{ {CONTRAST_MODULE} return contrastsIn(root); }}"
ENOUGH = 4.5
MARKS = """() => ['error', 'warning', 'info'].map((kind) =>
  getComputedStyle(document.querySelector(`.cm-attractor-${kind}`)).textDecorationColor)"""
RATIO = (
    """([ink, ground]) => {
  const box = document.createElement('div');
  box.style.cssText = `position:fixed;inset:0;z-index:9999;background:${ground};color:${ink}`;
  box.textContent = 'mark';
  document.body.append(box);
  const [[, ratio]] = ("""
    + CONTRASTS
    + """)(box);
  box.remove();
  return ratio;
}"""
)


def contrasts(frame, selector):
    """Text, ratio, colour, ground and class of what is written in an element."""
    return [one for element in frame.query_selector_all(selector) for one in element.evaluate(CONTRASTS)]


def too_near(found):
    return sorted({(ratio, text, ink, ground) for text, ratio, ink, ground, _ in found if ratio < ENOUGH})


def frame_of(page, selector):
    return page.query_selector(f"{selector} iframe").content_frame()


@pytest.mark.parametrize("theme", THEMES)
def test_every_text_can_be_read(make_server, write_notebook, tmp_path, theme, pictures):
    short = theme.removeprefix("JupyterLab ").replace(" ", "-").lower()
    write_notebook(tmp_path, "cells.ipynb", CELL, PYTHON)
    (tmp_path / "plan.dot").write_text(CELL.partition("\n")[2])
    runs = tmp_path / ".attractor" / "runs"
    Pipeline(TEXT, backend="simulated").run(logs_root=runs / "asked", stop_after=1, is_shown=False).result(60)
    settings = {"@jupyterlab/apputils-extension:themes": {"theme": theme}}
    with make_server(tmp_path, settings=settings) as server, server.browser(width=1500, height=900) as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        notebook = browser.open("cells.ipynb")
        page.wait_for_selector(f"body[data-jp-theme-name='{theme}'] .cm-attractor-panel button")
        notebook.command("attractor-nb:show-runs")
        page.frame_locator("#attractor-nb-runs iframe").locator("[data-run=asked]").wait_for()

        in_cell = contrasts(page, ".jp-CodeCell .cm-editor")
        assert len(in_cell) > 60
        python = {ink for text, _, ink, _, _ in in_cell if text in {"1", "# as in Python"}}
        ours = [one for one in in_cell if one[2] not in python]
        assert len(in_cell) - len(ours) < 8, "but for numbers and comments, which look as in Python"
        assert too_near(one for one in ours if one[0] != "f") == []
        ground = f"rgb({in_cell[0][3]})"
        for ink in page.evaluate(MARKS):
            assert page.evaluate(RATIO, [ink, ground]) >= ENOUGH, (ink, ground)

        page.locator(".cm-attractor-error").first.hover()
        page.locator(".cm-attractor-tooltip").wait_for()
        page.screenshot(path=str(pictures / f"theme-{short}-cell.png"))
        told = contrasts(page, ".cm-tooltip")
        assert len(told) >= 3
        assert too_near(told) == []
        in_panel = contrasts(frame_of(page, "#attractor-nb-runs"), "body")
        assert len(in_panel) >= 3
        assert too_near(in_panel) == []

        page.evaluate("() => { jupyterapp.commands.execute('docmanager:open', { path: 'plan.dot' }); }")
        graph = page.frame_locator(".attractor-document-graph iframe")
        graph.locator("[data-node=plan]").click()
        graph.locator(".ae-form").wait_for()
        page.mouse.move(5, 5)
        page.wait_for_timeout(500)  # of transitions
        page.screenshot(path=str(pictures / f"theme-{short}-document.png"))
        beside = contrasts(frame_of(page, ".attractor-document-graph"), "body")
        assert len(beside) > 50
        assert too_near(beside) == []
        assert browser.our_errors == []
