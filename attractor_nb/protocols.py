"""Every seam of the house on one page.

Whatever can be plugged has its interface here; implementations of one seam never import those of
another, and ``runtime/wire.py`` introduces them. Methods may be plain or ``async`` where the
return type says so: the engine awaits what can be awaited and runs plain functions in a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context, ValueStore
    from attractor_nb.model.calls.call_content import StageCall
    from attractor_nb.model.calls.providers import ModelName
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.stage import StageFiles

T = TypeVar("T")
MaybeAwaitable = T | Awaitable[T]


@runtime_checkable
class Handler(Protocol):
    """Executes the nodes of one type (spec 4.1).

    One that ends on its own at its node's ``timeout`` says so by an attribute ``keeps_own_time = True``;
    the engine ends all others. One whose stages may be executed by a worker of ``executor=`` says so by
    ``is_shippable = True``: it is pickled, and sees of the graph its node and that one's edges. One that runs
    nothing that could write a status.json says so by ``writes_status = False``, or by a method
    ``writes_status(node)``: a file found there does not count. One whose returned failures are what it observed,
    such as an exit code, says so by ``observes_failures = True``: a status.json cannot make a success of them
    (ruling 42).
    """

    def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> MaybeAwaitable[Outcome | None]:
        """Do the stage's work. None means: look for a status.json, else ``auto_status`` (ruling 27)."""
        ...


@runtime_checkable
class CodergenBackend(Protocol):
    """Calls a model or a substitute for one (spec 4.5)."""

    def run(self, node: Node, prompt: str, context: Context) -> MaybeAwaitable[str | Outcome]:
        """The response text, or a whole outcome."""
        ...


@runtime_checkable
class BackendLifetime(Protocol):
    """A backend that must be started before a run and stopped after it, such as a model server."""

    async def open(self) -> None:
        """Make ready; called once before the first stage that needs it."""
        ...

    async def close(self) -> None:
        """Release everything; called once at the end, whatever happened."""
        ...


def answers_only(backend: object, node: Node) -> bool:
    """True if a backend returns text for a node and runs nothing that could write a file (ruling 42).

    It says so by a method ``answers_only(node)``. Of any other a status.json in the stage's directory counts.
    """
    found = getattr(backend, "answers_only", None)
    return found is not None and bool(found(node))


def acts_unasked(backend: object) -> bool:
    """True if a backend may write or execute for any stage, whatever its ``allowed_tools`` (ruling 43).

    It says so by an attribute, ``acts_unasked = True``. The prompts of another's pipeline then need trust, too.
    """
    return bool(getattr(backend, "acts_unasked", False))


def takes_attachments(backend: object) -> bool:
    """True if a backend sends what a stage attaches (``current_stage().attachments``), or hands it on.

    It says so by an attribute, ``takes_attachments = True``; a stage that attaches is refused by any other.
    """
    return bool(getattr(backend, "takes_attachments", False))


@runtime_checkable
class DescribesCalls(Protocol):
    """A backend that knows what goes into its calls beside the prompt: for recordings and the cache.

    One whose calls can change more than the stage's own directory, as an agent can, says so by an attribute
    ``has_effects = True``: the cache then takes nodes alone that say ``cache=true`` themselves. A method
    ``cache_inputs(node)`` adds JSON values that decide an answer on this machine and in no recording, such as the
    address that the environment names (ruling 44).
    """

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any] | None:
        """JSON values by name: model, provider, address, options, system prompt, tools, schema.

        Whatever can change an answer, and nothing else: no key, no run's id, no prompt. None: it cannot say,
        and nothing of it may be kept in the cache.
        """
        ...


@runtime_checkable
class HasOwnModel(Protocol):
    """A backend with its own model, for nodes without a model: for tables and estimates."""

    @property
    def own_model(self) -> ModelName | None:
        """That model and its provider; None when it has none."""
        ...


@runtime_checkable
class DescribesStages(Protocol):
    """A handler that can say, without making it, what goes into the call of a stage: for the cache.

    Handlers of one's own are cached by an attribute ``version``, a text that changes with what they do. A method
    ``refusal_of(node, context, graph, outcome, files)`` says why a cached result does not count today, or nothing
    (ruling 44).
    """

    def stage_call(self, node: Node, context: Context, graph: Graph) -> StageCall:
        """The call that ``execute`` would make now, in the scope of the attempt; nothing is written or asked."""
        ...


@runtime_checkable
class ChecksGraphs(Protocol):
    """A backend that can tell before a run that a node of it asks for something that there is not."""

    def check_graph(self, graph: Graph) -> None:
        """Find what is known to fail before anything is run or paid.

        Raises:
            OptionError: What is wrong, and with which node.
        """
        ...


@runtime_checkable
class Interviewer(Protocol):
    """Asks users questions (spec 6.1).

    One that has no one to ask says so by an attribute ``refuses_all = True``.
    """

    def ask(self, question: Question) -> MaybeAwaitable[Answer]:
        """Put a question and wait for its answer."""
        ...

    def ask_multiple(self, questions: Sequence[Question]) -> MaybeAwaitable[list[Answer]]:
        """Put several questions; answers in the same order."""
        ...

    def inform(self, message: str, stage: str) -> MaybeAwaitable[None]:
        """Tell users something that asks for nothing."""
        ...


