"""Records model calls with their inputs and answers, and replays them without a model."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cassettes.recorded_commands import FREE, TooMuch, look, restore, written_since
from attractor_nb.cassettes.tape import (
    Placeholders,
    Tape,
    inside,
    is_inside,
    is_recorded,
    place_of,
    plain_error,
    raise_recorded,
    timed_out,
)
from attractor_nb.context import AttemptContext, Context
from attractor_nb.decisions.commits import COST_KEY
from attractor_nb.decisions.replays.cache_keys import (
    RunPaths,
    attribute_inputs,
    context_inputs,
    model_call,
    read_values,
)
from attractor_nb.errors import TerminalError
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import LEFT_OUT, CallInputs, Response
from attractor_nb.model.events import ModelCallEnded, RunWarning
from attractor_nb.model.inputs import forged_keys
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.protocols import BackendLifetime, CodergenBackend, DescribesCalls, answers_only, takes_attachments
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.stage import Conversation, StageScope, current_stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Node

REPLAYED: Final = "replayed"
"""Finish reason of a replayed answer (``ModelCallEnded.finish``)."""
_SLACK_SECONDS: Final = 0.05
"""A call that is cancelled this near to its stage's time limit was ended by it."""


class AbsentBackend:
    """Represents a backend in a replay, which makes no calls.

    Attributes:
        inner: The backend; None when it is unknown.
    """

    takes_attachments: Final = True

    def __init__(self, inner: CodergenBackend | None) -> None:
        self.inner = inner

    def answers_only(self, node: Node) -> bool:
        """As the backend says."""
        return answers_only(self.inner, node)

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:  # noqa: ARG002 - the interface of all backends
        """Refuse."""
        raise TerminalError(f"a replay calls no model, but {node.id} needs one")


class OnDemandBackend:
    """Opens a backend when it is first called: with a recording it may never be."""

    def __init__(self, inner: CodergenBackend) -> None:
        self.inner = inner
        self.takes_attachments = takes_attachments(inner)
        self._opening = asyncio.Lock()
        self._is_open = False

    @property
    def reserves_requests(self) -> bool:
        """True if the backend reserves what each of its requests can cost (``StageScope.paying``)."""
        return bool(getattr(self.inner, "reserves_requests", False))

    def answers_only(self, node: Node) -> bool:
        """As the backend says."""
        return answers_only(self.inner, node)

    async def open(self) -> None:
        """Nothing is needed before the first call."""

    async def close(self) -> None:
        """Close the backend if it was opened."""
        if self._is_open and isinstance(self.inner, BackendLifetime):
            await self.inner.close()

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """The answer of the backend, which is opened at the first call."""
        async with self._opening:
            if not self._is_open:
                self._is_open = True
                if isinstance(self.inner, BackendLifetime):
                    await self.inner.open()
        return await call(self.inner.run, node, prompt, context)


class DescribedCalls:
    """The inputs of a backend's calls beside the prompt, also for a backend that does not describe them.

    Args:
        backend: The backend; None when it is unknown: then only the prompt tells calls apart.
    """

    def __init__(self, backend: CodergenBackend | None) -> None:
        self._backend = backend

    @classmethod
    def of(cls, backend: CodergenBackend) -> DescribedCalls:
        """The described calls of a backend, or of the one that it represents."""
        return cls(backend.inner if isinstance(backend, AbsentBackend | OnDemandBackend) else backend)

    @property
    def is_known(self) -> bool:
        """True if a listener can receive it."""
        return self._backend is not None

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:
        """JSON values by name; of a backend that cannot say: its kind, the node's attributes, the context."""
        if self._backend is None:
            return {}
        inputs = self._backend.call_inputs(node, context) if isinstance(self._backend, DescribesCalls) else None
        if inputs is not None:
            return inputs
        attributes = {name: value for name, value in attribute_inputs(node.attrs).items() if name != "prompt"}
        values = read_values({key: context.get(key) for key in context}, None)
        return {
            "backend": type(self._backend).__name__,
            "attributes": attributes,
            "context": context_inputs(values, RunPaths()),
        }


