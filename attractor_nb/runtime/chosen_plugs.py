"""The parts that single options of a run choose: its users, its cache, its session of agents, its trace."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs
from msgspec.structs import replace as structs_replace

from attractor_nb import cassettes
from attractor_nb.backends import AGENTS, NAMED, UNINSTALLED, resolve_backend
from attractor_nb.decisions.branch_policies import PARALLEL_TYPE
from attractor_nb.decisions.planning.plan import Plan, compile_plan
from attractor_nb.engine.stage_cache import StageCache
from attractor_nb.errors import AttractorError, OptionError, StorageError
from attractor_nb.handlers.handler_registry import HandlerRegistry
from attractor_nb.interviewers import RefusingInterviewer, resolve_interviewer
from attractor_nb.logs import own_logger
from attractor_nb.maybe_async import call
from attractor_nb.protocols import BackendLifetime, Clock, CodergenBackend, Handler, Interviewer, Processes, RunStore
from attractor_nb.runtime.begin import DEFAULT_RUNS_BASE, RunStart, name_of_backend
from attractor_nb.runtime.handles.presenters import are_runs_shown, registered_interviewer
from attractor_nb.runtime.prepare.run_options import InterviewerSpec, RunOptions, as_path, worker_wait_seconds
from attractor_nb.storage.cache_store import CacheStore
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.tracing import read_tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.cassettes import CassetteReport, Tape
    from attractor_nb.engine.attempt_spending import Funds
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.sessions import SessionRecorder
    from attractor_nb.workers.shipping import Shipping


CACHE_NAME = "cache"


LOGGER = own_logger(__name__)
TRACE_KEY: Final = "traceparent"
"""The entry of a manifest that names the span of its run, as W3C's header of that name does."""


def interviewer_of(named: InterviewerSpec, *, is_waited_for: bool) -> Interviewer:
    """The interviewer of a run. By default the view of the run, the caller, or the terminal.

    Args:
        named: What ``interviewer=`` says.
        is_waited_for: The caller blocks until the end, and cannot call ``run.answer``.
    """
    if named is None and (are_runs_shown() or not is_waited_for):
        return resolve_interviewer("deferred")
    return named_interviewer(named)


def named_interviewer(named: InterviewerSpec) -> Interviewer:
    """The interviewer that an option names, one of a front-end among them.

    Raises:
        OptionError: It names none.
    """
    return registered_interviewer(named) or resolve_interviewer(named)


def has_interviewer(options: RunOptions) -> bool:
    """True if a question that no stage of the graph puts reaches a caller who expects it.

    In a script without an interviewer it does not: it would wait forever.
    """
    if options.interviewer is None:
        return are_runs_shown()
    return not getattr(named_interviewer(options.interviewer), "refuses_all", False)


def cache_directory(options: RunOptions) -> Path | None:
    """The directory that ``cache=`` means; None without one."""
    if options.cache is False:
        return None
    if options.cache is True:
        return refuse_linked(Path(options.runs_dir or DEFAULT_RUNS_BASE).parent / CACHE_NAME)
    return refuse_linked(Path(options.cache), option='cache="DIR"')


def cache_of(options: RunOptions, plan: Plan, workspace: Workspace) -> StageCache | None:
    """The cache of a run; None without one, and beside a cassette: that has to hear of every call."""
    directory = cache_directory(options)
    if directory is None or options.cassette is not None:
        return None
    return StageCache(CacheStore(directory, options.disk), plan.graph.name, workspace.directory)


class SessionFeed:
    """Keeps the session for as long as the run lasts; a fault of it is never the run's."""

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder

    async def open(self) -> None:
        """Nothing is needed before the first fan-out."""

    async def close(self) -> None:
        """Write what is left; the run has announced its end."""
        try:
            await call(self._recorder.close)
        except AttractorError as error:
            LOGGER.warning("the session's status cannot be written: %s", error)


