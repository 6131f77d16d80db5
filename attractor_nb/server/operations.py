"""Every operation of the API in one table: the routes and the OpenAPI document are both made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from attractor_nb.errors import NoSuchGate, SourceError
from attractor_nb.model.question import BY_API, is_known_way, name_and_way, signed
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.declared_inputs import plain_inputs
from attractor_nb.server import requests, response_models
from attractor_nb.server.answers import document_answers, map_answers, run_answers, view_payloads
from attractor_nb.server.answers.run_answers import (
    DOT_TYPE,
    MERMAID_TYPE,
    SVG_TYPE,
    all_questions,
    questions_here,
    questions_of,
    take_answer,
)
from attractor_nb.server.event_channel import END, FAULT, GAP
from attractor_nb.server.replies import (
    JSON_TYPE,
    PROBLEM_TYPE,
    Problem,
    Reply,
    mended,
    plain_findings,
    plain_outline,
    plain_surface,
    renamed,
)
from attractor_nb.server.requests import EVENT_ID, RUN_ID
from attractor_nb.server.response_models import (
    Accepted,
    Cancelling,
    MessageTaken,
    PipelineList,
    ProblemDocument,
    QuestionList,
    Ticket,
    Validation,
)
from attractor_nb.server.run_service import posted_pipeline
from attractor_nb.storage.stored_run import has_event_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from attractor_nb.server.request_calls import Call


# The function of each operation, except the stream. Each function blocks, and is called in a thread.


def submit(call: Call) -> Reply:
    """Start a posted source; of a request that is sent again the run that it has begun."""
    if begun := _begun(call):
        return begun
    run_id, run = call.server.service.submit(call.body, call.claim.note)
    return _accepted(call, run_id, run.status, 201)


def list_pipelines(call: Call) -> Reply:
    """The runs of the root, newest first."""
    service, query = call.server.service, call.query
    found = service.summaries()
    part = found[query.offset : query.offset + query.limit]
    lines = [run_answers.line_of(service, summary) for summary in part]
    return Reply(PipelineList(pipelines=lines, total=len(found), offset=query.offset))


def get_pipeline(call: Call) -> Reply:
    """Status of a run."""
    return Reply(run_answers.status_of(call.server.service, call.path["id"]))


def get_status(call: Call) -> Reply:
    """Status of a run, the newest if none is named."""
    service = call.server.service
    return Reply(run_answers.status_of(service, call.query.id or _newest(call)))


def cancel(call: Call) -> Reply:
    """Stop a run."""
    call.server.service.cancel(call.path["id"])
    return Reply(Cancelling(id=call.path["id"], status="cancelling"), 202)


def resume(call: Call) -> Reply:
    """Resume a run."""
    run_id, run = call.server.service.resume(call.path["id"], call.body)
    return _accepted(call, run_id, run.status, 202)


def fork(call: Call) -> Reply:
    """Begin a run that goes another way; of a request that is sent again the fork that it has begun."""
    if begun := _begun(call):
        return begun
    run_id, run = call.server.service.fork(call.path["id"], call.body, call.claim.note)
    return _accepted(call, run_id, run.status, 201)


def get_graph(call: Call) -> Reply:
    """The graph with its present states."""
    return run_answers.graph_of(call.server.service.run(call.path["id"]), call.query.format)


def get_questions(call: Call) -> Reply:
    """The questions of a run that wait."""
    return Reply(QuestionList(questions=questions_of(call.server.service, call.path["id"])))


def get_all_questions(call: Call) -> Reply:
    """The questions of all runs that wait, rows of maps included."""
    service = call.server.service
    return Reply(all_questions(service, service.summaries()))


def answer(call: Call) -> Reply:
    """Take an answer; when this is answered it is in the log."""
    return Reply(take_answer(call.server.service, call.path["id"], call.path["qid"], _signed(call)))


def tell(call: Call) -> Reply:
    """Tell the model of a running stage something; when this is answered it is in the log."""
    run_id, given = call.path["id"], call.body
    receipt = call.server.service.run(run_id).tell(given.node, given.text, given_by=_signed_way(call, given.given_by))
    place = {"node": receipt.node or None, "stage": receipt.stage or None}
    return Reply(MessageTaken(pipeline=run_id, **place, reach=receipt.reach, words=receipt.words))


def short_answer(call: Call) -> Reply:
    """Take an answer that says itself what it answers, or leaves out what there is only one of."""
    given = _signed(call)
    if given.pipeline and given.question:  # it may have been answered, which the gate itself knows
        return Reply(take_answer(call.server.service, given.pipeline, given.question, given))
    waiting = [
        asked
        for asked in questions_here(call.server.service)
        if given.pipeline in {"", asked.pipeline} and given.question in {"", asked.id, asked.stage}
    ]
    if not waiting:
        raise NoSuchGate("no such question is open here", hint="GET /questions lists them")
    if len(waiting) > 1:
        names = ", ".join(f"{asked.pipeline} {asked.id}" for asked in waiting[:10])
        raise Problem(
            409,
            "many-questions",
            "Several questions are open",
            f"the answer fits {len(waiting)} questions: {names}",
            hint='name one: {"pipeline": …, "question": …}',
        )
    return Reply(take_answer(call.server.service, waiting[0].pipeline, waiting[0].id, given))


def _signed(call: Call) -> Any:
    """The answer, signed."""
    return call.body.model_copy(update={"answered_by": _signed_way(call, call.body.answered_by)})


def _signed_way(call: Call, claimed: str) -> str:
    """A way of answering with the name that belongs to the token; a client only says the way."""
    way = name_and_way(claimed)[1] or BY_API
    return signed(way, call.user or ("" if is_known_way(way) else BY_API))


def get_checkpoint(call: Call) -> Reply:
    """The newest checkpoint."""
    return Reply(run_answers.checkpoint_of(call.server.service, call.path["id"]))


def get_context(call: Call) -> Reply:
    """The context as it is now."""
    return Reply(run_answers.context_of(call.server.service, call.path["id"]))


def get_stage(call: Call) -> Reply:
    """Details of a stage."""
    return Reply(run_answers.plain_stage(call.server.service.run(call.path["id"]), call.path["node"], call.query))


def get_stage_file(call: Call) -> Reply:
    """A file of a stage."""
    run, path = call.server.service.run(call.path["id"]), call.path
    return Reply(run_answers.stage_file(run, path["node"], path["name"], call.query))


def get_inspection(call: Call) -> Reply:
    """Content of a front end's inspector."""
    return Reply(run_answers.inspection_of(call.server.service.run(call.path["id"]), call.query))


