"""The JSON values in a model's answer, which of them counts, and the verdict that it gives (ruling 26).

A node with ``verdict=json`` asks the model to end with a status object, read by the same reader as
a status.json. One with ``response_schema`` asks for a JSON value of that schema. A verdict that is
missing or invalid is none: a model that did not say it succeeded did not succeed.

Nothing is guessed: a value stands in no other, a part of one is none, and two that could be meant are none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from attractor_nb.decisions.answers.response_schemas import ResponseSchema, schema_problem
from attractor_nb.errors import StatusFileError, TerminalError
from attractor_nb.handlers.named_models import validated
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.stages.status_file import outcome_from_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pydantic import BaseModel

    from attractor_nb.model.graph import Graph, Node

TRUNCATED: Final = "the response was cut off by the token limit"
UNCLOSED: Final = "is cut off: a bracket in it is never closed"
BELOW: Final = "stands below a bracket that is never closed"
_FENCED: Final = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_OPENING: Final = re.compile(r"[{\[]")
_TOKEN: Final = re.compile(r'"(?>(?:[^"\\]|\\(?:.|\Z))*)(?:"|\Z)|[{}\[\]]', re.DOTALL)
_LOOKS_LIKE_JSON: Final = re.compile(r"""\{\s*(?:["'{\[]|\w+\s*:|\Z)|\[\s*(?:["'{]|\Z)""")


class Found(Struct, frozen=True):
    """A JSON value in an answer, or what looks like one and is none."""

    value: Any = None
    problem: str = ""  #: Why it is none, in words that complete "it …"; or empty.
    is_alone: bool = False  #: It is the whole answer, or a fenced block.


class NoAnswer(ValueError):
    """Why no value of an answer counts. It never reaches a user: it becomes an outcome's reason."""


def json_values(text: str) -> tuple[Found, ...]:
    """The JSON values of an answer, in order: the whole answer where that is one, else those in it.

    A value is a fenced block, or an object or array that stands in no other bracket. One that is never
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
    """Where the bracket at ``start`` is closed; 0 for not before ``limit``.

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
    """Whether the node's response must end in a JSON verdict."""
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
    """The outcome that a response's verdict stands for.

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
    """What is wrong with a value as a status, or empty."""
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
