"""Views that stand in for what is kept, in a bare page: they move along when an output is drawn anew."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.views.drawings.drawing import MARK_PATHS

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

TALL = """(() => {
  window.ends = 0;
  window.output = (words) =>
    (el.innerHTML = `<div class="jp-RenderedHTMLCommon"><div data-attractor-place="k"><p class="still">${words}</p></div></div>`);
  output("first");
  window.show = (inner) => {
    inner.innerHTML = '<div class="box" style="height:40px;overflow:auto"><div style="height:400px"></div></div><input class="field">';
    return () => { window.ends += 1; };
  };
  return standIn("k", (inner) => show(inner));
})()"""
FORM = "showRunForm(host, el)"
FIELDS = [
    {"name": "ticket", "title": "ticket", "is_required": True, "kind": "text", "words": "", "default": None},
    {"name": "loud", "title": "loud", "is_required": False, "kind": "yes_no", "words": "", "default": True},
]
STANDING = {"nodes": {}, "edges": {}, "line": {"status": "success", "is_ended": True}, "tails": {}}


def fill_and_scroll(page):
    """Fill the field, remember it, and scroll the box."""
    page.locator(".field").fill("half a word")
    page.evaluate(
        "() => { window.kept = document.querySelector('.field'); document.querySelector('.box').scrollTop = 120; }"
    )
    page.wait_for_timeout(50)


def check_kept(page):
    """Wait for the remembered field, and check its text and the scroll."""
    page.wait_for_function("() => document.querySelector('.field') === window.kept")
    assert page.locator(".field").input_value() == "half a word"
    assert page.evaluate("() => document.querySelector('.box').scrollTop") == 120


@pytest.mark.kind("a browser")
def test_an_output_that_is_drawn_anew_keeps_the_view_its_scroll_and_its_focus(open_view):
    view = open_view("place", TALL)
    page = view.page
    fill_and_scroll(page)
    page.evaluate("() => output('second')")
    check_kept(page)
    assert page.evaluate("() => document.activeElement === window.kept")
    assert page.locator(".still").is_hidden()
    assert page.evaluate("() => window.ends") == 0


def test_a_view_that_ends_leaves_what_was_kept_last_with_jupyters_styles(open_view):
    view = open_view("place", TALL)
    page = view.page
    assert page.locator(".jp-RenderedHTMLCommon").count() == 0, "a view has its own styles"
    page.evaluate("() => output('second')")
    page.evaluate("() => window.end()")
    assert page.locator(".still").is_visible()
    assert page.locator(".still").text_content() == "second"
    assert page.locator(".jp-RenderedHTMLCommon").count() == 1
    assert page.evaluate("() => window.ends") == 1


def test_a_place_that_goes_away_for_good_ends_its_view(open_view):
    view = open_view("place", TALL)
    view.page.evaluate("() => document.getElementById('view').replaceChildren()")
    view.page.wait_for_function("() => window.ends > 0")
    assert view.page.evaluate("() => window.ends") == 1


def test_a_new_place_that_comes_before_the_old_one_goes_gets_the_view_that_stood_there(open_view):
    view = open_view("place", TALL)
    page = view.page
    fill_and_scroll(page)
    page.evaluate(
        "() => { const el = document.getElementById('view'); window.old = el.firstChild; el.append(old.cloneNode(false)); "
        'el.lastChild.innerHTML = \'<div data-attractor-place="k"><p class="still">second</p></div>\'; }'
    )
    page.wait_for_timeout(50)
    page.evaluate("() => old.remove()")
    check_kept(page)
    assert page.locator(".field").count() == 1
    assert page.evaluate("() => window.ends") == 0


def test_an_output_that_is_shown_a_second_time_has_a_view_of_its_own_that_outlives_the_first(open_view):
    view = open_view("place", TALL)
    page = view.page
    page.evaluate(
        "() => { const el = document.getElementById('view'); window.first = el.firstChild; el.append(first.cloneNode(true)); "
        "el.lastChild.querySelector('[data-attractor-place]').innerHTML = '<p class=\"still\">second</p>'; }"
    )
    page.wait_for_function("() => document.querySelectorAll('.field').length === 2")
    page.wait_for_timeout(1500)
    page.locator(".field").nth(1).fill("of the second")
    page.evaluate("() => first.remove()")
    page.wait_for_function("() => window.ends === 1")
    assert page.locator(".field").input_value() == "of the second"


def test_what_asks_a_kernel_is_off_when_it_is_lost_and_on_when_it_is_heard_again(open_view):
    view = open_view("run_form", FORM, fields=FIELDS, caption="answer")
    page = view.page
    page.evaluate("() => window.host.lose()")
    assert page.get_by_role("button", name="Run").is_disabled()
    assert page.locator("textarea").is_disabled()
    assert "kernel is gone" in page.locator("[role=alert]").last.text_content()
    view.tell(kind="said", words="")
    assert page.get_by_role("button", name="Run").is_enabled()


def test_the_form_hands_in_what_was_filled_in_and_says_what_is_wrong(open_view):
    view = open_view("run_form", FORM, fields=FIELDS, caption="answer")
    view.page.locator("textarea").fill("the printer")
    view.page.get_by_role("button", name="Run").click()
    assert view.sent == [{"kind": "submit", "values": {"ticket": "the printer", "loud": True}}]
    view.tell(kind="said", words="there is no such printer")
    assert view.page.locator(".al-run-said").text_content() == "there is no such printer"


def open_ended(open_view, *, width=1000, **more):
    live = "showLiveRun(host, el, shareStates(host))"
    svg = Pipeline("digraph { start [shape=Mdiamond] plan done [shape=Msquare] start -> plan -> done }").to_svg()
    values = {"svg": svg, "marks": MARK_PATHS, "states": {**STANDING, **more}, "has_output": True, "has_beside": True}
    return open_view("live_view", live, **values, gates=[], answers=[], width=width)


def test_a_run_that_had_ended_reserves_no_room_for_questions(open_view):
    view = open_ended(open_view)
    gates = view.page.locator(".attractor-gate")
    gates.evaluate("(element) => element.classList.add('has-gates')")
    assert gates.bounding_box()["height"] < 40


def test_a_run_that_has_ended_offers_its_replay_in_the_place_of_its_drawing(open_view):
    view = open_ended(open_view)
    page = view.page
    page.get_by_role("button", name="Replay").click()
    assert {"kind": "beside", "what": "replay", "run": ""} in view.sent
    view.tell(kind="beside", what="replay", run="", place="there")
    assert page.locator(".al-panel[data-attractor-place=there]").get_attribute("hidden") is None
    assert page.locator(".al-stage > .ad-drawing").is_hidden()
    page.get_by_role("button", name="Replay").click()
    assert page.locator(".al-panel").is_hidden()
    assert page.locator(".al-stage > .ad-drawing").is_visible()


@pytest.mark.parametrize("width", [640, 1366])
def test_a_replay_that_was_opened_and_closed_leaves_the_view_as_it_was(open_view, width):
    view = open_ended(open_view, answer={"node": "plan", "text": "a plan"}, width=width)
    page = view.page
    places = """() => [...document.querySelectorAll('.al-stage > .ad-drawing, .al-side > .al-answer')]
      .map((one) => JSON.stringify(one.getBoundingClientRect()))"""
    before = page.evaluate(places)
    page.get_by_role("button", name="Replay").click()
    view.tell(kind="beside", what="replay", run="", place="there")
    page.get_by_role("button", name="Replay").click()
    assert page.evaluate(places) == before


def test_many_other_runs_that_wait_are_one_line_until_it_is_opened(open_view):
    others = [{"run": f"r{n}", "words": f"another run, r{n}, waits at `gate`"} for n in range(5)]
    view = open_ended(open_view, others=others)
    forgotten = view.page.locator(".al-forgotten")
    assert forgotten.bounding_box()["height"] < 30
    assert forgotten.locator("summary").text_content() == "5 other runs of this pipeline wait for an answer"
    forgotten.locator("summary").click()
    assert forgotten.get_by_role("button", name="Show").count() == 5
    view.tell(kind="delta", others=others[:1])
    assert forgotten.get_by_role("button", name="Show").is_visible()
    assert forgotten.locator("summary").is_hidden()


def test_a_run_that_waits_before_its_view_is_there_has_the_waiting_node_in_the_frame(open_view):
    steps = " -> ".join(f"s{n}" for n in range(40))
    svg = Pipeline(
        f"digraph {{ rankdir=TB start [shape=Mdiamond] done [shape=Msquare] start -> {steps} -> done }}"
    ).to_svg()
    nodes = {f"s{n}": {"status": "success", "visits": 1} for n in range(34)} | {"s34": {"status": "waiting"}}
    states = {"nodes": nodes, "edges": {}, "line": {"status": "waiting", "node": "s34"}, "tails": {}}
    live = "showLiveRun(host, el, shareStates(host))"
    view = open_view("live_view", live, svg=svg, marks=MARK_PATHS, states=states, gates=[], answers=[])
    view.page.emulate_media(reduced_motion="reduce")
    view.page.wait_for_function(
        """() => {
          const frame = document.querySelector('.ad-frame').getBoundingClientRect();
          const node = document.querySelector('[data-node=s34]').getBoundingClientRect();
          return frame.height && node.top >= frame.top && node.bottom <= frame.bottom && node.bottom <= innerHeight;
        }""",
        timeout=5000,
    )


def test_what_cannot_be_opened_is_said(open_view):
    view = open_ended(open_view)
    view.page.get_by_role("button", name="Replay").click()
    view.tell(kind="beside", what="replay", run="", problem="nothing of run x is stored")
    assert view.page.locator(".al-after-said").text_content() == "nothing of run x is stored"
    assert view.page.get_by_role("button", name="Replay").get_attribute("aria-pressed") == "false"


def test_other_runs_that_wait_are_listed_with_stop_and_show_which_are_off_without_a_kernel(open_view):
    others = [{"run": "abc", "words": "another run of this pipeline, abc, waits at `gate` since 12:03:04"}]
    view = open_ended(open_view, others=others)
    page = view.page
    assert page.locator(".al-other-words").text_content() == others[0]["words"]
    page.get_by_role("button", name="Show", exact=True).click()
    view.tell(kind="beside", what="show", run="abc", place="there")
    assert page.locator(".al-other .al-panel[data-attractor-place=there]").count() == 1
    page.evaluate("() => window.host.lose()")
    for name in ("Stop", "Show", "Replay", "Timeline"):
        assert page.get_by_role("button", name=name, exact=True).first.is_disabled()
    view.tell(kind="delta", others=[])
    assert page.locator(".al-other").count() == 0


def test_the_answer_of_a_run_stays_and_is_text(open_view):
    view = open_ended(open_view, answer={"node": "plan", "text": "<b>done</b>"})
    assert view.page.locator(".al-answer .al-text-body").text_content() == "<b>done</b>"
    assert view.page.locator(".al-speech").is_hidden()
