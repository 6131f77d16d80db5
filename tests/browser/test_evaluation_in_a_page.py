"""The exported page of an evaluation in Chromium, from the disk and with networking off: its drawing and keys choose rows."""

from __future__ import annotations

import re

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.evaluation.evaluated_row import EvaluatedRow
from attractor_nb.evaluation.evaluation_page import evaluation_page
from attractor_nb.evaluation.evaluation_rows import EvaluationRow
from attractor_nb.evaluation.scorers import Score
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.row_result import RowResult
from attractor_nb.views.table import Table
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
        assert page.locator(".am-chosen").inner_text() == "route → refund ✕"
        page.locator('.am-choice[data-status="failed"]').click()
        assert shown_rows(page) == ["r2"]
        label.click()
        assert shown_rows(page) == ["r1", "r2"]
        page.locator('.am-choice[data-status=""]').click()
        page.locator('.node[data-node="escalate"]').focus()
        page.keyboard.press("Enter")
        assert shown_rows(page) == ["r1"]
        page.locator(".am-chosen").click()
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        current = page.locator("tr.is-current")
        assert current.locator("td").first.inner_text() == "r2"
        page.keyboard.press("Enter")
        assert page.locator(".am-beside-name").inner_text() == "row r2"
        assert page.locator(".am-values dd.is-output").inner_text().startswith("<img src=x onerror=alert(1)> word")
        page.get_by_label("Filter the rows by any text").fill("jk")
        assert page.locator(".am-beside-name").inner_text() == "row r2"
        assert said == []


COUNT = 10_000
MOST_ELEMENTS = 5_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The page of an evaluation of 10,000 rows, every ninth of which fails."""
    scores = {True: Score("correct", value=True), False: Score("correct", value=False, reason="expected billing")}
    rows = [
        EvaluatedRow(
            EvaluationRow(number, f"t{number}", {"ticket": f"ticket {number} " * 4}, {"expected": "billing"}),
            [RowResult(number, "success", duration=1.0)],
            {"correct": [scores[number % 9 != 0]]},
            ["billing" if number % 9 else "support"],
        )
        for number in range(COUNT)
    ]
    file = tmp_path_factory.mktemp("large") / "evaluation.html"
    file.write_text(evaluation_page("Triage", "10,000 rows", Table("Scores", (), []), rows).to_html())
    return file


def counts(page):
    """The rows and the elements that are in the page."""
    return page.evaluate("[document.querySelectorAll('tr[data-place]').length, document.querySelectorAll('*').length]")


def test_of_ten_thousand_rows_those_in_sight_are_in_the_page_and_all_are_found(driver, large):
    with driver.new_page(offline=True) as page:
        said = opened(page, large)
        page.locator(".am-count", has_text="10,000 rows").wait_for()
        rows, elements = counts(page)
        assert 0 < rows <= 120
        assert elements < MOST_ELEMENTS
        assert shown_rows(page)[:2] == ["t0", "t9"]
        frame = page.locator(".am-frame")
        frame.evaluate("frame => { frame.scrollTop = frame.scrollHeight; }")
        page.locator("tr[data-place]", has_text="t9998").wait_for()
        assert counts(page)[0] <= 120
        page.get_by_label("Filter the rows by any text").fill("ticket 5003 ")
        assert shown_rows(page) == ["t5003"]
        page.get_by_label("Filter the rows by any text").fill("")
        page.locator('.am-choice[data-status="failed"]').click()
        assert page.locator(".am-count").inner_text() == "1,112 of 10,000 rows"
        page.get_by_role("button", name=re.compile(r"^row( ↑)?$")).click()
        page.get_by_role("button", name=re.compile(r"^row( ↑)?$")).click()
        assert shown_rows(page)[0] == "t9999"
        page.get_by_role("button", name="failures first").click()
        assert shown_rows(page)[0] == "t0"
        assert said == []


def test_keys_walk_through_rows_that_were_not_in_the_page(driver, large):
    with driver.new_page(offline=True) as page:
        opened(page, large)
        for _ in range(100):
            page.keyboard.press("j")
        current = page.locator("tr.is-current td")
        assert current.first.inner_text() == "t891"
        frame, line = page.locator(".am-frame").bounding_box(), page.locator("tr.is-current").bounding_box()
        assert frame["y"] < line["y"] < frame["y"] + frame["height"]
        page.keyboard.press("Enter")
        page.keyboard.press("k")
        page.locator(".am-beside-name", has_text="row t882").wait_for()
        page.keyboard.press("Escape")
        assert page.locator(".am-beside").is_hidden()


def test_a_printed_page_has_all_rows_and_one_without_script_says_what_is_missing(driver, large):
    with driver.new_page(offline=True) as page:
        opened(page, large)
        page.get_by_label("Filter the rows by any text").fill("support")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert counts(page)[0] == 1_112
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert counts(page)[0] <= 120
    with driver.new_page(java_script_enabled=False, offline=True) as page:
        opened(page, large)
        assert page.locator(".am-table tbody tr:visible").count() == 500
        left = page.locator(".am-rows .am-note:visible").inner_text()
        assert left == "and 9,500 more rows, which this page shows with JavaScript switched on"
