"""The live view and its drawing, in a bare page: moved, zoomed, searched, walked, heard, and without a kernel."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import parse_dot
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
DEMO = """digraph demo {
  start [shape=Mdiamond]
  plan [label="Plan the change", prompt="Think about the parser first"]
  implement [label="Implement it", prompt="Write the code", max_retries=2]
  tests [shape=parallelogram, label="Run the tests", tool_command="make test"]
  green [shape=diamond, label="Green?"]
  review [shape=hexagon, label="Is the change good?"]
  done [shape=Msquare]
  start -> plan -> implement -> tests -> green
  green -> review [condition="outcome=success"]
  green -> implement [condition="outcome!=success", label="fix"]
  review -> done [label="[A] Approve"]
  review -> implement [label="[R] Request changes"]
}"""


def open_live(open_view, dot=DEMO, states=None, **options):
    states = {"nodes": {}, "edges": {}, "line": {"status": "running"}, "tail": {}, **(states or {})}
    graph = parse_dot(dot)
    values = {"svg": render_svg(graph), "marks": MARK_PATHS, "caption": "demo", "states": states}
    return open_view("live_view", LIVE, **{**values, **options})


FAN = (
    'digraph fan { start [shape=Mdiamond] fan [shape=component, label="Ask four"] '
    'join [shape=tripleoctagon, label="Pick one"] done [shape=Msquare] start -> fan '
    + " ".join(f'w{n} [label="Writer {n}", prompt="Write {n}"] fan -> w{n} -> join' for n in range(4))
    + " join -> done }"
)
LONG = (
    "digraph long { rankdir=TB start [shape=Mdiamond] done [shape=Msquare] "
    + " ".join(f'n{n} [label="Step {n}", prompt="Write part {n} of the report"]' for n in range(40))
    + " start -> "
    + " -> ".join(f"n{n}" for n in range(40))
    + " -> done }"
)


def focused(view):
    return view.page.evaluate("() => document.activeElement.dataset.node || ''")


def scrolled(view):
    return view.page.evaluate("() => document.querySelector('.ad-frame').scrollTop")


def width(view):
    return view.page.evaluate("() => document.querySelector('.ad-sheet svg').getBoundingClientRect().width")


def test_a_drawing_is_walked_along_its_edges_and_a_node_opened_by_keys_alone(open_view):
    view = open_live(open_view)
    keys = view.page.keyboard
    keys.press("Tab")
    assert view.page.evaluate("() => document.activeElement.className") == "ad-frame"
    keys.press("Tab")
    assert focused(view) == "start"
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    assert focused(view) == "implement"
    keys.press("ArrowUp")
    assert focused(view) == "plan"
    keys.press("ArrowUp")
    keys.press("ArrowUp")
    assert focused(view) == "start", "there is nothing above"
    keys.press("ArrowDown")
    keys.press("Enter")
    assert view.sent[-1] == {"kind": "inspect", "node": "plan"}
    assert "selected" in view.page.locator("[data-node=plan]").get_attribute("class")
    keys.press("Escape")
    assert view.page.locator(".node.selected").count() == 0
    assert focused(view) == "plan"
    assert view.page.locator("[data-node][tabindex='0']").count() == 1, "Tab leaves the drawing after one stop"
    assert view.console == []


def test_nodes_are_found_by_label_id_and_prompt_and_enter_goes_on(open_view):
    view = open_live(open_view)
    keys = view.page.keyboard
    keys.press("Tab")
    keys.press("/")
    keys.type("change")
    assert view.page.locator(".ad-found").text_content() == "1/2"
    assert view.page.locator(".is-found-here").get_attribute("data-node") == "plan"
    keys.press("Enter")
    assert view.page.locator(".is-found-here").get_attribute("data-node") == "review"
    view.page.locator(".ad-find").fill("PARSER")
    assert view.page.locator(".is-found").get_attribute("data-node") == "plan", "its prompt says so"
    view.page.locator(".ad-find").fill("<img src=x onerror=alert(1)>")
    assert view.page.locator(".ad-found").text_content() == "none"
    view.page.locator(".ad-find").fill("make test")
    keys.press("Escape")
    assert focused(view) == "tests"
    assert view.page.locator("svg.is-searched").count() == 0


def test_a_drawing_is_zoomed_fitted_dragged_and_follows_until_it_is_moved(open_view):
    view = open_live(open_view, LONG)
    view.page.emulate_media(reduced_motion="reduce")  # it follows in one step then
    frame = view.page.locator(".ad-frame")
    height = frame.bounding_box()["height"]
    assert height <= 800, "a long drawing does not push the notebook away"
    view.tell(kind="delta", nodes={"n30": {"status": "running"}})
    view.page.wait_for_function("() => document.querySelector('.ad-frame').scrollTop > 500")
    box = frame.bounding_box()
    before = scrolled(view)
    view.page.mouse.move(box["x"] + 60, box["y"] + 300)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + 60, box["y"] + 200, steps=4)
    view.page.mouse.up()
    assert scrolled(view) == pytest.approx(before + 100, abs=2)
    assert view.sent == [{"kind": "ready"}], "a drag is no click"
    moved = scrolled(view)
    view.tell(kind="delta", nodes={"n2": {"status": "running"}})
    view.page.wait_for_timeout(400)  # nothing is to happen in it
    assert scrolled(view) == moved
    natural = width(view)
    frame.focus()
    view.page.keyboard.press("+")
    assert width(view) == pytest.approx(natural * 1.25, abs=2)
    view.page.keyboard.press("0")
    assert view.page.evaluate(
        "() => { const frame = document.querySelector('.ad-frame'); return frame.scrollHeight <= frame.clientHeight; }"
    )
    assert view.page.locator("[data-node=n3] .detail").is_hidden(), "specks are not drawn"
    view.page.keyboard.press("1")
    assert view.page.locator("[data-node=n3] .detail").is_visible()
    view.page.keyboard.down("Control")
    view.page.mouse.wheel(0, 300)
    view.page.keyboard.up("Control")
    view.page.wait_for_function(
        f"() => document.querySelector('.ad-sheet svg').getBoundingClientRect().width < {natural - 2}"
    )
    assert frame.bounding_box()["height"] == height, "nothing below has moved"
    assert view.console == []


def test_all_branches_that_speak_are_seen_at_once(open_view):
    view = open_live(open_view, FAN, has_output=True)
    active = {f"w{n}": {"status": "running"} for n in range(4)}
    view.tell(kind="delta", nodes=active, tails={f"w{n}": f"words of {n}" for n in range(4)})
    assert view.page.locator(".al-words").count() == 4
    view.tell(kind="delta", tails={"w1": ", more <b>of</b> it"})
    assert view.page.locator(".al-words-text").nth(1).text_content() == "words of 1, more <b>of</b> it"
    view.tell(kind="delta", nodes={f"w{n}": {"status": "success"} for n in (0, 2, 3)})
    assert view.page.locator(".al-words-name").all_text_contents() == ["Writer 1"]
    view.tell(kind="delta", nodes={"w1": {"status": "success"}})
    assert view.page.locator(".al-words").count() == 1, "the last words stay"
    view.page.locator(".al-words").click()
    assert view.sent[-1] == {"kind": "inspect", "node": "w1"}


@pytest.mark.kind("a browser")
def test_the_states_are_a_table_too_and_those_under_way_are_one_click_away(open_view):
    view = open_live(open_view, FAN)
    view.tell(
        kind="delta",
        nodes={"w0": {"status": "running"}, "w1": {"status": "running"}, "w2": {"status": "fail", "reason": "<i>no"}},
        line={"status": "running", "node": "w1", "more": 1, "stages": 3},
    )
    assert view.page.locator(".al-line").inner_text().split("\n")[:4] == ["running", "w1", "and 1 more", "3 stages"]
    view.page.get_by_text("and 1 more").click()
    assert view.page.locator(".al-table tbody tr:visible th").all_text_contents() == ["Writer 0 (w0)", "Writer 1 (w1)"]
    view.tell(kind="delta", nodes={"w1": {"status": "success", "visits": 1}})
    assert view.page.locator(".al-table tbody tr:visible").count() == 1
    view.page.get_by_label("only active nodes").uncheck()
    row = view.page.locator(".al-table tr", has_text="Writer 2").locator("td")
    assert row.all_text_contents() == ["failed", "", "", "<i>no"]
    view.page.get_by_label("The states as a table").click()
    assert view.page.locator(".al-table").is_hidden()
    view.page.wait_for_function(
        "() => [...document.querySelectorAll('[aria-live]')].some((said) => said.textContent.includes('Writer'))"
    )


@pytest.mark.kind("a browser")
def test_a_lost_kernel_is_said_with_what_to_do_and_nothing_can_be_asked(open_view):
    view = open_live(open_view, directory="runs/demo-1")
    stop = view.page.locator(".al-stop")
    assert stop.is_enabled()
    view.page.evaluate("() => window.host.lose()")
    notice = view.page.locator(".al-lost")
    assert notice.text_content() == (
        'The kernel is gone. This is the last known state. Run.load("runs/demo-1") shows the rest.'
    )
    assert stop.is_disabled()
    assert stop.get_attribute("title") == "The kernel is gone."
    view.shoot("live_view_lost_kernel")
    view.page.locator("[data-node=plan]").click()
    assert "The kernel is gone." in view.page.locator(".al-inspector").text_content()
    assert view.sent == [{"kind": "ready"}], "nobody is asked"
    view.tell(kind="beat")
    assert notice.is_hidden()
    assert stop.is_enabled()


def test_hostile_texts_stay_texts_in_every_part_of_the_live_view(open_view):
    hostile = '"><img src=x onerror=window.hit=1><script>window.hit=1</script>'
    view = open_live(
        open_view,
        'digraph g { start [shape=Mdiamond] a [label="LABEL", prompt="LABEL"] done [shape=Msquare] start -> a -> done }'.replace(
            "LABEL", hostile.replace('"', '\\"')
        ),
        has_output=True,
        directory=hostile,
        caption=hostile,
    )
    state = {"status": "fail", "reason": hostile, "note": hostile, "progress": hostile}
    view.tell(kind="delta", nodes={"a": state}, tails={"a": hostile}, line={"status": "fail", "node": hostile})
    view.page.get_by_label("The states as a table").click()
    view.page.evaluate("() => window.host.lose()")
    view.page.locator("[data-node=a]").click()
    assert view.page.locator("#view img, #view script").count() == 0
    assert view.page.evaluate("() => window.hit") is None


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_of_the_live_view_are_kept_for_looking_at(open_view, dark):
    states = {
        "nodes": {
            "start": {"status": "success"},
            "plan": {"status": "success"},
            "implement": {"status": "running", "attempt": 2, "visits": 2},
            "tests": {"status": "fail", "reason": "exit code 2: 3 of 48 tests failed", "visits": 1},
            "green": {"status": "success"},
        },
        "edges": {"0": 1, "1": 1, "2": 2, "3": 1},
        "line": {"status": "running", "node": "implement", "attempt": 2, "attempts": 3, "stages": 5, "elapsed": 42},
        "tails": {"implement": "The report command takes --json now.\nI change parser.py first, and then the writer."},
    }
    view = open_live(open_view, states=states, has_output=True, dark=dark, height=900)
    view.page.locator(".ad-frame").focus()
    name = f"live_view_{'dark' if dark else 'light'}"
    view.shoot(name)
    view.page.evaluate("() => { document.body.style.zoom = 0.67; }")
    view.page.get_by_label("The states as a table").click()
    view.shoot(f"{name}_67")
    fan = {
        "nodes": {
            "fan": {"status": "running", "progress": "1/4", "note": "wait_all: 1 of 4"},
            "w0": {"status": "success"},
            **{f"w{n}": {"status": "running"} for n in (1, 2, 3)},
        },
        "tails": {
            f"w{n}": f"Writer {n} has begun with its part\nand goes on with the second line of it" for n in (1, 2, 3)
        },
        "line": {"status": "running", "node": "w3", "more": 2, "stages": 2},
    }
    view = open_live(open_view, FAN, states=fan, has_output=True, dark=dark, height=700)
    view.shoot(f"{name}_branches")
    assert view.console == []


DRAWING = (
    "(window.drawing = makeDrawing(host.get('svg'), host.get('marks'),"
    " { onNode: (node) => host.send({ node }), onEdge: (edge) => host.send({ edge }) }),"
    " el.classList.add('attractor-ui'), el.append(window.drawing.element), () => {})"
)
PARENT = """digraph parent {
  start [shape=Mdiamond]
  boss [shape=house, label="Editor", "stack.child_pipeline"=article]
  done [shape=Msquare]
  start -> boss -> done
}"""


def open_drawing(open_view, graph):
    return open_view("drawing", DRAWING, svg=render_svg(graph), marks=MARK_PATHS)


def test_who_shows_a_graph_can_dress_it_and_hears_clicks_on_nodes_and_edges(open_view):
    view = open_drawing(open_view, parse_dot(DEMO))

    def call(script):
        return view.page.evaluate(f"() => {{ const drawing = window.drawing; return {script}; }}")

    assert call("drawing.ids.length") == 7
    assert call("drawing.links.find((link) => link.index === '4')") == {"index": "4", "from": "green", "to": "review"}
    call("drawing.tint('plan', '#ffd6a0', '12.4 s')")
    plan = view.page.locator("[data-node=plan]")
    assert plan.get_attribute("aria-label") == "Plan the change: pending, 12.4 s"
    assert plan.locator(".detail").text_content() == "12.4 s"
    fill = "getComputedStyle(document.querySelector('[data-node=plan] .outline')).fill"
    assert call(fill) == "rgb(255, 214, 160)"
    call("drawing.tint('plan', null)")
    assert call(fill) != "rgb(255, 214, 160)"
    assert plan.locator(".detail").text_content() == "model"
    call(
        "drawing.setBadges('plan', [{ kind: 'breakpoint', words: 'stops here' }, { kind: 'constructor', words: '<b>' }])"
    )
    assert plan.locator(".ad-badge title").all_text_contents() == ["stops here", "<b>"]
    assert "stops here, <b>" in plan.get_attribute("aria-label")
    call("drawing.setEdgeBadges(4, [{ kind: 'breakpoint', words: 'stops here' }])")
    view.shoot("drawing_badges")
    call("drawing.setBadges('plan', [])")
    assert plan.locator(".ad-badge").count() == 0
    plan.click()
    view.page.locator("[data-edge='1'] .ad-reach").click(force=True)
    assert view.sent == [{"node": "plan"}, {"edge": "1"}]
    call("drawing.focus('green')")
    view.page.keyboard.press("e")
    call("drawing.selectEdge('4')")
    view.page.keyboard.press("e")
    assert view.sent[2:] == [{"edge": "4"}, {"edge": "5"}]
    assert view.page.locator("[data-edge='4'].selected").count() == 2
    assert view.console == []


def test_nodes_of_child_runs_have_paths_and_a_drawing_that_cannot_be_read_says_so(open_view):
    article = (
        'digraph article { start [shape=Mdiamond] draft [label="Draft"] done [shape=Msquare] start -> draft -> done }'
    )
    parent = Pipeline(PARENT, pipelines={"article": article})
    view = open_drawing(open_view, parent.graph)
    assert "boss>draft" in view.page.evaluate("() => window.drawing.ids")
    view.page.evaluate("() => window.drawing.setNode('boss>draft', { status: 'running' })")
    assert view.page.locator("[data-child=boss] [data-node=draft].state-running").count() == 1
    view.page.evaluate("() => window.drawing.focus('boss>start')")
    view.page.keyboard.press("ArrowDown")
    assert view.page.evaluate("() => document.activeElement.dataset.node") == "draft"
    broken = open_view("drawing", DRAWING, svg="no drawing <b>", marks=MARK_PATHS)
    assert "could not be read" in broken.page.locator("#view").text_content()
    assert broken.page.evaluate("() => window.drawing.ids") == []
    assert broken.console == []


BURST = """async (last) => {
  const node = document.querySelector("[data-node=plan]");
  let drawn = 0;
  const watch = new MutationObserver((records) => (drawn += records.length));
  watch.observe(node, { attributes: true, attributeFilter: ["aria-label"] });
  const tell = (status, visits) => host.tell({ kind: "delta", nodes: { plan: { status, visits } } });
  for (let visits = 1; visits <= 100; visits += 1) {
    tell(visits % 2 ? "running" : "success", visits);
    await null;
  }
  if (last) host.set("states", { nodes: { plan: { status: "fail", visits: 100 } }, edges: {}, line: {}, tails: {} });
  for (let frame = 0; frame < 4; frame += 1) await new Promise(requestAnimationFrame);
  return [drawn, node.getAttribute("class"), node.querySelector(".counts").textContent];
}"""


@pytest.mark.parametrize("is_set_whole", [False, True], ids=["deltas", "then the whole"])
def test_changes_that_come_faster_than_frames_are_drawn_together(open_view, is_set_whole):
    """A browser that is slower than the kernel does not fall behind, and shows the newest at the end."""
    view = open_live(open_view)
    drawn, classes, counts = view.page.evaluate(BURST, is_set_whole)
    assert drawn <= 4
    assert f"state-{'fail' if is_set_whole else 'success'}" in classes.split()
    assert counts == "100"
    assert view.console == []
