"""The tools that tests of a user's own parts are made of."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.context import Context
from attractor_nb.engine.time_limits import SystemClock, SystemRandomness
from attractor_nb.errors import ContextValueError, RetryableError
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.question import Answer, AnswerValue, Question
from attractor_nb.protocols import Clock, Interviewer, Processes, Randomness
from attractor_nb.stage import current_stage
from attractor_nb.testing import (
    FakeProcesses,
    FakeResult,
    ManualClock,
    ScriptedBackend,
    ScriptedInterviewer,
    SeededRandomness,
    try_stage,
    verify_backend,
    verify_handler,
    verify_interviewer,
)


def test_waiting_on_a_manual_clock_takes_no_time_and_is_remembered():
    clock: Clock = ManualClock(start=1000.0)

    async def wait():
        await clock.sleep(3600)
        await clock.sleep(0.5)

    asyncio.run(wait())
    assert (clock.time(), clock.monotonic(), clock.sleeps) == (4600.5, 3600.5, [3600, 0.5])


def test_a_jump_of_the_wall_clock_is_not_noticed_by_the_monotonic_one():
    clock = ManualClock(start=1000.0)
    clock.jump(-500)
    assert (clock.time(), clock.monotonic()) == (500.0, 0.0)


def test_seeded_chance_repeats_itself():
    first, second = SeededRandomness(7), SeededRandomness(7)
    assert [first.uniform(0, 1), first.new_id()] == [second.uniform(0, 1), second.new_id()]
    assert SeededRandomness(8).new_id() != SeededRandomness(7).new_id()


@pytest.mark.parametrize("make", [SystemRandomness, SeededRandomness], ids=["system", "seeded"])
@given(low=st.floats(0, 10), width=st.floats(0, 10))
def test_chance_stays_in_its_bounds(make, low, width):
    chance: Randomness = make()
    assert low <= chance.uniform(low, low + width) <= low + width


@pytest.mark.parametrize("make", [SystemRandomness, SeededRandomness], ids=["system", "seeded"])
def test_ids_are_eight_characters_of_base32(make):
    chance = make()
    ids = {chance.new_id() for _ in range(200)}
    assert len(ids) == 200
    assert all(len(name) == 8 and set(name) <= set("abcdefghijklmnopqrstuvwxyz234567") for name in ids)


def test_the_system_clock_goes_on():
    clock: Clock = SystemClock()
    began, since = clock.time(), clock.monotonic()
    asyncio.run(clock.sleep(0))
    assert clock.time() >= began > 1_600_000_000
    assert clock.monotonic() >= since


def test_a_scripted_backend_gives_each_node_its_replies_and_repeats_the_last():
    backend = ScriptedBackend({"plan": ["one", RetryableError("busy"), Outcome.fail("no")]}, default="rest")
    plan, other = Node("plan"), Node("other")

    async def talk():
        said = [await backend.run(plan, "p1", Context({"a": 1}))]
        with pytest.raises(RetryableError):
            await backend.run(plan, "p2", Context())
        said.extend([await backend.run(plan, "p3", Context()) for _ in range(2)])
        said.append(await backend.run(other, "p4", Context()))
        return said

    assert asyncio.run(talk()) == ["one", Outcome.fail("no"), Outcome.fail("no"), "rest"]
    assert backend.prompts == {"plan": ["p1", "p2", "p3", "p3"], "other": ["p4"]}
    assert backend.calls[0].context == {"a": 1}


def test_a_scripted_interviewer_gives_each_gate_its_answers_and_skips_the_others():
    script: Interviewer = ScriptedInterviewer({"review": ["F", "A"]})
    gates = [Question("?", stage=stage) for stage in ("review", "review", "review", "other")]
    assert [answer.value for answer in asyncio.run(script.ask_multiple(gates))] == ["F", "A", "A", "skipped"]
    assert script.questions == gates


def test_fake_processes_give_their_results_in_order_and_run_nothing():
    processes: Processes = FakeProcesses([FakeResult("one"), RuntimeError("gone"), FakeResult(exit_code=2)])
    heard = []

    async def run():
        first = await processes.run("a", on_output=lambda *piece: heard.append(piece))
        with pytest.raises(RuntimeError):
            await processes.run("b")
        return first, await processes.run("c"), await processes.run("d")

    first, third, fourth = asyncio.run(run())
    assert (first.stdout, third.exit_code, fourth.exit_code) == ("one", 2, 2)
    assert heard == [("stdout", "one")]
    assert [command.command for command in processes.commands] == ["a", "b", "c", "d"]


def test_a_trial_gives_a_handler_its_stage_and_keeps_what_it_did(tmp_path):
    class Busy:
        async def execute(self, node, context, graph, logs_root):
            scope = current_stage()
            scope.stream("working")
            scope.files.append_text("log.txt", "a")
            scope.files.append_text("log.txt", "b")
            context.set("seen", scope.preamble)
            return Outcome.success(f"{scope.visit}.{scope.attempt} {scope.idempotency_key} {logs_root.name}")

    trial = asyncio.run(try_stage(Busy(), Node("n"), tmp_path, preamble="before", visit=2, attempt=3))
    assert trial.outcome.notes == f"2.3 trial:n:2 {tmp_path.name}"
    assert trial.files.read_text("log.txt") == "ab"
    assert trial.files.read_text("other.txt") is None
    assert trial.context.get("seen") == "before"
    assert [event.text for event in trial.events] == ["working"]
    with pytest.raises(LookupError):
        current_stage()


class Counting:
    """A handler that keeps state, as it must not."""

    def __init__(self):
        self.count = 0

    async def execute(self, node, context, graph, logs_root):
        self.count += 1
        return Outcome.success() if self.count == 1 else Outcome.fail("again")


class Returns:
    def __init__(self, value):
        self.value = value

    def execute(self, node, context, graph, logs_root):
        return self.value

    def run(self, node, prompt, context):
        return self.value


@pytest.mark.parametrize(
    ("handler", "error", "message"),
    [
        (object(), AssertionError, "a handler has execute"),
        (Returns("text"), AssertionError, "returns an Outcome or None, not str"),
        (Counting(), AssertionError, "keeps no state between stages"),
        (Returns(Outcome.success(context_updates={"value": {1, 2}})), ContextValueError, "'value'"),
    ],
    ids=["no-handler", "text", "state", "set-in-context"],
)
def test_a_handler_that_breaks_its_contract_is_told_how(handler, error, message):
    with pytest.raises(error, match=message):
        asyncio.run(verify_handler(handler))


def test_a_handler_may_return_nothing():
    assert asyncio.run(verify_handler(Returns(None))) is None


@pytest.mark.parametrize("value", [None, 3], ids=["nothing", "number"])
def test_a_backend_that_breaks_its_contract_is_told_how(value):
    with pytest.raises(AssertionError, match="a backend returns text or an Outcome"):
        asyncio.run(verify_backend(Returns(value)))


class Lazy:
    """An interviewer that drops questions."""

    async def ask(self, question):
        return Answer(AnswerValue.SKIPPED)

    async def ask_multiple(self, questions):
        return []

    async def inform(self, message, stage):
        return None


class Wordy(Lazy):
    async def ask(self, question):
        return "yes"

    async def ask_multiple(self, questions):
        return ["yes" for _ in questions]


@pytest.mark.parametrize(
    ("interviewer", "message"),
    [(object(), "an interviewer has ask"), (Lazy(), "one answer for each question"), (Wordy(), "is no Answer: 'yes'")],
    ids=["no-interviewer", "drops-questions", "text"],
)
def test_an_interviewer_that_breaks_its_contract_is_told_how(interviewer, message):
    with pytest.raises(AssertionError, match=message):
        asyncio.run(verify_interviewer(interviewer))
