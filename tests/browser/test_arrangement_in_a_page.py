"""The parts of a run on a laptop and on a narrow page: they are in sight, and nothing moves what is looked at."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import InterviewStarted
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.shown_questions import plain_question

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
LAPTOP = {"width": 1366, "height": 768}
NARROW = {"width": 640, "height": 768}
PLAN = "# Plan\n\n1. Add `--json` to the report command.\n2. Write what the table shows.\n" * 6
STAGE = {
    "kind": "stage",
    "status": "success",
    "visit": 1,
    "attempt": 1,
    "prompt": "Write it.\n" * 20,
    "response": "It is written.",
}


def chain(count):
    """Stages one after the other, with a question before the last."""
    stages = " ".join(f'n{n} [label="Step {n}", prompt="Write part {n}"]' for n in range(count))
    way = " -> ".join(("start", *(f"n{n}" for n in range(count)), "ask", "done"))
    return (
        f'digraph g {{ start [shape=Mdiamond] {stages} ask [shape=hexagon, label="Good?"] done [shape=Msquare] {way} }}'
    )


def fan(count):
    branches = " ".join(f'w{n} [label="Writer {n}", prompt="Write {n}"] fan -> w{n} -> join' for n in range(count))
    return (
        "digraph g { start [shape=Mdiamond] fan [shape=component] join [shape=tripleoctagon] "
        f"ask [shape=hexagon] done [shape=Msquare] start -> fan {branches} join -> ask -> done }}"
    )


TALL = chain(9).replace("{", "{ rankdir=TB", 1)
GRAPHS = {"12": chain(9), "tall": TALL, "40": chain(37), "200": chain(197), "20-branches": fan(20)}


def question():
    event = InterviewStarted(
        question="Is the plan good enough to implement?",
        stage="ask",
        question_id="ask:1",
        kind="multiple_choice",
        options=(("A", "[A] Approve"), ("R", "[R] Request changes")),
        metadata={"review": [{"name": "plan/response.md", "text": PLAN, "note": ""}]},
    )
    event.time = time.time() - 20
    return plain_question(event)


@pytest.fixture
def open_run(open_view):
    """Opens the live view of a run, and something below it, as a notebook has."""

    def open_(dot, *, asks=True, **options):
        line = {"status": "running", "node": "n1", "attempt": 2, "attempts": 3, "stages": 12}
        line |= {"elapsed": 12.4, "tokens": 1240, "price": "$0.003"}
        nodes = {"n0": {"status": "success"}, "n1": {"status": "running"}}
        debugger = {"breakpoints": [], "stops": [], "pins": {}, "prompts": {}, "is_pausing": False, "is_over": False}
        states = {"nodes": nodes, "edges": {}, "line": line, "tails": {"n1": "words"}, "debugger": debugger}
        values = {"svg": render_svg(parse_dot(dot)), "marks": MARK_PATHS, "caption": "demo", "states": states}
        gates = {"gates": [question()] if asks else [], "answers": [], "refusals": {}, "has_gates": True}
        view = open_view("live_view", LIVE, **{**values, **gates, "has_output": True, **options})
        view.page.evaluate(
            "() => { const below = document.createElement('p'); below.id = 'below'; below.textContent = 'The next cell';"
            " below.style.height = '2000px'; document.body.append(below); }"
        )
        view.page.wait_for_function("() => document.querySelector('.ad-frame').style.height")  # it has its place
        return view

    return open_


def box(view, selector):
    """The box of an element in the window."""
    return view.page.locator(selector).locator("visible=true").first.bounding_box()


def is_in_sight(view, selector):
    """True if all of an element is in the window, and nothing lies over its middle."""
    place, size = box(view, selector), view.page.viewport_size
    inside = place["y"] >= 0 and place["y"] + place["height"] <= size["height"]
    middle = [place["x"] + place["width"] / 2, place["y"] + place["height"] / 2]
    on_top = view.page.evaluate(
        "([x, y, wanted]) => Boolean(document.elementFromPoint(x, y)?.closest(wanted))", [*middle, selector]
    )
    return inside and on_top and place["x"] >= 0 and place["x"] + place["width"] <= size["width"]


def show_stage(view, node):
    view.page.locator(f"[data-node={node}]").first.click()
    view.tell(**STAGE, node=node)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("dot", GRAPHS.values(), ids=GRAPHS)
def test_on_a_laptop_question_line_and_buttons_are_in_sight_with_the_drawing(open_run, dot, dark, request):
    view = open_run(dot, dark=dark, **LAPTOP)
    for part in (".al-stop", ".db-pause", ".al-word", ".ag-title", ".attractor-choice"):
        assert is_in_sight(view, part), part
    frame = box(view, ".ad-frame")
    assert frame["y"] + frame["height"] <= LAPTOP["height"]
    view.shoot(f"arrangement_{request.node.callspec.id}")
    assert view.console == []


@pytest.mark.parametrize(("name", "node"), [("tall", "n0"), ("40", "n0"), ("200", "n0"), ("20-branches", "w1")])
def test_on_a_laptop_card_and_inspector_stand_beside_the_drawing(open_run, name, node):
    view = open_run(GRAPHS[name], **LAPTOP)
    show_stage(view, node)
    frame, card, inspector = (box(view, part) for part in (".ad-frame", ".ag-card", ".al-inspector"))
    assert card["x"] >= frame["x"] + frame["width"]
    assert inspector["x"] >= frame["x"] + frame["width"]
    assert is_in_sight(view, ".al-inspector-title")
    assert is_in_sight(view, ".attractor-choice")
    view.shoot(f"arrangement_inspector_{name}")


@pytest.mark.parametrize("size", [LAPTOP, NARROW], ids=["laptop", "narrow"])
def test_line_buttons_and_what_was_clicked_stay_in_sight_while_one_scrolls(open_run, size):
    view = open_run(GRAPHS["40"], **size)
    show_stage(view, "n0")
    view.page.mouse.wheel(0, 0)
    view.page.evaluate("() => window.scrollBy(0, document.querySelector('.ad-frame').getBoundingClientRect().top - 20)")
    for part in (".al-stop", ".al-word", ".al-inspector-title"):
        assert is_in_sight(view, part), part


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "node", "size"),
    [("12", "n1", LAPTOP), ("12", "n1", NARROW), ("20-branches", "w1", NARROW)],
    ids=["12-laptop", "12-narrow", "20-branches-narrow"],
)
def test_around_a_flat_drawing_nothing_lies_over_card_or_inspector(open_run, name, node, size, dark, request):
    view = open_run(GRAPHS[name], dark=dark, **size)
    show_stage(view, node)
    assert is_in_sight(view, f"[data-node={node}]")
    assert is_in_sight(view, ".al-inspector-title")
    view.shoot(f"arrangement_flat_{request.node.callspec.id}")
    for top in (0, 250, 5000):
        view.page.evaluate("(top) => window.scrollTo(0, top)", top)
        card, frame, inspector = (box(view, part) for part in (".al-questions", ".ad-frame", ".al-inspector"))
        rows = [[frame], [card, inspector]] if size is LAPTOP else [[card], [frame], [inspector]]
        assert all(one["y"] == row[0]["y"] for row in rows for one in row)
        assert all(left["x"] + left["width"] <= right["x"] for row in rows for left, right in pairwise(row))
        for upper, lower in pairwise(rows):
            assert max(one["y"] + one["height"] for one in upper) <= lower[0]["y"]


@pytest.mark.parametrize("node", ["n0", "n9", "n36"])
def test_on_a_narrow_page_what_was_clicked_and_its_inspector_are_in_sight(open_run, node):
    view = open_run(GRAPHS["40"], **NARROW)
    show_stage(view, node)
    for part in (f"[data-node={node}]", ".al-inspector-title"):
        assert is_in_sight(view, part), part


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_on_a_narrow_page_the_card_is_above_the_drawing(open_run, dark):
    view = open_run(GRAPHS["12"], dark=dark, **NARROW)
    card, frame = box(view, ".ag-card"), box(view, ".ad-frame")
    assert card["y"] + card["height"] <= frame["y"]
    for part in (".al-stop", ".db-pause", ".al-word", ".al-node", ".ag-title", ".attractor-choice"):
        assert is_in_sight(view, part), part
    assert view.page.evaluate("() => document.documentElement.scrollWidth") <= NARROW["width"]
    view.shoot(f"arrangement_narrow_{'dark' if dark else 'light'}")


@pytest.mark.parametrize("is_read", [False, True], ids=["", "read"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("size", [LAPTOP, NARROW], ids=["laptop", "narrow"])
def test_neither_a_stage_nor_the_end_moves_what_is_below(open_run, name, size, is_read):
    """Also while an inspector is read: the answer and the buttons of the end come into rooms that are there."""
    view = open_run(GRAPHS[name], asks=False, has_beside=True, **size)
    if is_read:
        show_stage(view, "n1" if "n1" in GRAPHS[name] else "w1")
    view.page.evaluate("() => window.scrollTo(0, 60)")
    parts = ["#below", ".ad-frame", *([".al-inspector-title"] if is_read else [])]
    places = [box(view, part) for part in parts]
    view.tell(kind="delta", nodes={"n1": {"status": "success"}}, tails={"n1": "more\nwords\n" * 30})
    line = {"status": "success", "is_ended": True, "stages": 200, "elapsed": 99, "tokens": 123456}
    answer = {"node": "done", "text": "# It is done\n\nAll of it.\n" * 30, "shown": None}
    view.tell(kind="delta", line=line, answer=answer)
    view.set("none", "")
    view.page.locator(".al-answer").wait_for()
    assert view.page.get_by_role("button", name="Replay", exact=True).is_visible()
    assert view.page.evaluate("() => window.scrollY") == 60
    assert [box(view, part) for part in parts] == places


@pytest.mark.parametrize("size", [LAPTOP, NARROW], ids=["laptop", "narrow"])
def test_the_room_of_the_words_is_low_and_says_what_it_is_for(open_run, size):
    nodes = {"n1": {"status": "running"}}
    states = {"nodes": nodes, "edges": {}, "line": {"status": "running"}, "tails": {}}
    view = open_run(GRAPHS["12"], asks=False, has_beside=True, states=states, **size)
    said = "() => getComputedStyle(document.querySelector('.al-speech'), '::before').content"
    assert "What stages say" in view.page.evaluate(said)
    assert box(view, ".al-speech")["height"] < 100
    view.shoot(f"arrangement_nothing_said_{size['width']}")
    view.tell(kind="delta", tails={"n1": "words"})
    assert view.page.evaluate(said) == "none"


def test_a_run_that_had_ended_and_said_nothing_keeps_no_room_for_words(open_run):
    states = {"nodes": {}, "edges": {}, "line": {"status": "fail", "is_ended": True}, "tails": {}}
    view = open_run(GRAPHS["12"], asks=False, states=states, **NARROW)
    assert view.page.locator(".al-speech").is_hidden()


@pytest.mark.parametrize("name", ["tall", "40", "200"])
def test_a_question_on_a_laptop_does_not_move_the_drawing_or_what_is_below(open_run, name):
    view = open_run(GRAPHS[name], asks=False, **LAPTOP)
    before = box(view, ".ad-frame"), box(view, "#below")
    view.set("gates", [question()])
    assert is_in_sight(view, ".attractor-choice")
    assert (box(view, ".ad-frame"), box(view, "#below")) == before


def test_a_flat_drawing_keeps_the_whole_line_and_stays_where_it_is(open_run):
    view = open_run(GRAPHS["12"], asks=False, **LAPTOP)
    before = box(view, ".ad-frame")
    view.set("gates", [question()])
    assert box(view, ".ad-frame") == before
    assert box(view, ".ag-card")["y"] > before["y"] + before["height"]


def test_the_drawing_is_reached_first_by_keys_then_the_choices(open_run):
    view = open_run(GRAPHS["12"], **LAPTOP)
    order = []
    for _ in range(14):
        view.page.keyboard.press("Tab")
        order.append(view.page.evaluate("() => document.activeElement.classList[0]"))
    kept = [name for name in order if name in {"ad-frame", "node", "attractor-choice", "al-stop"}]
    assert kept[:2] == ["ad-frame", "node"], order
    assert order.index("ad-frame") < order.index("al-button")
    view.page.keyboard.press("Escape")


def test_beside_a_narrow_drawing_its_tools_have_room(open_run):
    view = open_run(chain(2).replace("{", "{ rankdir=TB", 1), **LAPTOP)
    view.page.locator(".ad-frame").hover()
    nodes = [box(view, f"[data-node={node}]") for node in ("start", "n0", "n1")]
    tools = box(view, ".ad-tools")
    assert all(node["x"] + node["width"] <= tools["x"] for node in nodes)


@pytest.mark.parametrize("size", [LAPTOP, NARROW], ids=["laptop", "narrow"])
def test_the_tools_of_a_drawing_cover_no_node_that_has_the_focus(open_run, size):
    view = open_run(chain(3).replace("{", "{ rankdir=LR", 1), asks=False, **size)
    covered = """(id) => {
      const [tools, node] = [".ad-tools", `[data-node=${id}] .outline`].map((name) => document.querySelector(name).getBoundingClientRect());
      return tools.left < node.right && node.left < tools.right && tools.top < node.bottom && node.top < tools.bottom;
    }"""
    for node in ("start", "n0", "n2", "ask", "done"):
        view.page.locator(f"[data-node={node}]").focus()
        assert not view.page.evaluate(covered, node), node
    view.page.wait_for_timeout(200)  # they fade in
    view.shoot(f"arrangement_tools_{size['width']}")
