"""A human gate (spec 4.6; rulings 23, 24).

The choices are the node's outgoing edges. An answer that matches none of them is refused and asked
for again; it never becomes the first choice. Who is asked, and how an answer gets here from a
button, a terminal or another process, is the interviewer's business.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from attractor_nb.decisions.gate_choices import (
    YES_OR_NO,
    GateChoice,
    answer_problem,
    check_answer,
    choices_of,
    default_answer,
    find_choice,
    fits,
    side_of,
)
from attractor_nb.errors import AnswerRefused, StorageError
from attractor_nb.handlers.codergen import asks_for_verdict, rendered_node
from attractor_nb.handlers.named_models import named_form
from attractor_nb.maybe_async import call
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.question import Answer, AnswerValue, Form, FormField, Option, Question, QuestionType
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import Duration, comma_list
from attractor_nb.model.vocabulary.variables import MISSING, lookup_in, whole_variable
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.vocabulary.variables import Lookup
    from attractor_nb.protocols import Interviewer

MAX_ASKED = 10
"""Most times that a gate asks before refused answers fail it."""
FORM_KEY = "human.gate.form"
"""Context key of the form values: all of them, and each field under ``human.gate.form.<field>``."""

ATTRIBUTE: Final = "human.review"
RESPONSE: Final = "response.md"
MAX_TEXTS: Final = 8
MAX_CHARACTERS: Final = 16_000
"""Of one text; the whole is in the run directory."""
_LATEST: Final = "last_stage"

_NO_EDGES: Final = "No outgoing edges for human gate"


class WaitHumanHandler:
    """Asks a person which way to go; the interviewer ends the question when its time is over.

    Args:
        interviewer: Puts the questions.
        schemas: Models that ``human.form`` of a node may name.
    """

    keeps_own_time = True
    writes_status = False

    def __init__(self, interviewer: Interviewer, schemas: Mapping[str, type[BaseModel]] = MappingProxyType({})) -> None:
        self._interviewer = interviewer
        self._schemas = schemas

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS along the chosen edge; RETRY for a timeout without a default; else FAIL."""
        choices = choices_of(graph.outgoing_edges(node.id))
        scope = current_stage()
        spent = choices_of(scope.spent_edges)
        if not choices:
            reason = "Every choice of the gate was taken as often as its max_taken allows" if spent else _NO_EDGES
            return Outcome.fail(reason, is_terminal=True)
        node = rendered_node(node, graph, context.get)
        within = f"{scope.branch}/" if scope.branch else ""
        question = question_of(node, choices, f"{within}{node.id}:{scope.visit}")
        review = under_review(node, graph, context, scope.read_file)
        question = replace(
            question,
            branch=scope.branch,
            form=_with_defaults(named_form(node, self._schemas), lookup_in(graph.goal, context.get)),
            metadata={**question.metadata, "review": review} if review else question.metadata,
        )
        wanted = node.get("human.default_choice", str, "")
        is_spent = bool(spent) and question_of(node, spent, question.id).default is not None
        if wanted and question.default is None and not is_spent:
            known = ", ".join(f"{choice.label!r}" for choice in choices)
            reason = f"human.default_choice {wanted!r} is not one of the choices {known}"
            return Outcome.fail(reason, is_terminal=True)
        if question.type in YES_OR_NO and side_of(choices, AnswerValue.YES) is None:
            known = ", ".join(f"{choice.label!r}" for choice in choices)
            reason = f'human.type {question.type} needs an edge labelled "Yes", not only {known}'
            reason += "; the others were taken as often as their max_taken allows" if spent else ""
            return Outcome.fail(reason, is_terminal=True)
        if reason := _default_without_form(question):
            return Outcome.fail(reason, is_terminal=True)
        answer = await self._ask(question)
        if isinstance(answer, Outcome):
            return answer
        return _outcome(question, choices, answer)

    async def _ask(self, question: Question) -> Answer | Outcome:
        """An answer that fits the question, or the outcome of not getting one."""
        loop = asyncio.get_running_loop()
        seconds = question.timeout_seconds
        deadline = None if seconds is None else loop.time() + seconds
        for _ in range(MAX_ASKED):
            answer: Any = await call(self._interviewer.ask, question)
            if not isinstance(answer, Answer):
                kind = type(answer).__name__
                return Outcome.fail(f"the interviewer returned {kind}, not an Answer", is_terminal=True)
            if problem := answer_problem(answer):
                return Outcome.fail(f"the interviewer returned an Answer {problem}", is_terminal=True)
            if answer.is_skipped:
                return Outcome.fail("human skipped interaction")
            if answer.is_timeout:
                if question.default is None:
                    return Outcome.retry("human gate timeout, no default")
                answer = question.default
            try:
                return check_answer(question, answer)
            except AnswerRefused as refused:
                await call(self._interviewer.inform, refused.message, question.stage)
            if deadline is not None:
                question = replace(question, timeout_seconds=max(0.0, deadline - loop.time()))
        return Outcome.fail(f"none of {MAX_ASKED} answers matched a choice")


