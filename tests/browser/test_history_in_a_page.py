"""The list of runs and the timeline, in bare pages: found, sorted, clicked, walked by keys; texts stay texts."""

from __future__ import annotations

import pytest

from attractor_nb import Outcome, Pipeline, Usage, runs
from attractor_nb.model.calls.call_content import Response
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.studio.history.history_table import state_of
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.testing import ManualClock
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
TEXT = """digraph review { graph [label="Review of <b>one</b> change"]
    start [shape=Mdiamond] plan [label="Plan the change", prompt="a"] write [prompt="b", max_retries=2]
    tests [prompt="c"] done [shape=Msquare]
    start -> plan -> write -> tests -> done }"""
VIEW = "showHistory(host, el)"


def kept_runs(base):
    """Four runs: one that went well, one that failed with hostile words, one that stopped, one that is damaged."""
    clock = ManualClock()

    async def model(node, prompt, context):
        await clock.sleep({"plan": 3, "write": 7}.get(node.id, 1))
        return Response("ok", usage=Usage(400, 120, 0.004, 1))

    async def failing(node, prompt, context):
        return Outcome.fail(HOSTILE) if node.id == "tests" else await model(node, prompt, context)

    pipeline = Pipeline(TEXT, backend=model)
    given = {"wait": True, "is_shown": False, "clock": clock}
    for name, options in (("well", {}), ("badly", {"backend": failing}), ("half", {"stop_after": 2}), ("torn", {})):
        pipeline.run(logs_root=base / name, **given, **options)
        clock.advance(60)
    (base / "torn" / "events.jsonl").write_text("nonsense\n{}\n")
    for name in ("manifest.json", "manifest.previous.json"):
        (base / "torn" / name).unlink()
    runs(base).where(status="completed")[0].tag("good", "<i>x</i>")
    return runs(base)


@pytest.fixture
def table(tmp_path):
    return kept_runs(tmp_path / "runs")


def open_list(open_view, table, **options):
    return open_view("history", VIEW, rows=HistoryRequests(table).rows(), caption="runs", place="", **options)


def shown(view):
    return view.page.locator("tr[data-run]").evaluate_all("rows => rows.map(row => row.dataset.run)")


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, marks=pytest.mark.kind("a browser")), pytest.param(True, marks=pytest.mark.campaign)],
    ids=["light", "dark"],
)
def test_the_list_says_how_each_run_stands(open_view, table, dark):
    view = open_list(open_view, table, dark=dark, width=1240)
    assert set(shown(view)) == {"well", "badly", "half", "torn"}
    row = view.page.locator("tr[data-run=badly]")
    assert "✕ failed" in row.text_content()
    assert HOSTILE[:20] in row.text_content()
    assert "damaged" in view.page.locator("tr[data-run=torn]").text_content()
    assert "doctor" in view.page.locator("tr[data-run=torn]").text_content()
    assert row.locator("[data-column=took]").text_content() == "10.0 s"
    assert view.page.locator(".ah-table img, .ah-table script, .ah-table i").count() == 0
    assert view.page.evaluate("() => window.hit") is None
    view.shoot(f"history-{'dark' if dark else 'light'}")
    assert view.console == []


def test_a_waiting_run_has_the_colour_of_waiting_in_every_view(open_view, table):
    rows = HistoryRequests(table).rows()
    rows[0] |= {"status": "waiting", "state": state_of("waiting"), "is_live": True}
    page = open_view("history", VIEW, rows=rows, caption="runs", place="").page
    assert page.locator("tr[data-run] td[data-column=status]").first.evaluate(
        """(cell) => {
          const probe = document.createElement("i");
          probe.style.color = "var(--al-waiting)";
          cell.after(probe);
          return getComputedStyle(cell).color === getComputedStyle(probe).color;
        }"""
    )


