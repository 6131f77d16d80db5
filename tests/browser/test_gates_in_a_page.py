"""Cards of gates in a bare page: choices, keys, text, forms, material, time, refusals; light and dark."""

from __future__ import annotations

import time
from enum import Enum
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from attractor_nb.handlers.named_models import named_form
from attractor_nb.model.events import InterviewStarted
from attractor_nb.model.graph import Node
from attractor_nb.views.shown_questions import plain_question

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=\"document.title='hit'\"><script>document.title='hit'</script>"
PLAN = """# Plan

1. Add `--json` to the report command, beside `--csv`.
2. Write what the table shows, one object for each row.
3. Test: an empty report, a report with one row, names in other scripts.

Not in this change: streaming, a schema, the old `--format` option.
"""


class Colour(Enum):
    GREEN = "green"
    RED = "red"


class Review(BaseModel):
    score: int = Field(ge=0, le=10, description="10 is ready to ship")
    summary: str
    effort_days: float | None = None
    is_urgent: bool = False
    risk: Literal["low", "middle", "high"] = "low"
    colour: Colour
    findings: list[str] = []


FORM = named_form(Node("gate", {"human.form": "Review"}), {"Review": Review}).to_plain()


def question(
    key="review:1", kind="multiple_choice", options=None, title="Is the plan good enough to implement?", **more
):
    options = (("A", "[A] Approve"), ("R", "[R] Request changes"), ("S", "Start over")) if options is None else options
    about = more.pop("about", "")
    event = InterviewStarted(question=title, stage="review", question_id=key, kind=kind, options=options, **more)
    event.time = time.time() - 20
    return plain_question(event, about=about)


def open_gates(open_view, *questions, **options):
    values = {"answers": [], "refusals": {}, "shows_all": False, "has_gates": True, "none": "", **options}
    return open_view("gates_view", GATES, gates=list(questions), **values)


GATES = "showGates(host, el)"
REVIEWED = {"review": [{"name": "plan/response.md", "text": PLAN, "note": ""}]}


@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, marks=pytest.mark.kind("a browser")), pytest.param(True, marks=pytest.mark.campaign)],
    ids=["light", "dark"],
)
def test_a_card_with_form_and_material_is_filled_in_and_sent(open_view, dark):
    asked = question(
        form=FORM,
        metadata={**REVIEWED, "detail": "Look at the tests first.\nThen at the words."},
        deadline=time.time() + 400,
    )
    view = open_gates(
        open_view, asked, dark=dark, answers=[{"is_answered": True, "words": "Request changes, by ada, after 12 s"}]
    )
    page = view.page
    assert page.locator(".attractor-choice").all_text_contents() == ["Approve", "Request changes", "Start over"]
    assert page.locator(".attractor-choice u").all_text_contents() == ["A", "R", "S"]
    assert "min" in page.locator(".ag-time-text").text_content()
    assert page.locator(".ag-material").get_attribute("open") is not None
    page.get_by_label("score").fill("8")
    page.get_by_label("summary").fill("Clear and small.")
    page.get_by_label("risk").select_option("middle")
    page.get_by_label("colour").select_option("red")
    page.get_by_label("Findings").fill("no test of an empty report\n\nnames")
    page.get_by_placeholder("Comment (optional)").fill("on Monday")
    view.shoot(f"gate-form-{'dark' if dark else 'light'}", ".attractor-gate")
    page.locator(".attractor-choice").first.click()
    assert view.sent == [
        {
            "kind": "answer",
            "gate": "review:1",
            "choice": "A",
            "text": "on Monday",
            "form": {
                "score": 8,
                "summary": "Clear and small.",
                "is_urgent": False,
                "risk": "middle",
                "colour": "red",
                "findings": ["no test of an empty report", "names"],
            },
        }
    ]
    assert page.locator(".attractor-choice:enabled").count() == 0
    assert view.console == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_what_is_wrong_is_said_at_the_field_and_the_card_can_be_sent_again(open_view, dark):
    view = open_gates(open_view, question(form=FORM), dark=dark)
    page = view.page
    page.get_by_label("score").fill("many")
    page.locator(".attractor-choice").first.click()
    assert view.sent[0]["form"]["score"] == "many"
    problems = {"score": "Input should be a valid integer", "summary": "Field required", "": "all together will not do"}
    view.set("refusals", {"review:1": {"message": "", "fields": problems, "is_final": False}})
    wrong = page.locator(".ag-field.is-wrong .ag-problem").all_text_contents()
    assert wrong == ["Input should be a valid integer", "Field required"]
    assert page.get_by_label("score").get_attribute("aria-invalid") == "true"
    assert page.evaluate("document.activeElement === document.querySelector('.is-wrong .ag-input')")
    assert "all together will not do" in page.locator(".ag-form").text_content()
    view.shoot(f"gate-refused-{'dark' if dark else 'light'}", ".attractor-gate")
    page.get_by_label("score").fill("7")
    page.locator(".attractor-choice").first.click()
    assert view.sent[1]["form"]["score"] == 7