class RecordedBackend:
    """Answers from the tape, or asks the backend and records (``protocols.CodergenBackend``)."""

    def __init__(self, tape: Tape, backend: CodergenBackend, described: DescribedCalls) -> None:
        """Take the tape.

        Args:
            tape: What is recorded on.
            backend: What answers that which is not on it.
            described: What goes into a call beside the prompt.
        """
        self.takes_attachments = takes_attachments(backend)
        self._tape = tape
        self._backend = backend
        self._described = described

    @property
    def reserves_requests(self) -> bool:
        """True if the backend reserves what each of its requests can cost (``StageScope.paying``)."""
        return bool(getattr(self._backend, "reserves_requests", False))

    def answers_only(self, node: Node) -> bool:
        """As the backend says."""
        return answers_only(self._backend, node)

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """The recorded answer, or the backend's."""
        scope = current_stage()
        if is_inside():
            return await call(self._backend.run, node, prompt, context)
        conversation = "" if scope.conversation is None else scope.conversation.read()
        inputs = model_call(
            node.id,
            prompt,
            self._described.call_inputs(node, context),
            place=place_of(scope),
            preamble=scope.preamble,
            conversation=conversation,
            attachments=(each.digest for each in scope.attachments),
        )
        place = self._tape.place_of(scope)
        answer = self._tape.find(place, inputs, is_described=self._described.is_known)
        if answer is not None:
            return _replayed(answer, inputs, scope, context)
        return await self._recorded(node, prompt, context, inputs)

    async def _recorded(self, node: Node, prompt: str, context: Context, inputs: CallInputs) -> str | Outcome:
        scope = current_stage()
        place, marks = self._tape.place_of(scope), Placeholders.of(scope)
        observed = _Observed(scope, context)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            with inside():
                result: Any = await call(self._backend.run, node, prompt, context)
        except asyncio.CancelledError:
            limit = node.timeout
            if limit is not None and loop.time() - began >= limit.seconds - _SLACK_SECONDS:
                answer = observed.with_traces(timed_out(node.id, limit))
                self._tape.add(place, inputs, marks.marked(answer))
            raise
        except Exception as error:  # recorded, whatever it is, and raised again
            if is_recorded(error):
                self._tape.add(place, inputs, marks.marked(observed.with_traces(plain_error(error))))
            raise
        finally:
            observed.end()
        answer = observed.with_traces(plain_result(result)) if isinstance(result, str | Outcome) else None
        if answer is not None and (why := self._tape.add(place, inputs, marks.marked(answer))):
            scope.announce(RunWarning(message=f"{node.id} is not on the cassette: {why}", node=node.id))
        return result


