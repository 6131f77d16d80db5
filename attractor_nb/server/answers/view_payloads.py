"""Views of runs for a front-end, made on the server: rows, drawings, past answers, timelines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.events import InterviewCompleted, InterviewTimeout
from attractor_nb.model.states import run_word
from attractor_nb.redaction import redacted
from attractor_nb.server.answers.run_answers import all_questions, stored_run
from attractor_nb.server.event_channel import EventReader
from attractor_nb.server.replies import Problem, Reply
from attractor_nb.server.request_words import reason_in_requests, view_in_requests
from attractor_nb.server.response_models import (
    ComparisonState,
    Drawing,
    FinalResponse,
    PastAnswers,
    QuestionList,
    ReplayState,
    Rows,
    TimelineState,
)
from attractor_nb.studio.history.history_table import RunsQuery, mark_of, rows_part, run_plain, state_of
from attractor_nb.studio.inspect.final_answer import SPEAKING_TYPES, FinalAnswer, final_answer
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.shown_questions import settled_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph
    from attractor_nb.server.request_calls import Call
    from attractor_nb.server.run_service import RunService
    from attractor_nb.storage.run_listing import RunSummary

GATE_TYPE: Final = "wait.human"
MAX_ANSWERS: Final = 50
"""The latest answers that are told."""


def get_rows(call: Call) -> Reply:
    """The runs of the root as rows of a list, newest first where no other order is asked for."""
    service, query = call.server.service, call.query
    summaries = service.summaries()
    found, under_way = len(summaries), sum(summary.is_live for summary in summaries)
    if query.words.strip() or query.sort != "index" or query.descending:
        every = [_row(service, index, summary) for index, summary in enumerate(summaries)]
        wanted = RunsQuery(query.words, query.sort, query.descending, query.limit, query.offset)
        rows, counts = rows_part(every, wanted)
        found, under_way = counts["found"], counts["under_way"]
    else:
        part = summaries[query.offset : query.offset + query.limit]
        rows = [_row(service, index, summary) for index, summary in enumerate(part, query.offset)]
    asked = all_questions(service, summaries) if query.with_questions else QuestionList(questions=[])
    return Reply(
        Rows(
            rows=rows,
            total=len(summaries),
            found=found,
            under_way=under_way,
            offset=query.offset,
            questions=asked.questions,
            more_questions=asked.more_questions,
        )
    )


def get_drawing(call: Call) -> Reply:
    """The drawing of a run's graph without states, which a front-end then dresses with them."""
    run_id = call.path["id"]
    if call.server.service.summary(run_id).is_map:
        raise Problem(409, "map", "The run is a map", f"{run_id} is a map; GET /maps/{run_id} shows it")
    run = call.server.service.run(run_id)
    graph = run.graph
    types = set(_types(graph))
    return Reply(
        Drawing(
            id=run_id,
            caption=redacted(run.pipeline.title),
            svg=render_svg(graph),
            marks={status.value: path for status, path in MARK_PATHS.items()},
            has_output=not types.isdisjoint(SPEAKING_TYPES),
            has_gates=GATE_TYPE in types,
        )
    )


def get_response(call: Call) -> Reply:
    """The final answer of a run: the response of the stage that spoke last, with its node; empty without one."""
    run_id = call.path["id"]
    run = call.server.service.run(run_id)
    answer = final_answer(run, run.view, f"GET /pipelines/{run_id}/stages/{{node}}") or FinalAnswer("", "")
    return Reply(FinalResponse(id=run_id, **answer.to_plain()))


def get_answers(call: Call) -> Reply:
    """Past questions of a run and their answers, oldest first."""
    run_id = call.path["id"]
    events = (recorded.event for recorded in EventReader(call.server.service.place(run_id)).read())
    ended = [event for event in events if isinstance(event, InterviewCompleted | InterviewTimeout)]
    answers: list[dict[str, Any]] = [
        {
            "question": event.question_id,
            "stage": event.stage,
            "is_answered": isinstance(event, InterviewCompleted),
            "words": redacted(settled_words(event)),
            "time": event.time,
        }
        for event in ended[-MAX_ANSWERS:]
    ]
    return Reply(PastAnswers(id=run_id, answers=answers))


def get_timeline(call: Call) -> Reply:
    """Timeline of a run, as a picture with words, and the time of each node."""
    run_id = call.path["id"]
    shown = stored_run(call.server.service, run_id).timeline()
    return Reply(TimelineState(id=run_id, **view_in_requests(timeline_values(shown, reason_in_requests))))


def get_replay(call: Call) -> Reply:
    """All that happened in a run, moment by moment."""
    run_id = call.path["id"]
    return Reply(ReplayState(id=run_id, **view_in_requests(stored_run(call.server.service, run_id).replay().values())))


def get_comparison(call: Call) -> Reply:
    """Differences of two runs, on one drawing."""
    from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS, run_diff  # noqa: PLC0415 - see serving.py
    from attractor_nb.studio.compare.comparison_page import comparison_values  # noqa: PLC0415 - as above

    service, run_id, other = call.server.service, call.path["id"], call.query.other
    compared = run_diff(stored_run(service, run_id), stored_run(service, other)).compared
    values = comparison_values(compared, text_chars=PLAIN_TEXT_CHARS)
    return Reply(ComparisonState(id=run_id, other=other, **view_in_requests(values)))


def _row(service: RunService, index: int, summary: RunSummary) -> dict[str, Any]:
    live = service.live(summary.logs_root.name)
    told = replace(summary, note=reason_in_requests(summary.note))
    row = run_plain(index, told, summary.logs_root.name)
    if row["is_live"]:  # the manifest says this of a run that has ended
        row |= {"took": "", "duration": None, "stages": None}
    if live is None or live.is_done:
        return row
    live_fields = {"status": run_word(live.status), "mark": mark_of(live.status), "state": state_of(live.status)}
    return {**row, **live_fields, "is_live": True, "is_resumable": False, "is_deletable": False}


def _types(graph: Graph) -> Iterator[str]:
    """The handler types of a graph and of its children's."""
    yield from graph.handler_types.values()
    for child in graph.children.values():
        yield from _types(child)
