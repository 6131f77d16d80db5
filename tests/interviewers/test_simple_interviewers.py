"""Interviewers without a terminal (spec 6.4, 6.5)."""

import asyncio
import threading

import pytest

from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.interviewers import (
    AutoApproveInterviewer,
    CallbackInterviewer,
    ConsoleInterviewer,
    DeferredInterviewer,
    QueueInterviewer,
    RefusingInterviewer,
    resolve_interviewer,
)
from attractor_nb.model.question import Answer, AnswerValue, Option, Question, QuestionType
from attractor_nb.testing import verify_interviewer
from attractor_nb.testing.conformance import QUESTIONS

APPROVE, REJECT = Option("A", "Approve"), Option("R", "Reject")
CHOICE = Question("Ship it?", options=(APPROVE, REJECT), stage="review")


def ask(interviewer, question=CHOICE):
    return asyncio.run(interviewer.ask(question))


def in_time(seconds=0.01, default=None):
    return Question("Ship it?", options=(APPROVE, REJECT), stage="review", timeout_seconds=seconds, default=default)


def first_valid(question):
    return {
        QuestionType.MULTIPLE_CHOICE: "A",
        QuestionType.FREEFORM: "words",
        QuestionType.MULTI_SELECT: ["T", "D"],
    }.get(question.type, True)


@pytest.mark.parametrize(
    ("interviewer", "values"),
    [
        (AutoApproveInterviewer(), ["A", "yes", "yes", "auto-approved", "T"]),
        (CallbackInterviewer(first_valid), ["A", "yes", "yes", "words", "T,D"]),
        (QueueInterviewer([first_valid(question) for question in QUESTIONS] * 2), ["A", "yes", "yes", "words", "T,D"]),
        (QueueInterviewer(), ["skipped"] * 5),
    ],
    ids=["auto", "callback", "queue", "empty-queue"],
)
def test_they_keep_the_interviewer_contract(interviewer, values):
    assert [answer.value for answer in asyncio.run(verify_interviewer(interviewer))] == values


def test_auto_approve_signs_as_itself():
    answers = asyncio.run(verify_interviewer(AutoApproveInterviewer()))
    assert {answer.answered_by for answer in answers} == {"auto-approve"}


def test_auto_approve_without_options_approves_in_words():
    assert ask(AutoApproveInterviewer(), Question("Ship it?")).text == "auto-approved"


async def async_reject(question):
    return REJECT


def give_coroutine(question):
    return async_reject(question)


@pytest.mark.parametrize(
    "callback", [lambda question: "R", async_reject, give_coroutine], ids=["plain", "async", "plain-giving-async"]
)
def test_a_callback_may_be_plain_or_async(callback):
    assert ask(CallbackInterviewer(callback)).value == "R"


def test_a_plain_callback_may_block_without_blocking_the_loop():
    released = threading.Event()

    async def both():
        asking = asyncio.create_task(CallbackInterviewer(lambda question: released.wait(60) and "A").ask(CHOICE))
        await asyncio.sleep(0)
        released.set()
        return await asking

    assert asyncio.run(both()).value == "A"


def test_a_callback_that_takes_too_long_is_a_timeout():
    async def never(question):
        await asyncio.Event().wait()

    assert ask(CallbackInterviewer(never), in_time()).is_timeout


def test_the_callbacks_own_timeout_is_not_the_questions():
    async def fails(question):
        raise TimeoutError("the chat service")

    with pytest.raises(TimeoutError, match="chat service"):
        ask(CallbackInterviewer(fails), in_time(60))


def test_news_go_to_whoever_wants_them():
    heard = []
    asyncio.run(CallbackInterviewer(first_valid, on_inform=lambda *news: heard.append(news)).inform("done", "plan"))
    assert heard == [("done", "plan")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Answer("A"), Answer("A", answered_by="queue")),
        (Answer("A", answered_by="Ada"), Answer("A", answered_by="Ada")),
        (REJECT, Answer("R", selected_option=REJECT, answered_by="queue")),
        ("R", Answer("R", answered_by="queue")),
        (True, Answer(AnswerValue.YES, answered_by="queue")),
        (False, Answer(AnswerValue.NO, answered_by="queue")),
        (None, Answer(AnswerValue.SKIPPED, answered_by="queue")),
        (["A", REJECT], Answer("A,R", answered_by="queue")),
    ],
    ids=["answer", "signed-answer", "option", "word", "true", "false", "none", "several"],
)
def test_what_programs_give_is_read_as_an_answer(given, expected):
    assert ask(QueueInterviewer([given])) == expected


def test_what_is_no_answer_is_a_terminal_error():
    with pytest.raises(TerminalError, match="a float is not an answer to 'review'"):
        ask(QueueInterviewer([1.5]))


def test_a_queue_answers_in_order_and_then_skips_but_never_approves():
    queue = QueueInterviewer(["A", "R"])
    answers = asyncio.run(queue.ask_multiple([CHOICE] * 3))
    assert [answer.value for answer in answers] == ["A", "R", "skipped"]


def test_lazy_imports_waits_until_it_is_cancelled():
    async def cancel_it():
        waiting = asyncio.create_task(DeferredInterviewer().ask(CHOICE))
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        await waiting

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_it())


def test_lazy_imports_gives_timeout_or_the_default_when_time_is_over():
    default = Answer("R", selected_option=REJECT)
    first, second = asyncio.run(DeferredInterviewer().ask_multiple([in_time(), in_time(default=default)]))
    assert first.is_timeout
    assert (second.value, second.answered_by) == ("R", "default")


def test_refusing_fails_at_once_with_the_ways_to_get_an_answer():
    with pytest.raises(TerminalError) as caught:
        ask(RefusingInterviewer())
    assert caught.value.message == "gate `review` needs an answer, and no interviewer can give one"
    assert 'interviewer="auto"' in caught.value.hint
    assert 'interviewer="pause"' in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("auto", AutoApproveInterviewer),
        ("console", ConsoleInterviewer),
        ("deferred", DeferredInterviewer),
        ("refuse", RefusingInterviewer),
        (QueueInterviewer(), QueueInterviewer),
        (first_valid, CallbackInterviewer),
        (None, RefusingInterviewer),
    ],
    ids=["auto", "console", "deferred", "refuse", "object", "function", "nothing-without-a-terminal"],
)
def test_an_interviewer_is_resolved_from_what_an_option_says(spec, kind):
    assert isinstance(resolve_interviewer(spec), kind)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("consoel", "there is no interviewer 'consoel'; did you mean \"console\"?"),
        (QueueInterviewer, "the interviewer is the class QueueInterviewer, not an object of it"),
        (7, "a int is not an interviewer"),
    ],
    ids=["slip", "class", "number"],
)
def test_what_is_no_interviewer_is_refused_with_a_hint(spec, message):
    with pytest.raises(OptionError) as caught:
        resolve_interviewer(spec)
    assert caught.value.message == message
    assert caught.value.hint
