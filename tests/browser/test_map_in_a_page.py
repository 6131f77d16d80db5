"""The exported page of a map in Chromium, from the disk and with networking off: sorted, filtered, narrow, without script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Usage
from attractor_nb.model.calls.call_content import Response

pytestmark = pytest.mark.browser

TEXT = """digraph Triage { label="Triage of tickets"
  inputs="ticket, size"
  start [shape=Mdiamond] done [shape=Msquare]
  classify [label="Classify", prompt="Which team is this for? $ticket"]
  reply [label="Draft a reply", prompt="Reply to $ticket"]
  start -> classify -> reply -> done }"""
TICKETS = ["the invoice is wrong", "", "my parcel is late", "<img src=x onerror=alert(1)>", "refund?"]


@pytest.fixture
def file(tmp_path):
    def answer(node, prompt, context):
        if not context["ticket"]:
            return Outcome.fail("the ticket is empty, so no team can be found for it")
        words = "We are sorry, and answer within two days. " * 6 if node.id == "reply" else "shipping"
        return Response(words, usage=Usage(900, 100, 0.0123, 1))

    rows = [{"ticket": ticket, "size": 10**number} for number, ticket in enumerate(TICKETS)]
    pipeline = Pipeline(TEXT, backend=FunctionBackend(answer))
    result = pipeline.map(rows, wait=True, map_dir=tmp_path / "map", outputs=["classify.response", "reply.response"])
    return result.export_html(tmp_path / "map.html", rows="failed")


def opened(page, file):
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto(Path(file).as_uri())
    return said


def shoot(page, name):
    folder = Path(os.environ.get("ATTRACTOR_PICTURES", Path(__file__).parents[2] / ".venv" / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(folder / f"{name}.png"), full_page=True)


def shown_rows(page):
    return page.locator(".am-table tbody tr:visible:not(.am-space) td:first-child").all_inner_texts()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.kind("a browser")
def test_rows_are_sorted_filtered_and_opened(driver, file, dark):
    with driver.new_page(dark=dark, offline=True) as page:
        said = opened(page, file)
        assert shown_rows(page) == ["1", "0", "2", "3", "4"]
        page.get_by_role("button", name="row", exact=True).click()
        assert shown_rows(page) == ["0", "1", "2", "3", "4"]
        page.get_by_role("button", name="size").click()
        page.get_by_role("button", name="size ↑").click()
        assert shown_rows(page) == ["4", "3", "2", "1", "0"]
        assert page.locator("th[aria-sort=descending]").inner_text() == "size ↓"
        page.get_by_label("Filter the rows by any text").fill("PARCEL")
        assert shown_rows(page) == ["2"]
        assert page.get_by_role("status").inner_text() == "1 of 5 rows"
        page.get_by_label("Filter the rows by any text").fill("")
        shoot(page, f"exported-map{'-dark' if dark else ''}")
        page.get_by_role("button", name="failed 1").click()
        assert shown_rows(page) == ["1"]
        page.get_by_role("button", name="failures first").click()
        assert page.locator("th[aria-sort=descending]").count() == 0
        page.get_by_role("link", name="1", exact=True).click()
        page.get_by_role("heading", name="Run of Triage of tickets").wait_for()
        assert said == []


def test_beside_an_open_row_no_column_is_cut_that_the_row_says_itself(driver, file):
    with driver.new_page(offline=True) as page:
        said = opened(page, file)
        heads = page.locator(".am-table th:visible")
        assert heads.all_inner_texts()[-3:-1] == ["time", "tokens"]
        page.locator(".am-table tbody tr[data-place] td.is-state").nth(1).click()
        page.locator(".am-beside dt", has_text="tokens").wait_for()
        page.wait_for_function("() => document.querySelector('.am-table.is-short')")
        assert not {"time", "tokens", "cost"} & {*heads.all_inner_texts()}
        lines = page.locator(".am-table tbody tr[data-place]").first.locator("td:visible")
        assert lines.count() == heads.count()
        page.locator(".am-beside .al-close").click()
        page.wait_for_function("() => !document.querySelector('.am-table.is-short')")
        assert "tokens" in heads.all_inner_texts()
        assert said == []


def test_beside_an_open_row_long_columns_are_narrowed_before_one_is_cut(driver, tmp_path):
    def answer(node, prompt, context):
        return Outcome.fail("the model gave no rating of it") if "log in" in context["ticket"] else "low"

    rows = [{"ticket": ticket} for ticket in ("Cannot log in", "The total on the invoice is wrong")]
    mapped = Pipeline(TEXT.replace(", size", ""), backend=FunctionBackend(answer)).map(
        rows, wait=True, map_dir=tmp_path / "map", outputs=["reply.response"]
    )
    with driver.new_page(offline=True, width=1090, height=700) as page:
        opened(page, mapped.export_html(tmp_path / "map.html"))
        page.locator(".am-table tbody tr[data-place] td.is-state").first.click()
        page.wait_for_function("() => document.querySelector('.am-table.is-short')")
        frame = page.locator(".am-frame")
        assert (
            frame.evaluate("frame => [frame.scrollWidth, frame.clientWidth]")
            == [frame.evaluate("f => f.clientWidth")] * 2
        )
        assert page.locator(".am-table th:visible").all_inner_texts() == [
            "row",
            "status",
            "reason",
            "ticket",
            "reply.response",
        ]


@pytest.mark.kind("a browser")
def test_a_narrow_page_has_a_block_for_each_row_and_nothing_sticks_out(driver, file):
    with driver.new_page(offline=True) as page:
        page.set_viewport_size({"width": 390, "height": 900})
        said = opened(page, file)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        first, second = (page.locator(".am-table tr[data-place]").nth(number).bounding_box() for number in (0, 1))
        assert first["height"] == second["height"] < 60
        page.locator(".am-table tr[data-place]").first.click()
        page.locator(".am-values dd", has_text="the ticket is empty").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        shoot(page, "exported-map-narrow")
        assert said == []


@pytest.mark.kind("a browser")
def test_without_script_the_table_is_there(driver, file):
    with driver.new_page(java_script_enabled=False, offline=True) as page:
        opened(page, file)
        assert shown_rows(page) == ["1", "0", "2", "3", "4"]
        page.locator("summary").first.click()
        assert page.locator(".am-value").first.is_visible()