def _with_defaults(form: Form | None, lookup: Lookup) -> Form | None:
    """A form with the values of the variables that are defaults of its fields."""
    fields = () if form is None else tuple(with_default(entry, lookup) for entry in form.fields)
    if form is None or fields == form.fields:
        return form
    varied = [entry for entry, own in zip(fields, form.fields, strict=True) if entry is not own]
    judge = form.judge

    def judged(values: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, str]]:
        if missing := [entry.name for entry in varied if entry.is_required and entry.name not in values]:
            return None, dict.fromkeys(missing, "needs a value")
        defaults = {entry.name: entry.default for entry in varied if not entry.is_required}
        return judge({**defaults, **values}) if judge else (dict(values), {})

    return Form(form.name, fields, judged)


def with_default(entry: FormField, lookup: Lookup) -> FormField:
    """A field whose default is a variable, with its value; where that does not fit, the field must be filled in.

    >>> from attractor_nb.model.question import FieldKind, FormField
    >>> known, default = {"rate.verdict.score": 7}, "${rate.verdict.score}"
    >>> entry = FormField("score", FieldKind.WHOLE, default=default, is_required=False)
    >>> with_default(entry, lambda name: known.get(name, MISSING)).default
    7
    >>> with_default(entry, lambda name: MISSING).is_required
    True
    """
    name = whole_variable(entry.default) if isinstance(entry.default, str) else ""
    if not name:
        return entry
    value = lookup(name)
    if value is not MISSING and (fits(entry, value) or (value is None and entry.is_nullable)):
        return replace(entry, default=value)
    return replace(entry, default=None, is_required=True)


def question_of(node: Node, choices: Sequence[GateChoice], question_id: str) -> Question:
    """The question that a gate puts.

    ``human.timeout`` says how long it waits, and in its absence the node's ``timeout``: for a gate
    both mean the time a person has. A default that matches no choice is left out. ``targets`` in the
    metadata says where each key leads; for yes and no, where each word does.
    """
    kind = QuestionType(node.get("human.type", str, "") or QuestionType.MULTIPLE_CHOICE)
    has_options = kind in (QuestionType.MULTIPLE_CHOICE, QuestionType.MULTI_SELECT)
    timeout = node.get("human.timeout", Duration) or node.timeout
    keyed: dict[str, GateChoice | None] = {choice.key: choice for choice in choices}
    if kind in YES_OR_NO:
        keyed = {value.value: side_of(choices, value) for value in (AnswerValue.YES, AnswerValue.NO)}
    metadata: dict[str, Any] = {"targets": {key: choice.target for key, choice in keyed.items() if choice}}
    if detail := node.get("human.prompt", str, ""):
        metadata["detail"] = detail
    return Question(
        text=node.label,
        type=kind,
        options=tuple(Option(choice.key, choice.label) for choice in choices) if has_options else (),
        default=default_answer(kind, node.get("human.default_choice", str, ""), choices),
        timeout_seconds=None if timeout is None else timeout.seconds,
        stage=node.id,
        metadata=metadata,
        id=question_id,
    )


def _default_without_form(question: Question) -> str:
    """The reason why the default cannot be taken at the timeout: its form would be empty."""
    if question.default is None or question.form is None:
        return ""
    try:
        check_answer(question, question.default)
    except AnswerRefused as refused:
        return f"human.default_choice leaves the form {question.form.name} to its defaults: {refused.message}"
    return ""


