"""Gates: the first durable answer wins, and nothing that a person said is lost (ruling 23)."""

import asyncio
import contextlib
import threading

import pytest
from msgspec.structs import replace

from attractor_nb import Answer, AnswerValue, Option, Question
from attractor_nb.engine.gates import Gate, Gates
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate, StorageError, TerminalError
from attractor_nb.interviewers import DeferredInterviewer
from attractor_nb.model.events import InterviewCompleted, InterviewInformed, InterviewStarted, InterviewTimeout
from attractor_nb.testing import ManualClock, ScriptedInterviewer

MAX_REFUSALS = 10

OPTIONS = (Option("Y", "[Y] Yes"), Option("N", "[N] No"))
QUESTION = Question(
    "Ship?", options=OPTIONS, stage="gate", id="gate:1", metadata={"targets": {"Y": "ship", "N": "fix"}}
)
GATE = 'g [shape=hexagon{more}] ship fix start -> g g -> ship [label="[Y] Yes"] g -> fix [label="[N] No"] ship -> done fix -> done'


async def until(claim):
    """Let the loop turn until a claim holds."""
    while not claim():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0)


class OpenGates:
    """The gates of a run, what it announced, and a question that waits in the background."""

    def __init__(self, inner=None, *, recorded=()):
        self.clock = ManualClock()
        self.events = []
        self.gates = Gates(inner or DeferredInterviewer(), self.events.append, self.clock, recorded=recorded)

    def names(self):
        return [type(event).__name__ for event in self.events]


def within(gates, act, question=QUESTION):
    """Ask, let ``act`` hand something in as soon as the gate waits, and give the answer."""

    async def main():
        asked = asyncio.ensure_future(gates.gates.ask(question))
        await until(lambda: gates.gates.pending)
        act(gates.gates)
        return await asked

    return asyncio.run(main())


@pytest.mark.parametrize("name", ["gate", "gate:1"])
@pytest.mark.parametrize("choice", ["Y", "y", "[Y] Yes", "yes", "ship"])
def test_a_gate_is_answered_by_node_or_id_with_key_label_or_target(name, choice):
    gates = OpenGates()
    answer = within(gates, lambda gates: gates.answer(name, choice, answered_by="test"))
    assert (answer.selected_option, answer.answered_by) == (OPTIONS[0], "test")
    assert gates.names() == ["InterviewStarted", "InterviewCompleted"]


def test_the_question_is_announced_with_its_options_before_its_answer():
    gates = OpenGates()
    within(gates, lambda gates: gates.answer("gate", "N"))
    started, completed = gates.events
    assert started.options == (("Y", "[Y] Yes"), ("N", "[N] No"))
    assert (completed.question_id, completed.label, completed.answer) == ("gate:1", "[N] No", "N")


def test_an_answer_that_comes_at_once_is_logged_after_its_question():
    gates, threads = OpenGates(), []

    def hand_in():
        with contextlib.suppress(NoSuchGate):
            gates.gates.answer("gate", "Y")

    def announce(event):
        if isinstance(event, InterviewStarted):
            threads.append(threading.Thread(target=hand_in))
            threads[0].start()
            threads[0].join(0.2)
        gates.events.append(event)

    gates.gates = Gates(DeferredInterviewer(), announce, gates.clock)
    assert asyncio.run(gates.gates.ask(QUESTION)).value == "Y"
    assert gates.names() == ["InterviewStarted", "InterviewCompleted"]


