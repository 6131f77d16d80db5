"""A task for a model (spec 4.5; ruling 26).

It composes the prompt, calls the backend, keeps prompt and response as files and judges what came
back. Which of the returned outcome and a status.json counts is the engine's decision (ruling 27).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from attractor_nb.decisions.replays.cache_keys import RunPaths, model_call
from attractor_nb.decisions.response_schemas import SHORTER, ResponseSchema, complaint_about, schema_problem
from attractor_nb.errors import ContextValueError, StatusFileError, TerminalError
from attractor_nb.handlers.named_models import validated, with_named_schema
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import (
    CallInputs,
    Response,
    StageCall,
    with_complaint,
    with_context,
    with_instructions,
    with_messages,
    with_text,
)
from attractor_nb.model.calls.messages import (
    ATTACH,
    KINDS,
    MAX_ATTACHED_BYTES,
    MAX_ATTACHMENT_BYTES,
    Attachment,
    attached_names,
    attachments_section,
    is_attachment,
)
from attractor_nb.model.calls.reasoning import part_reasoning
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.redacted import redacted_response
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.variables import MISSING, RENDERED_ATTRIBUTES, lookup_in, rendered, whole_variable
from attractor_nb.protocols import CodergenBackend, DescribesCalls, answers_only, takes_attachments
from attractor_nb.stage import StageFiles, StageScope, current_stage
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.files.user_files import Outside, names_below, read_below
from attractor_nb.storage.stages.status_file import outcome_from_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node


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
        """True if the backend reserves what each of its requests can cost (``StageScope.paying``)."""
        return bool(getattr(self._backend, "reserves_requests", False))

    def writes_status(self, node: Node) -> bool:
        """True if a status.json counts: where the backend can write one. A model without tools cannot (ruling 42)."""
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
        """The reason why the result of an earlier run does not count today, or empty (ruling 44).

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
    """The text for the model: carried context, the task, what supervisors and users said, attachments, the verdict.

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
    """The task of a node: its prompt, or its label where it has none (spec 4.5)."""
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
    """RETRY, with the complaint to the next attempt about a response that was not accepted."""
    return Outcome.retry(problem, complaint=complaint_about(text, problem, *remedy))


def _with_facts(outcome: Outcome, text: str) -> Outcome:
    """The outcome with what the response knows of itself."""
    if not isinstance(text, Response):
        return outcome
    notes = f"{outcome.notes}; {text.note}".removeprefix("; ") if text.note else outcome.notes
    return replace(outcome, usage=text.usage, notes=notes)


# The inputs of a backend call: texts with their values (ruling 34), attachments.

PROMPT_FILE = "prompt.md"
SILENT = "the backend does not say what its answers depend on; give it a version, or call_inputs"
_JUDGED_BY = ("verdict", "response_schema")
"""Node attributes by which a response becomes an outcome."""


def rendered_node(node: Node, graph: Graph, get: Callable[[str, Any], Any]) -> Node:
    """A node with the values of the variables in what models and users read of it.

    Args:
        node: The node as the graph has it.
        graph: Its graph, which has the goal.
        get: Gives a value of the context by its key, or what it is given as a default.
    """
    changes: dict[str, str] = {}
    for name in RENDERED_ATTRIBUTES:
        text = node.attrs.get(name)
        if isinstance(text, str) and "$" in text:
            changes[name] = rendered(text, lookup_in(graph.goal, get))
    return node.with_attrs(changes) if changes else node


def place_of(scope: StageScope) -> RunPaths:
    """The run's id and directories, on which the inputs of a stage must not depend."""
    written = str(scope.logs_root)
    is_path = os.sep in written  # a single word may be in any text
    return RunPaths(scope.run_id, (*((written,) if is_path else ()), str(scope.logs_root.absolute())))


def backend_call(backend: CodergenBackend, node: Node, prompt: str, context: Context, scope: StageScope) -> StageCall:
    """The call of a backend by a stage that sends it ``prompt``."""
    described: Mapping[str, Any] | None = None
    if isinstance(backend, DescribesCalls):
        described = backend.call_inputs(node, context)
    if described is None:
        return StageCall(None, SILENT)
    judged = {name: node.attrs[name] for name in _JUDGED_BY if name in node.attrs}
    around = getattr(backend, "cache_inputs", None)
    place = dict(around(node)) if around is not None else {}
    inputs = model_call(
        node.id,
        prompt,
        {**judged, **described, **place},
        place=place_of(scope),
        preamble=scope.preamble,
        conversation=scope.conversation.read() if scope.conversation else "",
        attachments=(each.digest for each in scope.attachments),
    )
    has_effects = bool(getattr(backend, "has_effects", False)) or bool(node.get("allowed_tools", str, ""))
    return StageCall(inputs, has_effects=has_effects, files={PROMPT_FILE: prompt})


