"""A run's events to its trace, and how the trace of a resumed run finds the earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.logs import own_logger
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.tracing import read_tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.protocols import Clock
    from attractor_nb.runtime.begin import Beginning

LOGGER = own_logger(__name__)
TRACE_KEY: Final = "traceparent"
"""The entry of a manifest that names the span of its run, as W3C's header of that name does."""


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
