"""Groups, branches and child runs that fold, the small map of a large drawing, and counts that come in a live view."""

from __future__ import annotations

import re

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.dot import parse_dot
from attractor_nb.views.drawings.drawing import AGAIN_PATH, MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from tests.views.drawn_graphs import skipping_chain, wide_fan_out

pytestmark = pytest.mark.browser

DRAWING = (
    "(window.drawing = makeDrawing(host.get('svg'), host.get('marks'), { onNode: (node) => host.send({ node }) }),"
    " el.classList.add('attractor-ui'), el.append(window.drawing.element), () => {})"
)
NESTED = """digraph g {
  rankdir=TB
  start [shape=Mdiamond]
  exit [shape=Msquare]
  subgraph cluster_outer {
    label="Outer group"
    plan [label="Plan it"]
    subgraph cluster_inner { label="Inner review" check [label="Check it all"] passed [shape=diamond] }
    gate [shape=hexagon]
  }
  start -> plan -> check -> passed
  passed -> gate
  passed -> check [condition="outcome!=success"]
  gate -> tell -> exit
}"""


def open_drawing(open_view, graph, **options):
    return open_view("drawing", DRAWING, svg=render_svg(graph), marks=MARK_PATHS, **options)


def focused(view):
    return view.page.evaluate(
        "() => document.activeElement.dataset.node || document.activeElement.getAttribute('aria-label')"
    )


def size(view):
    """Width and height of the drawing."""
    return [float(number) for number in view.page.locator("svg.attractor-graph").get_attribute("viewBox").split()[2:]]


def set_node(view, name, **state):
    view.page.evaluate("([name, state]) => window.drawing.setNode(name, state)", [name, state])


@pytest.mark.parametrize(
    "direction",
    [pytest.param("LR", marks=pytest.mark.kind("a browser")), pytest.param("TB", marks=pytest.mark.campaign)],
)
def test_a_group_folds_by_a_click_to_one_box_that_says_how_its_nodes_stand(open_view, direction):
    view = open_drawing(open_view, parse_dot(NESTED.replace("TB", direction)))
    set_node(view, "check", status="success")
    before = size(view)
    view.page.locator(".panel-title", has_text="Inner review").click()
    box = view.page.locator(".ad-group")
    assert box.get_attribute("aria-label") == "Inner review, 2 nodes folded: 1 success, 1 pending"
    assert "state-running" in box.get_attribute("class").split()
    assert view.page.locator("[data-node=check]").is_hidden()
    assert view.page.locator("[data-node=plan]").is_visible()
    along = direction == "TB"
    assert size(view)[along] < before[along] - 60, "what the group no longer needs is given back"
    view.shoot(f"folding_{direction}")
    set_node(view, "passed", status="fail")
    assert "state-fail" in box.get_attribute("class").split()
    assert "1 failed, 1 success" in box.get_attribute("aria-label")
    box.click()
    assert view.page.locator(".ad-group").count() == 0
    assert view.page.locator("[data-node=check].state-success").is_visible()
    assert size(view) == before
    assert view.console == []


def test_groups_fold_and_open_by_keys_the_inner_before_the_outer(open_view):
    view = open_drawing(open_view, parse_dot(NESTED))
    view.page.evaluate("() => window.drawing.focus('check')")
    view.page.keyboard.press("f")
    assert focused(view).startswith("Inner review")
    view.page.keyboard.press("f")
    assert focused(view).startswith("Outer group, 4 nodes folded")
    view.page.keyboard.press("ArrowDown")
    assert focused(view) == "tell"
    view.page.keyboard.press("ArrowUp")
    assert focused(view).startswith("Outer group")
    view.page.keyboard.press("Enter")
    assert focused(view) == "plan"
    assert view.page.locator(".ad-group").get_attribute("aria-label").startswith("Inner review")
    view.page.keyboard.press("g")
    assert view.page.locator(".ad-group").count() == 0
    view.page.keyboard.press("g")
    assert view.page.locator(".ad-group").count() == 1
    assert view.console == []


