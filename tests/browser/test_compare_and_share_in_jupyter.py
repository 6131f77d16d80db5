"""Comparing, hindsight and export, clicked through in one notebook."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import nbformat
import pytest

pytestmark = pytest.mark.browser

SETUP = '''from attractor_nb import FunctionBackend, Outcome, Pipeline, diff
TEXT = """digraph notes { start [shape=Mdiamond] done [shape=Msquare] draft [prompt="Draft"] review [prompt="Review"]
  start -> draft -> review
  review -> done [condition="context.points=5"]
  review -> draft [condition="context.points!=5"] }"""
def writer(style, *points):
    left = list(points)
    def answer(node, prompt, context):
        if node.id == "review":
            return Outcome.success(context_updates={"points": left.pop(0)})
        return f"It is {style}."
    return FunctionBackend(answer)
runs = [Pipeline(TEXT).run(backend=writer(*given), is_shown=False) for given in (("fast", 5), ("small", 3, 5))]
[run.result().status for run in runs]'''
EXPORT = """page = runs[1].export_html("exported.html")
diff(*runs).export_html("both.html")
print("exported", page.name, page.stat().st_size < 2_000_000)"""


def test_two_runs_are_compared_asked_and_sent_away(jupyter, open_notebook, driver):
    notebook = open_notebook(
        jupyter,
        "%load_ext attractor_nb",
        SETUP,
        "diff(*runs)",
        'Pipeline(TEXT.replace("=5", "=3")).hindsight(runs)',
        EXPORT,
    )
    notebook.run_all()
    notebook.wait_for_text("exported exported.html True")
    compared = notebook.wait_for(".attractor-compare")
    assert "only in B" in compared.inner_text()
    kept = compared.locator("img").get_attribute("src").partition("base64,")[2]
    assert 'varied" data-node="draft"' in base64.b64decode(kept).decode()
    compared.locator("summary", has_text="response of draft").click()
    assert "+It is small." in compared.locator("pre:visible").first.inner_text()
    notebook.wait_for_text("2 of 2 runs would go elsewhere")
    folder = Path(os.environ.get("ATTRACTOR_PICTURES", Path(__file__).parents[2] / ".venv" / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    notebook.shoot(folder / "compare-and-share-in-jupyter.png")
    assert notebook.browser.our_errors == []
    for name, selector in (("exported.html", "[role=slider], input[type=range]"), ("both.html", ".ac-legend")):
        with driver.new_page(offline=True) as page:
            page.goto((jupyter.root / name).as_uri())
            page.locator(selector).first.wait_for()


def test_a_comparison_opens_both_sides_of_the_first_stage_that_differs(jupyter, open_notebook):
    notebook = open_notebook(jupyter, "%load_ext attractor_nb", SETUP, "diff(*runs)")
    notebook.run_all()
    page = notebook.page
    notebook.wait_for(".attractor-compared [data-node=draft].selected")
    sides = page.locator(".ac-panel .ac-side")
    assert ["It is fast." in sides.nth(0).text_content(), "It is small." in sides.nth(1).text_content()] == [True] * 2
    page.locator(".ac-panel .al-close").click()
    assert page.locator(".ac-panel").is_hidden()
    edges = """() => [...document.querySelectorAll(".attractor-compared .ad-frame, .attractor-compare > .attractor-table")]
      .filter((one) => one.getClientRects().length).map((one) => one.getBoundingClientRect())
      .map(({ left, right, top, bottom }) => [left, right, top, bottom].map(Math.round))"""
    drawing, *tables = page.evaluate(edges)
    assert len(tables) == 1, "one table"
    assert tables[0][:2] == drawing[:2], "it is as wide as the drawing"
    assert 0 <= tables[0][2] - drawing[3] < 30, "and right below it"
    assert page.locator(".attractor-compare").inner_text().count("completed, 4 stages") == 1
    assert notebook.browser.our_errors == []
    notebook.save()
    saved = nbformat.read(notebook.path, 4).cells[2].outputs
    assert "attractor-compare" in "".join(saved[0]["data"]["text/html"])
    assert not any("widget" in kind for output in saved for kind in output["data"])
