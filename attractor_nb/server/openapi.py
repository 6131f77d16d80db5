"""The OpenAPI 3.1 document, made of the table of operations and of the models themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from attractor_nb.server.operations import EVENT_STREAM, OPERATIONS, path_parameters
from attractor_nb.server.replies import JSON_TYPE, PROBLEM_TYPE
from attractor_nb.server.requests import EVENT_ID, RUN_ID
from attractor_nb.server.response_models import ProblemDocument
from attractor_nb.server.streams.channel import END, FAULT, GAP

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from attractor_nb.server.operations import Operation

_REFERENCE: Final = "#/components/schemas/{model}"
_TITLES: Final = {
    400: "The request is invalid",
    401: "No valid token",
    403: "A foreign host or page, or untrusted commands",
    404: "Not found",
    405: "Another method",
    408: "The body did not arrive",
    409: "Not possible in the current state",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "A value is invalid",
    429: "Too many at a time",
    431: "The head is too long",
    503: "The disk failed, or the server is shutting down",
}
_DESCRIPTION: Final = (
    "Runs pipelines that are written in DOT. Addresses are relative to the server's own. Each request shows "
    "the token as `Authorization: Bearer …`; an EventSource, which cannot send headers, uses a ticket."
)

_ONE_EVENT: Final[dict[str, Any]] = {
    "description": "One event of the stream.",
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Only for events in the log."},
        "event": {"enum": ["message", END, GAP, FAULT], "description": "All except message describe the stream."},
        "data": {"type": "string", "contentMediaType": JSON_TYPE, "contentSchema": {"type": "object"}},
    },
    "required": ["data"],
}


def openapi_document(version: str) -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        place = paths.setdefault(operation.path.replace(":path}", "}"), {})
        place[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "attractor_nb", "version": version, "description": _DESCRIPTION},
        "servers": [{"url": "."}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.words.rstrip("."),
        "tags": [operation.kind],
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): _success(operation),
            **({"204": {"description": "No more events follow"}} if operation.serve is None else {}),
            **{str(status): _problem(status) for status in operation.statuses},
        },
    }
    if operation.body is not None:
        schema = _reference(operation.body)
        described["requestBody"] = {
            "required": any(field.is_required() for field in operation.body.model_fields.values()),
            "content": {JSON_TYPE: {"schema": schema}},
        }
    return described


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, is_long in path_parameters(operation.path).items():
        schema = {"type": "string", "minLength": 1, **({"pattern": RUN_ID} if name == "id" else {})}
        more = {"description": "May contain slashes, escaped or not."} if is_long else {}
        found.append({"name": name, "in": "path", "required": True, "schema": schema, **more})
    whole = operation.query.model_json_schema()
    for name, schema in whole.get("properties", {}).items():
        found.append({"name": name, "in": "query", "required": False, "schema": schema})
    if operation.is_once:
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema})
    elif operation.media == (EVENT_STREAM,):
        schema = {"type": "string", "pattern": EVENT_ID}
        found.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": schema})
    return found


def _success(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for media in operation.media:
        if media == EVENT_STREAM:
            content[media] = {"schema": _ONE_EVENT}
        elif media != JSON_TYPE:
            content[media] = {"schema": {"type": "string"}}
        elif operation.answer is not None:
            content[media] = {"schema": _reference(operation.answer)}
        else:
            content[media] = {"schema": {"type": "object"}}
    return {"description": operation.words, "content": content}


def _problem(status: int) -> dict[str, Any]:
    return {"description": _TITLES[status], "content": {PROBLEM_TYPE: {"schema": _reference(ProblemDocument)}}}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}


def _schemas() -> dict[str, Any]:
    bodies = {operation.body for operation in OPERATIONS if operation.body is not None}
    sent = {operation.answer for operation in OPERATIONS if operation.answer is not None} | {ProblemDocument}
    named: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in bodies),
        *((model, "serialization") for model in sent),
    ]
    named.sort(key=_name)
    _, document = models_json_schema(named, ref_template=_REFERENCE)
    return document["$defs"]


def _name(pair: tuple[type[BaseModel], Any]) -> str:
    return pair[0].__name__