@pytest.mark.parametrize(
    ("direction", "ends"), [("LR", ("right", "left", "top", "bottom")), ("TB", ("bottom", "top", "left", "right"))]
)
def test_an_edge_into_a_folded_group_ends_at_its_border_with_a_head(open_view, direction, ends):
    view = open_drawing(open_view, parse_dot(NESTED.replace("TB", direction)))
    view.page.evaluate("() => window.drawing.focus('check')")
    view.page.keyboard.press("f")
    place = view.page.evaluate(
        """([point, border, low, high]) => {
          const head = document.querySelector("[data-edge='1'] .head").getBoundingClientRect();
          const box = document.querySelector(".ad-group .outline").getBoundingClientRect();
          return [head[point] - box[border], head[low] > box[low] && head[high] < box[high]];
        }""",
        list(ends),
    )
    assert place[0] == pytest.approx(0, abs=3)
    assert place[1]
    assert view.page.locator("[data-edge='2'] .line").is_hidden(), "an edge within the group is not seen"


def test_what_is_looked_for_in_a_folded_group_opens_it(open_view):
    view = open_drawing(open_view, parse_dot(NESTED))
    view.page.evaluate("() => window.drawing.focus('check')")
    view.page.keyboard.press("f")
    view.page.keyboard.press("/")
    view.page.keyboard.type("check")
    assert view.page.locator("[data-node=check].is-found-here").is_visible()


def test_branches_that_a_picture_does_not_draw_are_one_box_that_opens(open_view):
    graph = parse_dot(wide_fan_out(20))
    picture = render_svg(graph, is_whole=False)
    more = re.search(r">and (\d+) more<", picture)[1]
    view = open_drawing(open_view, graph, width=900)
    box = view.page.locator(".ad-group")
    assert box.locator(".label").text_content() == f"and {more} more"
    assert view.page.locator("[data-node=b19]").is_hidden()
    places = view.page.evaluate("""() => ["svg.attractor-graph", "[data-node=start]", "[data-node=f]", "[data-node=j]",
      "[data-node=b5]", ".ad-group"].map((name) => {
        const element = document.querySelector(name), part = element.querySelector(":scope > .outline") || element;
        const { left, right } = part.getBoundingClientRect();
        return [left, right];
      })""")
    middles = [sum(place) / 2 for place in places[:4]]
    assert middles == pytest.approx([middles[0]] * 4, abs=1), "what it leaves stays in the middle"
    (_, fifth), (left, right) = places[4:]
    assert right - left < 140, "the box is as wide as its words need"
    assert left - fifth > 10, "it stands apart from the branch before it"
    set_node(view, "b19", status="running")
    assert "state-running" in box.get_attribute("class").split()
    box.focus()
    view.page.keyboard.press("Enter")
    assert view.page.locator("[data-node=b19].state-running").is_visible()
    assert view.console == []


def test_a_child_run_folds_to_its_title_and_sum(open_view):
    article = "digraph article { start [shape=Mdiamond] draft done [shape=Msquare] start -> draft -> done }"
    parent = """digraph parent {
      start [shape=Mdiamond] boss [shape=house, "stack.child_pipeline"=article] done [shape=Msquare]
      start -> boss -> done }"""
    view = open_drawing(open_view, Pipeline(parent, pipelines={"article": article}).graph)
    set_node(view, "boss>draft", status="fail")
    view.page.locator(".child .ad-fold").click()
    box = view.page.locator(".ad-group")
    assert "boss" in box.get_attribute("aria-label")
    assert "1 failed, 2 pending" in box.get_attribute("aria-label")
    assert view.page.locator("[data-child=boss] [data-node=draft]").is_hidden()
    box.click()
    assert view.page.locator("[data-child=boss] [data-node=draft]").is_visible()


