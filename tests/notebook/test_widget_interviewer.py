"""Gates by ipywidgets, without a page: ``button.click()`` is a click."""

from __future__ import annotations

import asyncio
import getpass
import threading
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from attractor_nb import Pipeline
from attractor_nb.errors import AnswerRefused, NoSuchGate, OptionError
from attractor_nb.interviewers import RecordingInterviewer
from attractor_nb.model.events import InterviewCompleted
from attractor_nb.model.question import Option, Question, QuestionType
from attractor_nb.notebook.gate_controls import GateControls, GateList
from attractor_nb.notebook.widget_interviewer import WidgetInterviewer
from attractor_nb.runtime.handles.presenters import register_interviewer
from attractor_nb.testing import ScriptedBackend, verify_interviewer
from attractor_nb.testing.conformance import QUESTIONS

SECONDS = 60
ME = getpass.getuser()


def click(card):
    """Answer a question of the conformance suite."""
    if card.question.type is QuestionType.FREEFORM:
        card.text.value = "because"
    if card.question.type is QuestionType.MULTI_SELECT:
        card.picks["T"].value = card.picks["X"].value = True
    next(iter(card.buttons.values())).click()


def clicked(interviewer):
    def click_all():
        for question in QUESTIONS * 2:
            click(interviewer.wait_for(question.stage, SECONDS))

    person = threading.Thread(target=click_all, daemon=True)
    person.start()
    return person


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "recorded"])
def test_it_keeps_the_interviewer_contract(wrapped):
    interviewer = WidgetInterviewer()
    person = clicked(interviewer)
    asked = RecordingInterviewer(interviewer) if wrapped else interviewer
    answers = asyncio.run(verify_interviewer(asked))
    person.join(SECONDS)
    assert [answer.value for answer in answers] == ["A", "yes", "yes", "because", "T,X"]
    assert {answer.answered_by for answer in answers} == {f"{ME} (widget)"}
    assert f"✓ Approve, by {ME}, after 0 s" in interviewer.gates.words
    assert "stage: a message" not in interviewer.gates.words
    assert "a message" in interviewer.gates.words


