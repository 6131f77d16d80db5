"""The recorded call that answers a call, and the message of a miss."""

import pytest

from attractor_nb.decisions.replays.recorded_answers import answer_of, plain_answer, question_inputs, question_of
from attractor_nb.decisions.replays.recordings import find_call, miss_report, shortened
from attractor_nb.model.calls.call_content import CallInputs, CallSite, RecordedCall
from attractor_nb.model.question import Answer, Option, Question, QuestionType

MAX_SHORT = 300


def inputs(**values):
    return CallInputs("model", "ask", {"prompt": "Say it.", "model": "m", **values})


def recorded(visit=1, attempt=1, **values):
    return RecordedCall(CallSite("ask", visit, attempt), inputs(**values), {"text": "said"})


@pytest.mark.parametrize(
    ("turns", "used", "now", "found"),
    [
        ([(1, 1), (2, 1)], (), (1, 1), 0),
        ([(1, 1), (2, 1)], (0,), (2, 1), 1),
        ([(1, 1), (2, 1)], (), (2, 1), 1),
        ([(1, 1), (1, 2)], (), (1, 2), 1),
        ([(1, 1), (3, 1)], (0,), (2, 1), 1),
        ([(3, 1), (2, 1)], (), (1, 1), 1),
        ([(1, 1)], (), (2, 1), None),
        ([(1, 1)], (0,), (1, 1), None),
    ],
    ids=["first", "in-order", "own-visit", "own-attempt", "a-later-one", "the-next-first", "no-earlier-one", "used"],
)
def test_equal_calls_are_given_in_their_turn(turns, used, now, found):
    calls = [recorded(*turn) for turn in turns]
    assert find_call(calls, used, CallSite("ask", *now), inputs()) == found


def test_what_goes_in_tells_calls_apart_and_for_an_unknown_backend_the_prompt_alone():
    calls = [recorded(model="n")]
    assert find_call(calls, (), CallSite("ask"), inputs()) is None
    assert find_call(calls, (), CallSite("ask"), inputs(), is_described=False) == 0
    other = CallInputs("model", "ask", {"prompt": "Say that.", "model": "n"})
    assert find_call(calls, (), CallSite("ask"), other, is_described=False) is None


def test_a_command_is_no_model_call():
    command = CallInputs("command", "ask", {"prompt": "Say it.", "model": "m"})
    assert find_call([recorded()], (), CallSite("ask"), command) is None


def said(calls, now, used=frozenset(), **options):
    return miss_report(calls, used, CallSite("ask"), now, ["fan/a/ask"], **options)


def test_a_miss_names_each_input_that_changed_against_the_nearest_call():
    calls = [recorded(visit=2, model="x", prompt="Other."), recorded(visit=1)]
    text, names = said(calls, inputs(model="n", tools=["read"]))
    assert names == ("model", "tools")
    assert text.splitlines() == [
        "its model, tools changed since visit 1 was recorded",
        '  model: "m" → "n"',
        '  tools: nothing → ["read"]',
    ]


def test_a_long_prompt_is_shown_as_the_lines_that_changed():
    before = "\n".join(f"line {number}" for number in range(30))
    text, names = said([recorded(prompt=before)], inputs(prompt=before.replace("line 7", "line seven")))
    assert names == ("prompt",)
    assert text.splitlines()[1:] == ["  prompt:", "     line 6", "    -line 7", "    +line seven", "     line 8"]


def test_changes_within_the_context_are_named_and_bounded():
    before = {f"key{number}": number for number in range(20)}
    now = {f"key{number}": number + 1 for number in range(20)}
    text, names = said([recorded(context=before)], inputs(context=now))
    assert names == ("context",)
    assert text.splitlines()[1] == "  context.key0: 0 → 1"
    assert text.splitlines()[-1] == "  and 14 more"


def test_a_call_that_is_made_once_more_is_told_as_that():
    assert said([recorded(), recorded(2)], inputs(), {0, 1})[0] == "it was recorded twice, and is made more often now"


def test_a_stage_without_calls_says_where_there_are_some():
    assert said([], inputs())[0] == "no model call of this stage was recorded; stages with calls: fan/a/ask"


def test_long_context_values_are_known_by_their_hash_and_a_prompt_stands_in_full():
    long = "x" * (MAX_SHORT + 1)
    made = shortened(inputs(prompt=long, context={"a": long, "b": 1}, conversation=long))
    assert made.values["prompt"] == long
    assert made.values["context"]["b"] == 1
    assert made.values["context"]["a"]["characters"] == MAX_SHORT + 1
    other = shortened(inputs(prompt=long, context={"a": long[:-1] + "y", "b": 1}, conversation=long))
    assert made.digest != other.digest
    assert made.values["conversation"] == other.values["conversation"]


@pytest.mark.parametrize(
    "question",
    [
        Question("Ship?", options=(Option("A", "Approve"), Option("R", "Redo")), stage="gate"),
        Question("Why?", QuestionType.FREEFORM, stage="why", metadata={"detail": "at length"}),
    ],
)
def test_a_question_comes_back_from_its_inputs(question):
    assert question_of(question_inputs(question)) == question


def test_an_answer_comes_back_from_its_plain_form():
    option = Option("A", "Approve")
    answer = Answer("A", selected_option=option, selected_options=(option,), text="fine", answered_by="me")
    assert answer_of(plain_answer(answer), "me") == answer
