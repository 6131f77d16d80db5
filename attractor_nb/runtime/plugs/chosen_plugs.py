"""What single options of a run choose: its people, its cache, its session of agents, its trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.calling import call
from attractor_nb.decisions.fan_outs.joins import PARALLEL_TYPE
from attractor_nb.engine.stage_cache import StageCache
from attractor_nb.errors import AttractorError
from attractor_nb.interviewers import resolve_interviewer
from attractor_nb.logs import own_logger
from attractor_nb.runtime.begin import DEFAULT_RUNS_BASE
from attractor_nb.runtime.handles.presenters import are_runs_shown
from attractor_nb.storage.cache_store import CacheStore
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.tracing import read_tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Clock, Interviewer
    from attractor_nb.runtime.begin import Beginning
    from attractor_nb.runtime.prepare.run_options import InterviewerSpec, RunOptions
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.sessions import SessionRecorder

CACHE_NAME = "cache"


LOGGER = own_logger(__name__)
TRACE_KEY: Final = "traceparent"
"""The entry of a manifest that names the span of its run, as W3C's header of that name does."""


def interviewer_of(named: InterviewerSpec, *, is_waited_for: bool) -> Interviewer:
    """The interviewer of a run. Nobody named: whoever shows the run, the caller's hands, or the terminal.

    Args:
        named: What ``interviewer=`` says.
        is_waited_for: The caller blocks until the end, so nobody can call ``run.answer``.
    """
    if named is None and (are_runs_shown() or not is_waited_for):
        return resolve_interviewer("deferred")
    return resolve_interviewer(named)


def has_interviewer(options: RunOptions) -> bool:
    """Whether a question that no stage of the graph puts finds somebody who expects it.

    A script that names nobody does not: it would wait for ever.
    """
    if options.interviewer is None:
        return are_runs_shown()
    return not getattr(resolve_interviewer(options.interviewer), "refuses_all", False)


def cache_directory(options: RunOptions) -> Path | None:
    """The directory that ``cache=`` means; None without one."""
    if options.cache is False:
        return None
    if options.cache is True:
        return Path(options.runs_dir or DEFAULT_RUNS_BASE).parent / CACHE_NAME
    return Path(options.cache)


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
    """What feeds the session of a run: one, or nothing where nobody asked or there are no branches.

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
    start: Beginning,
    stream: EventStream,
    clock: Clock,
    read: Callable[[str, str, str], str | None],
) -> None:
    """Make spans of a run's events, in a thread of their own; a fault of the tracer is never the run's.

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


def _earlier(start: Beginning) -> list[Any]:
    """A link to the span of the run before it was stopped, if it was traced."""
    from opentelemetry.propagate import extract  # noqa: PLC0415 - the extra "tracing"
    from opentelemetry.trace import Link, get_current_span  # noqa: PLC0415

    plain = read_manifest(start.store.logs_root)[0] or {}
    found = get_current_span(extract({TRACE_KEY: str(plain.get(TRACE_KEY, ""))})).get_span_context()
    return [Link(found)] if found.is_valid else []
