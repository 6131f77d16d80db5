"""The list of runs in the sidebar and on the page: whatever their number, the page holds what is shown and a little around it."""

from __future__ import annotations

import pytest

from tests.many_runs import make_many_runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

MANY = 300
MOST_ROWS = 60
SHOWN = "() => [...document.querySelectorAll('.ap-side-run')].map(each => each.dataset.run)"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many") / "runs"
    make_many_runs(folder, MANY, needle=7)
    return folder


@pytest.fixture
def side(driver, serve_page, base):
    with driver.quiet_page(width=320, height=700) as page:
        page.goto(serve_page(base).replace("#token=", "#sidebar&token="))
        page.locator(f"[data-run=run-{MANY - 1:04}]").wait_for()
        yield page


def test_only_what_is_shown_is_in_the_page_and_scrolling_brings_the_others(side, pictures):
    newest = side.evaluate(SHOWN)
    assert newest[:2] == ["run-0299", "run-0298"]
    assert len(newest) < MOST_ROWS
    assert side.get_by_text("300 runs").count() == 1
    side.screenshot(path=str(pictures / "sidebar-of-many.png"))
    side.evaluate("() => scrollTo(0, document.body.scrollHeight)")
    side.locator("[data-run=run-0000]").wait_for()
    oldest = side.evaluate(SHOWN)
    assert oldest[-1] == "run-0000"
    assert len(oldest) < MOST_ROWS
    item = side.locator("[data-run=run-0000]")
    assert (item.get_attribute("aria-posinset"), item.get_attribute("aria-setsize")) == ("300", "300")


def test_the_keys_walk_through_all_of_them(side, driver):
    side.locator("[data-run=run-0299] button").focus()
    here = "() => Number(document.activeElement.closest('li').dataset.run.slice(4))"

    def has_walked():
        side.keyboard.press("ArrowDown")
        return side.evaluate(here) < 260

    driver.wait_until(has_walked, 60, "the rows past those that were there first")
    number = side.evaluate(here)
    side.keyboard.press("ArrowUp")
    assert side.evaluate(here) == number + 1


def test_a_filter_finds_a_run_that_is_not_in_the_page(side):
    side.get_by_label("Filter runs").fill("NEEDLE success")
    side.get_by_text("1 of 300 runs").wait_for()
    assert side.evaluate(SHOWN) == ["run-0007"]
    side.get_by_label("Filter runs").fill("")
    side.locator("[data-run=run-0299]").wait_for()


@pytest.fixture
def listed(driver, serve_page, base):
    with driver.quiet_page(width=1240, height=700) as page:
        page.goto(serve_page(base))
        page.locator(f"tr[data-run=run-{MANY - 1:04}]").wait_for()
        yield page


def test_the_page_finds_and_sorts_runs_that_it_does_not_show(listed, pictures):
    listed.get_by_text("300 of 300 runs").wait_for()
    assert listed.locator("tr[data-run]").count() == 100
    listed.get_by_text("Show more (200 left)").click()
    listed.get_by_text("Show more (100 left)").wait_for()
    assert listed.locator("tr[data-run]").count() == 200
    listed.locator("th[data-column=started] button").click()
    listed.locator("tr[data-run=run-0000]").wait_for()
    assert listed.locator("tr[data-run]").first.get_attribute("data-run") == "run-0000"
    listed.get_by_label("Filter the runs by any text").fill("NEEDLE")
    listed.get_by_text("1 of 300 runs").wait_for()
    assert listed.locator("tr[data-run]").evaluate_all("rows => rows.map(row => row.dataset.run)") == ["run-0007"]
    listed.screenshot(path=str(pictures / "page-of-many.png"))