def with_values(call: StageCall, values: Mapping[str, Any]) -> StageCall:
    """A call whose stage depends on more than goes into the call itself."""
    if call.inputs is None:
        return call
    inputs = CallInputs(call.inputs.kind, call.inputs.node_id, {**call.inputs.values, **values})
    return StageCall(inputs, has_effects=call.has_effects, files=call.files)


def attachments_of(
    node: Node, graph: Graph, get: Callable[[str, Any], Any], scope: StageScope
) -> tuple[Attachment, ...]:
    """Read the attachments of a node.

    Args:
        node: The node as the graph has it.
        get: Gives a value of the context by its key, or what it is given as a default.
        scope: The attempt, which knows the working directory.
    """
    text = node.get(ATTACH, str, "")
    if not text.strip():
        return ()
    found: list[Attachment] = []
    for part in attached_names(text):
        try:
            found.extend(_named(part, graph, get, scope))
        except ContextValueError as error:
            raise TerminalError(f"{node.id}: {error.message}", hint=error.hint) from None
    size = sum(len(each.data) for each in found)
    if size > MAX_ATTACHED_BYTES:
        raise TerminalError(
            f"{node.id} attaches {size:,} bytes; a stage may attach {MAX_ATTACHED_BYTES:,}",
            hint="attach less, or in several stages",
        )
    return tuple(found)


def check_takes_attachments(backend: CodergenBackend, node: Node) -> None:
    """Refuse to ask a backend that would never see what a node attaches."""
    if node.get(ATTACH, str, "").strip() and not takes_attachments(backend):
        raise TerminalError(
            f"{node.id} attaches files, but {type(backend).__name__} accepts only text",
            hint='leave attach out, or ask a model that sees images: backend="llm"',
        )


def _named(part: str, graph: Graph, get: Callable[[str, Any], Any], scope: StageScope) -> Iterator[Attachment]:
    lookup = lookup_in(graph.goal, get)
    if name := whole_variable(part):
        value = lookup(name)
        if value is MISSING:
            raise ContextValueError(f"attach names {part}, and the run has no such value")
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            yield _given(part, each, scope)
    else:
        yield _file(rendered(part, lookup), scope)


def _given(part: str, value: Any, scope: StageScope) -> Attachment:
    if is_attachment(value):
        return Attachment.from_plain(value)
    if isinstance(value, str):
        return _file(value.strip(), scope)
    raise ContextValueError(
        f"attach names {part}, which is neither an attachment nor the path of a file",
        hint='params={"photo": Path("photo.png")}, or bytes',
    )