def _outcome(question: Question, choices: Sequence[GateChoice], answer: Answer) -> Outcome:
    # All that an answer can set is set by each: nothing of an earlier answer is left.
    updates: dict[str, Any] = {"human.gate.text": answer.text, "human.gate.selected": "", "human.gate.label": ""}
    if question.form is not None:
        updates |= {f"{FORM_KEY}.{name}": value for name, value in answer.form.items()}
        updates[FORM_KEY] = dict(answer.form)
    if question.type is QuestionType.FREEFORM:
        chosen = [found] if (found := find_choice(choices, answer.text)) else list(choices[:1])
        if not found and len(choices) > 1:
            return Outcome.success(f"{question.stage}: answered in words").with_updates(updates)
    elif question.type in YES_OR_NO:
        side = side_of(choices, answer.value)
        if side is None:
            return Outcome.fail(f"the answer was {answer.value}, and no edge stands for it").with_updates(updates)
        chosen = [side]
    else:
        options = answer.selected_options or ((answer.selected_option,) if answer.selected_option else ())
        keys = {option.key for option in options}
        chosen = [choice for choice in choices if choice.key in keys]
    if not chosen:
        return Outcome.fail("the answer selects no choice").with_updates(updates)
    updates["human.gate.selected"] = ",".join(choice.key for choice in chosen)
    updates["human.gate.label"] = ", ".join(choice.label for choice in chosen)
    return Outcome(
        StageStatus.SUCCESS,
        preferred_label=chosen[0].label,
        suggested_next_ids=tuple(choice.target for choice in chosen),
        context_updates=updates,
        notes=f"{question.stage}: {updates['human.gate.label']}",
    )


def under_review(
    node: Node, graph: Graph, context: Context, read_file: Callable[[str, str], str | None]
) -> list[dict[str, str]]:
    """The texts to be judged, each with ``name``, ``text`` and ``note``.

    ``human.review`` names files of stages, ``plan/response.md``, with commas; a stage's id alone means its
    response. Without it the latest response is shown, if there is one; if that is a JSON verdict, first the response
    that it judges.

    Args:
        node: The gate.
        graph: Says which stages there are.
        context: Says which stage was the latest.
        read_file: Given a node and a file name, its text; None when there is none.
    """
    named = comma_list(node.get(ATTRIBUTE, str, ""))
    if named:
        return [_text(name, graph, read_file) for name in named[:MAX_TEXTS]]
    latest = context.get(_LATEST, "")
    if not isinstance(latest, str) or latest not in graph.nodes:
        return []
    found = [_text(stage, graph, read_file) for stage in (*_judged_by(latest, node.id, graph, read_file), latest)]
    return [each for each in found if each["text"]]


def _judged_by(latest: str, gate: str, graph: Graph, read_file: Callable[[str, str], str | None]) -> list[str]:
    """The stage whose response the verdict of ``latest`` is about; empty when ``latest`` gives no verdict.

    It is the nearest stage before it that has a response and gives no verdict itself, found against the edges.
    """
    if not asks_for_verdict(graph.nodes[latest]):
        return []
    seen, queue = {latest, gate}, deque([latest])
    while queue:
        for edge in graph.incoming_edges(queue.popleft()):
            stage = edge.source
            if stage in seen:
                continue
            seen.add(stage)
            if not asks_for_verdict(graph.nodes[stage]) and _text(stage, graph, read_file)["text"]:
                return [stage]
            queue.append(stage)
    return []


def _text(name: str, graph: Graph, read_file: Callable[[str, str], str | None]) -> dict[str, str]:
    stage, _, file = name.partition("/")
    shown = f"{stage}/{file or RESPONSE}"
    if stage not in graph.nodes:
        return {"name": shown, "text": "", "note": f"there is no stage {stage}{did_you_mean(stage, graph.nodes)}"}
    try:
        text = read_file(stage, file or RESPONSE)
    except StorageError as error:
        return {"name": shown, "text": "", "note": f"cannot be shown: {error.message}"}
    if text is None:
        return {"name": shown, "text": "", "note": "there is no such file yet"}
    if "\0" in text:
        return {"name": shown, "text": "", "note": f"is not text: {len(text):,} characters"}
    cut = len(text) > MAX_CHARACTERS
    note = f"the first {MAX_CHARACTERS:,} of {len(text):,} characters" if cut else ""
    return {"name": shown, "text": text[:MAX_CHARACTERS], "note": note}