class _Observed:
    """The side effects of a call: files, context values, the conversation."""

    def __init__(self, scope: StageScope, context: Context) -> None:
        self._scope = scope
        self._context = context
        self._directory = scope.files
        self._files = look(scope.files)
        self._values, self._logs = _set_so_far(context)
        self._conversation = scope.conversation
        self._recorded: _RecordedConversation | None = None
        if self._conversation is not None:
            self._recorded = _RecordedConversation(self._conversation)
            scope.conversation = self._recorded

    def end(self) -> None:
        """The call is over."""
        self._scope.conversation = self._conversation

    def with_traces(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer with what the call did beside it, without secrets."""
        set_by_now, logs = _set_so_far(self._context)
        values = {
            key: value for key, value in set_by_now.items() if key not in self._values or self._values[key] != value
        }
        try:
            files = written_since(self._directory, self._files)
        except TooMuch as reason:
            return {LEFT_OUT: f"it {reason}"}
        if values:
            answer["context"] = values
        if new_logs := logs[len(self._logs) :]:
            answer["logs"] = list(new_logs)
        if files:
            answer["files"] = files
        if self._recorded is not None and self._recorded.text is not None:
            answer["conversation"] = self._recorded.text
        return redacted_value(answer)


def _set_so_far(context: Context) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values that an attempt has set, and its log entries; all values for a context outside an attempt."""
    if isinstance(context, AttemptContext):
        return context.own_changes, context.own_logs
    return {key: context.get(key) for key in context}, ()


class _RecordedConversation:
    """A conversation that remembers what was saved (``stage.Conversation``)."""

    def __init__(self, inner: Conversation) -> None:
        self._inner = inner
        self.text: str | None = None

    @property
    def thread(self) -> str:
        """The thread's key."""
        return self._inner.thread

    def read(self) -> str:
        """Return the conversation of the thread."""
        return self._inner.read()

    def save(self, text: str) -> None:
        """Keep the conversation."""
        self._inner.save(text)
        self.text = text


def plain_result(result: str | Outcome) -> dict[str, Any]:
    """The result of a backend, as JSON values."""
    if isinstance(result, Outcome):
        return {"outcome": result.to_plain()}
    plain: dict[str, Any] = {"text": str(result)}
    if isinstance(result, Response):
        if result.usage is not None:
            plain["usage"] = result.usage.to_plain()
        if result.is_truncated:
            plain["is_truncated"] = True
        if result.note:
            plain["note"] = result.note
    return plain


def _replayed(answer: Mapping[str, Any], inputs: CallInputs, scope: StageScope, context: Context) -> str | Outcome:
    """The recorded result of the backend, with its side effects; nothing of it is spent again."""
    answer = Placeholders.of(scope).unmarked(answer)
    _check_keys(answer, scope)
    _announce(answer, inputs, scope)
    restore(scope.files, answer.get("files", {}))
    if updates := answer.get("context"):
        context.apply_updates(updates)
    for entry in answer.get("logs", ()):
        context.append_log(entry)
    raise_recorded(answer)
    if scope.conversation is not None and "conversation" in answer:
        scope.conversation.save(answer["conversation"])
    if "outcome" in answer:
        return _outcome(answer)
    if "text" not in answer:
        raise TerminalError(f"the recorded answer of {scope.node_id} has no text", hint="record it again")
    text = str(answer["text"])
    scope.stream(redacted(text))
    has_usage = "usage" in answer or bool(answer.get("files"))
    return Response(
        text,
        usage=Usage.from_plain(FREE) if has_usage else None,
        is_truncated=bool(answer.get("is_truncated")),
        note=str(answer.get("note", "")),
    )


def _check_keys(answer: Mapping[str, Any], scope: StageScope) -> None:
    """Refuse an answer that sets what the engine says, such as the exit code of a command (ruling 44)."""
    outcome: Mapping[str, Any] = answer.get("outcome") or {}
    keys = (*(answer.get("context") or ()), *(outcome.get("context_updates") or ()))
    if forged := forged_keys(keys, scope.node_id):
        raise TerminalError(
            f"the recorded answer of {scope.node_id} sets {forged[0]}, which the engine sets",
            hint="record it again, with a backend that sets keys of its own",
        )


def _outcome(answer: Mapping[str, Any]) -> Outcome:
    plain: Mapping[str, Any] = answer["outcome"]
    updates: Mapping[str, Any] = plain.get("context_updates") or {}
    if "usage" in plain or COST_KEY in updates or answer.get("files"):
        plain = {**plain, "usage": dict(FREE)}
    return Outcome.from_plain(plain)


def _announce(answer: Mapping[str, Any], inputs: CallInputs, scope: StageScope) -> None:
    """Say that a model's answer came from the cassette, at no cost."""
    model = inputs.values.get("model")
    if not model:
        return
    provider = inputs.values.get("provider")
    scope.announce(
        ModelCallEnded(
            **scope.place,
            model=f"{provider}:{model}" if provider else str(model),
            usage=Usage.from_plain(FREE),
            finish="" if "error" in answer else REPLAYED,
            error=str(answer["error"]["message"]) if "error" in answer else "",
            thread=scope.thread,
        )
    )
