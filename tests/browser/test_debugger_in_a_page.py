"""The debugger's bar in a bare page: breakpoints on the drawing, going on, changes, and hostile texts."""

from __future__ import annotations

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg

pytestmark = pytest.mark.browser

LIVE = "showLiveRun(host, el, shareStates(host))"
DEMO = """digraph demo {
  start [shape=Mdiamond]
  plan [label="Plan the change", prompt="Think about the parser first"]
  implement [label="Implement it", prompt="Write the code"]
  tests [shape=parallelogram, label="Run the tests", tool_command="make test"]
  done [shape=Msquare]
  start -> plan -> implement -> tests -> done
  tests -> implement [condition="outcome=fail", label="fix"]
}"""
HOSTILE = '"><img src=x onerror="window.hit=1"><script>window.hit=1</script>'
STOP = {
    "number": 1,
    "node": "implement",
    "moment": "before",
    "visit": 2,
    "breakpoint": "context.n=3",
    "branch": "",
    "path": "",
    "edge": "tests->implement",
    "status": "fail",
    "words": "before `implement`, visit 2, entered by `tests->implement`",
}
PROMPT = "Write the code.\nKeep to the house's style.\nTouch nothing but the parser."


def state(**changes):
    plain = {"breakpoints": [], "stops": [], "pins": {}, "prompts": {}, "is_pausing": False, "is_over": False}
    return {**plain, **changes}


STANDS = state(
    breakpoints=["implement", "after:tests", "plan->implement", "context.n=3", "on:error"],
    stops=[STOP],
    pins={"plan": "pinned to success", "tests": "mocked"},
    prompts={"implement": "x"},
)
LOOK = {
    "number": 1,
    "prompt": PROMPT,
    "context": [
        {"key": "n", "text": "3", "is_fixed": False},
        {"key": "tests.report", "text": '{"passed": 12, "failed": ["test_parser"]}', "is_fixed": False},
        {"key": "current_node", "text": "implement", "is_fixed": True},
    ],
    "more": 2,
}


@pytest.fixture
def open_bar(open_view):
    """Opens the live view of a run with a debugger."""

    def open_(debugger=STANDS, **options):
        nodes = {
            "start": {"status": "success"},
            "plan": {"status": "success", "visits": 1},
            "implement": {"status": "waiting", "visits": 1, "note": "stopped"},
            "tests": {"status": "fail", "visits": 1, "reason": "the command ended with exit code 2"},
        }
        states = {
            "nodes": nodes,
            "edges": {"0": 1, "1": 1, "2": 1, "4": 1},
            "line": {"status": "waiting", "node": "implement"},
        }
        values = {
            "svg": render_svg(parse_dot(DEMO)),
            "marks": MARK_PATHS,
            "caption": "demo",
            "states": {**states, "debugger": debugger},
        }
        return open_view("live_view", LIVE, **{**values, **options})

    return open_


def sent(view):
    """The requests of the bar."""
    return [
        {name: value for name, value in message.items() if name != "kind"}
        for message in view.sent
        if message["kind"] == "debug"
    ]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_where_it_stands_and_what_can_be_changed_is_shown(open_bar, dark):
    view = open_bar(dark=dark)
    assert sent(view) == [{"call": "look", "branch": ""}], "it asks what it can show"
    view.tell(kind="debug", debugger=STANDS, look=LOOK)
    page = view.page
    page.locator(".db-editor summary").click()
    said = page.locator(".db-said").inner_text()
    assert "Stopped before implement, visit 2, entered by tests→implement" in said
    assert "context.n=3" in said
    badges = page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('[data-node]')].map((node) =>"
        " [node.dataset.node, [...node.querySelectorAll('.ad-badge title')].map((t) => t.textContent)]))"
    )
    assert badges["implement"] == [
        "stopped before it",
        "breakpoint implement, breakpoint plan->implement",
        "another prompt in this run",
    ]
    assert badges["plan"] == ["pinned to success"]
    assert badges["tests"] == ["breakpoint after:tests", "mocked"]
    view.shoot(f"debugger_{'dark' if dark else 'light'}")
    assert view.console == []


@pytest.mark.kind("a browser")
def test_buttons_and_keys_ask_for_steps(open_bar):
    view = open_bar()
    for name in ("Continue", "Step", "Step over", "Pause"):
        view.page.get_by_role("button", name=name, exact=True).click()
    bar = view.page.locator(".db-bar")
    for key in "csop":
        bar.locator(".db-stop").press(key)
    calls = [request["call"] for request in sent(view)][1:]
    assert calls == ["continue", "step", "step_over", "pause"] * 2


