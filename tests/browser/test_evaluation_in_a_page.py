"""The exported page of an evaluation in Chromium, from the disk and with networking off: its drawing and keys choose rows."""

from __future__ import annotations

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.model.outcome import StageStatus
from tests.browser.test_map_in_a_page import opened, shown_rows

pytestmark = pytest.mark.browser

TEXT = """digraph Triage { inputs="ticket"
  start [shape=Mdiamond] done [shape=Msquare]
  route [prompt="Which way? $ticket"] refund [prompt="Pay $ticket"] escalate [prompt="Pass on $ticket"]
  start -> route; route -> refund [label="refund"]; route -> escalate [label="escalate"]
  refund -> done; escalate -> done }"""


@pytest.fixture
def file(tmp_path):
    def answer(node, prompt, context):
        if node.id == "route":
            return Outcome(
                StageStatus.SUCCESS, preferred_label="refund" if "money" in context["ticket"] else "escalate"
            )
        return "<img src=x onerror=alert(1)> " + "word " * 60

    rows = [
        {"id": f"r{number}", "ticket": ticket} for number, ticket in enumerate(["money", "help", "more money", "?"])
    ]
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(rows, {"long": lambda row: row["id"] in {"r0", "r3"}}, wait=True)
    return evaluation.export_html(tmp_path / "evaluation.html")


def test_edges_stages_and_keys_choose_rows(driver, file):
    with driver.new_page(offline=True) as page:
        said = opened(page, file)
        assert shown_rows(page) == ["r1", "r2", "r0", "r3"]
        label = page.locator('.edge-label[data-edge="1"]')
        label.click()
        assert shown_rows(page) == ["r2", "r0"]
        assert page.locator(".ae-chosen").inner_text() == "route → refund ✕"
        page.locator('.am-choice[data-status="failed"]').click()
        assert shown_rows(page) == ["r2"]
        label.click()
        assert shown_rows(page) == ["r1", "r2"]
        page.locator('.am-choice[data-status=""]').click()
        page.locator('.node[data-node="escalate"]').focus()
        page.keyboard.press("Enter")
        assert shown_rows(page) == ["r1"]
        page.locator(".ae-chosen").click()
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        current = page.locator("tr.is-current")
        assert current.locator("td").first.inner_text() == "r2"
        page.keyboard.press("Enter")
        assert current.locator("details[open]").count() == 1
        page.get_by_label("Filter the rows by any text").fill("jk")
        assert current.locator("td").first.text_content() == "r2"
        assert said == []
