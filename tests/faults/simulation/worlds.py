"""The surroundings of a simulated run: models, commands and people whose answers depend on nothing but the stage.

An outcome is a function of the seed, the node, how often the run has come to it on the way that counts, and
how often it failed there. So whatever faults hit a run, it must come to the same end.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from attractor_nb.errors import RetryableError
from attractor_nb.interviewers.unattended import SequentialInterviewer, answer_of
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.stage import current_stage
from attractor_nb.testing.fakes import FakeResult
from tests.faults.simulation.drawn_graphs import KEYS, LABELS, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.model.question import Answer, Question
    from tests.faults.simulation.drawn_graphs import DrawnGraph
    from tests.faults.simulation.virtual_loop import VirtualClock

FOREVER_SECONDS = 1e7
LARGE_CHARACTERS = 110_000
AGAIN = "R"
"""The answer to the question what to do with an ambiguous stage: run it again."""


@dataclass(frozen=True, slots=True)
class WorldTurn:
    """An execution.

    Attributes:
        node: The node.
        visit: Number of the visit.
        attempt: Number of the attempt.
        ordinal: Which visit it is of those that count.
        failures: How many attempts of the visit have failed before.
    """

    node: str
    visit: int
    attempt: int
    ordinal: int
    failures: int


@dataclass(slots=True)
class Memory:
    """The content of the log when a life began, so that a visit that goes on is told from a new one.

    Attributes:
        offsets: By node: visit numbers that a rewind used up.
        flight: The visit under way, as node and number; or None.
        attempt: The last attempt of it that was begun.
        failures: How many attempts of it are recorded as failed.
        answered: Questions of it whose answer is recorded.
    """

    offsets: Mapping[str, int] = field(default_factory=dict[str, int])
    flight: tuple[str, int] | None = None
    attempt: int = 0
    failures: int = 0
    answered: frozenset[str] = frozenset()


class World:
    """Model, commands and people of one seed, for one life of a run.

    Attributes:
        model, commands, people: How a run sees it.
        turns: What was executed, in order.
        asked: What was asked: the question's id and the attempt, 0 for the engine's own questions.
    """

    def __init__(
        self,
        seed: int,
        graph: DrawnGraph,
        clock: VirtualClock,
        memory: Memory,
        *,
        is_dead: Callable[[], bool] = lambda: False,
        jumps: bool = False,
    ) -> None:
        """Make it.

        Args:
            seed: What everybody answers.
            graph: The graph.
            clock: Whose wall time jumps now and then.
            memory: What the log said when the life began.
            is_dead: Whether the process is gone already: then nothing it does counts.
            jumps: The wall clock jumps.
        """
        self.turns: list[WorldTurn] = []
        self.asked: list[tuple[str, int]] = []
        self._seed = seed
        self._graph = graph
        self._clock = clock
        self._memory = memory
        self._is_dead = is_dead
        self._jumps = jumps
        self.model = _Model(self)
        self.commands = _Commands(self)
        self.people = _People(self)

    def take_turn(self) -> tuple[WorldTurn, random.Random]:
        """Note an execution; the chance that decides it."""
        stage, memory = current_stage(), self._memory
        node, visit, attempt = stage.node_id, stage.visit, stage.attempt
        failures = attempt - 1
        if memory.flight == (node, visit):
            failures = memory.failures + attempt - memory.attempt - 1
        turn = WorldTurn(node, visit, attempt, visit - memory.offsets.get(node, 0), failures)
        if not self._is_dead() and turn not in self.turns[-1:]:
            self.turns.append(turn)
        return turn, random.Random(f"{self._seed} {node} {turn.ordinal} {turn.failures}")

    async def _work(self, node_id: str, chance: random.Random) -> None:
        """Take some time, or as long as it takes to be cut off."""
        jump = chance.choice((0.0, 0.0, 0.0, 0.0, -1e6, -50.0, 50.0, 1e6))
        if self._jumps:
            self._clock.jump(jump)
        if "timeout" in self._graph.nodes[node_id].attrs and chance.random() < 0.15:
            await asyncio.sleep(FOREVER_SECONDS)
        for _ in range(chance.randint(0, 2)):
            await asyncio.sleep(chance.choice((0.0, 0.0, 0.5, 5.0)))

    async def command(self, timeout_seconds: float | None) -> FakeResult:
        """End as a command does, by itself or by its time."""
        turn, chance = self.take_turn()
        try:
            await asyncio.wait_for(self._work(turn.node, chance), timeout_seconds)
        except TimeoutError:
            return FakeResult(exit_code=-9, is_timed_out=True)
        exit_code = 0 if chance.random() < 0.75 else 1
        return FakeResult(f"{turn.node} {turn.ordinal}", "broken" if exit_code else "", exit_code)

    async def respond(self, node: Node, context: Context) -> Any:
        """Answer as a model does, or raise as its client does."""
        turn, chance = self.take_turn()
        await self._work(turn.node, chance)
        updates: dict[str, Any] = {key: chance.choice(VALUES) for key in KEYS if chance.random() < 0.5}
        updates["way"] = f"{context.get_string('way')[-60:]} {turn.node}.{turn.ordinal}.{turn.failures}"
        if chance.random() < 0.01:
            updates["large"] = turn.node * (LARGE_CHARACTERS // len(turn.node))
        kind = chance.choices(
            ("text", "success", "fail", "terminal", "retry", "partial", "skipped", "transient", "bug", "bad"),
            (20, 42, 11, 3, 6, 5, 4, 3, 3, 3),
        )[0]
        usage = Usage(chance.randint(1, 50), chance.randint(1, 50)) if chance.random() < 0.7 else None
        if kind == "text":
            return f"response {turn.ordinal} of {node.id}"
        if kind == "transient":
            raise RetryableError("the network was gone")
        if kind == "bug":
            raise ValueError("a mistake in a handler")
        if kind == "bad":
            return Outcome(StageStatus.SUCCESS, context_updates={"bad": {1, 2}}, usage=usage)
        targets = [edge.target for edge in self._graph.leaving(turn.node)]
        status = {
            "fail": StageStatus.FAIL,
            "terminal": StageStatus.FAIL,
            "retry": StageStatus.RETRY,
            "partial": StageStatus.PARTIAL_SUCCESS,
            "skipped": StageStatus.SKIPPED,
        }.get(kind, StageStatus.SUCCESS)
        return Outcome(
            status,
            preferred_label=chance.choice(LABELS) if chance.random() < 0.3 else "",
            suggested_next_ids=(chance.choice(targets),) if chance.random() < 0.25 else (),
            context_updates=updates,
            failure_reason="it did not work" if status.is_failure else "",
            is_terminal=kind == "terminal",
            usage=usage,
        )

    async def answer(self, question: Question) -> Answer:
        """Answer as a person does: now and then wrongly first, late, or never."""
        is_own = question.metadata.get("about") == "interrupted"
        if not self._is_dead():
            self.asked.append((question.id, 0 if is_own else current_stage().attempt))
        if is_own:
            await asyncio.sleep(0)
            return answer_of(AGAIN, question, "simulated")
        _, chance = self.take_turn()
        if question.timeout_seconds is not None and chance.random() < 0.25:
            await asyncio.sleep(FOREVER_SECONDS)
        await asyncio.sleep(chance.choice((0.0, 0.0, 1.0, 60.0)))
        wrong = chance.random() < 0.15 and self._count(question.id) == 1
        if wrong:
            return answer_of("nothing of this", question, "simulated")
        if chance.random() < 0.06:
            return answer_of(None, question, "simulated")
        return answer_of(chance.choice(question.options), question, "simulated")

    def _count(self, question_id: str) -> int:
        """The number of questions of this attempt."""
        attempt = current_stage().attempt
        return sum(entry == (question_id, attempt) for entry in self.asked)


class _Model:
    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, node: Node, prompt: str, context: Context) -> Any:
        del prompt
        return await self._world.respond(node, context)


class _Commands:
    starts_nothing: ClassVar[bool] = True

    def __init__(self, world: World) -> None:
        self._world = world

    async def run(self, command: object, **options: Any) -> FakeResult:
        del command
        return await self._world.command(options["timeout_seconds"])


class _People(SequentialInterviewer):
    def __init__(self, world: World) -> None:
        self._world = world

    async def ask(self, question: Question) -> Answer:
        return await self._world.answer(question)
