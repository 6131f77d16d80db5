"""The function of each operation, except the stream. Each function blocks, and is called in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.errors import NoSuchGate, SourceError
from attractor_nb.lazy_imports import later
from attractor_nb.model.question import BY_PAGE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.declared_inputs import plain_inputs
from attractor_nb.server.answers import run_answers
from attractor_nb.server.answers.run_answers import all_questions, questions_here, questions_of, take_answer
from attractor_nb.server.replies import (
    Problem,
    Reply,
    mended,
    plain_finding,
    plain_outline,
    plain_surface,
    plain_syntax_error,
    renamed,
)
from attractor_nb.server.response_models import (
    Accepted,
    Cancelling,
    MessageTaken,
    PipelineList,
    QuestionList,
    Ticket,
    Validation,
)
from attractor_nb.server.run_service import posted_pipeline
from attractor_nb.storage.stored_run import has_event_log

if TYPE_CHECKING:
    from attractor_nb import account
    from attractor_nb.server.request_calls import Call
else:
    account = later("attractor_nb.account")


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
    """How a run stands."""
    return Reply(run_answers.status_of(call.server.service, call.path["id"]))


def get_status(call: Call) -> Reply:
    """How a run stands, the newest if none is named."""
    service = call.server.service
    return Reply(run_answers.status_of(service, call.query.id or _newest(call)))


def cancel(call: Call) -> Reply:
    """Stop a run."""
    call.server.service.cancel(call.path["id"])
    return Reply(Cancelling(id=call.path["id"], status="cancelling"), 202)


def resume(call: Call) -> Reply:
    """Go on with a run."""
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
    """The questions of all runs that wait."""
    service = call.server.service
    return Reply(QuestionList(questions=all_questions(service, service.summaries())))


def answer(call: Call) -> Reply:
    """Take an answer; when this is answered it is in the log."""
    given = call.body
    if given.answered_by == BY_PAGE and call.server.settings.is_proxied:  # Jupyter let its user in, and nobody else
        given = given.model_copy(update={"answered_by": account.signed_here(BY_PAGE)})
    return Reply(take_answer(call.server.service, call.path["id"], call.path["qid"], given))


def tell(call: Call) -> Reply:
    """Tell the model of a running stage something; when this is answered it is in the log."""
    run_id, given = call.path["id"], call.body
    receipt = call.server.service.run(run_id).tell(given.node, given.text, given_by=given.given_by or "api")
    place = {"node": receipt.node or None, "stage": receipt.stage or None}
    return Reply(MessageTaken(pipeline=run_id, **place, reach=receipt.reach, words=receipt.words))


def short_answer(call: Call) -> Reply:
    """Take an answer that says itself what it answers, or leaves out what there is only one of."""
    given = call.body
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


def get_checkpoint(call: Call) -> Reply:
    """The newest checkpoint."""
    return Reply(run_answers.checkpoint_of(call.server.service, call.path["id"]))


def get_context(call: Call) -> Reply:
    """The context as it is now."""
    return Reply(run_answers.context_of(call.server.service, call.path["id"]))


def get_stage(call: Call) -> Reply:
    """What is known of a stage."""
    return Reply(run_answers.plain_stage(call.server.service.run(call.path["id"]), call.path["node"], call.query))


def get_stage_file(call: Call) -> Reply:
    """A file of a stage."""
    run, path = call.server.service.run(call.path["id"]), call.path
    return Reply(run_answers.stage_file(run, path["node"], path["name"], call.query))


def get_inspection(call: Call) -> Reply:
    """What the inspector of a front-end shows."""
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
    """What lint says of a source, after a fix or a renaming if one is asked for; nothing of it is run."""
    asked = call.body
    is_changed = asked.fix is not None or asked.rename is not None
    try:
        pipeline = posted_pipeline(asked.source, strict=asked.strict)
        if asked.fix is not None:
            pipeline = mended(pipeline, asked.fix)
        if asked.rename is not None:
            pipeline = renamed(pipeline, asked.rename.node, asked.rename.to)
    except SourceError as error:
        found: list[dict[str, Any]] = [plain_syntax_error(error)]
        executes: dict[str, Any] = {"hash": "", "commands": []}
        return Reply(Validation(is_valid=False, name="", goal="", nodes=0, diagnostics=found, executes=executes))
    return Reply(
        Validation(
            is_valid=not any(one.is_error for one in pipeline.diagnostics),
            name=redacted(pipeline.name),
            goal=redacted(pipeline.graph.goal),
            nodes=len(pipeline.graph.nodes),
            diagnostics=[plain_finding(one) for one in pipeline.diagnostics],
            executes=plain_surface(pipeline.graph),
            inputs=plain_inputs(pipeline),
            svg=pipeline.to_svg() if asked.with_drawing else "",
            source=pipeline.to_dot() if is_changed else "",
            outline=plain_outline(pipeline.graph) if asked.with_outline else [],
        )
    )


def make_ticket(call: Call) -> Reply:
    """A ticket for the events of a run, for who can send no header."""
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
