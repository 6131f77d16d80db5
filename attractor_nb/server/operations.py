"""Every operation of the API in one table: the routes and the OpenAPI document are both made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from attractor_nb.server import endpoints, requests, response_models
from attractor_nb.server.answers import document_answers, view_payloads
from attractor_nb.server.answers.run_answers import DOT_TYPE, MERMAID_TYPE, SVG_TYPE
from attractor_nb.server.event_channel import END, FAULT, GAP
from attractor_nb.server.replies import JSON_TYPE, PROBLEM_TYPE, Reply
from attractor_nb.server.requests import EVENT_ID, RUN_ID
from attractor_nb.server.response_models import ProblemDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from attractor_nb.server.request_calls import Call


EVENT_STREAM: Final = "text/event-stream"
ALWAYS: Final = (400, 401, 403, 405, 422, 429, 431, 503)
"""Problems that any operation may have: of the request's head, its query, and the disk."""
WITH_BODY: Final = (408, 409, 413, 415)
WITH_PATH: Final = (404, 409)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation."""

    method: str  #: ``GET`` or ``POST``.
    path: str  #: Its path; ``{id}`` takes a part, ``{name:path}`` the rest.
    name: str  #: Its id in the OpenAPI document.
    serve: Callable[[Call], Reply] | None  #: What does it; None for the stream, which is no function of a request.
    answer: type[BaseModel] | None = None  #: The model of its answer; None for plain values.
    status: int = 200  #: The status of success.
    body: type[BaseModel] | None = None  #: The model of its body; None where it has none.
    query: type[BaseModel] = requests.NoQuery  #: The model of its query.
    media: tuple[str, ...] = (JSON_TYPE,)  #: Media types of its answer.
    problems: tuple[int, ...] = field(default=())  #: Statuses that it may have beside those of all.
    summary: str = ""  #: What it does, in a few words; the function's own words if empty.
    kind: str = "pipelines"  #: The group that it belongs to.
    is_secret: bool = False  #: Its answer is, so it is not kept for who sends the same Idempotency-Key again.

    @property
    def is_once(self) -> bool:
        """Whether it is done once for an Idempotency-Key, however often it is sent."""
        return self.body is not None and not self.is_secret

    @property
    def statuses(self) -> tuple[int, ...]:
        """All statuses of problems that it may have."""
        more = (*(WITH_BODY if self.body else ()), *(WITH_PATH if "{" in self.path else ()), *self.problems)
        return tuple(sorted({*ALWAYS, *more}))

    @property
    def words(self) -> str:
        """The summary of the operation."""
        return self.summary or (self.serve.__doc__ or "").strip().splitlines()[0]


def _get(path: str, name: str, serve: Callable[[Call], Reply] | None, answer: Any = None, **more: Any) -> Operation:
    return Operation("GET", path, name, serve, answer, **more)


def _post(path: str, name: str, serve: Callable[[Call], Reply], answer: Any, body: Any, **more: Any) -> Operation:
    return Operation("POST", path, name, serve, answer, body=body, **more)


_ONE: Final = "/pipelines/{id}"
_DOCUMENT: Final = "/documents/{path:path}"
_GRAPH_TYPES: Final = (SVG_TYPE, DOT_TYPE, JSON_TYPE, MERMAID_TYPE)
EVENTS: Final = _get(
    f"{_ONE}/events",
    "streamEvents",
    None,
    query=requests.EventsQuery,
    media=(EVENT_STREAM,),
    summary="The events of a run as they happen, from the beginning or after Last-Event-ID.",
    kind="events",
)
OPERATIONS: Final[tuple[Operation, ...]] = (
    _get(
        "/pipelines", "listPipelines", endpoints.list_pipelines, response_models.PipelineList, query=requests.ListQuery
    ),
    _post("/pipelines", "submitPipeline", endpoints.submit, response_models.Accepted, requests.Submission, status=201),
    _get(_ONE, "getPipeline", endpoints.get_pipeline, response_models.PipelineStatus),
    EVENTS,
    _post(
        f"{_ONE}/events/ticket",
        "makeTicket",
        endpoints.make_ticket,
        response_models.Ticket,
        requests.NoBody,
        status=201,
        kind="events",
        is_secret=True,
    ),
    _post(
        f"{_ONE}/cancel", "cancelPipeline", endpoints.cancel, response_models.Cancelling, requests.NoBody, status=202
    ),
    _post(
        f"{_ONE}/resume", "resumePipeline", endpoints.resume, response_models.Accepted, requests.Resumption, status=202
    ),
    _post(f"{_ONE}/fork", "forkPipeline", endpoints.fork, response_models.Accepted, requests.Fork, status=201),
    _get(f"{_ONE}/graph", "getGraph", endpoints.get_graph, query=requests.GraphQuery, media=_GRAPH_TYPES),
    _get(f"{_ONE}/questions", "getQuestions", endpoints.get_questions, response_models.QuestionList, kind="questions"),
    _post(
        f"{_ONE}/questions/{{qid:path}}/answer",
        "answerQuestion",
        endpoints.answer,
        response_models.AnswerTaken,
        requests.Answer,
        kind="questions",
    ),
    _post(f"{_ONE}/messages", "tellPipeline", endpoints.tell, response_models.MessageTaken, requests.Telling),
    _get(f"{_ONE}/checkpoint", "getCheckpoint", endpoints.get_checkpoint, response_models.CheckpointState),
    _get(f"{_ONE}/context", "getContext", endpoints.get_context, response_models.ContextState),
    _get(f"{_ONE}/inspection", "inspect", endpoints.get_inspection, query=requests.InspectionQuery, kind="stages"),
    _get(f"{_ONE}/stages/{{node}}", "getStage", endpoints.get_stage, query=requests.StageQuery, kind="stages"),
    _get(
        f"{_ONE}/stages/{{node}}/files/{{name:path}}",
        "getStageFile",
        endpoints.get_stage_file,
        response_models.StageFileText,
        query=requests.StageQuery,
        kind="stages",
    ),
    _get(f"{_ONE}/artifacts", "listArtifacts", endpoints.get_artifacts, response_models.ArtifactList, kind="artifacts"),
    _get(f"{_ONE}/artifacts/{{artifact}}", "getArtifact", endpoints.get_artifact, kind="artifacts"),
    _get(f"{_ONE}/session", "getSession", endpoints.get_session, kind="session"),
    _get("/questions", "listQuestions", endpoints.get_all_questions, response_models.QuestionList, kind="questions"),
    _post("/validate", "validate", endpoints.validate, response_models.Validation, requests.Source, kind="sources"),
    _post("/edit", "edit", document_answers.edit, response_models.Edited, requests.Edit, kind="sources"),
    _post(
        "/picture", "draw", document_answers.picture, response_models.Picture, requests.PictureRequest, kind="sources"
    ),
    _get(
        "/documents", "listDocuments", document_answers.list_documents, response_models.DocumentList, kind="documents"
    ),
    _get(_DOCUMENT, "getDocument", document_answers.get_document, response_models.DocumentText, kind="documents"),
    _post(
        _DOCUMENT,
        "saveDocument",
        document_answers.save_document,
        response_models.DocumentText,
        requests.Saving,
        kind="documents",
        is_secret=True,
    ),
    # What a front-end shows.
    _get("/rows", "listRows", view_payloads.get_rows, response_models.Rows, query=requests.RowsQuery, kind="views"),
    _get(f"{_ONE}/drawing", "getDrawing", view_payloads.get_drawing, response_models.Drawing, kind="views"),
    _get(f"{_ONE}/answers", "getAnswers", view_payloads.get_answers, response_models.PastAnswers, kind="views"),
    _get(f"{_ONE}/timeline", "getTimeline", view_payloads.get_timeline, response_models.TimelineState, kind="views"),
    _get(f"{_ONE}/replay", "getReplay", view_payloads.get_replay, response_models.ReplayState, kind="views"),
    _get(
        f"{_ONE}/comparison",
        "getComparison",
        view_payloads.get_comparison,
        response_models.ComparisonState,
        query=requests.ComparisonQuery,
        kind="views",
    ),
    # The short names of spec 11.11.
    _post(
        "/run", "run", endpoints.submit, response_models.Accepted, requests.Submission, status=201, kind="short names"
    ),
    _get(
        "/status",
        "status",
        endpoints.get_status,
        response_models.PipelineStatus,
        query=requests.StatusQuery,
        problems=(404, 409),
        kind="short names",
    ),
    _post(
        "/answer",
        "answer",
        endpoints.short_answer,
        response_models.AnswerTaken,
        requests.ShortAnswer,
        problems=(404,),
        kind="short names",
    ),
)


def path_parameters(path: str) -> Mapping[str, bool]:
    """The parameters of a path, and whether each takes several of its parts.

    >>> dict(path_parameters("/pipelines/{id}/files/{name:path}"))
    {'id': False, 'name': True}
    """
    inside = [part.split("}")[0] for part in path.split("{")[1:]]
    return {name.partition(":")[0]: name.endswith(":path") for name in inside}


# The OpenAPI 3.1 document, made of the table of operations and of the models themselves.

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