def _file(name: str, scope: StageScope) -> Attachment:
    shown = f'the attached file "{name[:200]}"'
    if scope.workplace is None:
        raise ContextValueError(
            f"{shown} cannot be read: this stage is not done where the run's working directory is",
            hint='give the file to the run: params={"photo": Path("photo.png")}, and attach="${photo}"',
        )
    base = Path(os.path.realpath(scope.workplace.directory))
    try:
        data = read_below(base, name, max_bytes=MAX_ATTACHMENT_BYTES)
    except Outside as problem:
        raise ContextValueError(f"{shown} {problem.message}", hint=problem.remedy) from None
    except (FileNotFoundError, NotADirectoryError):
        near = did_you_mean(name, names_below(base))
        raise ContextValueError(
            f"{shown} is not there; it was looked for in {base}{near}",
            hint=f"a path is relative to the working directory of the run; the file is {KINDS}",
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ContextValueError(f"{shown} cannot be read: {reason}", hint="repair the file") from None
    return Attachment(data, Path(name).name)


# The JSON values in a model's answer, which of them counts, and the verdict that it gives (ruling 26).
#
# A node with ``verdict=json`` asks the model to end with a status object, read by the same reader as
# a status.json. One with ``response_schema`` asks for a JSON value of that schema. A verdict that is
# missing or invalid is none: a model that did not say it succeeded did not succeed.
#
# Nothing is guessed: a value is in no other, a part of one is none, and two that could be meant are none.

TRUNCATED: Final = "the response was cut off by the token limit"
UNCLOSED: Final = "is cut off: a bracket in it is never closed"
BELOW: Final = "is after a bracket that is never closed"
_FENCED: Final = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_OPENING: Final = re.compile(r"[{\[]")
_TOKEN: Final = re.compile(r'"(?>(?:[^"\\]|\\(?:.|\Z))*)(?:"|\Z)|[{}\[\]]', re.DOTALL)
_LOOKS_LIKE_JSON: Final = re.compile(r"""\{\s*(?:["'{\[]|\w+\s*:|\Z)|\[\s*(?:["'{]|\Z)""")


class Found(Struct, frozen=True):
    """A JSON value in an answer, or what looks like one and is none."""

    value: Any = None
    problem: str = ""  #: Reason why it is none, in words that complete "it …"; or empty.
    is_alone: bool = False  #: It is the whole answer, or a fenced block.


class NoAnswer(ValueError):
    """No value of an answer counts. It never reaches a user: it becomes an outcome's reason."""


def json_values(text: str) -> tuple[Found, ...]:
    """The JSON values of an answer, in order: the whole answer where that is one, else those in it.

    A value is a fenced block, or an object or array that is in no other bracket. One that is never
    closed, or otherwise broken, is there with its problem when it looks like JSON; with it ends what can be
    read where it is never closed. One pass over the text, however it nests.
    """
    whole = _read(text.strip(), is_alone=True)
    return (whole,) if not whole.problem else tuple(_parts(text))


def _parts(text: str) -> Iterator[Found]:
    """The values in an answer that is none as a whole."""
    fence, bracket, is_below = _FENCED.search(text), _OPENING.search(text), False
    while fence or bracket:
        if fence and not (bracket and bracket.start() < fence.start()):
            at, block = fence.end(), fence[1].strip()
            found = _read(block, is_alone=True)
            if not found.problem or _LOOKS_LIKE_JSON.match(block):
                yield found
        else:
            assert bracket is not None, "there is a fence or a bracket"
            start, is_json_like = bracket.start(), _LOOKS_LIKE_JSON.match(text, bracket.start()) is not None
            # A fence ends a bracket of prose, such as that of a regular expression, and not one of a value.
            limit = len(text) if is_json_like or not fence else fence.start()
            end = _end_of_value(text, start, limit)
            found = _read(text[start:end]) if end and not is_below else Found(problem=BELOW if end else UNCLOSED)
            if not found.problem or is_json_like:
                yield found
            if not end and (is_json_like or not fence):
                return
            at, is_below = end or limit, is_below or not end
        if fence and fence.start() < at:
            fence = _FENCED.search(text, at)
        if bracket and bracket.start() < at:
            bracket = _OPENING.search(text, at)


def _end_of_value(text: str, start: int, limit: int) -> int:
    """The offset behind the bracket that closes the one at ``start``; 0 for none before ``limit``.

    Quotation marks of prose need not be paired: strings are tokens within brackets only.
    """
    depth = 0
    for token in _TOKEN.finditer(text, start, limit):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if not depth:
                return token.end()
    return 0


def _read(text: str, *, is_alone: bool = False) -> Found:
    try:
        return Found(read_json(text), is_alone=is_alone)
    except JsonProblem as problem:
        return Found(problem=str(problem), is_alone=is_alone)


def value_that_counts(
    found: Sequence[Found], complaint_about: Callable[[Any], str], has_shape: Callable[[Any], bool]
) -> Any:
    """The one value of an answer that is what was asked for.

    A value in prose counts only with the shape of what was asked for; the whole answer, or its one fenced
    block, counts without it. Several that are valid must be the same. What comes last and has the shape, or
    is broken, must be valid: it is the last word.

    Args:
        found: The values of the answer.
        complaint_about: What is wrong with a value, in words that complete "the JSON verdict …"; or empty.
        has_shape: Whether a value can be meant: it is alike, though it may be invalid.
    """
    if not found:
        raise NoAnswer("the response does not end with a JSON verdict")
    alone = [each for each in found if each.is_alone and not each.problem]
    meant = [each for each in found if each.problem or (len(alone) == 1 and each is alone[0]) or has_shape(each.value)]
    last = meant[-1] if meant else found[-1]
    if problem := last.problem or complaint_about(last.value):
        raise NoAnswer(f"the JSON verdict{problem}" if problem[:1] in ":," else f"the JSON verdict {problem}")
    if not meant:
        raise NoAnswer("no JSON value in the response is of the form that was asked for")
    others = (each.value for each in meant if not each.problem and each.value != last.value)
    if any(not complaint_about(other) for other in others):
        raise NoAnswer("the response has several JSON verdicts that differ")
    return last.value


def asks_for_verdict(node: Node) -> bool:
    """True if the node's response must end in a JSON verdict."""
    return _asks_for_status(node) or bool(node.get("response_schema", str, ""))


def verdict_request(node: Node, graph: Graph) -> str:
    """The section of the prompt that tells the model what to end with."""
    schema = node.get("response_schema", str, "")
    requests = [f"that satisfies this JSON Schema:\n\n{schema}"] if schema else []
    if _asks_for_status(node):
        labels = [edge.label for edge in graph.outgoing_edges(node.id) if edge.label]
        wanted = '{"outcome": "success | partial_success | retry | fail", "notes": "why, in one sentence"'
        if labels:
            wanted += f', "preferred_next_label": "{" | ".join(labels)}"'
        requests.append(f"of this form:\n\n{wanted}}}")
    return "## Response format\n\nEnd with one JSON block " + "\n\nand ".join(requests)


def _asks_for_status(node: Node) -> bool:
    return node.get("verdict", str, "") == "json"


def read_verdict(node: Node, graph: Graph, text: str, model: type[BaseModel] | None = None) -> Outcome:
    """The outcome of a response's verdict.

    Args:
        node: The node, with a JSON Schema if it has a ``response_schema``.
        text: The response.
        model: The registered model that the schema came from, or None.
    """
    schema = _schema_of(node)
    targets = [edge.target for edge in graph.outgoing_edges(node.id)]
    asks_for_status = _asks_for_status(node)

    def complaint_about(value: Any) -> str:
        if schema is not None:
            complaint = schema.complaint_about(value)
            if complaint := complaint or (validated(model, value)[1] if model else ""):
                return f"does not satisfy response_schema: {complaint}"
        return _status_complaint(value, targets) if asks_for_status else ""

    def has_shape(value: Any) -> bool:
        if asks_for_status:
            if not isinstance(value, dict):
                return False
            status = cast("dict[str, Any]", value)
            return "outcome" in status or isinstance(status.get("status"), str)
        return schema is not None and schema.has_shape(value)

    value = value_that_counts(json_values(text), complaint_about, has_shape)
    if asks_for_status:
        return outcome_from_status(cast("dict[str, Any]", value), targets=targets, node_ids=graph.nodes)
    kept = value if model is None else validated(model, value)[0]
    return Outcome.success(f"Stage completed: {node.id}").with_updates({f"{node.id}.verdict": kept})


def _status_complaint(value: Any, targets: list[str]) -> str:
    """The problem of a value as a status, or empty."""
    if not isinstance(value, dict):
        return "is not an object"
    try:
        outcome_from_status(cast("dict[str, Any]", value), targets=targets)
    except StatusFileError as error:
        return error.message.removeprefix("status.json").strip()
    return ""


def _schema_of(node: Node) -> ResponseSchema | None:
    """The node's schema, read; None without one."""
    text = node.get("response_schema", str, "")
    if not text:
        return None
    if problem := schema_problem(text):
        raise TerminalError(
            f"response_schema of node {node.id!r} is not a JSON Schema: {problem}",
            hint='for example response_schema="{\\"type\\": \\"object\\", \\"required\\": [\\"score\\"]}"',
        )
    return ResponseSchema(text)


# The answer in a response: without its secrets, and without its reasoning (ruling 46).

RESPONSE_FILE: Final = "response.md"
EXCERPT_CHARACTERS: Final = 200
"""Length of ``last_response`` (spec 4.5); the whole text is in response.md and ``<node>.response``."""
ONLY_REASONING = "the response is only reasoning, without an answer"
EMPTY = "the response is empty"


def answer_in(
    response: str, files: StageFiles, reasoning_name: str = "reasoning.md", *, is_decision: bool = False
) -> str:
    """The answer in a response, with what the response carries beside its text.

    Args:
        response: What the backend returned.
        files: Take the reasoning, when there is some.
        reasoning_name: The file that it becomes.
        is_decision: A verdict or a choice is read from the answer: reasoning without an end leaves none.
    """
    clean = redacted_response(response)  # before it is cut: half a secret has no form
    answer, reasoning = part_reasoning(clean, is_decision=is_decision)
    if reasoning:
        files.write_text(reasoning_name, reasoning)
    return with_text(clean, answer)


def no_answer(response: str) -> str:
    """The reason why a response has no answer in it."""
    return ONLY_REASONING if response.strip() else EMPTY


def response_updates(node_id: str, response: str) -> dict[str, str]:
    """The context values that a stage leaves of its response (spec 4.5)."""
    return {"last_stage": node_id, "last_response": response[:EXCERPT_CHARACTERS], f"{node_id}.response": str(response)}