def test_a_large_drawing_has_a_map_that_moves_it_and_a_small_one_has_none(open_view):
    small = open_drawing(open_view, parse_dot(skipping_chain(40)))
    assert small.page.locator(".ad-map").count() == 0
    view = open_drawing(open_view, parse_dot(skipping_chain(120)))
    chart = view.page.locator(".ad-map")
    assert chart.get_attribute("aria-hidden") == "true", "keys and the finder do what it does"
    area = chart.bounding_box()
    view.page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 4)
    view.page.mouse.down()
    view.page.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 4)
    view.page.mouse.up()
    bottom = view.page.evaluate(
        "() => { const f = document.querySelector('.ad-frame'); return f.scrollHeight - f.clientHeight - f.scrollTop; }"
    )
    assert bottom < 40
    lens = view.page.locator(".ad-map-view").bounding_box()
    assert lens["y"] + lens["height"] == pytest.approx(area["y"] + area["height"], abs=8)


INK = """() => {
  const canvas = document.querySelector('.ad-map-nodes'), { width, height } = canvas;
  const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
  let [right, bottom] = [0, 0];
  for (let at = 3; at < data.length; at += 4) {
    if (!data[at]) continue;
    const pixel = (at - 3) / 4;
    [right, bottom] = [Math.max(right, pixel % width), Math.max(bottom, Math.floor(pixel / width))];
  }
  return [right / width, bottom / height];
}"""


@pytest.mark.parametrize("rows", [26, 40])
def test_the_map_has_the_shape_of_its_drawing_and_is_full(open_view, pictures, rows):
    lines = "\n".join(f"start -> a{row} -> b{row} -> c{row} -> d{row} -> done" for row in range(rows))
    view = open_drawing(open_view, parse_dot(f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {lines} }}"))
    width, height = size(view)
    chart = view.page.locator(".ad-map")
    chart.wait_for()
    view.page.wait_for_function(f"({INK})()[0] > 0")
    area = chart.bounding_box()
    chart.screenshot(path=str(pictures / f"map-{rows}.png"))
    assert area["height"] == pytest.approx(max(24, area["width"] * height / width), abs=1.5)
    right, bottom = view.page.evaluate(INK)
    assert 0.95 < right <= 1
    assert 0.85 < bottom <= 1


def test_counts_that_come_in_a_live_view_stay_inside_their_node(open_view):
    graph = parse_dot(
        'digraph g { plan [label="Plan the work"] check [shape=diamond] start -> plan -> check -> plan check -> done }'
    )
    view = open_drawing(open_view, graph)
    set_node(view, "plan", status="fail", attempt=3, visits=8000, reason="exit code 2: it could not be read")
    set_node(view, "check", status="success", visits=12)
    plan = view.page.locator("[data-node=plan]")
    assert plan.locator(".counts").text_content() == "8k \u00d73"
    assert plan.locator(".again").get_attribute("d").endswith(AGAIN_PATH)
    assert plan.locator(".detail").text_content().endswith("…")
    view.page.evaluate("() => window.drawing.setEdge('2', 8000)")
    assert view.page.locator("[data-edge='2'] .passes").text_content() == "\u00d78000"
    outside = view.page.evaluate("""() => [...document.querySelectorAll('.counts, .again, .detail')].filter((text) => {
      const box = text.getBoundingClientRect(), node = text.closest('.node').querySelector('.outline').getBoundingClientRect();
      return box.left < node.left || box.right > node.right || box.top < node.top || box.bottom > node.bottom;
    }).length""")
    assert outside == 0
    set_node(view, "plan", status="pending")
    assert plan.locator(".counts").text_content() == ""
    assert plan.locator(".detail").text_content() == "model"


def test_badges_stand_inside_their_node_and_beside_its_words(open_view):
    view = open_drawing(open_view, parse_dot('digraph g { plan [shape=box, label="Plan the work"] }'))
    view.page.evaluate(
        "() => window.drawing.setBadges('plan', [{ kind: 'breakpoint', words: 'stops' }, { kind: 'pinned', words: 'pinned' }])"
    )
    apart = view.page.evaluate("""() => {
      const node = document.querySelector('.outline').getBoundingClientRect();
      const detail = document.querySelector('.detail').getBoundingClientRect();
      const badges = [...document.querySelectorAll('.ad-badge circle')].map((badge) => badge.getBoundingClientRect());
      return badges.every((badge) => badge.left >= node.left && badge.bottom <= node.bottom + 1 && badge.right <= detail.left + 1);
    }""")
    assert apart
