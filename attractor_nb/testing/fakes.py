"""Fakes that a test controls: clock, randomness, commands, backends, interviewers."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from attractor_nb.interviewers.unattended import AnswerLike, SequentialInterviewer, answer_of
from attractor_nb.model.outcome import Outcome
from attractor_nb.stage import stream_output

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.model.question import Answer, Question

TURNS = 8
"""Turns of the loop that other tasks get before time passes."""
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"

Reply = str | Outcome | BaseException
Replies = Mapping[str, "Reply | Sequence[Reply]"]


class ManualClock:
    """A clock (``protocols.Clock``) on which waiting takes no time.

    ``sleep`` lets the other tasks run for some turns of the event loop, then moves the clock forward. So
    work that races a timer loses only if it really waits.

    Attributes:
        sleeps: The seconds of every ``sleep``, in order.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._time = start
        self._monotonic = 0.0
        self.sleeps: list[float] = []

    def time(self) -> float:
        """The wall clock of the test."""
        return self._time

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Move the clock forward, without real waiting."""
        self.sleeps.append(seconds)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self.advance(seconds)
        await asyncio.sleep(0)

    async def wait_out(self, seconds: float) -> None:
        """Wait, in no time; a machine of this clock does not sleep."""
        await self.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._time += seconds
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back; the monotonic one does not notice."""
        self._time += seconds


class SeededRandomness:
    """Chance (``protocols.Randomness``) that is the same for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        return self._random.uniform(low, high)

    def new_id(self) -> str:
        """Eight characters of lower-case base32."""
        return "".join(self._random.choice(_BASE32) for _ in range(8))


@dataclass(frozen=True, slots=True)
class FakeResult:
    """The result of a command (``protocols.CommandResult``)."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    is_timed_out: bool = False


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """A command as it would have been run."""

    command: str | Sequence[str]
    cwd: Path | None
    env: Mapping[str, str]
    stdin: bytes
    timeout_seconds: float | None
    output_directory: Path | None


@dataclass
class FakeProcesses:
    """Starts no command; returns the results that it was given (``protocols.Processes``)."""

    starts_nothing: ClassVar[bool] = True
    #: The results of the next commands, in order; the last one is repeated.
    results: Iterable[FakeResult | Exception] = ()
    commands: list[FakeCommand] = field(default_factory=list[FakeCommand])  #: The commands that it was asked to run.

    def __post_init__(self) -> None:
        self._left = list(self.results) or [FakeResult()]

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float | None = None,
        output_directory: Path | None = None,
        on_output: Any = None,
    ) -> FakeResult:
        """Record the command, stream the output of the next result, and return that result."""
        self.commands.append(FakeCommand(command, cwd, dict(env or {}), stdin, timeout_seconds, output_directory))
        result = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if isinstance(result, Exception):
            raise result
        if on_output is not None:
            for channel in ("stdout", "stderr"):
                if text := getattr(result, channel):
                    on_output(channel, text)
        return result


@dataclass(frozen=True, slots=True)
class BackendCall:
    """One call of a backend: the node, the prompt, and what the context held."""

    node_id: str
    prompt: str
    context: Mapping[str, Any]


class ScriptedBackend:
    """Gives each node its scripted replies, in order; the last one is repeated.

    Args:
        replies: By node id: a text, an Outcome, an exception to raise, or a list of them.
        default: The reply of nodes that are not in the script.

    Attributes:
        calls: All calls so far.

    >>> backend = ScriptedBackend({"plan": ["first", Outcome.fail("no")]}, default="done")
    """

    takes_attachments: Final = True
    """Attachments of a stage are in ``current_stage().attachments``."""

    def __init__(self, replies: Replies | None = None, *, default: Reply = "done") -> None:
        self._left = {node_id: _listed(given) for node_id, given in (replies or {}).items()}
        self._default = default
        self.calls: list[BackendCall] = []

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """The next reply of the node."""
        self.calls.append(BackendCall(node.id, prompt, context.snapshot()))
        left = self._left.get(node.id) or [self._default]
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            stream_output(reply)
        return reply

    @property
    def prompts(self) -> dict[str, list[str]]:
        """The prompts of each node, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for call in self.calls:
            found[call.node_id].append(call.prompt)
        return dict(found)


class ScriptedInterviewer(SequentialInterviewer):
    """Gives each gate its scripted answers, in order; the last one is repeated.

    A gate that is not in the script is skipped, never approved.

    Attributes:
        questions: All questions so far.
        messages: All messages so far, as ``(message, stage)``.
    """

    def __init__(self, answers: Mapping[str, AnswerLike | Iterable[AnswerLike]]) -> None:
        self._left: dict[str, list[Any]] = {stage: _listed(given) for stage, given in answers.items()}
        self.questions: list[Question] = []
        self.messages: list[tuple[str, str]] = []

    async def ask(self, question: Question) -> Answer:
        """The next answer of the gate."""
        self.questions.append(question)
        left = self._left.get(question.stage) or [None]
        return answer_of(left.pop(0) if len(left) > 1 else left[0], question, "script")

    async def inform(self, message: str, stage: str) -> None:
        """Record the message."""
        self.messages.append((message, stage))


def _listed(given: Any) -> list[Any]:
    return list(cast("list[Any]", given)) if isinstance(given, list) else [given]
