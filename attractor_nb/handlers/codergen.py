"""A task for a model (spec 4.5; ruling 26).

It composes the prompt, calls the backend, keeps prompt and response as files and judges what came
back. Which of the returned outcome and a status.json counts is the engine's decision (ruling 27).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.calling import call
from attractor_nb.decisions.answers.complaints import SHORTER, complaint_about
from attractor_nb.handlers.call_inputs import (
    PROMPT_FILE,
    attachments_of,
    backend_call,
    check_takes_attachments,
    rendered_node,
)
from attractor_nb.handlers.named_models import with_named_schema
from attractor_nb.handlers.response_texts import RESPONSE_FILE, answer_in, no_answer, response_updates
from attractor_nb.handlers.verdicts import TRUNCATED, NoAnswer, asks_for_verdict, read_verdict, verdict_request
from attractor_nb.model.calls.attachment import attachments_section
from attractor_nb.model.calls.prompt_sections import with_complaint, with_context, with_instructions, with_messages
from attractor_nb.model.calls.response import Response
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.protocols import answers_only
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from attractor_nb.context import Context
    from attractor_nb.model.calls.attachment import Attachment
    from attractor_nb.model.calls.call_content import StageCall
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CodergenBackend
    from attractor_nb.stage import StageScope


class CodergenHandler:
    """Puts a node's prompt to a backend.

    Args:
        backend: What answers.
        schemas: Models that ``response_schema`` of a node may name.
    """

    def __init__(self, backend: CodergenBackend, schemas: Mapping[str, type[BaseModel]] = MappingProxyType({})) -> None:
        self._backend = backend
        self._schemas = schemas

    @property
    def reserves_requests(self) -> bool:
        """Whether the backend reserves what each of its requests can cost (``StageScope.paying``)."""
        return bool(getattr(self._backend, "reserves_requests", False))

    def writes_status(self, node: Node) -> bool:
        """Whether a status.json counts: where the backend can write one. A model without tools cannot (ruling 42)."""
        return not answers_only(self._backend, node)

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS with the response, or what the backend's outcome or the verdict says.

        An empty response is RETRY: it is never a success, and reasoning is no response (ruling 46). So is one
        that a token limit cut off where it was to end in a verdict; else that is PARTIAL_SUCCESS, and where
        nothing was answered before the limit, FAIL. The next attempt is told what was wrong. What the backend
        raises is classed by the engine (appendix D).
        """
        scope = current_stage()
        check_takes_attachments(self._backend, node)
        scope.attachments = attachments_of(node, graph, context.get, scope)
        node, model = with_named_schema(rendered_node(node, graph, context.get), self._schemas)
        prompt = _prompt(node, graph, scope)
        scope.files.write_text(PROMPT_FILE, prompt)
        result: Any = await call(self._backend.run, node, prompt, context)
        if isinstance(result, Outcome):
            return result
        if not isinstance(result, str):
            kind = type(result).__name__
            return Outcome.fail(f"the backend returned {kind}; a backend returns text or an Outcome", is_terminal=True)
        answer = answer_in(result, scope.files, is_decision=asks_for_verdict(node))
        scope.files.write_text(RESPONSE_FILE, answer)
        outcome = _judged(node, graph, answer, model) if answer.strip() else _unanswered(result)
        return _with_facts(outcome, answer)

    def stage_call(self, node: Node, context: Context, graph: Graph) -> StageCall:
        """The call of the backend that ``execute`` would make."""
        scope = current_stage()
        scope.attachments = attachments_of(node, graph, context.get, scope)
        node, _ = with_named_schema(rendered_node(node, graph, context.get), self._schemas)
        prompt = _prompt(node, graph, scope)
        return backend_call(self._backend, node, prompt, context, scope)

    def refusal_of(
        self, node: Node, context: Context, graph: Graph, outcome: Outcome, files: Mapping[str, bytes]
    ) -> str:
        """Why the result of an earlier run does not count today, or empty (ruling 44).

        Its response is judged again: by the schema and validators that the node has now.
        """
        text = files.get(RESPONSE_FILE, b"").decode("utf-8", "replace")
        if not text or not asks_for_verdict(node):
            return ""
        node, model = with_named_schema(rendered_node(node, graph, context.get), self._schemas)
        judged = _judged(node, graph, text, model)
        if judged.status is not StageStatus.SUCCESS:
            return judged.failure_reason or f"its verdict is {judged.status}"
        known = outcome.context_updates
        changed = [key for key, value in judged.context_updates.items() if key in known and known[key] != value]
        return f"{changed[0]} would be another value" if changed else ""


def _prompt(node: Node, graph: Graph, scope: StageScope) -> str:
    """The text for the model in an attempt."""
    prompt = compose_prompt(node, graph, scope.preamble, scope.instructions, scope.attachments, scope.messages)
    return with_complaint(prompt, scope.complaint)


def compose_prompt(
    node: Node,
    graph: Graph,
    preamble: str = "",
    instructions: Iterable[str] = (),
    attachments: Sequence[Attachment] = (),
    messages: Iterable[str] = (),
) -> str:
    """The text for the model: carried context, the task, what supervisors and people said, attachments, the verdict.

    The node is one whose variables have their values.
    """
    sections = [with_instructions(with_context(preamble, task_of(node)), instructions)]
    if messages:
        sections[0] = with_messages(sections[0], messages)
    if attachments:
        sections.append(attachments_section(attachments))
    if asks_for_verdict(node):
        sections.append(verdict_request(node, graph))
    return "\n\n".join(sections)


def task_of(node: Node) -> str:
    """What a node asks for: its prompt, or its label where it has none (spec 4.5)."""
    return node.prompt or node.label


def _judged(node: Node, graph: Graph, text: str, model: type[BaseModel] | None) -> Outcome:
    updates = response_updates(node.id, text)
    is_truncated = isinstance(text, Response) and text.is_truncated
    if asks_for_verdict(node):
        if is_truncated:  # nothing is read of what may be the half of a verdict, or of a second thought
            return _refused(text, f"{TRUNCATED} before its verdict was complete", SHORTER)
        try:
            return read_verdict(node, graph, text, model).with_updates(updates)
        except NoAnswer as problem:
            return _refused(text, str(problem)).with_updates(updates)
    if is_truncated:
        return Outcome(
            StageStatus.PARTIAL_SUCCESS,
            notes=f"Stage completed: {node.id}; the response was cut off by the token limit",
            context_updates=updates,
        )
    return Outcome(StageStatus.SUCCESS, notes=f"Stage completed: {node.id}", context_updates=updates)


def _unanswered(response: str) -> Outcome:
    """The outcome of a response without an answer: asked the same again, a model would reach its limit again."""
    if isinstance(response, Response) and response.is_truncated:
        return Outcome.fail(
            "the token limit was reached before an answer (raise llm.max_tokens, or lower reasoning_effort)",
            is_terminal=True,
        )
    return _refused("", no_answer(response))


def _refused(text: str, problem: str, *remedy: str) -> Outcome:
    """RETRY, with what the next attempt is told of a response that was not accepted."""
    return Outcome.retry(problem, complaint=complaint_about(text, problem, *remedy))


def _with_facts(outcome: Outcome, text: str) -> Outcome:
    """The outcome with what the response knows of itself."""
    if not isinstance(text, Response):
        return outcome
    notes = f"{outcome.notes}; {text.note}".removeprefix("; ") if text.note else outcome.notes
    return replace(outcome, usage=text.usage, notes=notes)
