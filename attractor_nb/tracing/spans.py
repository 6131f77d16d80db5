"""Events of a run as spans: run > stage > attempt > model and tool calls; branches and child runs nested.

Spans get the times of the events, so it does not matter when they are made. What is still open at the end of
a run is ended as cut off. Nothing is asked of the run but, where content is wanted, the files of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    EventsDropped,
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ModelCallEnded,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineRewound,
    RunWarning,
    StageEnd,
    StageFailed,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.states import as_result
from attractor_nb.tracing import facts, names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext, Tracer

    from attractor_nb.model.events import Event
    from attractor_nb.tracing.facts import StageReader

Key = tuple[str, ...]
RUN: Final[Key] = ("run",)
_OF_THE_RUN: Final = (RunWarning, GoalGateUnsatisfied, PipelineRestarted, PipelineRewound, EventsDropped)
_OF_AN_ATTEMPT: Final = (InterviewStarted, InterviewCompleted, InterviewTimeout)


@dataclass(frozen=True, slots=True)
class _Open:
    """A span that has begun."""

    span: Span
    began: int  #: When, in nanoseconds since 1970.
    within: Key


class RunSpans:
    """The spans of one run and of its children. ``take`` is called with its events, in their order."""

    def __init__(
        self, tracer: Tracer, parent: Context | None, *, has_content: bool = False, read: StageReader | None = None
    ) -> None:
        """Begin nothing yet.

        Args:
            tracer: Makes the spans.
            parent: What the run is in.
            has_content: Whether spans are to hold content.
            read: Reads files of stages, for their prompts and responses; None where they are not at hand, as
                those of a child run.
        """
        self._tracer = tracer
        self._parent = parent
        self._has_content = has_content
        self._read = read
        self._run_id = ""
        self._open: dict[Key, _Open] = {}
        self._children: dict[str, RunSpans] = {}

    def begin(self, seconds: float, pipeline: str, run_id: str, links: Sequence[Link] = ()) -> SpanContext | None:
        """Begin the span of the run; what another trace can name it by.

        Args:
            seconds: When, since 1970.
            pipeline: The pipeline's name.
            links: Spans of earlier parts of it.
        """
        self._run_id = run_id
        attributes = facts.of_run(pipeline, run_id)
        self._begin(RUN, (), f"{names.INVOKE_WORKFLOW} {pipeline}".strip(), seconds, attributes, links)
        return self._open[RUN].span.get_span_context()

    def take(self, event: Event) -> None:
        """Take an event."""
        match event:
            case StageStarted():
                self._begin_attempt(event)
            case StageEnd():
                self._end_attempt(event)
            case ModelCallEnded():
                self._model_call(event)
            case ToolCallEnded():
                self._tool_call(event)
            case ParallelBranchStarted() | ParallelBranchCompleted():
                self._take_branch(event)
            case ChildStarted() | ChildEvent() | ChildEnded():
                self._take_child(event)
            case PipelineCompleted() | PipelineFailed() | PipelineInterrupted():
                self._end_run(event)
            case _:
                self._take_note(event)

    def close(self, seconds: float) -> None:
        """End all open spans; no further events follow."""
        self._cut_off((), seconds)

    # -- stages --------------------------------------------------------------------------------------

    def _begin_attempt(self, event: StageStarted) -> None:
        stage, attempt = ("stage", event.branch, event.name), ("attempt", event.branch, event.name)
        if attempt in self._open:  # an end that was dropped
            self._cut_off(attempt, event.time)
        if stage not in self._open:
            within = ("branch", event.branch) if event.branch else RUN
            self._begin(stage, within, f"stage {event.name}", event.time, facts.of_stage(event))
        self._begin(attempt, stage, f"attempt {event.attempt}", event.time, facts.of_attempt(event, self._run_id))

    def _end_attempt(self, event: StageEnd) -> None:
        stage, attempt = ("stage", event.branch, event.name), ("attempt", event.branch, event.name)
        found = facts.of_end(event)
        if self._has_content and self._read is not None:
            found |= facts.content_of_attempt(event, self._read)
        error = event.error or event.outcome.failure_reason if isinstance(event, StageFailed) else None
        self._end(attempt, event.time, found, error)
        if event.is_commit:
            self._end(stage, event.time, facts.of_commit(event), error)

    def _model_call(self, event: ModelCallEnded) -> None:
        found = facts.of_model_call(event, self._run_id)
        title = f"{names.CHAT} {found.get(names.REQUEST_MODEL, '')}".strip()
        self._call(event, title, found, event.error or None, SpanKind.CLIENT, event.error_type)

    def _tool_call(self, event: ToolCallEnded) -> None:
        found = facts.of_tool_call(event)
        if self._has_content:
            found |= facts.content_of_tool_call(event)
        self._call(event, f"{names.EXECUTE_TOOL} {event.tool}", found, event.error or None, SpanKind.INTERNAL)

    def _call(
        self,
        event: ModelCallEnded | ToolCallEnded,
        title: str,
        attributes: Mapping[str, Any],
        error: str | None,
        kind: SpanKind,
        error_type: str = "",
    ) -> None:
        """Add the span of an ended call; it starts before the event by the call's duration."""
        key: Key = ("call", event.branch, event.name)
        within: Key = ("attempt", event.branch, event.name)
        self._begin(key, within, title, event.time - event.duration, attributes, kind=kind)
        self._end(key, event.time, {}, error, error_type)

    # -- branches and children -----------------------------------------------------------------------

    def _take_branch(self, event: ParallelBranchStarted | ParallelBranchCompleted) -> None:
        key: Key = ("branch", event.branch)
        if isinstance(event, ParallelBranchStarted):
            within: Key = ("attempt", enclosing(event.branch), event.name)
            self._begin(key, within, f"branch {event.id}", event.time, {names.BRANCH: event.branch})
            return
        error = event.failure_reason if event.status == "fail" else None
        self._end(key, event.time, {names.OUTCOME: event.status}, error)

    def _take_child(self, event: ChildStarted | ChildEvent | ChildEnded) -> None:
        if isinstance(event, ChildStarted):
            attempt = self._open.get(("attempt", event.branch, event.name))
            parent = set_span_in_context(attempt.span) if attempt else self._parent
            child = RunSpans(self._tracer, parent, has_content=self._has_content)
            child.begin(event.time, event.pipeline, event.child_id)
            self._children[event.child_id] = child
            return
        child = self._children.get(event.child_id)
        if child is None:
            return
        if isinstance(event, ChildEvent):
            child.take(event.event)
        else:  # of one whose events nobody heard this is all that is known
            outcome = as_result(event.status)
            child.end_run(event.time, outcome, event.reason if outcome == "fail" else None)
            del self._children[event.child_id]

    # -- the run -------------------------------------------------------------------------------------

    def _end_run(self, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> None:
        match event:
            case PipelineCompleted():
                self.end_run(event.time, "success", None)
            case PipelineFailed():
                self.end_run(event.time, "fail", event.error)
            case PipelineInterrupted():
                self.end_run(event.time, "interrupted", None)

    def end_run(self, seconds: float, outcome: str, error: str | None) -> None:
        """End the span of the run, and before it what is still open in it."""
        self._end(RUN, seconds, {names.OUTCOME: outcome}, error)

    # -- spans ---------------------------------------------------------------------------------------

    def _begin(
        self,
        key: Key,
        within: Key,
        title: str,
        seconds: float,
        attributes: Mapping[str, Any],
        links: Sequence[Link] = (),
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        within = within if within in self._open else RUN if RUN in self._open else ()
        outer = self._open.get(within)
        began = max(_nanoseconds(seconds), outer.began if outer else 0)
        span = self._tracer.start_span(
            facts.plain_text(title),
            set_span_in_context(outer.span) if outer else self._parent,
            kind,
            facts.clean(attributes),
            links,
            began,
        )
        self._open[key] = _Open(span, began, within)

    def _take_note(self, event: Event) -> None:
        """What is no span is an event of one, or nothing."""
        if isinstance(event, StageRetrying):
            self._note(("stage", event.branch, event.name), event)
        elif isinstance(event, _OF_AN_ATTEMPT):
            self._note(("attempt", event.branch, event.node_id), event)
        elif isinstance(event, _OF_THE_RUN):
            self._note(RUN, event)

    def _note(self, key: Key, event: Event) -> None:
        found = self._open.get(key) or self._open.get(RUN)
        if found is not None:
            found.span.add_event(event.type, facts.of_note(event), max(found.began, _nanoseconds(event.time)))

    def _end(
        self, key: Key, seconds: float, attributes: Mapping[str, Any], error: str | None, error_type: str = ""
    ) -> None:
        """End a span, with an error if there is one; what is still open in it was cut off."""
        if key not in self._open:
            return
        self._cut_off(key, seconds, is_kept=True)
        found = self._open.pop(key)
        found.span.set_attributes(facts.clean(attributes))
        if error is not None:
            found.span.set_attribute(names.ERROR_TYPE, error_type or names.OTHER_ERROR)
            found.span.set_status(StatusCode.ERROR, facts.plain_text(error))
        found.span.end(max(found.began, _nanoseconds(seconds)))

    def _cut_off(self, key: Key, seconds: float, *, is_kept: bool = False) -> None:
        """End what is open in a span, from within, and the span itself unless it is kept."""
        for other in [name for name, found in self._open.items() if found.within == key and name != key]:
            self._cut_off(other, seconds)
        if key == RUN or not key:
            for child in self._children.values():
                child.close(seconds)
        if is_kept or (found := self._open.pop(key, None)) is None:
            return
        found.span.set_attribute(names.OUTCOME, names.CUT_OFF)
        found.span.end(max(found.began, _nanoseconds(seconds)))


def _nanoseconds(seconds: float) -> int:
    return max(0, int(seconds * 1_000_000_000))