def test_the_keys_of_the_bar_work_on_a_node_and_the_drawing_says_so(open_bar):
    view = open_bar()
    node = view.page.locator("[data-node=tests]")
    node.focus()
    for key in "scopb":
        node.press(key)
    calls = [request["call"] for request in sent(view)][1:]
    assert calls == ["step", "continue", "step_over", "pause", "break"]
    assert "s steps" in view.page.locator(".ad-frame").get_attribute("aria-label")
    quiet = open_bar(state())
    quiet.page.locator("[data-node=tests]").press("s")
    assert sent(quiet) == [], "there is no step while nothing stands"


def test_a_breakpoint_has_a_sign_of_its_own(open_bar):
    view = open_bar()
    signs = view.page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('[data-node] .ad-badge')].map((badge) =>"
        " [badge.classList[1], badge.querySelector('path').getAttribute('d')]))"
    )
    assert len({*signs.values()}) == len(signs) == 5, "each kind of badge has another path"
    listed = view.page.locator(".db-point path").first.get_attribute("d")
    assert listed == signs["ad-badge-breakpoint"]
    assert listed.count("Z") == 2, "two bars"


def focus(view):
    """The name of the element that has the focus."""
    return view.page.evaluate(
        "() => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()"
    )


@pytest.mark.parametrize("name", ["Step", "Continue"])
def test_a_step_leaves_the_focus_where_it_was(open_bar, name):
    view = open_bar(state(stops=[STOP]))
    view.tell(kind="debug", debugger=state(stops=[STOP]), look=LOOK)
    view.page.get_by_role("button", name=name, exact=True).press("Enter")
    view.tell(kind="debug", debugger=state())
    view.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert focus(view) == name, "while it goes on"
    assert view.page.get_by_role("button", name=name, exact=True).get_attribute("aria-disabled") == "true"
    view.tell(kind="debug", debugger=state(stops=[{**STOP, "number": 2, "node": "tests"}]))
    assert focus(view) == name
    view.page.keyboard.press("Enter")
    assert [request["call"] for request in sent(view)].count(name.lower()) == 2


def test_a_step_by_key_at_the_place_where_it_stands_goes_on_at_the_next(open_bar):
    view = open_bar(state(stops=[STOP]))
    view.page.locator(".db-stop").press("s")
    view.tell(kind="debug", debugger=state())
    view.tell(kind="debug", debugger=state(stops=[{**STOP, "number": 2, "words": "before `tests`"}]))
    assert focus(view).startswith("Stopped before tests")
    view.page.keyboard.press("s")
    assert [request["call"] for request in sent(view)].count("step") == 2


def test_texts_keep_their_lines_and_who_writes_is_not_disturbed(open_bar):
    lines = "first line\nsecond line\n\n  fourth, indented"
    values = [{"key": "notes", "text": lines, "is_fixed": False}, {"key": "other", "text": "3", "is_fixed": False}]
    view = open_bar(state(stops=[STOP]))
    view.tell(kind="debug", debugger=state(stops=[STOP]), look={**LOOK, "context": values})
    page = view.page
    page.locator(".db-editor summary").click()
    notes, other = (page.get_by_label(f"Value of {key}", exact=True) for key in ("notes", "other"))
    assert notes.input_value() == lines
    notes.press("Control+End")
    notes.type("!")
    notes.press("Tab")
    assert sent(view)[-1] == {"call": "set_context", "key": "notes", "text": f"{lines}!", "branch": ""}
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    added = {"key": "added", "text": "new", "is_fixed": False}
    fresh = [added, {**values[0], "text": f"{lines}!"}, values[1]]
    view.tell(kind="debug", debugger=state(stops=[STOP]), look={**LOOK, "context": fresh})
    assert focus(view) == "Value of other"
    assert other.input_value() == "4", "what is being written stays"
    assert page.get_by_label("Value of added", exact=True).input_value() == "new"
    page.keyboard.press("Control+Enter")
    assert sent(view)[-1] == {"call": "set_context", "key": "other", "text": "4", "branch": ""}
    page.get_by_label("New key").fill("text")
    page.get_by_label("New value").fill("two\nlines")
    page.get_by_label("New value").press("Control+Enter")
    assert sent(view)[-1] == {"call": "set_context", "key": "text", "text": "two\nlines", "branch": ""}