def test_runs_are_found_by_any_text_and_sorted_by_any_column(open_view, table):
    view = open_list(open_view, table)
    view.page.locator(".ah-filter").fill("good SUCCESS")
    assert shown(view) == ["well"]
    assert view.page.locator(".ah-count").text_content() == "1 of 4 runs"
    view.page.locator(".ah-filter").fill("nothing has this")
    assert "No run has this text." in view.page.locator("tbody").text_content()
    view.page.locator(".ah-filter").fill("")
    view.page.get_by_role("button", name="Sort by stages").or_(
        view.page.locator("button[title='Sort by stages']")
    ).first.click()
    assert shown(view) == ["half", "badly", "well", "torn"], "what is unknown comes last"
    view.page.locator("button[title='Sort by stages']").click()
    assert shown(view) == ["well", "badly", "half", "torn"]
    assert view.page.locator("th[aria-sort=descending]").text_content() == "stages ↓"


def test_a_delete_takes_two_clicks_and_is_forgotten_elsewhere(open_view, table):
    view = open_list(open_view, table)
    delete = view.page.locator("tr[data-run=half] button:last-child")
    delete.click()
    assert (delete.text_content(), view.sent) == ("Sure?", [])
    view.page.locator("tr[data-run=well] button:last-child").click()
    assert delete.text_content() == "Delete"
    assert view.sent == []
    delete.click()
    delete.click()
    assert view.sent == [{"kind": "delete", "key": "half"}]


def test_each_button_asks_for_its_act_and_those_that_cannot_are_off(open_view, table):
    view = open_list(open_view, table)
    half = view.page.locator("tr[data-run=half]")
    half.get_by_text("Open").click()
    half.get_by_text("Resume").click()
    half.get_by_text("Tag").click()
    view.page.locator(".ah-tag-field").fill("later")
    view.page.keyboard.press("Enter")
    assert view.sent == [
        {"kind": "open", "key": "half"},
        {"kind": "resume", "key": "half"},
        {"kind": "tag", "key": "half", "tag": "later"},
    ]
    assert view.page.locator("tr[data-run=well]").get_by_text("Resume").is_disabled()
    assert view.page.locator("tr[data-run=torn]").get_by_text("Open").is_disabled()


def test_a_map_is_compared_with_a_map_only(open_view, table):
    rows = HistoryRequests(table).rows()
    for row in rows[:2]:
        row["kind"] = "map"
    view = open_view("history", VIEW, rows=rows, caption="runs", place="", width=1240)
    boxes = {row["key"]: view.page.locator(f"tr[data-run={row['key']}] .ah-check") for row in rows}
    first, second, run = (row["key"] for row in rows[:3])
    boxes[first].check()
    assert boxes[second].is_enabled()
    assert boxes[run].is_disabled()
    assert boxes[run].get_attribute("title") == "A map is compared with a map, a run with a run"
    boxes[first].uncheck()
    assert boxes[run].is_enabled()


def test_an_opened_run_is_drawn_and_its_words_stay_words(open_view, table):
    requests = HistoryRequests(table)
    view = open_list(open_view, table)
    view.tell(**requests.answer({"kind": "open", "key": "badly"}))
    assert "state-fail" in view.page.locator(".ah-panel [data-node=tests]").get_attribute("class")
    assert "Run.load(" in view.page.locator(".ah-panel code").text_content()
    assert view.page.locator(".ah-panel img").count() == 0
    assert view.page.evaluate("() => window.hit") is None
    view.shoot("history-opened")
    view.tell(kind="said", title=HOSTILE, words=HOSTILE, isError=True, call=HOSTILE)
    assert view.page.locator(".ah-panel strong").text_content() == HOSTILE
    assert view.page.evaluate("() => window.hit") is None


def test_runs_under_way_are_asked_about_again_and_the_keyboard_keeps_its_place(open_view, table):
    rows = HistoryRequests(table).rows()
    rows[0].update(status="running", is_live=True, is_deletable=False)
    view = open_view("history", VIEW, rows=rows, caption="runs", place="")
    assert view.page.locator(f"tr[data-run={rows[0]['key']}] button:last-child").is_disabled()
    view.page.wait_for_function("() => window.sent.some(message => message.kind === 'refresh')", timeout=60_000)
    tag = view.page.locator("tr[data-run=well]").get_by_text("Tag")
    tag.focus()
    view.set("rows", rows[1:])
    assert view.page.evaluate("() => document.activeElement.dataset.focus") == "Tag well"