def test_a_key_chooses_unless_somebody_types(open_view):
    view = open_gates(open_view, question())
    text = view.page.get_by_placeholder("Comment (optional)")
    text.press("r")
    assert view.sent == []
    assert text.input_value() == "r"
    view.page.locator(".ag-card").focus()
    view.page.keyboard.press("r")
    assert view.sent[0]["choice"] == "R"


def test_several_are_picked_by_boxes_and_words_are_sent_with_control_enter(open_view):
    view = open_gates(open_view, question(kind="multi_select"))
    view.page.get_by_label("Approve").check()
    view.page.get_by_label("Start over").check()
    view.page.get_by_text("Send").click()
    assert view.sent[0]["choice"] == "A,S"
    words = open_gates(open_view, question(kind="freeform", options=()))
    field = words.page.get_by_placeholder("Your answer")
    field.fill("call it report")
    field.press("Control+Enter")
    assert (words.sent[0]["choice"], words.sent[0]["text"]) == ("", "call it report")


TAKES_LINES = """() => document.addEventListener("keydown", (event) => {
  event.target.addEventListener("beforeinput", (input) => {
    if (input.inputType === "insertLineBreak") input.preventDefault();
  }, { once: true });
})"""


def test_enter_makes_a_line_where_a_host_takes_line_breaks_from_cells(open_view):
    """As JupyterLab does, so that Shift+Enter leaves no empty line in a cell's text."""
    view = open_gates(open_view, question())
    view.page.evaluate(TAKES_LINES)
    field = view.page.locator(".ag-text")
    field.focus()
    view.page.keyboard.type("one")
    view.page.keyboard.press("Enter")
    view.page.keyboard.type("two")
    assert field.input_value() == "one\ntwo"


def test_yes_or_no_has_two_buttons(open_view):
    view = open_gates(open_view, question(kind="yes_no", options=()))
    view.page.locator(".ag-card").focus()
    view.page.keyboard.press("n")
    assert view.sent[0]["choice"] == "N"


def test_one_question_after_the_other_and_a_line_for_each_that_is_over(open_view):
    view = open_gates(open_view, question(), question("other:1", title="And the tests?"))
    assert view.page.locator(".ag-card").count() == 1
    assert view.page.locator(".ag-more").text_content() == "1 more question waits"
    view.set("answers", [{"is_answered": True, "words": "answered elsewhere: Approve, by a call, after 2 s"}])
    view.set("gates", [question("other:1", title="And the tests?")])
    assert view.page.locator(".ag-title").text_content() == "And the tests?"
    assert "answered elsewhere" in view.page.locator(".ag-answers").text_content()
    view.set("gates", [])
    assert view.page.locator(".ag-card").count() == 0
    assert "is-open" not in view.page.locator(".attractor-gate").get_attribute("class")


def test_what_is_being_typed_stays_while_another_question_comes_and_goes(open_view):
    view = open_gates(open_view, question(), shows_all=True)
    view.page.get_by_placeholder("Comment (optional)").fill("half a sen")
    view.set("gates", [question(), question("other:1")])
    view.set("gates", [question()])
    assert view.page.get_by_placeholder("Comment (optional)").input_value() == "half a sen"


