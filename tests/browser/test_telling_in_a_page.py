"""The field of the inspector that tells a running stage something: one request, its answer, what stays typed."""

from __future__ import annotations

import json
import threading

import pytest

from attractor_nb import Pipeline
from attractor_nb.pipeline.run_actions import InspectorActions
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
TEXT = """digraph demo { start [shape=Mdiamond] done [shape=Msquare] draft [prompt="Draft it"] check [prompt="Check it"]
  count [shape=parallelogram, tool_command="true"] start -> draft -> check -> count -> done }"""
HOSTILE = '<img src=x onerror="window.hit=1">'


@pytest.fixture
def running(tmp_path):
    """A run whose stage ``draft`` is under way."""
    reached, free = threading.Event(), threading.Event()

    def answer(node, prompt, context):
        reached.set()
        assert free.wait(60)
        return "done"

    run = Pipeline(TEXT, backend=answer).run(logs_root=tmp_path / "run", trust=True)
    assert reached.wait(60)
    yield run
    free.set()
    run.result(60)


@pytest.fixture
def opened(open_view, running):
    """The live view with the inspector on a stage; ``answer`` is what the kernel does with the last request."""
    inspector = InspectorActions(running)

    def open_(node="draft", **options):
        states = running.view.to_plain() | {"line": {"status": "running"}, "tails": {}}
        view = open_view(
            "live_view", LIVE, svg=render_svg(running.graph), marks=MARK_PATHS, states=states, gates=[], answers=[],
            refusals={}, **options,
        )  # fmt: skip
        view.page.locator(f"[data-node={node}]").click()
        view.tell(**json.loads(json.dumps(inspector.with_actions(answer_inspection(running, {"node": node})))))
        view.field = view.page.get_by_label("Tell this stage something")
        view.button = view.page.get_by_role("button", name="Tell", exact=True)
        return view

    return open_


def acts(view):
    return [message for message in view.sent if message["kind"] == "act" and message["call"] == "tell"]


def test_what_is_typed_is_told_once_and_the_answer_says_how_it_reaches_the_model(opened, running):
    view = opened()
    assert view.button.get_attribute("aria-disabled") == "true", "nothing is typed"
    view.field.fill(HOSTILE)
    view.field.press("Control+Enter")
    view.field.press("Control+Enter")
    view.button.press("Enter")
    (request,) = acts(view)
    assert (request["node"], request["text"]) == ("draft", HOSTILE)
    view.tell(**json.loads(json.dumps(InspectorActions(running).answer(request))))
    said = view.page.locator(".as-message [role=status]")
    assert said.text_content() == "queued for the next attempt of draft"
    assert view.field.input_value() == ""
    assert (
        view.page.locator(".as-message .as-call pre").text_content().endswith(f'tell("draft", {json.dumps(HOSTILE)})')
    )
    asked = view.sent[-1]
    assert (asked["kind"], asked["node"]) == ("inspect", "draft"), "what the stage was told is asked for"
    view.tell(**json.loads(json.dumps(answer_inspection(running, {"node": "draft"}))))
    told = view.page.get_by_role("region", name="Messages")
    assert HOSTILE in told.text_content()
    assert "not received yet" in told.text_content()
    assert view.page.evaluate("window.hit") is None
    view.shoot("telling")
    assert view.console == []


def test_a_refusal_stands_under_the_field_and_what_was_typed_stays(opened):
    view = opened()
    view.field.fill("Use two nails")
    view.button.click()
    view.tell(kind="acted", call="tell", node="draft", visit=1, branch="", problem="the run has ended")
    assert view.page.locator(".as-message [role=alert]").text_content() == "the run has ended"
    assert view.field.input_value() == "Use two nails"
    view.button.click()
    assert len(acts(view)) == 2


@pytest.mark.parametrize(("node", "is_shown"), [("check", True), ("count", False), ("start", False)])
def test_only_a_model_stage_that_receives_messages_has_the_field(opened, node, is_shown):
    assert opened(node).field.is_visible() is is_shown


def test_what_was_begun_stays_with_its_stage(opened, running):
    view = opened()
    view.field.fill("Use two nails")
    for node, text in (("check", ""), ("draft", "Use two nails")):
        view.page.locator(f"[data-node={node}]").click()
        view.tell(**json.loads(json.dumps(answer_inspection(running, {"node": node}))))
        assert view.field.input_value() == text