@runtime_checkable
class Transform(Protocol):
    """Rewrites a graph between parsing and lint (spec 9.1)."""

    def apply(self, graph: Graph) -> Graph:
        """The rewritten graph; the given one stays as it is."""
        ...


@runtime_checkable
class LintRule(Protocol):
    """Finds one kind of mistake (spec 7.4)."""

    @property
    def name(self) -> str:
        """The rule's identifier."""
        ...

    def apply(self, graph: Graph) -> Sequence[Diagnostic]:
        """All findings in a graph."""
        ...


class RunStore(Protocol):
    """Everything a run keeps (spec 5.3, 5.5, 5.6; ruling 29). One owner writes; the log is the truth."""

    @property
    def logs_root(self) -> Path:
        """The run directory."""
        ...

    @property
    def values(self) -> ValueStore:
        """The store of large context values."""
        ...

    @property
    def artifact_count(self) -> int:
        """The number of artifacts that the run has stored."""
        ...

    @property
    def sequence(self) -> int:
        """Number of the last event in the log; the next one has the next."""
        ...

    def append(self, event: Event, *, is_synced: bool) -> None:
        """Add a stamped event to the log; on stable storage before the return when ``is_synced``."""
        ...

    def check_owner(self) -> None:
        """Raise ``RunLocked`` when another process took the run over."""
        ...

    def open_stage(self, node_id: str, visit: int, attempt: int, branch: str = "") -> StageFiles:
        """The files of a new attempt; those of earlier ones are moved aside (ruling 28).

        In a branch they lie under the branch's own directory, ``branches/<fan-out>/<branch>/<node>``.
        """
        ...

    def close_branch(self, branch: str) -> None:
        """No stage of a branch is under way any more: give back what is held open for it."""
        ...

    def read_events(self) -> Sequence[Event]:
        """The durable events so far; none where nothing is stored."""
        ...

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; None when there is none. After closing too."""
        ...

    def read_thread(self, thread: str, entry: str) -> str | None:
        """The conversation in an entry of a thread (spec 5.4); None when there is no such entry."""
        ...

    def save_thread(self, thread: str, entry: str, text: str, *, after: str) -> None:
        """Keep a whole conversation as an entry of a thread, which continued from the entry ``after``.

        It is as durable as the log is, and earlier entries stay: which of them counts the log says.
        """
        ...

    def save_checkpoint(self, checkpoint: Mapping[str, Any], *, is_forced: bool) -> None:
        """Project the state into checkpoint.json, now or, while stages rush, a little later."""
        ...

    def is_checkpoint_due(self) -> bool:
        """True if enough time and log have passed for the next unforced checkpoint (ruling 29)."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest in its current state."""
        ...

    def save_manifest(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into manifest.json."""
        ...

    def make_restart(self, number: int, run_id: str) -> RunStore:
        """A fresh run directory ``restart-<number>`` for a ``loop_restart`` (ruling 21)."""
        ...

    def close(self) -> None:
        """Flush and give up ownership."""
        ...


class EventSink(Protocol):
    """Receives every event of a run, in order."""

    def __call__(self, event: Event) -> None:
        """Take an event; must not raise and must not wait."""
        ...


class Clock(Protocol):
    """Time and waiting, so that tests own both."""

    def time(self) -> float:
        """Wall clock: seconds since 1970 (UTC). May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps back; only differences mean something."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def wait_out(self, seconds: float) -> None:
        """Wait for something that has a deadline in the world: time in which the machine sleeps counts."""
        ...


class Randomness(Protocol):
    """Random numbers and ids, so that tests own both."""

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]: the jitter of a retry."""
        ...

    def new_id(self) -> str:
        """Eight random characters of lower-case base32."""
        ...


class CommandResult(Protocol):
    """The result of a command: exit code and output."""

    @property
    def exit_code(self) -> int:
        """Its exit code; negative: the signal that ended it."""
        ...

    @property
    def stdout(self) -> str:
        """Its output, decoded with replacement, bounded; the whole is in ``stdout_file`` if given."""
        ...

    @property
    def stderr(self) -> str:
        """Its error output, likewise."""
        ...

    @property
    def is_timed_out(self) -> bool:
        """True if the time ran out and the whole process group was ended."""
        ...


class Processes(Protocol):
    """The one way to start a command (ruling 25).

    One that has a true ``starts_nothing`` is a rehearsal and needs no trust.
    """

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
    ) -> CommandResult:
        """Run a command in its own process group and wait for its end; cancelling ends the group.

        Args:
            command: Text for the shell, or an argument list.
            cwd: Working directory.
            env: Values added to a copy of the environment that has no provider keys.
            stdin: What it reads.
            timeout_seconds: Then the group gets TERM, a grace, and KILL.
            output_directory: Where ``stdout.txt`` and ``stderr.txt`` get the full output.
            on_output: Called with ``(channel, text)`` as output arrives.
        """
        ...
