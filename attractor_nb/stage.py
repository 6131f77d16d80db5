"""The scope of the stage that is being executed: its files, its key, its voice.

The spec gives a handler four things (node, context, graph, logs_root) and a backend three. A handler that
needs more about the attempt that is under way asks ``current_stage()``; the engine sets it around
each attempt, in threads too.
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec

from attractor_nb.model.events import Event, StageOutput
from attractor_nb.redaction import StreamRedactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from attractor_nb.model.branch import BranchResult
    from attractor_nb.model.calls.answer_stream import AnswerStream
    from attractor_nb.model.calls.messages import Attachment
    from attractor_nb.model.child import Children
    from attractor_nb.model.graph import Edge, Node
    from attractor_nb.model.outcome import Usage
    from attractor_nb.protocols import Processes

RESPONSE: Final = "response"
"""The channel of what a model or an agent answers."""


class StageFiles(Protocol):
    """The directory of a stage, holding the files of its latest visit (spec 5.6; ruling 28)."""

    @property
    def directory(self) -> Path:
        """The stage's directory; made when first asked for."""
        ...

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the stage, whole or not at all."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file of the stage that may hold anything, and be in folders of it: ``out/plot.png``."""
        ...

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write the text that ``compose`` gives into a new file; whether it is: there may be one already.

        What stays in memory composes it when it is read.
        """
        ...

    def append_text(self, name: str, text: str) -> None:
        """Add to a file of the stage, such as a response that is still arriving."""
        ...

    def read_text(self, name: str) -> str | None:
        """The text of a file of the stage; None when there is none."""
        ...

    def rename(self, name: str, new_name: str) -> None:
        """Give a file of the stage another name, whatever kind of file it is."""
        ...


class Branches(Protocol):
    """The branches of the fan-out that is under way (spec 3.8, 4.8; ruling 22)."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The branches, in edge order."""
        ...

    async def walk(
        self, *, max_parallel: int, settled: Callable[[Sequence[BranchResult]], str]
    ) -> tuple[BranchResult, ...]:
        """Walk all branches to the join, each with a copy of the context; finished ones are not walked again.

        Args:
            max_parallel: How many at the same time.
            settled: Given the results so far, in the order in which they came: why the others are to be
                cancelled, or empty.

        Returns:
            All results, in edge order.
        """
        ...


class Conversation(Protocol):
    """The conversation of a thread so far, for stages with ``full`` fidelity (spec 5.4).

    It is kept in the run directory, one file for each thread. The text that an attempt saved counts once its stage
    is committed: a stage that is run again, or was rewound, does not find its own words in it. Each branch of a
    fan-out continues from the conversation before the fan-out. No other branch and no later stage sees its words.
    """

    @property
    def thread(self) -> str:
        """The thread's key."""
        ...

    def read(self) -> str:
        """The text that the last committed stage of this thread saved, or this attempt since; empty at its beginning.

        The text is the backend's own: messages as JSON, or the id of an agent's session.
        """
        ...

    def save(self, text: str) -> None:
        """Keep the whole conversation, this attempt's part included; once more replaces it."""
        ...