def test_a_kernel_that_is_gone_or_silent_is_told(open_view, table):
    view = open_list(open_view, table)
    assert view.page.locator(".ah-panel").is_hidden()
    view.page.locator("tr[data-run=well]").get_by_text("Open").click()
    view.page.wait_for_function(
        "() => document.querySelector('.ah-panel').textContent.includes('busy or gone')", timeout=60_000
    )
    view.page.evaluate("() => window.host.lose()")
    assert "The kernel is gone." in view.page.locator(".ah-panel.is-error").text_content()
    assert len(shown(view)) == 4, "what was heard stays"


def test_a_page_without_a_kernel_has_no_buttons_that_do_nothing(open_view, table):
    view = open_list(open_view, table, is_live=False)
    assert view.page.locator(".ah-actions").count() == 0
    assert view.page.get_by_text("Refresh").count() == 0
    assert len(shown(view)) == 4


def test_a_thousand_runs_are_shown_a_hundred_at_a_time(open_view, table):
    row = HistoryRequests(table).rows()[0]
    many = [{**row, "key": f"r{number}", "index": number} for number in range(1000)]
    view = open_view("history", VIEW, rows=many, caption="runs", place="")
    assert len(shown(view)) == 100
    view.page.get_by_text("Show more (900 left)").click()
    assert len(shown(view)) == 200
    view.page.locator(".ah-filter").fill("r99")
    assert shown(view)[:2] == ["r99", "r990"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [950, 640])
def test_on_a_narrow_page_tokens_cost_and_tags_stay_in_sight(open_view, table, width, dark):
    (row, *others) = HistoryRequests(table).rows()
    costly = {"tokens": 124_567, "cost": 0.42, "price": "$0.42", "tags": ["good", "nightly"], "took": "1 min 15 s"}
    noted = {"note": "at implement: the command ended with exit code 2", "pipeline": "Review of the change"}
    view = open_view(
        "history", VIEW, rows=[{**row, **costly, **noted}, *others], caption="runs", place="", dark=dark, width=width
    )
    line = view.page.locator(f"tr[data-run='{row['key']}']")
    actions = line.locator(".ah-actions").bounding_box()
    for name in ("status", "pipeline", "tokens", "cost", "tags"):
        cell = line.locator(f"[data-column={name}]")
        place = cell.bounding_box()
        assert place["x"] >= 0, name
        assert place["x"] + place["width"] <= actions["x"] + 1, f"{name} lies under the buttons"
        heading = view.page.locator(f"th[data-column={name}]").bounding_box()
        assert abs(heading["x"] - place["x"]) < 1
    assert actions["x"] + actions["width"] <= width
    assert line.locator("[data-column=status]").get_attribute("title") == noted["note"]
    told = line.locator("[data-column=pipeline]").get_attribute("title")
    assert row["key"] in told
    assert "took 1 min 15 s" in told
    assert "started 20" in told
    view.shoot(f"history_{width}_{'dark' if dark else 'light'}")


# -- the timeline ---------------------------------------------------------------------------------


@pytest.fixture
def timed(tmp_path):
    """A run with a retry, so with all kinds of bars but a person's."""
    clock, tries = ManualClock(), []

    async def model(node, prompt, context):
        await clock.sleep({"plan": 3, "write": 2}.get(node.id, 1))
        if node.id == "write" and not tries:
            tries.append(1)
            return Outcome.retry(HOSTILE)
        return Response("ok", usage=Usage(400, 120, 0.004, 1))

    run = Pipeline(TEXT, backend=model).run(is_shown=False, clock=clock, logs_root=tmp_path / "run")
    run.result(30)
    return run.timeline()


