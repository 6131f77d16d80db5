"""JSON verdicts at the end of a response (ruling 26).

A node with ``verdict=json`` asks the model to end with a status object, read by the same reader as
a status.json. One with ``response_schema`` asks for a JSON value of that schema. A verdict that is
missing or invalid is RETRY: a model that did not say it succeeded did not succeed.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.decisions.response_schemas import schema_complaint, schema_problem
from attractor_nb.errors import StatusFileError, TerminalError
from attractor_nb.handlers.schemas import validated
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage.status_file import outcome_from_status
from attractor_nb.storage.strict_json import JsonProblem, read_json

if TYPE_CHECKING:
    from pydantic import BaseModel

    from attractor_nb.model.graph import Graph, Node

_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)|[{}\[\]]', re.DOTALL)


def asks_for_verdict(node: Node) -> bool:
    """Whether the node's response must end in a JSON verdict."""
    return node.get("verdict", str, "") == "json" or bool(node.get("response_schema", str, ""))


def verdict_request(node: Node, graph: Graph) -> str:
    """The section of the prompt that tells the model what to end with."""
    schema = node.get("response_schema", str, "")
    if schema:
        return f"## Response format\n\nEnd with one JSON block that satisfies this JSON Schema:\n\n{schema}"
    labels = [edge.label for edge in graph.outgoing_edges(node.id) if edge.label]
    wanted = '{"outcome": "success | partial_success | retry | fail", "notes": "why, in one sentence"'
    if labels:
        wanted += f', "preferred_next_label": "{" | ".join(labels)}"'
    return f"## Response format\n\nEnd with one JSON block of this form:\n\n{wanted}}}"


def read_verdict(node: Node, graph: Graph, text: str, model: type[BaseModel] | None = None) -> Outcome:
    """The outcome that a response's verdict stands for; RETRY when it is missing or invalid.

    Args:
        node: The node, with a JSON Schema if it has a ``response_schema``.
        graph: Its graph.
        text: The response.
        model: The registered model that the schema came from, or None.

    Raises:
        TerminalError: The node's own ``response_schema`` is no JSON Schema.
    """
    block = last_json_block(text)
    if not block:
        return Outcome.retry("the response does not end with a JSON verdict")
    schema = node.get("response_schema", str, "")
    if schema:
        return _read_structured(node, graph, block, schema, model)
    return _read_status(node, graph, block)


def _read_status(node: Node, graph: Graph, block: str) -> Outcome:
    targets = [edge.target for edge in graph.outgoing_edges(node.id)]
    try:
        return outcome_from_status(_read_object(block), targets=targets)
    except StatusFileError as error:
        return Outcome.retry(f"the JSON verdict{error.message.removeprefix('status.json')}")
    except JsonProblem as problem:
        return Outcome.retry(f"the JSON verdict {problem}")


def _read_object(block: str) -> dict[str, Any]:
    value = read_json(block)
    if not isinstance(value, dict):
        raise JsonProblem("is no object")
    return cast("dict[str, Any]", value)


def _read_structured(
    node: Node, graph: Graph, block: str, schema: str, model: type[BaseModel] | None
) -> Outcome:
    try:
        value = read_json(block)
    except JsonProblem as problem:
        return Outcome.retry(f"the JSON verdict {problem}")
    complaint = _schema_complaint(node, schema, value)
    if not complaint and model is not None:
        value, complaint = validated(model, value)
    if complaint:
        return Outcome.retry(f"the JSON verdict does not satisfy response_schema: {complaint}")
    if node.get("verdict", str, "") == "json":
        return _read_status(node, graph, block)
    updates = {f"{node.id}.verdict": value}
    return Outcome.success(f"Stage completed: {node.id}").with_updates(updates)


def _schema_complaint(node: Node, schema: str, value: Any) -> str:
    """What is wrong with a value, or empty. References to other documents are never fetched."""
    try:
        if not (problem := schema_problem(schema)):
            return schema_complaint(schema, value)
    except ValueError as error:
        problem = str(error)
    raise TerminalError(
        f"response_schema of node {node.id!r} is no JSON Schema: {problem}",
        hint='for example response_schema="{\\"type\\": \\"object\\", \\"required\\": [\\"score\\"]}"',
    )


def last_json_block(text: str) -> str:
    r"""The last fenced block, or the last JSON object outside fences, whichever comes later; or empty.

    >>> last_json_block('First {"a": 1}, then\n```json\n{"b": 2}\n```\n')
    '{"b": 2}'
    >>> last_json_block('No fence: {"a": {"b": 1}} and some words')
    '{"a": {"b": 1}}'
    """
    fenced, rest = "", 0
    for found in _FENCED.finditer(text):
        fenced, rest = found[1].strip(), found.end()
    return _last_object(text[rest:]) or fenced


def _last_object(text: str) -> str:
    """The last JSON object that stands in no other value; one pass, however the text nests.

    A bracket that is never closed has all that follows within it: what a response that was cut off says
    below it is a part of something, and no verdict.
    """
    last, depth, start = "", 0, 0
    found = _OPENING.search(text)
    while found:
        mark, end = found[0], found.end()
        if mark in "{[":
            start = start if depth else found.start()
            depth += 1
        elif mark in "}]":
            depth -= 1
            if not depth and text[start] == "{" and _is_json(text[start:end]):
                last = text[start:end]
        # Quotation marks of prose need not be paired: strings are tokens within values only.
        found = (_TOKEN if depth else _OPENING).search(text, end)
    return "" if depth else last


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