class ToolServers(Protocol):
    """The MCP servers of a run: each is started when a stage first needs it, and ended with the run."""

    @property
    def names(self) -> Sequence[str]:
        """Those that the graph declares."""
        ...

    def cache_inputs(self, server: str) -> Mapping[str, Any]:
        """The settings that decide its tools' answers, as JSON: command or address, hashes of variables' values."""
        ...

    async def tools(self, server: str) -> Sequence[Mapping[str, Any]]:
        """Its tools: ``name``, ``description`` and ``schema`` of each. Starts it where it does not run."""
        ...

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool: what came of it as text, and whether that is an error."""
        ...


class InstructionSource(Protocol):
    """The source of instructions to a run under way."""

    is_used: bool
    """The run has received an instruction."""

    def carry(self, scope: StageScope) -> str:
        """The instructions new to an attempt under way, as sections of a prompt; empty for none."""
        ...


class Kept(NamedTuple):
    """The commit that keeps the changes of a stage."""

    commit: str = ""  #: The commit of the run's worktree; empty where nothing is kept.
    changes: str = ""  #: The difference from the commit before, as a diff; empty when there is none.
    warnings: tuple[str, ...] = ()  #: Omissions, in sentences (ruling 49).


class Workplace(Protocol):
    """The working directory of commands, agents and models' tools: one for a run and its children (ruling 41).

    It is the run's option ``workdir``, else the directory in which the run was started, or, by ``isolation``,
    a workspace or a git worktree of the run's own.
    """

    @property
    def directory(self) -> Path:
        """The working directory, absolute."""
        ...

    @property
    def is_kept(self) -> bool:
        """True if what stages change there is kept by commits."""
        ...

    def keep(self, message: str) -> Kept:
        """Commit what a stage has changed, and block meanwhile."""
        ...

    @property
    def processes(self) -> Processes:
        """The starter of the run's commands; a command without ``cwd`` runs in the directory of tool stages."""
        ...

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The caller's own functions that models may call, by name (``Pipeline(…, tools=…)``)."""
        ...

    @property
    def servers(self) -> ToolServers:
        """The MCP servers that the graph declares."""
        ...

    def hook(self, node: Node, when: str) -> str:
        """The command of ``tool_hooks.<when>`` for a node, its own before the graph's; empty when none."""
        ...

    def hook_seconds(self, node: Node) -> float:
        """The time limit of each of its hooks, in seconds."""
        ...