def test_ruling_23_of_several_threads_the_first_answer_wins(make):
    run = make(GATE.format(more=""), interviewer="deferred").run(durability="fast")
    run.wait_for_gate("g", timeout=60)
    begin, outcomes = threading.Barrier(8), []

    def hand_in(key):
        begin.wait(60)
        try:
            run.answer("g", key)
        except AlreadyAnswered:
            outcomes.append("late")
        else:
            outcomes.append(key)

    threads = [threading.Thread(target=hand_in, args=("YN"[number % 2],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    result = run.result(60)
    (winner,) = (outcome for outcome in outcomes if outcome != "late")
    assert outcomes.count("late") == 7
    assert result.completed_nodes[2] == {"Y": "ship", "N": "fix"}[winner]
    assert [type(event).__name__ for event in run.events()].count("InterviewCompleted") == 1


def test_ruling_23_a_refused_answer_leaves_the_gate_waiting():
    gates = OpenGates()

    def act(gates):
        with pytest.raises(AnswerRefused, match="maybe"):
            gates.answer("gate", "maybe")
        assert gates.pending
        gates.answer("gate", "Y")

    assert within(gates, act).value == "Y"


def test_ruling_23_an_interviewer_that_gives_a_wrong_answer_is_told_and_asked_again():
    inner = ScriptedInterviewer({"gate": ["maybe", "N"]})
    gates = OpenGates(inner)
    answer = asyncio.run(gates.gates.ask(QUESTION))
    assert answer.value == "N"
    assert len(inner.questions) == 2
    assert "maybe" in inner.messages[0][0]


def test_an_interviewer_that_only_gives_wrong_answers_comes_to_an_end():
    inner = ScriptedInterviewer({"gate": "maybe"})
    with pytest.raises(TerminalError, match=f"{MAX_REFUSALS} answers"):
        asyncio.run(OpenGates(inner).gates.ask(QUESTION))
    assert len(inner.questions) == MAX_REFUSALS


def test_an_interviewer_that_gives_no_answer_is_named():
    class Broken(DeferredInterviewer):
        async def ask(self, question):
            return 42

    with pytest.raises(TerminalError, match="answered gate `gate` with int"):
        asyncio.run(OpenGates(Broken()).gates.ask(QUESTION))


def test_what_an_interviewer_raises_reaches_the_stage():
    class Broken(DeferredInterviewer):
        async def ask(self, question):
            raise ConnectionError("chat is down")

    with pytest.raises(ConnectionError):
        asyncio.run(OpenGates(Broken()).gates.ask(QUESTION))


def timed(**changes):
    return Question("Ship?", options=OPTIONS, stage="gate", id="gate:1", timeout_seconds=60, **changes)


def test_ruling_23_a_timeout_without_a_default_is_timeout():
    gates = OpenGates()
    answer = asyncio.run(gates.gates.ask(timed()))
    assert answer.is_timeout
    assert gates.names() == ["InterviewStarted", "InterviewTimeout"]
    assert gates.clock.sleeps == [60]


def test_ruling_23_a_timeout_with_a_default_takes_it_and_records_who_answered():
    gates = OpenGates()
    answer = asyncio.run(gates.gates.ask(timed(default=Answer("N", selected_option=OPTIONS[1]))))
    assert (answer.value, answer.answered_by) == ("N", "default")
    assert gates.names() == ["InterviewStarted", "InterviewTimeout", "InterviewCompleted"]


def test_an_answer_after_the_timeout_is_too_late():
    gates = OpenGates()
    asyncio.run(gates.gates.ask(timed()))
    with pytest.raises(AlreadyAnswered):
        gates.gates.answer("gate", "Y")


def test_an_interviewer_may_say_itself_that_time_is_over():
    inner = ScriptedInterviewer({"gate": Answer(AnswerValue.TIMEOUT)})
    assert asyncio.run(OpenGates(inner).gates.ask(QUESTION)).is_timeout


def test_a_skipped_question_is_recorded_as_skipped():
    gates = OpenGates(ScriptedInterviewer({}))
    assert asyncio.run(gates.gates.ask(QUESTION)).is_skipped
    assert gates.events[-1].answer == "skipped"


def test_no_gate_of_that_name_is_waiting():
    gates = OpenGates()
    with pytest.raises(NoSuchGate) as caught:
        gates.gates.answer("gate", "Y")
    assert caught.value.hint == "no gate is waiting now"

    def act(gates):
        with pytest.raises(NoSuchGate) as caught:
            gates.answer("other", "Y")
        assert caught.value.hint == "waiting now: gate"
        gates.answer("gate", "Y")

    within(gates, act)


def test_ruling_23_a_deadline_survives_a_restart():
    before = InterviewStarted(
        question="Ship?", stage="gate", question_id="gate:1", deadline=1_700_000_100.0, time=1_700_000_000.0
    )
    gates = OpenGates(recorded=[before])
    gates.clock.advance(90)
    assert asyncio.run(gates.gates.ask(timed())).is_timeout
    assert gates.clock.sleeps == [10]
    assert isinstance(gates.events[-1], InterviewTimeout)
    assert gates.events[-1].duration == 100


def test_ruling_23_a_recorded_answer_is_not_asked_for_again():
    recorded = InterviewCompleted(
        question="Ship?",
        answer="N",
        duration=1.0,
        question_id="gate:1",
        stage="gate",
        answered_by="widget",
        keys=("N",),
    )
    gates = OpenGates(recorded=[recorded])
    answer = asyncio.run(gates.gates.ask(QUESTION))
    assert (answer.selected_option, answer.answered_by) == (OPTIONS[1], "widget")
    assert gates.events == []


def test_an_answer_that_cannot_be_logged_is_no_answer():
    gates = OpenGates()

    def announce(event):
        if isinstance(event, InterviewCompleted) and not gates.events[1:]:
            gates.events.append(event)
            raise StorageError("disk full")
        gates.events.append(event)

    gates.gates = Gates(DeferredInterviewer(), announce, gates.clock)

    def act(gates):
        with pytest.raises(StorageError):
            gates.answer("gate", "Y")
        gates.answer("gate", "N")

    assert within(gates, act).value == "N"


def test_several_questions_are_put_at_once_and_answered_in_order():
    gates = OpenGates()
    other = Question("Why?", options=OPTIONS, stage="other", id="other:1")

    async def main():
        asked = asyncio.ensure_future(gates.gates.ask_multiple([QUESTION, other]))
        await until(lambda: len(gates.gates.pending) == 2)
        gates.gates.answer("other", "N")
        gates.gates.answer("gate", "Y")
        return [answer.value for answer in await asked]

    assert asyncio.run(main()) == ["Y", "N"]


def test_news_go_to_the_log_and_to_the_interviewer():
    inner = ScriptedInterviewer({})
    gates = OpenGates(inner)
    asyncio.run(gates.gates.inform("half done", "gate"))
    assert isinstance(gates.events[0], InterviewInformed)
    assert inner.messages == [("half done", "gate")]


def test_a_cancelled_question_is_no_longer_waiting():
    gates = OpenGates()

    async def main():
        asked = asyncio.ensure_future(gates.gates.ask(QUESTION))
        await until(lambda: gates.gates.pending)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        return gates.gates.pending

    assert asyncio.run(main()) == ()


@pytest.mark.parametrize(
    ("more", "target"), [(", human.default_choice=N", "fix"), (", human.default_choice=ship", "ship")]
)
def test_ruling_23_the_default_choice_of_a_gate_routes_after_its_timeout(make, seams, more, target):
    pipeline = make(GATE.format(more=f", human.timeout=60s{more}"), interviewer="deferred")
    result = pipeline.run(wait=True, durability="none", **seams())
    assert result.completed_nodes[2] == target


def test_ruling_23_a_timeout_without_a_default_is_retried_within_the_bound_of_the_node(make, seams):
    pipeline = make(GATE.format(more=", human.timeout=60s, max_retries=2"), interviewer="deferred")
    result = pipeline.run(wait=True, durability="fast", **seams())
    assert result.status == "fail"
    assert "human gate timeout, no default" in result.reason
    asked = [type(event).__name__ for event in result_events(result)].count("InterviewStarted")
    assert asked == 3


def result_events(result):
    from attractor_nb import Run

    return list(Run.load(result.logs_root).events())


def test_ruling_23_two_edges_with_one_accelerator_get_distinct_keys(make):
    interviewer = ScriptedInterviewer({"g": "fix"})
    pipeline = make(
        'g [shape=hexagon] ship fix start -> g g -> ship [label="[Y] Yes"] g -> fix [label="[Y] Yes but"] '
        "ship -> done fix -> done",
        interviewer=interviewer,
    )
    pipeline.run(wait=True, durability="none")
    keys = [option.key for option in interviewer.questions[0].options]
    assert len(set(keys)) == 2


def test_ruling_23_an_answer_of_somebody_else_while_the_interviewer_was_asked_stays_the_answer():
    class Late(ScriptedInterviewer):
        async def ask(self, question):
            asked.append(question.id)
            gates.gates.answer("gate", "N", answered_by="somebody")
            return Answer("Y", selected_option=OPTIONS[0], answered_by="late")

    asked, gates = [], OpenGates(Late({}))
    answer = asyncio.run(gates.gates.ask(QUESTION))
    assert asked == ["gate:1"]
    assert (answer.selected_option, answer.answered_by) == (OPTIONS[1], "somebody")
    assert gates.names().count("InterviewCompleted") == 1


def test_a_gate_reads_as_one_line_with_its_choices():
    question = Question(
        "Ship\n\x1b[31mit?", options=OPTIONS, stage="gate", id="gate:1", metadata={"review": ["x" * 900]}
    )
    gate = Gate("gate:1", "gate", question, None, 0.0)
    assert repr(gate) == r"<gate gate: Ship \x1b[31mit? (Y = Yes, N = No)>"
    answered = replace(gate, answer=Answer("Y", selected_option=OPTIONS[0], answered_by="ada (widget)"))
    assert repr(answered) == r"<gate gate: Ship \x1b[31mit? answered: Yes (ada)>"
