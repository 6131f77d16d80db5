"""The buttons of the inspector without Jupyter: calls, reasons, one request for a double click, texts that stay texts."""

from __future__ import annotations

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.pipeline.run_actions import InspectorActions
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
HOSTILE = '<img src=x onerror="window.hit=1">'
TEXT = """digraph demo { start [shape=Mdiamond] done [shape=Msquare]
  draft [prompt="Draft <img src=x onerror='window.hit=1'> it"] gate [shape=hexagon]
  start -> draft -> gate gate -> done [label="[Y] Yes"] }"""


@pytest.fixture
def waiting(tmp_path):
    run = Pipeline(TEXT, backend="simulated").run(logs_root=tmp_path / "run", interviewer="deferred")
    run.wait_for_gate("gate", 60)
    yield run
    run.cancel()
    run.result(60)


@pytest.fixture
def opened(open_view, waiting):
    """The live view with the inspector on a stage; ``act`` is what the kernel does with a request."""
    inspector = InspectorActions(waiting, lambda title, start: start())

    def open_(node="draft", *, has_buttons=True, **options):
        states = waiting.view.to_plain() | {"line": {"status": "waiting"}, "tails": {}}
        view = open_view(
            "live_view",
            LIVE,
            svg=render_svg(waiting.graph),
            marks=MARK_PATHS,
            states=states,
            gates=[],
            answers=[],
            refusals={},
            **options,
        )
        view.page.locator(f"[data-node={node}]").click()
        reply = answer_inspection(waiting, {"node": node})
        view.tell(**json.loads(json.dumps(inspector.with_actions(reply) if has_buttons else reply)))
        view.buttons = view.page.locator(".as-buttons").first
        return view

    return open_


def acts(view):
    return [message for message in view.sent if message["kind"] == "act"]


def test_a_page_without_a_kernel_has_no_buttons(opened):
    view = opened(has_buttons=False)
    assert view.page.locator(".as-actions").is_hidden()
    assert view.page.locator(".al-tabs, [role=tabpanel]").first.is_visible()


def test_a_button_that_is_off_can_be_reached_and_says_why(opened):
    view = opened()
    rewind = view.page.get_by_role("button", name="Rewind to before this stage")
    assert rewind.get_attribute("aria-disabled") == "true"
    rewind.focus()
    rewind.press("Enter")
    assert acts(view) == []
    assert "The run waits at gate: answer, or stop it" in rewind.get_attribute("title")
    assert "The run waits at gate: answer, or stop it" in view.page.locator(".as-panel").text_content()
    view.page.locator("[data-node=start]").press("Enter")
    assert view.page.locator(".as-actions").is_hidden(), "nothing is known of it yet"


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, marks=pytest.mark.kind("a browser")), pytest.param(True, marks=pytest.mark.campaign)],
    ids=["light", "dark"],
)
def test_what_is_typed_stands_in_the_call_and_goes_by_keys(opened, dark):
    view = opened(dark=dark)
    view.page.get_by_role("button", name="Edit prompt and fork from here", exact=True).press("Enter")
    field = view.page.locator(".as-prompt")
    assert field.evaluate("field => field === document.activeElement")
    field.fill('Say "no"\nplainly')
    call = view.page.locator(".as-call pre").text_content().splitlines()[-1]
    assert call == 'fork = run.fork("draft", prompt="Say \\"no\\"\\nplainly")'
    assert compile(call, "", "exec")
    view.shoot(f"acting-{'dark' if dark else 'light'}")
    field.press("Control+Enter")
    field.press("Control+Enter")
    (request,) = acts(view)
    assert (request["call"], request["node"], request["visit"]) == ("fork", "draft", 1)
    assert request["prompt"] == 'Say "no"\nplainly'
    assert view.console == []


def test_an_unchanged_prompt_is_not_sent_and_a_double_click_is_one_request(opened):
    view = opened()
    view.page.get_by_role("button", name="Edit prompt and fork from here", exact=True).click()
    view.page.get_by_role("button", name="Fork and run").dblclick()
    (request,) = acts(view)
    assert "prompt" not in request
    assert view.page.get_by_role("button", name="Starting…").get_attribute("aria-disabled") == "true"


def test_a_refusal_stands_under_the_field_and_hostile_words_stay_words(opened, waiting):
    view = opened()
    view.page.get_by_role("button", name="Edit prompt and fork from here", exact=True).click()
    field = view.page.locator(".as-prompt")
    field.fill(HOSTILE)
    view.page.get_by_role("button", name="Fork and run").click()
    actions = InspectorActions(waiting).actions("draft", 1)
    view.tell(kind="acted", node="draft", visit=1, branch="", actions=actions, problem=f"no {HOSTILE}\nhint: {HOSTILE}")
    alert = view.page.locator(".as-problem:visible")
    assert alert.text_content() == f"no {HOSTILE}\nhint: {HOSTILE}"
    assert alert.get_attribute("role") == "alert"
    assert field.input_value() == HOSTILE
    view.page.get_by_role("button", name="Fork and run").click()
    assert len(acts(view)) == 2, "it can be tried again"
    assert view.page.evaluate("() => window.hit") is None
    assert view.page.locator(".al-inspector img").count() == 0


def test_escape_closes_the_form_and_not_the_inspector_and_what_was_typed_is_there_again(opened):
    view = opened()
    button = view.page.get_by_role("button", name="Edit prompt and fork from here", exact=True)
    button.click()
    view.page.locator(".as-prompt").fill("Half of a thought")
    view.page.locator(".as-prompt").press("Escape")
    assert view.page.locator(".as-prompt").count() == 0
    assert view.page.locator(".al-inspector").is_visible()
    assert button.evaluate("button => button === document.activeElement")
    button.click()
    assert view.page.locator(".as-prompt").input_value() == "Half of a thought"


def test_what_begins_has_its_place_beneath(opened):
    view = opened(beneath=[])
    view.set("beneath", [{"place": "k1", "title": f"Fork before {HOSTILE}"}])
    assert view.page.locator(".an-title").text_content() == f"Fork before {HOSTILE}"
    assert view.page.locator("[data-attractor-place=k1]").count() == 1
    assert view.page.evaluate("() => window.hit") is None


def test_when_the_run_stands_otherwise_the_buttons_are_asked_about_again(opened, driver):
    view = opened()
    view.tell(kind="delta", line={"status": "success", "is_ended": True})
    assert [(request["call"], request["node"]) for request in acts(view)] == [("look", "draft")]
    view.tell(kind="delta", line={"status": "success", "is_ended": True, "is_over": True})
    driver.wait_until(lambda: len(acts(view)) == 2, 10, "the next frame, which draws the second change")
    assert [(request["call"], request["node"]) for request in acts(view)] == [("look", "draft")] * 2


def test_a_stage_is_saved_by_one_click_once_the_run_has_ended(opened, waiting):
    view = opened()
    assert view.page.get_by_role("button", name="Save as row").count() == 0
    waiting.answer("gate", "Yes")
    waiting.result(60)
    inspector = InspectorActions(waiting)
    view.tell(**inspector.answer({"call": "look", "node": "draft", "visit": 1}))
    save = view.page.get_by_role("button", name="Save as row in rows.jsonl")
    save.click()
    (request,) = acts(view)
    assert (request["call"], request["node"], request["visit"]) == ("save", "draft", 1)
    view.tell(**inspector.answer(request))
    assert "check it" in view.page.locator(".as-said").text_content()
    assert "save_rows(" in view.page.locator(".as-call pre").text_content()
    view.shoot("acting-save")
    assert view.console == []