class StageScope(msgspec.Struct):
    """The scope of an attempt: its identity, its files, and the services that it may use.

    Attributes:
        for_child: Gives the funds that a child run of this stage may spend; for the engine alone.
    """

    run_id: str
    node_id: str
    visit: int  #: Ordinal of the visit, from 1.
    attempt: int  #: Ordinal of the try within the visit, from 1.
    logs_root: Path  #: The run directory.
    files: StageFiles
    announce: Callable[[Event], None]  #: Announce an event: ``announce(StageOutput(name=…, text=…))``.
    fidelity: str = ""  #: Resolved fidelity mode (spec 5.4).
    thread: str = ""  #: Thread key under ``full`` fidelity, else empty.
    preamble: str = ""  #: Context carried into the prompt under the other modes, possibly empty.
    index: int = 0  #: Ordinal of the stage in the run.
    branch: str = ""  #: Path of the branch that the stage is in, or empty.
    branches: Branches | None = None  #: For a fan-out: its branches.
    has_item: bool = False  #: It is run for one item of a list (``for_each``), which the context has as ``item``.
    spent_edges: tuple[Edge, ...] = ()  #: Edges out of the node that were taken `max_taken` times.
    children: Children | None = None  #: Factory of its child runs; None where there are none.
    #: Instructions of a supervisor that no prompt has contained yet, oldest first.
    instructions: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()  #: The same of users: what they told the run, or this node.
    inbox: InstructionSource | None = None  #: Source of further instructions; None on a worker.
    #: Way in which the attempt can receive them: ``request`` or ``turn``, set by a backend that asks for them
    #: (``more_instructions``) while it works; empty where it cannot.
    reach: Literal["", "request", "turn"] = ""
    told: str = ""  #: Instructions that it received, as text after its prompt.
    complaint: str = ""  #: Problem of the last answer of this visit, for the prompt; or empty.
    attachments: tuple[Attachment, ...] = ()  #: Images and documents that the model is shown beside the prompt.
    conversation: Conversation | None = None  #: Under ``full`` fidelity: what the thread has said so far; else None.
    #: Working directory of agents and tools; None outside a run of this machine, such as on a worker.
    workplace: Workplace | None = None
    #: Given a node and a file's name, the text that the node's latest visit left under it; None when there is none.
    read_file: Callable[[str, str], str | None] = lambda _node, _name: None
    #: To be called between two requests to models: raises ``BudgetReached`` when what the run has spent, this attempt's
    #: announced calls included, has reached one of its bounds.
    check_spending: Callable[[], None] = lambda: None
    is_bounded: bool = False  #: A bound on money or tokens holds for it.
    #: To be entered around a request, given the most that it can consume: waits until there is room for that beside
    #: what other stages are spending; raises ``BudgetReached`` when there is none left.
    paying: Callable[[Usage], AbstractAsyncContextManager[None]] = lambda _most: nullcontext()
    for_child: Callable[[], Any] = lambda: None
    #: Receives an exception of the user's Python: its traceback becomes a file of the stage.
    failed: Callable[[BaseException], object] = lambda _error: None
    #: Filters that hold back beginnings of secrets, by channel; only for the engine.
    streams: dict[str, StreamRedactor] | None = None
    #: Filter that holds back reasoning in the streamed response (ruling 46); only for the engine.
    answer: AnswerStream | None = None

    @property
    def idempotency_key(self) -> str:
        """``run:node:visit``, in a branch ``run:branch/node:visit``; the same over re-runs of a visit.

        Neither a restart nor a rewind uses the number of a visit again (``RunState.numbers``), so no key
        ever stands for two executions.
        """
        node = f"{self.branch}/{self.node_id}" if self.branch else self.node_id
        return f"{self.run_id}:{node}:{self.visit}"

    @property
    def place(self) -> dict[str, Any]:
        """The identity of the attempt, as the fields of its events: ``ModelCallEnded(**scope.place, …)``."""
        return {"name": self.node_id, "index": self.index, "visit": self.visit, "attempt": self.attempt}

    def more_instructions(self) -> str:
        """The instructions since this attempt's prompt, as text for its model; each call returns new ones only.

        To be called in the run's event loop, by a backend that has set ``reach``.
        """
        return "" if self.inbox is None or not self.inbox.is_used else self.inbox.carry(self)

    def stream(self, text: str, channel: str = RESPONSE) -> None:
        """Announce a piece of the stage's output as it arrives; of a response not its reasoning."""
        if self.streams is None:
            self.streams = {}
        if channel == RESPONSE:
            if self.answer is None:
                from attractor_nb.model.calls.answer_stream import AnswerStream  # noqa: PLC0415 - for responses alone

                self.answer = AnswerStream()
            text = self.answer.feed(text)
        stream = self.streams.setdefault(channel, StreamRedactor())
        self._announce_output(stream.feed(text), channel)

    def end_streams(self) -> None:
        """Give out what may have been the beginning of a secret and was none. For the engine alone."""
        for channel, stream in (self.streams or {}).items():
            rest = self.answer.finish() if channel == RESPONSE and self.answer is not None else ""
            self._announce_output(stream.feed(rest) + stream.finish(), channel)

    def _announce_output(self, text: str, channel: str) -> None:
        if not text:
            return
        self.announce(StageOutput(**self.place, text=text, channel=channel))


_CURRENT: ContextVar[StageScope] = ContextVar("attractor_stage")


def stage_or_none() -> StageScope | None:
    """``current_stage()`` where a stage is being executed, else None.

    For backends, which may also be called outside a run.
    """
    return _CURRENT.get(None)


def current_stage() -> StageScope:
    """The scope of the attempt under way.

    Raises:
        LookupError: No stage is being executed here.
    """
    return _CURRENT.get()


def stream_output(text: str, channel: str = RESPONSE) -> None:
    """``current_stage().stream(…)`` where a stage is being executed, else nothing."""
    if (scope := stage_or_none()) is not None:
        scope.stream(text, channel)


enter_stage = _CURRENT.set
"""Makes a scope the current one for this task and whatever it starts. For the engine alone."""