def test_a_kernel_that_takes_no_answer_is_named_with_the_way_on(open_view):
    asked = {**question(), "resume": 'Run.load("runs/x").resume()'}
    view = open_gates(open_view, asked)
    view.page.locator(".attractor-choice").first.click()
    view.page.wait_for_function("document.querySelector('.ag-refusal').textContent !== ''", timeout=60_000)
    words = view.page.locator(".ag-refusal").text_content()
    assert "busy, or was restarted" in words
    assert 'Run.load("runs/x").resume()' in words
    assert view.page.locator(".attractor-choice:enabled").count() == 3


def test_a_final_refusal_leaves_the_card_shut(open_view):
    view = open_gates(open_view, question())
    view.page.locator(".attractor-choice").first.click()
    refusal = {"message": "gate `review` has been answered already: Approve, by ann", "fields": {}, "is_final": True}
    view.set("refusals", {"review:1": refusal})
    assert view.page.locator(".attractor-choice:enabled").count() == 0
    assert "answered already" in view.page.locator(".ag-refusal").text_content()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_inbox_has_a_card_for_each_question(open_view, dark):
    resting = {
        **question("c", about="nightly"),
        "how": 'No process works on this run here:  Run.load("runs/n").resume()',
    }
    view = open_gates(
        open_view,
        question("a", about="release · review · run ab12cd34", metadata=REVIEWED, deadline=time.time() + 30),
        question("b", about="article · look · run ef56gh78", kind="freeform", options=(), title="Who reads this?"),
        resting,
        shows_all=True,
        answers=[{"is_answered": False, "words": "release · review: no answer at review after 5 s"}],
        dark=dark,
    )
    assert view.page.locator(".ag-card").count() == 3
    assert view.page.locator(".ag-card").nth(2).locator("button").count() == 0
    assert "Run.load" in view.page.locator(".ag-card").nth(2).text_content()
    view.shoot(f"gate-inbox-{'dark' if dark else 'light'}", ".attractor-gate")


def test_an_empty_inbox_says_so_and_a_page_without_a_kernel_has_no_buttons(open_view):
    view = open_gates(open_view, shows_all=True, none="No question waits now.")
    assert view.page.locator(".ag-none").text_content() == "No question waits now."
    still = open_gates(open_view, question(), is_live=False)
    assert still.page.locator("button").count() == 0
    assert "process that owns the run" in still.page.locator(".ag-how").text_content()


@pytest.mark.kind("a browser")
def test_nothing_of_strangers_becomes_markup(open_view):
    form = {
        "name": HOSTILE,
        "fields": [
            {**field, "title": HOSTILE, "words": HOSTILE, "limits": HOSTILE, "choices": [HOSTILE]}
            for field in FORM["fields"]
        ],
    }
    asked = question(
        title=HOSTILE,
        options=(("A", HOSTILE), ("B", HOSTILE)),
        metadata={"detail": HOSTILE, "review": [{"name": HOSTILE, "text": HOSTILE, "note": HOSTILE}]},
        form=form,
        about=HOSTILE,
    )
    view = open_gates(open_view, asked, answers=[{"is_answered": True, "words": HOSTILE}], shows_all=True)
    view.set(
        "refusals",
        {"review:1": {"message": HOSTILE, "fields": {"score": HOSTILE, HOSTILE: HOSTILE}, "is_final": False}},
    )
    assert view.page.locator("#view img, #view script").count() == 0
    assert view.page.title() == "view"
    assert HOSTILE in view.page.locator(".ag-material .pr-shown").text_content()


def test_long_words_and_narrow_pages_stay_within_the_card(open_view):
    asked = question(
        title="Is " + "a_very_long_identifier_" * 12 + " good?",
        options=tuple((str(number), f"choice number {number} with a long label") for number in range(7)),
        form=FORM,
        metadata=REVIEWED,
    )
    view = open_gates(open_view, asked, width=420)
    assert view.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    view.shoot("gate-narrow", ".attractor-gate")