def feed_of(
    place: bool | str | Path,  # noqa: FBT001 - the option as the user gives it
    graph: Graph,
    source_file: str,
    before: Iterable[Event],
    stream: EventStream,
) -> tuple[SessionFeed, ...]:
    """The feed of a run's session of agents; empty when no session is asked for or the graph has no branches.

    Args:
        place: The directory under which the session lies; True: the working directory; False: none.
        graph: What runs.
        source_file: The pipeline's file.
        before: What was recorded before a resume.
        stream: Where the events come from.
    """
    if place is False or PARALLEL_TYPE not in graph.handler_types.values():
        return ()
    from attractor_nb.sessions import SessionRecorder  # noqa: PLC0415 - a fifth of what a pipeline loads, for few

    recorder = SessionRecorder("." if place is True else place, source_file=source_file)
    recorder.recall(before)
    stream.add_sink(recorder.take)
    return (SessionFeed(recorder),)


def trace(
    option: object,
    pipeline: str,
    start: RunStart,
    stream: EventStream,
    clock: Clock,
    read: Callable[[str, str, str], str | None],
) -> None:
    """Make spans of a run's events, in their own thread; a fault of the tracer is never the run's.

    Args:
        option: ``tracer=`` as the user gives it.
        pipeline: The pipeline's name.
        start: Where the run begins.
        stream: Where the events come from.
        clock: The run's clock.
        read: Reads files of stages, should spans hold content.
    """
    tracing = read_tracing(option)
    if tracing is None:
        return
    from opentelemetry.context import get_current  # noqa: PLC0415 - the extra "tracing"

    from attractor_nb.tracing.spans import RunSpans  # noqa: PLC0415 - it imports opentelemetry

    spans = RunSpans(tracing.tracer, get_current(), has_content=tracing.content, read=read)
    try:
        links = _earlier(start) if start.sequence else []
        own = spans.begin(clock.time(), pipeline, start.run_id, links)
    except Exception:  # whatever a tracer raises
        LOGGER.exception("the run is not traced")
        return
    stream.observe(spans.take)
    if own is not None and own.is_valid:
        name = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        start.store.save_manifest({TRACE_KEY: name})


def _earlier(start: RunStart) -> list[Any]:
    """A link to the span of the run before it was stopped, if it was traced."""
    from opentelemetry.propagate import extract  # noqa: PLC0415 - the extra "tracing"
    from opentelemetry.trace import Link, get_current_span  # noqa: PLC0415

    plain = read_manifest(start.store.logs_root)[0] or {}
    found = get_current_span(extract({TRACE_KEY: str(plain.get(TRACE_KEY, ""))})).get_span_context()
    return [Link(found)] if found.is_valid else []


# ``cassette=``: the calls of a run recorded or replayed (docs/cassettes.md).


def with_cassette(options: RunOptions, *, is_resume: bool = False) -> tuple[RunOptions, Tape | None]:
    """The options of a run with a cassette, and its tape; the same and None for a run without.

    A replay starts no command, makes no backend and has no workers. Without ``backend=`` the recorded one
    is taken. The rest of a run that continues is added to what was recorded.
    """
    if options.cassette is None:
        return options, None
    mode = options.cassette_mode or getattr(options.cassette, "mode", None) or cassettes.AUTO
    tape = cassettes.Tape.of_file(
        as_path(options.cassette, "cassette"),
        cassettes.AUTO if is_resume and mode == cassettes.RECORD else mode,
        options.disk or Disk(),
    )
    if options.backend is None and tape.mode == cassettes.AUTO and tape.backend in AGENTS:
        raise OptionError(
            f"{tape.path} names the agent {tape.backend}, which would be started for calls that are not recorded",
            hint=f'say so: backend="{tape.backend}", or use cassette_mode="replay"',
        )
    if options.backend is None and tape.mode != cassettes.RECORD and tape.backend in NAMED:
        options = replace(options, backend=tape.backend)
    if tape.mode == cassettes.AUTO and options.backend is None and tape.backend:
        raise OptionError(
            f"{tape.path} was recorded with a custom backend: {tape.backend}",
            hint='give it again, backend=…, or use cassette_mode="replay"',
        )
    if tape.is_replay:
        options = replace(options, processes=cassettes.NoProcesses(), executor=None, cassette_mode=tape.mode)
    elif not tape.backend or tape.mode == cassettes.RECORD:
        tape.name_backend(name_of_backend(options.backend))
    return options, tape