def test_the_buttons_name_their_keys_in_edge_order():
    question = Question("Which?", options=(Option("A", "[A] Approve"), Option("R", "Reject")), stage="g")
    card = GateControls(question, lambda *given: None)
    assert [button.description for button in card.buttons.values()] == ["[A] Approve", "[R] Reject"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(BaseModel):
    word: str
    note: str | None = "n"
    score: int = Field(ge=0, le=10, description="10 is best")
    ratio: float = 0.5
    sure: bool
    done: bool = True
    risk: Literal["low", "high"] = "low"
    colour: Colour
    findings: list[str] = []

    @field_validator("word")
    @classmethod
    def _no_swearing(cls, word):
        if word == "damn":
            raise ValueError("be polite")
        return word


GATE = """digraph G { start [shape=Mdiamond] plan [prompt="Plan it"]
  review [shape=hexagon, label="Is <b>it</b> good?"%s] done [shape=Msquare]
  start -> plan -> review  review -> done [label="[A] Approve"]  review -> plan [label="[R] Redo"] }"""


@pytest.fixture
def start(tmp_path):
    """Starts a run whose gates are asked by widgets; the run and its interviewer."""
    started = []

    def start(more="", text=GATE, schemas=(), **options):
        interviewer = WidgetInterviewer()
        backend = ScriptedBackend({"plan": ["# Plan\n\n- one <script>alert(1)</script>"] * 3})
        pipeline = Pipeline(text % more, backend=backend, schemas=dict(schemas))
        run = pipeline.run(interviewer=interviewer, logs_root=tmp_path / "run", **options)
        started.append(run)
        return run, interviewer

    yield start
    for run in started:
        run.cancel()
        run.result(timeout=SECONDS)


def test_a_click_answers_the_gate_and_a_line_says_who(start):
    run, interviewer = start()
    card = interviewer.wait_for("review", SECONDS)
    card.text.value = " fine "
    card.buttons["A"].click()
    result = run.result(timeout=SECONDS)
    assert result.status == "success"
    assert result.context["human.gate.text"] == "fine"
    assert interviewer.gates.words.startswith(f"✓ Approve, by {ME}, after ")
    assert all(button.disabled for button in card.buttons.values())
    assert len(interviewer.box.children) == 1, "one line remains"


def test_a_form_has_all_kinds_of_fields_and_each_mistake_is_beside_its_field(start):
    run, interviewer = start(", human.form=Everything", schemas={"Everything": Everything})
    card = interviewer.wait_for("review", SECONDS)
    kinds = {name: type(control).__name__ for name, control in card.fields.items()}
    assert kinds == {
        "word": "Textarea", "note": "Textarea", "score": "Text", "ratio": "Text", "sure": "Dropdown",
        "done": "Checkbox", "risk": "Dropdown", "colour": "Dropdown", "findings": "Textarea",
    }  # fmt: skip
    card.fields["word"].value = "damn"
    card.fields["score"].value = "many"
    card.fields["ratio"].value = "half"
    card.buttons["A"].click()
    wrong = {name: card.problem_of(name) for name in card.fields if card.problem_of(name)}
    assert set(wrong) == {"word", "score", "ratio", "sure", "colour"}
    assert "be polite" in wrong["word"]
    assert run.gates, "the gate still waits"
    card.fields["word"].value = "well"
    card.fields["note"].value = ""
    card.fields["score"].value = "7"
    card.fields["ratio"].value = ""
    card.fields["sure"].value = 1
    card.fields["colour"].value = 1
    card.fields["findings"].value = "one\n\n two "
    card.buttons["A"].click()
    assert run.result(timeout=SECONDS).context["human.gate.form"] == {
        "word": "well", "note": None, "score": 7, "ratio": 0.5, "sure": False, "done": True, "risk": "low",
        "colour": "blue", "findings": ["one", "two"],
    }  # fmt: skip


def test_a_refused_choice_is_said_beside_the_buttons_and_the_gate_still_waits(start):
    run, interviewer = start(', human.type="multi_select"')
    card = interviewer.wait_for("review", SECONDS)
    card.buttons[""].click()
    assert "names no choice" in card.problem
    assert run.gates
    card.picks["A"].value = True
    card.buttons[""].click()
    assert run.result(timeout=SECONDS).status == "success"


def test_an_answer_from_elsewhere_switches_the_controls_off_and_says_who(start):
    run, interviewer = start()
    card = interviewer.wait_for("review", SECONDS)
    run.answer("review", "A", answered_by="ann (inbox)")
    run.result(timeout=SECONDS)
    assert all(button.disabled for button in card.buttons.values())
    assert interviewer.gates.words.startswith("✓ answered elsewhere: Approve, by ann, in the inbox, after ")


def test_a_click_behind_another_answer_changes_nothing_and_says_so():
    def too_late(*given):
        raise NoSuchGate("gate review is over")

    card = GateControls(QUESTIONS[0], too_late)
    card.buttons["R"].click()
    assert "gate review is over" in card.problem
    assert all(button.disabled for button in card.buttons.values())


def test_a_second_click_at_a_question_that_no_run_asks_changes_nothing_and_says_so():
    question = QUESTIONS[0]

    async def click_twice():
        interviewer = WidgetInterviewer()
        asked = asyncio.ensure_future(interviewer.ask(question))
        await asyncio.sleep(0)
        card = interviewer.wait_for(question.stage, 0)
        card.buttons["A"].click()
        card.buttons["R"].click()
        return card, card.problem, await asked

    card, problem, answer = asyncio.run(click_twice())
    assert answer.value == "A"
    assert f"gate `{question.stage}` has been answered already" in problem
    assert all(button.disabled for button in card.buttons.values())


def test_a_stopped_run_closes_the_controls(start):
    run, interviewer = start()
    card = interviewer.wait_for("review", SECONDS)
    run.cancel()
    run.result(timeout=SECONDS)
    assert all(button.disabled for button in card.buttons.values())
    assert interviewer.box.children == ()


def test_a_question_whose_time_is_over_closes_the_controls_and_says_so(start):
    run, interviewer = start(', human.timeout="1s", human.default_choice="A"')
    assert run.result(timeout=SECONDS).status == "success"
    assert "Approve, by default, after " in interviewer.gates.words
    assert not interviewer.gates.is_waiting


def test_without_a_default_the_line_says_that_there_was_no_answer(start):
    run, interviewer = start(', human.timeout="1s"')
    assert run.result(timeout=SECONDS).status == "fail"
    assert "no answer at review after " in interviewer.gates.words


def test_what_is_under_review_is_rendered_and_never_html(start):
    _, interviewer = start()
    card = interviewer.wait_for("review", SECONDS)
    shown = "".join(each.value for each in card.box.children if hasattr(each, "value"))
    assert "<h1" in shown.split("</summary>")[1].lower() or ">Plan<" in shown
    assert "Is &lt;b&gt;it&lt;/b&gt; good?" in shown
    assert "<script>" not in shown


def test_several_questions_are_open_at_once_and_one_that_never_comes_is_an_error():
    questions = GateList()
    for question in QUESTIONS[:2]:
        questions.ask(question.id, question, lambda *given: None)
        questions.ask(question.id, question, lambda *given: None)
    assert len(questions.box.children) == 2
    with pytest.raises(NoSuchGate, match="gate other shows no controls here"):
        questions.wait_for("other", 0)
    questions.settle_all()
    assert questions.box.children == ()


def test_a_refused_click_is_no_answer_of_these_controls():
    questions = GateList()
    answers = [AnswerRefused("no"), None]

    def hand_in(*given):
        if answer := answers.pop(0):
            raise answer

    for number in range(2):
        questions.ask(number, QUESTIONS[0], hand_in)
        click(questions.wait_for("", 0))
        questions.settle(
            number, InterviewCompleted(answer="A", duration=1.0, label="Approve", answered_by="ann (inbox)")
        )
    assert [line.partition(",")[0] for line in questions.words.splitlines()] == [
        "✓ answered elsewhere: Approve",
        "✓ Approve",
    ]


def test_a_mistake_of_no_field_is_said_for_the_whole_answer():
    def refuse(*given):
        raise AnswerRefused("x", fields={"": "both are high", "gone": "unknown"})

    card = GateControls(QUESTIONS[0], refuse)
    card.buttons["A"].click()
    assert "both are high\ngone: unknown" in card.problem


def test_the_example_on_the_page_of_gates_clicks(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/gates.md").read_text("utf-8")
    block = page.split("## Gates by ipywidgets", 1)[1].split("```python\n", 1)[1].split("```", 1)[0]
    monkeypatch.chdir(tmp_path)
    exec(block, {})


def test_a_click_counts_when_it_returns_so_a_cell_may_wait_at_once(start):
    run, interviewer = start()
    interviewer.wait_for("review", SECONDS).buttons["A"].click()
    assert run.gates == ()


def test_a_map_takes_no_controls_that_nobody_would_see(tmp_path):
    pipeline = Pipeline(GATE % "", backend=ScriptedBackend())
    remove = register_interviewer("widgets", WidgetInterviewer)
    try:
        with pytest.raises(OptionError, match="gates of a map cannot be answered by hand"):
            pipeline.map([{"n": 1}], interviewer="widgets", map_dir=tmp_path / "map")
    finally:
        remove()


def test_without_a_notebook_its_name_says_what_is_missing(tmp_path):
    pipeline = Pipeline(GATE % "", backend=ScriptedBackend())
    with pytest.raises(OptionError, match="'widgets' belongs to notebooks") as refused:
        pipeline.run(interviewer="widgets", logs_root=tmp_path / "run")
    assert "%load_ext attractor_nb" in str(refused.value.hint)
    with pytest.raises(OptionError, match='did you mean "widgets"'):
        pipeline.run(interviewer="widget", logs_root=tmp_path / "run")