def get_artifacts(call: Call) -> Reply:
    """The artifacts of a run."""
    run_id = call.path["id"]
    return Reply(run_answers.artifacts_of(run_id, run_answers.current_place(call.server.service, run_id)))


def get_artifact(call: Call) -> Reply:
    """The value of an artifact."""
    place = run_answers.current_place(call.server.service, call.path["id"])
    return Reply({"id": call.path["artifact"], "value": run_answers.artifact_of(place, call.path["artifact"])})


def get_session(call: Call) -> Reply:
    """The status of a run's branches as a session of agents."""
    return Reply(run_answers.session_of(call.server.service.place(call.path["id"])))


def validate(call: Call) -> Reply:
    """Lint findings of a source, after a fix or a renaming if requested; nothing of it is run."""
    asked = call.body
    is_changed = asked.fix is not None or asked.rename is not None
    try:
        pipeline = posted_pipeline(asked.source, strict=asked.strict)
        if asked.fix is not None:
            pipeline = mended(pipeline, asked.fix)
        if asked.rename is not None:
            pipeline = renamed(pipeline, asked.rename.node, asked.rename.to)
    except SourceError as error:
        found = plain_findings(error.diagnostics)
        executes: dict[str, Any] = {"hash": "", "commands": []}
        return Reply(Validation(is_valid=False, name="", goal="", nodes=0, **found, executes=executes))
    return Reply(
        Validation(
            is_valid=not any(one.is_error for one in pipeline.diagnostics),
            name=redacted(pipeline.name),
            goal=redacted(pipeline.graph.goal),
            nodes=len(pipeline.graph.nodes),
            **plain_findings(pipeline.diagnostics),
            executes=plain_surface(pipeline.graph),
            inputs=plain_inputs(pipeline),
            svg=pipeline.to_svg() if asked.with_drawing else "",
            source=pipeline.to_dot() if is_changed else "",
            outline=plain_outline(pipeline.graph) if asked.with_outline else [],
        )
    )


def make_ticket(call: Call) -> Reply:
    """A ticket for the events of a run, for clients that cannot send headers."""
    server, run_id = call.server, call.path["id"]
    server.service.place(run_id)
    ticket = server.tickets.issue(f"/pipelines/{run_id}/events")
    url = f"pipelines/{run_id}/events?ticket={ticket}"
    return Reply(Ticket(ticket=ticket, url=url, expires_in=server.settings.ticket_seconds), 201)


def _begun(call: Call) -> Reply | None:
    """The run that an earlier try of the same request has begun, before its server died."""
    service, run_id = call.server.service, call.claim.run_id
    if not run_id or not has_event_log(service.root / run_id):
        return None
    return _accepted(call, run_id, run_answers.status_of(service, run_id).status, 201)


def _accepted(call: Call, run_id: str, status: str, code: int) -> Reply:
    reply = Accepted(id=run_id, status=status, links=run_answers.links_of(run_id))
    return Reply(reply, code, headers={"Location": f"{call.to_root}pipelines/{run_id}"})