def test_breakpoints_are_set_and_taken_on_the_drawing(open_bar):
    view = open_bar(state(breakpoints=["plan"]))
    node = view.page.locator("[data-node=tests]")
    node.click(modifiers=["Alt"])
    view.page.locator("[data-node=plan]").click(modifiers=["Alt"])
    node.focus()
    node.press("b")
    view.page.get_by_role("button", name="Remove the breakpoint plan").click()
    assert sent(view) == [
        {"call": "break", "text": "tests"},
        {"call": "clear", "text": "plan"},
        {"call": "break", "text": "tests"},
        {"call": "clear", "text": "plan"},
    ]
    assert not [message for message in view.sent if message["kind"] == "inspect"], "Alt-click inspects nothing"


def test_values_prompts_and_pins_are_sent_as_they_are_written(open_bar):
    view = open_bar()
    view.tell(kind="debug", debugger=STANDS, look=LOOK)
    page = view.page
    page.locator(".db-editor summary").click()
    page.get_by_label("Value of n", exact=True).fill("4")
    page.get_by_label("Value of n", exact=True).blur()
    page.get_by_label("Prompt of implement").fill("Look twice.")
    page.locator(".db-prompt").get_by_role("button", name="Set").click()
    page.get_by_label("New key").fill("ok")
    page.get_by_label("New value").fill("true")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Pin", exact=True).click()
    assert sent(view)[1:] == [
        {"call": "set_context", "key": "n", "text": "4", "branch": ""},
        {"call": "set_prompt", "node": "implement", "text": "Look twice."},
        {"call": "set_context", "key": "ok", "text": "true", "branch": ""},
        {"call": "pin", "node": "implement"},
    ]


def test_an_outcome_is_set_after_a_stage_and_each_branch_is_chosen_by_itself(open_bar):
    after = {**STOP, "number": 2, "moment": "after", "branch": "fan/a", "words": "after `tests`: fail"}
    view = open_bar(state(stops=[STOP, after]))
    view.page.get_by_role("button", name="branch fan/a").click()
    view.tell(kind="debug", debugger=state(stops=[STOP, after]), look={**LOOK, "number": 2})
    view.page.locator(".db-editor summary").click()
    view.page.get_by_label("Outcome").select_option("success")
    view.page.get_by_label("Preferred label").fill("fix")
    view.page.locator(".db-outcome").get_by_role("button", name="Set").click()
    view.page.get_by_role("button", name="Step", exact=True).click()
    assert sent(view)[1:] == [
        {"call": "look", "branch": "fan/a"},
        {"call": "set_outcome", "status": "success", "label": "fix", "reason": "", "branch": "fan/a"},
        {"call": "step", "branch": "fan/a"},
    ]
    view.shoot("debugger_branches")


def test_what_is_refused_is_said_and_the_bar_goes_when_nobody_debugs(open_bar):
    view = open_bar()
    view.tell(kind="debug", debugger=STANDS, problem="the key 'outcome' is the engine's own")
    assert "engine's own" in view.page.get_by_role("alert").filter(has_text="engine").inner_text()
    view.tell(kind="delta", debugger=state(is_over=True))
    assert view.page.locator(".db-bar").is_hidden()
    assert view.page.locator(".ad-badge").count() == 0
    quiet = open_bar(None)
    assert quiet.page.locator(".db-bar").is_hidden()
    assert quiet.console == []


def test_a_run_that_nobody_debugs_has_one_button_and_says_nothing(open_bar):
    view = open_bar(state())
    assert view.page.locator(".db-bar").is_hidden()
    shown = [button.inner_text() for button in view.page.locator(".al-line button:visible").all()]
    assert shown == ["Pause", "Stop"]
    view.shoot("debugger_idle")


def test_hostile_texts_are_shown_as_texts(open_bar):
    stop = {**STOP, "words": HOSTILE, "breakpoint": HOSTILE, "branch": HOSTILE, "path": HOSTILE}
    hostile = state(breakpoints=[HOSTILE], stops=[stop], pins={"plan": HOSTILE}, prompts={HOSTILE: HOSTILE})
    look = {
        "number": 1,
        "prompt": HOSTILE,
        "context": [
            {"key": HOSTILE, "text": HOSTILE, "is_fixed": False},
            {"key": HOSTILE, "text": HOSTILE, "is_fixed": True},
        ],
        "more": 0,
    }
    view = open_bar(hostile)
    view.tell(kind="debug", debugger=hostile, look=look, problem=HOSTILE)
    assert view.page.evaluate("() => window.hit") is None
    assert view.page.locator(".db-bar img, .db-bar script").count() == 0
