"""Views without Jupyter: what a view does by itself, in a bare page."""

from __future__ import annotations

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.views.drawings.marks import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

GRAPH = parse_dot(
    'digraph demo { start [shape=Mdiamond] plan [label="Plan it"] done [shape=Msquare] start -> plan -> done }'
)
LIVE = "showLiveRun(host, el, shareStates(host))"


def open_live(open_view, **options):
    states = {
        "nodes": {"start": {"status": "success"}},
        "edges": {},
        "line": {"status": "running"},
        "tail": {},
    }
    return open_view(
        "live_view", LIVE, svg=render_svg(GRAPH), marks=MARK_PATHS, caption="demo", states=states, **options
    )


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