def _newest(call: Call) -> str:
    for summary in call.server.service.summaries():
        return summary.logs_root.name
    raise Problem(404, "no-such-pipeline", "There is no pipeline yet", hint="POST /pipelines starts one")


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
    serve: Callable[[Call], Reply] | None  #: Function of the operation; None for the stream.
    answer: type[BaseModel] | None = None  #: The model of its answer; None for plain values.
    status: int = 200  #: The status of success.
    body: type[BaseModel] | None = None  #: The model of its body; None where it has none.
    query: type[BaseModel] = requests.NoQuery  #: The model of its query.
    media: tuple[str, ...] = (JSON_TYPE,)  #: Media types of its answer.
    problems: tuple[int, ...] = field(default=())  #: Statuses that it may have beside those of all.
    summary: str = ""  #: Short description; that of the function if empty.
    kind: str = "pipelines"  #: The group that it belongs to.
    is_secret: bool = False  #: Its answer is, so it is not kept for who sends the same Idempotency-Key again.

    @property
    def is_once(self) -> bool:
        """True if it is done once for an Idempotency-Key, however often it is sent."""
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
    _get("/pipelines", "listPipelines", list_pipelines, response_models.PipelineList, query=requests.ListQuery),
    _post("/pipelines", "submitPipeline", submit, response_models.Accepted, requests.Submission, status=201),
    _get(_ONE, "getPipeline", get_pipeline, response_models.PipelineStatus),
    EVENTS,
    _post(
        f"{_ONE}/events/ticket",
        "makeTicket",
        make_ticket,
        response_models.Ticket,
        requests.NoBody,
        status=201,
        kind="events",
        is_secret=True,
    ),
    _post(f"{_ONE}/cancel", "cancelPipeline", cancel, response_models.Cancelling, requests.NoBody, status=202),
    _post(f"{_ONE}/resume", "resumePipeline", resume, response_models.Accepted, requests.Resumption, status=202),
    _post(f"{_ONE}/fork", "forkPipeline", fork, response_models.Accepted, requests.Fork, status=201),
    _get(f"{_ONE}/graph", "getGraph", get_graph, query=requests.GraphQuery, media=_GRAPH_TYPES),
    _get(f"{_ONE}/questions", "getQuestions", get_questions, response_models.QuestionList, kind="questions"),
    _post(
        f"{_ONE}/questions/{{qid:path}}/answer",
        "answerQuestion",
        answer,
        response_models.AnswerTaken,
        requests.Answer,
        kind="questions",
    ),
    _post(f"{_ONE}/messages", "tellPipeline", tell, response_models.MessageTaken, requests.Telling),
    _get(f"{_ONE}/checkpoint", "getCheckpoint", get_checkpoint, response_models.CheckpointState),
    _get(f"{_ONE}/context", "getContext", get_context, response_models.ContextState),
    _get(f"{_ONE}/inspection", "inspect", get_inspection, query=requests.InspectionQuery, kind="stages"),
    _get(f"{_ONE}/stages/{{node}}", "getStage", get_stage, query=requests.StageQuery, kind="stages"),
    _get(
        f"{_ONE}/stages/{{node}}/files/{{name:path}}",
        "getStageFile",
        get_stage_file,
        response_models.StageFileText,
        query=requests.StageQuery,
        kind="stages",
    ),
    _get(f"{_ONE}/artifacts", "listArtifacts", get_artifacts, response_models.ArtifactList, kind="artifacts"),
    _get(f"{_ONE}/artifacts/{{artifact}}", "getArtifact", get_artifact, kind="artifacts"),
    _get(f"{_ONE}/session", "getSession", get_session, kind="session"),
    _get("/questions", "listQuestions", get_all_questions, response_models.QuestionList, kind="questions"),
    _post("/validate", "validate", validate, response_models.Validation, requests.Source, kind="sources"),
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
    _get(f"{_ONE}/response", "getResponse", view_payloads.get_response, response_models.FinalResponse, kind="views"),
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
    # Maps.
    _get("/maps/{id}", "getMap", map_answers.get_map, response_models.MapState, query=requests.MapQuery, kind="maps"),
    _get(
        "/maps/{id}/comparison",
        "compareMaps",
        map_answers.get_map_comparison,
        response_models.MapComparisonState,
        query=requests.MapComparisonQuery,
        kind="maps",
    ),
    # The short names of spec 11.11.
    _post("/run", "run", submit, response_models.Accepted, requests.Submission, status=201, kind="short names"),
    _get(
        "/status",
        "status",
        get_status,
        response_models.PipelineStatus,
        query=requests.StatusQuery,
        problems=(404, 409),
        kind="short names",
    ),
    _post(
        "/answer",
        "answer",
        short_answer,
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