def open_timeline(open_view, timed, **options):
    values = {"graph": render_svg(timed.run.graph), "marks": MARK_PATHS, "caption": "Review", "place": ""}
    return open_view("timeline", "showTimeline(host, el)", **values, **timeline_values(timed), **options)


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, marks=pytest.mark.kind("a browser")), pytest.param(True, marks=pytest.mark.campaign)],
    ids=["light", "dark"],
)
def test_a_bar_tells_its_attempt_and_selects_its_node(open_view, timed, dark):
    view = open_timeline(open_view, timed, dark=dark, height=1000)
    bar = view.page.locator("[data-bar][data-for=write]").first
    bar.hover()
    assert HOSTILE[:20] in view.page.locator(".at-words").text_content()
    bar.click()
    assert "selected" in view.page.locator("[data-node=write]").get_attribute("class")
    assert view.page.locator("[data-bar].selected").count() == 3, "its attempts and the wait between them"
    view.page.get_by_text("time", exact=True).click()
    assert "is-tinted" in view.page.locator("[data-node=plan]").get_attribute("class")
    view.shoot(f"timeline-{'dark' if dark else 'light'}")
    view.page.get_by_text("time", exact=True).click()
    assert "is-tinted" not in view.page.locator("[data-node=plan]").get_attribute("class")
    assert view.page.evaluate("() => window.hit") is None
    assert view.console == []


def test_in_a_narrow_place_the_lanes_scroll_and_their_texts_can_be_read(open_view, timed):
    view = open_timeline(open_view, timed, width=520)
    view.shoot("timeline-narrow")
    least = "() => Math.min(...[...document.querySelectorAll('.at-lanes text')].map((one) => one.getBoundingClientRect().height))"
    assert view.page.evaluate(least) >= 8
    assert view.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_a_node_shows_its_bars_and_keys_walk_them(open_view, timed):
    view = open_timeline(open_view, timed)
    view.page.locator("[data-node=plan]").click()
    assert view.page.locator("[data-bar].selected").get_attribute("data-for") == "plan"
    view.page.locator("[data-bar='0']").focus()
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("Enter")
    assert view.page.evaluate("() => document.activeElement.dataset.bar") == "2"
    assert view.page.locator("[data-bar='2']").get_attribute("aria-pressed") == "true"


def test_a_live_timeline_is_drawn_anew_and_keeps_what_was_chosen(open_view, timed):
    view = open_timeline(open_view, timed)
    view.page.locator("[data-bar][data-for=plan]").click()
    view.set("svg", timed.to_svg("light"))
    assert view.page.locator("[data-bar].selected").get_attribute("data-for") == "plan"
    assert view.console == []


def test_a_live_timeline_that_is_drawn_anew_keeps_the_keyboard_where_it_is(open_view, timed):
    view = open_timeline(open_view, timed)
    view.page.locator("[data-bar='0']").focus()
    view.page.keyboard.press("ArrowRight")
    view.set("svg", timed.to_svg("light"))
    assert view.page.evaluate("() => document.activeElement.dataset.bar") == "1"


@pytest.mark.parametrize("name", ["hatch", "dots"])
def test_hatches_and_dots_of_a_live_timeline_are_its_own(open_view, timed, name):
    """Its static twin is in the page, before it and hidden, with the same ids: nothing is painted with those."""
    shown = timeline_values(timed)
    view = open_timeline(open_view, timed)
    view.page.evaluate(
        """(svg) => {
          const twin = document.createElement("div");
          twin.innerHTML = svg;
          twin.style.display = "none";
          document.body.prepend(twin);
        }""",
        shown["svg"],
    )
    used = view.page.evaluate(
        """(name) => [...document.querySelectorAll(".at-lanes svg *")]
          .map((one) => /url\\("?#([^")]+)"?\\)/.exec(getComputedStyle(one).fill)?.[1])
          .filter((id) => id?.includes(name))
          .map((id) => Boolean(document.getElementById(id)?.closest(".at-lanes")))""",
        name,
    )
    assert used.count(True) == len(used) >= (2 if name == "hatch" else 0), used
