"""A gate with a form and with material under review: asked, answered, kept, resumed, redacted."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from pydantic import BaseModel, Field

from attractor_nb import Answer, Pipeline, QueueInterviewer, Run
from attractor_nb.engine.gates import Gates
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate, OptionError
from attractor_nb.interviewers import ConsoleInterviewer, DeferredInterviewer
from attractor_nb.model.events import InterviewCompleted, InterviewStarted
from attractor_nb.model.question import Option, Question
from attractor_nb.testing import ManualClock, ScriptedBackend

MAX_CHARACTERS = 16_000
MAX_TEXTS = 8

SOURCE = """digraph release {
  start [shape=Mdiamond]
  plan [label="Plan", prompt="Plan it"]
  review [shape=hexagon, label="Is it good?", human.form=Review MORE]
  done [shape=Msquare]
  start -> plan -> review
  review -> done [label="[A] Approve"]
  review -> plan [label="[R] Redo"]
}"""
FILLED = {"score": 8, "findings": ["no tests"]}


class Review(BaseModel):
    score: int = Field(ge=0, le=10)
    findings: list[str] = []
    risk: str | None = None


class Lenient(BaseModel):
    score: int = 5


def pipeline(more="", **options):
    options = {"schemas": {"Review": Review}, "backend": ScriptedBackend(default="the plan"), **options}
    return Pipeline(SOURCE.replace("MORE", more), **options)


def values(context):
    return {key: context[key] for key in context if key.startswith("human.gate.form")}


def test_what_was_filled_in_is_in_the_context_whole_and_by_field(tmp_path):
    result = pipeline().run(
        interviewer=QueueInterviewer([Answer("A", form=FILLED)]), logs_root=tmp_path / "run", wait=True
    )
    assert result.status == "success"
    assert values(result.context) == {
        "human.gate.form.score": 8,
        "human.gate.form.findings": ["no tests"],
        "human.gate.form.risk": None,
        "human.gate.form": {"score": 8, "findings": ["no tests"], "risk": None},
    }


def test_a_call_fills_in_the_form_and_is_told_what_is_wrong(tmp_path):
    run = pipeline().run(logs_root=tmp_path / "run", interviewer="deferred")
    gate = run.wait_for_gate("review", timeout=60)
    assert [entry.name for entry in gate.question.form.fields] == ["score", "findings", "risk"]
    with pytest.raises(AnswerRefused) as refused:
        run.answer("review", "A", form={"score": 11})
    assert refused.value.fields == {"score": "Input should be less than or equal to 10"}
    with pytest.raises(AnswerRefused, match="score: Field required"):
        run.answer("review", "A")
    with pytest.raises(AnswerRefused, match="form must be a dict of values"):
        run.answer("review", "A", form=[8])
    run.answer("review", "approve", form=FILLED)
    with pytest.raises((AlreadyAnswered, NoSuchGate), match=r"review"):
        run.answer("review", "A", form=FILLED)
    assert run.result(timeout=60).context["human.gate.form.score"] == 8
    events = list(Run.load(run.logs_root).events())
    (asked,) = [event for event in events if isinstance(event, InterviewStarted)]
    (answered,) = [event for event in events if isinstance(event, InterviewCompleted)]
    assert asked.form["name"] == "Review"
    assert answered.form == {"score": 8, "findings": ["no tests"], "risk": None}


def test_after_the_end_an_answer_is_told_what_became_of_the_gate(tmp_path):
    run = pipeline().run(logs_root=tmp_path / "run", interviewer="deferred")
    run.wait_for_gate("review", timeout=60)
    run.answer("review", "A", form=FILLED, answered_by="ann")
    run.result(timeout=60)
    with pytest.raises(AlreadyAnswered, match=r"gate `review` has been answered already: \[A\] Approve, by ann"):
        run.answer("review", "R", form=FILLED)
    with pytest.raises(NoSuchGate) as late:
        run.answer("other", "R")
    assert "the run has ended" in str(late.value)


def test_an_answer_that_the_log_has_is_taken_by_the_resume_with_its_form(tmp_path):
    asked = Question("Good?", options=(Option("A", "Approve"),), stage="review", id="review:1")
    recorded = InterviewCompleted(
        question="Good?", answer="A", duration=1.0, question_id="review:1", stage="review", form={"score": 8}
    )
    gates = Gates(DeferredInterviewer(), lambda event: None, ManualClock(), recorded=[recorded])
    answer = asyncio.run(gates.ask(asked))
    assert (answer.form, answer.is_form_checked) == ({"score": 8}, True)


def test_a_gate_under_way_is_asked_again_with_its_form_after_a_resume(tmp_path):
    run = pipeline().run(logs_root=tmp_path / "run", interviewer="deferred")
    run.wait_for_gate("review", timeout=60)
    run.cancel()
    assert run.result(timeout=60).status == "interrupted"
    again = pipeline().resume(tmp_path / "run", interviewer="deferred")
    assert again.wait_for_gate("review", timeout=60).question.form.name == "Review"
    again.answer("review", "A", form=FILLED)
    assert again.result(timeout=60).context["human.gate.form.score"] == 8


def test_a_secret_that_is_filled_in_is_in_no_record(tmp_path):
    secret = "sk-ant-api03-" + "a" * 80 + "AA"
    run = pipeline().run(logs_root=tmp_path / "run", interviewer="deferred")
    run.wait_for_gate("review", timeout=60)
    run.answer("review", "A", form={**FILLED, "risk": secret})
    result = run.result(timeout=60)
    assert secret not in str(dict(result.context.snapshot()))
    assert secret not in (tmp_path / "run" / "events.jsonl").read_text("utf-8")


def test_a_default_that_leaves_needed_fields_empty_fails_before_anybody_is_asked(tmp_path):
    more = ', human.timeout="1ms", human.default_choice="done"'
    result = pipeline(more).run(logs_root=tmp_path / "run", interviewer="deferred", wait=True)
    assert result.status == "fail"
    assert "leaves the form Review to its defaults" in result.reason
    assert "score" in result.reason


def test_a_default_takes_the_defaults_of_the_form(tmp_path):
    more = ', human.timeout="1ms", human.default_choice="done"'
    result = pipeline(more, schemas={"Review": Lenient}).run(
        logs_root=tmp_path / "run", interviewer="deferred", wait=True
    )
    assert result.status == "success"
    assert result.context["human.gate.form"] == {"score": 5}


def test_approving_everything_fills_in_nothing(tmp_path):
    result = pipeline().run(logs_root=tmp_path / "run", interviewer="auto", wait=True)
    assert result.status == "fail"
    assert "needs score, but auto-approval fills in no fields" in result.reason
    lenient = pipeline(schemas={"Review": Lenient})
    assert lenient.run(logs_root=tmp_path / "other", interviewer="auto", wait=True).status == "success"


def test_a_recorded_answer_is_replayed_with_its_form(tmp_path):
    cassette = tmp_path / "calls.json"
    interviewer = QueueInterviewer([Answer("A", form=FILLED)])
    pipeline().run(logs_root=tmp_path / "a", interviewer=interviewer, cassette=cassette, wait=True)
    replayed = pipeline().run(logs_root=tmp_path / "b", cassette=cassette, cassette_mode="replay", wait=True)
    assert replayed.context["human.gate.form.score"] == 8


# -- at a console ------------------------------------------------------------------------------------


def at_pipe(tmp_path, text):
    errors = io.StringIO()
    console = ConsoleInterviewer(io.StringIO(text), errors)
    result = pipeline().run(logs_root=tmp_path / "run", interviewer=console, wait=True)
    return result, errors.getvalue()


def test_a_console_asks_field_by_field(tmp_path):
    result, shown = at_pipe(tmp_path, "a\n8\nno tests, no docs\n\n")
    assert result.context["human.gate.form"] == {"score": 8, "findings": ["no tests", "no docs"], "risk": None}
    assert "Score (a whole number, at least 0, at most 10): " in shown
    assert "an empty line: nothing" in shown


def test_a_wrong_field_is_asked_again_alone(tmp_path):
    result, shown = at_pipe(tmp_path, "a\nmany\n\n11\n\nhigh\n8\n")
    assert "score: takes a whole number" in shown
    assert "score: needs a value" in shown
    assert "score: Input should be less than or equal to 10" in shown
    assert result.context["human.gate.form"] == {"score": 8, "findings": [], "risk": "high"}


@pytest.mark.parametrize("lines", ["", "\n" * 30], ids=["end-of-input", "never-right"])
def test_a_form_that_nobody_ends_is_a_skipped_question(tmp_path, lines):
    result, _ = at_pipe(tmp_path, f"a\n{lines}")
    assert result.status == "fail"
    assert "skipped" in result.reason


# -- under review ------------------------------------------------------------------------------------


def reviewed(tmp_path, more, response="the plan", **options):
    run = pipeline(more, backend=ScriptedBackend(default=response), **options).run(
        logs_root=tmp_path / "run", interviewer="deferred"
    )
    try:
        return run.wait_for_gate("review", timeout=60).question.metadata.get("review", [])
    finally:
        run.cancel()
        run.result(timeout=60)


def test_the_latest_response_is_laid_before_the_reviewer(tmp_path):
    assert reviewed(tmp_path, "") == [{"name": "plan/response.md", "text": "the plan", "note": ""}]


JUDGED = """digraph letter { start [shape=Mdiamond] done [shape=Msquare] gate [shape=hexagon]
  read [prompt="Read"] draft [prompt="Draft"] LAST
  start -> read -> draft -> rate -> gate gate -> done [label="[S] Send"] gate -> draft [label="[A] Again"] }"""
RATINGS = {
    "schema": ('rate [prompt="Rate it", response_schema=Lenient]', ["draft/response.md", "rate/response.md"]),
    "verdict": ('rate [prompt="Rate it", verdict=json]', ["draft/response.md", "rate/response.md"]),
    "words": ('rate [prompt="Rate it"]', ["rate/response.md"]),
}


@pytest.mark.parametrize(("last", "shown"), RATINGS.values(), ids=RATINGS)
def test_before_a_verdict_the_response_that_it_judges_is_laid(tmp_path, last, shown):
    answers = {"read": "a letter", "draft": "Dear Ada", "rate": '```json\n{"score": 7, "outcome": "success"}\n```'}
    source = JUDGED.replace("LAST", last)
    run = Pipeline(source, schemas={"Lenient": Lenient}, backend=ScriptedBackend(answers)).run(
        logs_root=tmp_path / "run", interviewer="deferred"
    )
    try:
        review = run.wait_for_gate("gate", timeout=60).question.metadata["review"]
    finally:
        run.cancel()
        run.result(timeout=60)
    assert [each["name"] for each in review] == shown


def test_files_of_stages_can_be_named(tmp_path):
    shown = reviewed(tmp_path, ', human.review="plan/prompt.md, plan, plan/none.txt, plna/x"')
    assert [(each["name"], each["text"]) for each in shown] == [
        ("plan/prompt.md", "Plan it"),
        ("plan/response.md", "the plan"),
        ("plan/none.txt", ""),
        ("plna/x", ""),
    ]
    assert [each["note"] for each in shown[2:]] == [
        "there is no such file yet",
        'there is no stage plna; did you mean "plan"?',
    ]


@pytest.mark.parametrize("name", ["plan/../../secret", "plan/visits/1.1/x", "../x", "/etc/passwd", "plan/.."])
def test_nothing_outside_of_the_stages_is_shown(tmp_path, name):
    (tmp_path / "secret").write_text("hidden", encoding="utf-8")
    (shown,) = reviewed(tmp_path, f', human.review="{name}"')
    assert shown["text"] == ""
    assert shown["note"]


def test_what_is_shown_is_capped_and_says_so(tmp_path):
    (shown,) = reviewed(tmp_path, "", response="x" * (MAX_CHARACTERS + 1))
    assert len(shown["text"]) == MAX_CHARACTERS
    assert shown["note"] == "the first 16,000 of 16,001 characters"
    many = ", ".join(["plan"] * (MAX_TEXTS + 3))
    assert len(reviewed(tmp_path / "more", f', human.review="{many}"')) == MAX_TEXTS


def test_material_is_seen_without_a_directory_too():
    run = pipeline().run(interviewer="deferred", durability="none")
    try:
        review = run.wait_for_gate("review", timeout=60).question.metadata["review"]
    finally:
        run.cancel()
        run.result(timeout=60)
    assert review[0]["text"] == "the plan"
    assert json.dumps(review)


def test_a_schema_that_is_no_model_is_refused():
    with pytest.raises(OptionError, match="not a pydantic model"):
        pipeline(schemas={"Review": dict})
