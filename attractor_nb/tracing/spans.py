"""Events of a run as spans: run > stage > attempt > model and tool calls; branches and child runs nested.

Spans get the times of the events, so it does not matter when they are made. What is still open at the end of
a run is ended as cut off. Nothing is asked of the run but, where content is wanted, the files of a stage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    Event,
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
    StageEvent,
    StageFailed,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.states import as_result
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.tracing import names

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, SpanContext, Tracer


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
        attributes = of_run(pipeline, run_id)
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
            self._begin(stage, within, f"stage {event.name}", event.time, of_stage(event))
        self._begin(attempt, stage, f"attempt {event.attempt}", event.time, of_attempt(event, self._run_id))

    def _end_attempt(self, event: StageEnd) -> None:
        stage, attempt = ("stage", event.branch, event.name), ("attempt", event.branch, event.name)
        found = of_end(event)
        if self._has_content and self._read is not None:
            found |= content_of_attempt(event, self._read)
        error = event.error or event.outcome.failure_reason if isinstance(event, StageFailed) else None
        self._end(attempt, event.time, found, error)
        if event.is_commit:
            self._end(stage, event.time, of_commit(event), error)

    def _model_call(self, event: ModelCallEnded) -> None:
        found = of_model_call(event, self._run_id)
        title = f"{names.CHAT} {found.get(names.REQUEST_MODEL, '')}".strip()
        self._call(event, title, found, event.error or None, SpanKind.CLIENT, event.error_type)

    def _tool_call(self, event: ToolCallEnded) -> None:
        found = of_tool_call(event)
        if self._has_content:
            found |= content_of_tool_call(event)
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
        else:  # of one whose events were not received this is all that is known
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
            plain_text(title),
            set_span_in_context(outer.span) if outer else self._parent,
            kind,
            clean(attributes),
            links,
            began,
        )
        self._open[key] = _Open(span, began, within)

    def _take_note(self, event: Event) -> None:
        """Add an event without its own span to the span it belongs to, if any."""
        if isinstance(event, StageRetrying):
            self._note(("stage", event.branch, event.name), event)
        elif isinstance(event, _OF_AN_ATTEMPT):
            self._note(("attempt", event.branch, event.node_id), event)
        elif isinstance(event, _OF_THE_RUN):
            self._note(RUN, event)

    def _note(self, key: Key, event: Event) -> None:
        found = self._open.get(key) or self._open.get(RUN)
        if found is not None:
            found.span.add_event(event.type, of_note(event), max(found.began, _nanoseconds(event.time)))

    def _end(
        self, key: Key, seconds: float, attributes: Mapping[str, Any], error: str | None, error_type: str = ""
    ) -> None:
        """End a span, with an error if there is one; what is still open in it was cut off."""
        if key not in self._open:
            return
        self._cut_off(key, seconds, is_kept=True)
        found = self._open.pop(key)
        found.span.set_attributes(clean(attributes))
        if error is not None:
            found.span.set_attribute(names.ERROR_TYPE, error_type or names.OTHER_ERROR)
            found.span.set_status(StatusCode.ERROR, plain_text(error))
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


# Attributes of spans, as plain types: facts of their events, and content where it is asked for.

MAX_TEXT_CHARS: Final = 1000
"""Of the text of a status or a note: traces are kept by others, and read in lists."""
_TALK: Final = (InterviewStarted, InterviewCompleted, InterviewTimeout)

StageReader = Callable[[str, str, str], str | None]
"""Reads a file of a stage: node id, file name and branch to its text, or None."""
MAX_CONTENT_CHARS: Final = 20_000


def of_run(pipeline: str, run_id: str) -> dict[str, Any]:
    """Of a run."""
    return {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW: pipeline, names.RUN: run_id}


def of_stage(event: StageStarted) -> dict[str, Any]:
    """Of a visit to a node."""
    return {**_place(event), names.HANDLER: event.handler_type}


def of_attempt(event: StageStarted, run_id: str) -> dict[str, Any]:
    """Of an attempt. That of a model's stage is what the conventions call an agent, under the node's name."""
    is_agent = event.handler_type == DEFAULT_TYPE
    return {
        names.OPERATION: names.INVOKE_AGENT if is_agent else None,
        names.AGENT: event.name if is_agent else None,
        **_place(event),
        names.ATTEMPT: event.attempt,
        names.FIDELITY: event.fidelity,
        names.CONVERSATION: names.conversation(run_id, event.thread),
    }


def of_end(event: StageEnd) -> dict[str, Any]:
    """Of the end of an attempt.

    What it consumed has names of its own: who adds up the calls does not add it a second time. No price is no
    attribute, and never zero.
    """
    found: dict[str, Any] = {names.OUTCOME: event.outcome.status.value}
    if (usage := event.outcome.usage) is not None:
        found |= {
            names.ATTEMPT_INPUT_TOKENS: usage.input_tokens,
            names.ATTEMPT_OUTPUT_TOKENS: usage.output_tokens,
            names.ATTEMPT_COST: usage.cost_usd,
            names.ATTEMPT_UNPRICED: usage.unpriced_calls or None,
        }
    return found


def of_commit(event: StageEnd) -> dict[str, Any]:
    """Of the end of a visit."""
    return {
        names.OUTCOME: event.outcome.status.value,
        names.CACHED: event.is_cached or None,
        names.NEXT_NODE: event.next_node,
        names.ROUTE: event.route,
    }


def of_model_call(event: ModelCallEnded, run_id: str) -> dict[str, Any]:
    """Of a model call."""
    provider, model = names.provider_and_model(event.model)
    found: dict[str, Any] = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: provider,
        names.REQUEST_MODEL: model,
        names.RESPONSE_MODEL: event.answered_by,
        names.CONVERSATION: names.conversation(run_id, event.thread),
        names.FINISH_REASONS: (event.finish,) if event.finish else (),
    }
    if event.usage is not None:
        found |= {
            names.INPUT_TOKENS: event.usage.input_tokens,
            names.OUTPUT_TOKENS: event.usage.output_tokens,
            names.CACHED_TOKENS: event.usage.cached_tokens or None,
            names.CALL_COST: event.usage.cost_usd,
        }
    return found


def of_tool_call(event: ToolCallEnded) -> dict[str, Any]:
    """Of a tool call."""
    return {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: event.tool,
        names.TOOL_CALL: event.call_id,
        names.SKIPPED: bool(event.skipped) or None,
    }


def of_note(event: Event) -> dict[str, Any]:
    """Of something that happened on the way; what users were asked and said is content."""
    message = "" if isinstance(event, _TALK) else event.description
    return clean({names.NODE: event.node_id, "attractor.message": plain_text(message)})


def clean(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that say something, without secrets."""
    return {
        name: redacted(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None and value not in ("", ())
    }


def plain_text(text: str) -> str:
    """A short text without secrets."""
    return redacted(text)[:MAX_TEXT_CHARS]


def _place(event: StageEvent) -> dict[str, Any]:
    return {names.NODE: event.name, names.VISIT: event.visit, names.BRANCH: event.branch}


def content_of_attempt(event: StageEnd, read: StageReader) -> dict[str, Any]:
    """The messages that an attempt sent and received, from its files; empty when a later attempt has replaced them."""
    node = event.name, event.branch
    texts = [_read(read, *node, name) for name in ("prompt.md", "response.md")]
    if not any(texts) or not _is_of(event, _read(read, *node, "status.json")):
        return {}
    sent, got = texts
    messages: dict[str, dict[str, Any]] = {}
    if sent:
        messages[names.INPUT_MESSAGES] = _message("user", sent)
    if got:  # without a reason it is no message of the conventions
        reason = "error" if event.outcome.status.is_failure else "stop"
        messages[names.OUTPUT_MESSAGES] = {**_message("assistant", got), "finish_reason": reason}
    return {name: json.dumps([message], ensure_ascii=False) for name, message in messages.items()}


def content_of_tool_call(event: ToolCallEnded) -> dict[str, Any]:
    """Return the arguments and the result of a tool call."""
    arguments = json.dumps(redacted_value(dict(event.arguments)), ensure_ascii=False, default=str)
    return {names.TOOL_ARGUMENTS: arguments[:MAX_CONTENT_CHARS], names.TOOL_RESULT: event.result}


def _read(read: StageReader, node_id: str, branch: str, name: str) -> str:
    return read(node_id, name, branch) or ""


def _is_of(event: StageEnd, status: str) -> bool:
    """True if a status.json is that of this attempt: files of earlier ones are moved away before the next."""
    try:
        plain: Any = read_bounded_json(status)
    except ValueError:  # an agent may write anything there
        return False
    if not isinstance(plain, dict):
        return False
    entries = cast("dict[str, Any]", plain)
    return (entries.get("visit"), entries.get("attempt")) == (event.visit, event.attempt)


def _message(role: str, text: str) -> dict[str, Any]:
    """A message in the form of OpenTelemetry's GenAI conventions."""
    return {"role": role, "parts": [{"type": "text", "content": redacted(text)[:MAX_CONTENT_CHARS]}]}
