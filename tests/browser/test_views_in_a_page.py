"""Views without Jupyter: what a view does by itself, in a bare page."""

from __future__ import annotations

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

GRAPH = parse_dot(
    'digraph demo { start [shape=Mdiamond] plan [label="Plan it"] done [shape=Msquare] start -> plan -> done }'
)
LIVE = "showLiveRun(host, el, shareStates(host))"


def open_live(open_view, **options):
    states = {"nodes": {"start": {"status": "success"}}, "edges": {}, "line": {"status": "running"}, "tail": {}}
    return open_view(
        "live_view", LIVE, svg=render_svg(GRAPH), marks=MARK_PATHS, caption="demo", states=states, **options
    )


@pytest.mark.kind("a browser")
def test_a_view_starts_from_the_truth_and_follows_changes(open_view):
    view = open_live(open_view)
    assert view.sent == [{"kind": "ready"}]
    assert "state-success" in view.page.locator("[data-node=start]").get_attribute("class")
    view.tell(kind="delta", nodes={"plan": {"status": "running"}}, edges={"0": 1})
    assert "state-running" in view.page.locator("[data-node=plan]").get_attribute("class")
    view.set("states", {"nodes": {"plan": {"status": "fail", "reason": "no money"}}, "edges": {}, "line": {}})
    assert "no money" in view.page.locator("[data-node=plan]").get_attribute("aria-label")
    assert view.console == []


def test_a_click_asks_for_the_stage_and_its_texts_are_shown_as_text(open_view):
    view = open_live(open_view)
    view.page.locator("[data-node=plan]").click()
    assert view.sent[-1] == {"kind": "inspect", "node": "plan"}
    view.tell(kind="stage", node="plan", status="success", visit=1, prompt="<img src=x onerror=alert(1)>")
    assert view.page.locator(".al-tab-panel pre").text_content() == "<img src=x onerror=alert(1)>"
    assert view.page.locator(".al-inspector img").count() == 0


DRAWING = "(window.makeDrawing = makeDrawing, window.drawing = makeDrawing(host.get('svg'), host.get('marks'), {}), el.append(drawing.element), 0)"
TYPED = "digraph demo { start [shape=Mdiamond] plan [label=PLAN prompt=PROMPT] done [shape=Msquare] EDGES }"
AS_DRAWN = """(svg) => {
  const text = (drawing) => drawing.element.querySelector("svg").outerHTML
    .replace(/(hatch-[0-9a-f]+)-\\d+/g, "$1").replace(/data-number="\\d+"/, "").replace(/ (style|tabindex|data-lm-suppress-shortcuts)="[^"]*"/g, "");
  const other = makeDrawing(svg, host.get("marks"), {});
  drawing.element.after(other.element);
  other.setNode("plan", drawing.stateOf("plan"));
  const found = [text(drawing), text(other)];
  other.element.remove();
  return found;
}"""


def typed(*, label="Plan", prompt="it", edges="start -> plan -> done"):
    text = TYPED.replace("PLAN", f'"{label}"').replace("PROMPT", f'"{prompt}"').replace("EDGES", edges)
    return render_svg(parse_dot(text))


def test_letters_that_move_nothing_are_written_into_the_drawing_that_is_there(open_view):
    view = open_view("drawing", DRAWING, svg=typed(), marks=MARK_PATHS)
    view.page.evaluate("() => { window.node = document.querySelector('[data-node=plan]'); node.focus(); }")
    view.page.evaluate("() => drawing.setNode('plan', { status: 'running', attempt: 3 })")
    hostile = typed(label="Plan", prompt=r"<g class=\"node x\" data-node=\"y\"> ]]> &amp; </g>")
    for svg in (typed(label="Plot"), typed(prompt="all of it"), hostile):
        assert view.page.evaluate("svg => drawing.update(svg)", svg) is True
        shown, wanted = view.page.evaluate(AS_DRAWN, svg)
        assert shown == wanted
    assert view.page.evaluate("() => node.isConnected && document.activeElement === node")
    assert "state-running" in view.page.locator("[data-node=plan]").get_attribute("class")
    assert view.console == []


@pytest.mark.parametrize(
    "other",
    [
        typed(label="A label that is much wider"),
        typed(edges="start -> plan -> done  plan -> plan"),
        typed(edges='start -> plan -> done [label="ok"]'),
        "no drawing",
        "",
    ],
    ids=["wider", "more edges", "a label", "no drawing", "empty"],
)
def test_whatever_moves_something_is_drawn_anew(open_view, other):
    view = open_view("drawing", DRAWING, svg=typed(), marks=MARK_PATHS)
    before = view.page.locator("svg").first.evaluate("svg => svg.outerHTML")
    assert view.page.evaluate("svg => drawing.update(svg)", other) is False
    assert view.page.locator("svg").first.evaluate("svg => svg.outerHTML") == before