def answering_backend(options: RunOptions, tape: Tape | None) -> CodergenBackend:
    """The backend for prompts: opened only if a call needs it, or by a worker; absent in a replay."""
    spec = options.backend
    if tape is None or tape.mode == cassettes.RECORD or options.executor is not None:
        return resolve_backend(spec)
    if tape.mode == cassettes.AUTO:
        return cassettes.OnDemandBackend(resolve_backend(spec))
    if spec is None:
        return cassettes.AbsentBackend(None)
    try:
        return cassettes.AbsentBackend(resolve_backend(spec))
    except OptionError:
        if isinstance(spec, str) and spec in NAMED:
            describing = UNINSTALLED.get(spec)  # it is not installed here, and nothing of it is called
            return cassettes.AbsentBackend(describing() if describing else None)
        raise


def on_tape(plugs: StageServices, answering: CodergenBackend, tape: Tape | None) -> StageServices:
    """The services of model and tool stages, with the tape in front of them."""
    if tape is None:
        return plugs
    return structs.replace(
        plugs,
        backend=cassettes.RecordedBackend(tape, plugs.backend, cassettes.DescribedCalls.of(answering)),
        processes=cassettes.RecordedProcesses(tape, plugs.processes),
    )


def inner_interviewer(interviewer: Interviewer, tape: Tape | None) -> Interviewer:
    """The interviewer behind the gates; in a replay it asks no one."""
    if tape is None:
        return interviewer
    return cassettes.PresetInterviewer(RefusingInterviewer() if tape.is_replay else interviewer)


def recording_interviewer_for(gates: Interviewer, tape: Tape | None) -> Interviewer:
    """Interviewer of the stages."""
    return gates if tape is None else cassettes.RecordedPeople(tape, gates)


class Recording(Struct):
    """The end of a recording, for the code that ends the run."""

    tape: Tape

    def end(self, status: str) -> CassetteReport:
        """Write what is to be written: a run that was interrupted replaces no cassette."""
        try:
            return self.tape.end(is_whole=status != "interrupted")
        except (OptionError, StorageError) as error:
            raise StorageError(
                f"the run has ended, and its cassette was not written: {error.message}",
                path=str(self.tape.path),
                hint=error.hint,
            ) from None

    def keep(self) -> None:
        """Keep what was recorded of a run that broke off, as far as the disk takes it."""
        with contextlib.suppress(OptionError, StorageError):
            self.tape.end(is_whole=False)


# ``executor=``: which plugs of a run do their work on workers, and whether they can.


class StageServices(Struct, frozen=True):
    """The services behind the model and tool stages of a run."""

    backend: CodergenBackend  #: Backend of prompts.
    processes: Processes  #: Runner of commands.
    shipping: Shipping | None = None  #: The way to the workers; None when all is done here.

    @property
    def lifetimes(self) -> tuple[BackendLifetime, ...]:
        """The lifetimes opened before the first stage and closed after the last; workers open a shipped backend."""
        if self.shipping is not None:
            return (self.shipping,)
        return (self.backend,) if isinstance(self.backend, BackendLifetime) else ()

    def shipped(self, handlers: dict[str, Handler]) -> dict[str, Handler]:
        """Handlers by node, those that may travel behind the way to the workers."""
        if self.shipping is None:
            return handlers
        from attractor_nb.workers.plugs import ShippedHandler, is_shippable, packed  # noqa: PLC0415 - for executors alone

        found: dict[int, Handler] = {}
        for handler in handlers.values():
            if is_shippable(handler) and id(handler) not in found:
                found[id(handler)] = ShippedHandler(self.shipping, handler, packed(handler, "the handler"))
        return {node_id: found.get(id(handler), handler) for node_id, handler in handlers.items()}


def shipping_of(options: RunOptions, plan: Plan) -> Shipping | None:
    """The way to the workers of ``executor=``, not opened yet; None without one."""
    if options.executor is None:
        return None
    from attractor_nb.workers.shipping import Shipping  # noqa: PLC0415 - for executors alone

    return Shipping(options.executor, wait_seconds=worker_wait_seconds(options.worker_wait), once=_once(plan))


