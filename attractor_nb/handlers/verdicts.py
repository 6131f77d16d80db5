"""JSON verdicts at the end of a response (ruling 26).

A node with ``verdict=json`` asks the model to end with a status object, read by the same reader as
a status.json. One with ``response_schema`` asks for a JSON value of that schema. A verdict that is
missing or invalid is none: a model that did not say it succeeded did not succeed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attractor_nb.decisions.answers.response_schemas import ResponseSchema, SchemaElsewhere, schema_problem
from attractor_nb.errors import StatusFileError, TerminalError
from attractor_nb.handlers.answer_schemas import validated
from attractor_nb.handlers.json_answers import json_values, value_that_counts
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage.stages.status_file import outcome_from_status

if TYPE_CHECKING:
    from pydantic import BaseModel

    from attractor_nb.model.graph import Graph, Node


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
        graph: Its graph.
        text: The response.
        model: The registered model that the schema came from, or None.

    Raises:
        NoAnswer: The verdict is missing or invalid; the message says in what.
        TerminalError: The node's own ``response_schema`` is not a JSON Schema.
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

    try:
        value = value_that_counts(json_values(text), complaint_about, has_shape)
    except SchemaElsewhere as error:
        raise _no_schema(node, str(error)) from None
    if asks_for_status:
        return outcome_from_status(cast("dict[str, Any]", value), targets=targets)
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
        raise _no_schema(node, problem)
    return ResponseSchema(text)


def _no_schema(node: Node, problem: str) -> TerminalError:
    return TerminalError(
        f"response_schema of node {node.id!r} is not a JSON Schema: {problem}",
        hint='for example response_schema="{\\"type\\": \\"object\\", \\"required\\": [\\"score\\"]}"',
    )