def _once(plan: Plan) -> dict[str, bool]:
    """By node: whether its work must not happen twice unasked; one of a child run of that name counts, too."""
    once = {planned.id: planned.on_interrupted != "rerun" for planned in plan.nodes.values()}
    for child in plan.graph.children.values():
        for node_id, is_once in _once(compile_plan(child)).items():
            once[node_id] = once.get(node_id, False) or is_once
    return once


def shipped_plugs(plugs: StageServices, options: RunOptions, shipping: Shipping) -> StageServices:
    """The same plugs, done by the workers of ``executor=``. Processes of the caller's own stay here."""
    from attractor_nb.workers.plugs import ShippedBackend, ShippedProcesses  # noqa: PLC0415 - for executors alone

    return StageServices(
        ShippedBackend(shipping, plugs.backend, backend_name(options)),
        plugs.processes if options.processes is not None else ShippedProcesses(shipping),
        shipping,
    )


def check_shipping(options: RunOptions, handlers: Mapping[str, Handler | Callable[..., Any]]) -> None:
    """Check that what ``executor=`` ships can travel, before anything is made for a run."""
    if options.executor is None:
        return
    from attractor_nb.workers.plugs import check_executor, is_shippable, packed  # noqa: PLC0415 - for executors alone

    check_executor(options.executor)
    if not backend_name(options):
        packed(resolve_backend(options.backend), "the backend")
    registry = HandlerRegistry()
    for handler_type, handler in handlers.items():
        registry.register(handler_type, handler)
        if is_shippable(handler):
            packed(handler, f"the handler of type {handler_type!r}")


def backend_name(options: RunOptions) -> str:
    """The name of the backend, if it has one: then each worker makes its own."""
    if options.backend is None:
        return "simulated"
    return options.backend if isinstance(options.backend, str) else ""


# Objects that a run inherits from its caller: a parent's users, a map's workers, a cassette.

CHILD_OF: Final = "child_of"
"""The entry of a question's metadata that names the stage whose child run asks."""


class ParentLink(Struct, frozen=True):
    """A child run's link to its parent."""

    debugging: Debugging  #: The parent's debugger.
    node_id: str  #: The stage whose child it is.
    #: Gives the stores of the parent and of those above it, the nearest first.
    stores: Callable[[], tuple[RunStore, ...]]


class SharedByParent(Struct, frozen=True):
    """Objects that a run receives from its caller, who shares them among several runs."""

    backend: CodergenBackend | None = None  #: One that is open already, for a run without an executor.
    shipping: Shipping | None = None  #: The way to workers, open already.
    workspace: Workspace | None = None  #: Of a child: its parent's place, when it works there; else its own.
    tape: Tape | None = None  #: Recording of its calls. The maker closes it if several runs share it.
    #: Of a child, which a stage of another run has started and may steer: what it knows of that.
    above: ParentLink | None = None
    funds: Funds | None = None  #: Of a child or a row of a map: what it may spend, with others.


class InheritedInterviewer:
    """Puts a child's questions through its parent's gates, to the same users.

    The parent's log has question and answer, too; there the stage is the child's node by its path, such as
    ``boss/approve``.

    Attributes:
        refuses_all: No person can be asked.
    """

    def __init__(self, gates: Gates, options: RunOptions, within: str, path: str) -> None:
        self.refuses_all = not has_interviewer(options)
        self._gates = gates
        self._within = within
        self._path = path

    async def ask(self, question: Question) -> Answer:
        """Put a question and wait for its answer."""
        return await self._gates.ask(self._marked(question))

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put several questions, one after the other."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Tell users something."""
        await self._gates.inform(message, f"{self._path}/{stage}")

    def _marked(self, question: Question) -> Question:
        return structs_replace(
            question,
            id=f"{self._within}/{question.id or question.stage}",
            stage=f"{self._path}/{question.stage}",
            metadata={**question.metadata, CHILD_OF: self._path},
        )
