"""Forms of gates: from a schema, checked, and read from typed lines."""

from __future__ import annotations

import enum
from typing import Literal

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator

from attractor_nb.decisions.gate_choices import check_answer, check_form, form_of, form_words, value_of_text
from attractor_nb.decisions.replays.recorded_answers import answer_of, plain_answer, question_inputs, question_of
from attractor_nb.errors import AnswerRefused, OptionError, TerminalError
from attractor_nb.handlers.named_models import form_problems, named_form
from attractor_nb.model.graph import Node
from attractor_nb.model.question import Answer, FieldKind, Form, FormField, Option, Question, QuestionType


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Review(BaseModel):
    """The verdict of a reviewer."""

    score: int = Field(ge=0, le=10, description="10 is best")
    summary: str
    effort: float | None = None
    is_urgent: bool = False
    risk: Literal["low", "high"] = "low"
    colour: Colour = Colour.RED
    level: Literal[1, 2] = 1
    findings: list[str] = []

    @field_validator("findings")
    @classmethod
    def short(cls, words):
        if any(len(word) > 9 for word in words):
            raise ValueError("a finding is too long")
        return words

    @model_validator(mode="after")
    def agree(self):
        if self.risk == "high" and self.score > 5:
            raise ValueError("a high risk has no good score")
        return self


FORM = named_form(Node("gate", {"human.form": "Review"}), {"Review": Review})
GOOD = {"score": 7, "summary": "Clear."}
QUESTION = Question("Good?", options=(Option("A", "Approve"), Option("R", "Redo")), stage="gate", form=FORM)


def test_each_field_has_its_kind_in_the_order_of_the_model():
    kinds = {entry.name: entry.kind for entry in FORM.fields}
    assert kinds == {
        "score": FieldKind.WHOLE,
        "summary": FieldKind.TEXT,
        "effort": FieldKind.NUMBER,
        "is_urgent": FieldKind.YES_NO,
        "risk": FieldKind.CHOICE,
        "colour": FieldKind.CHOICE,
        "level": FieldKind.CHOICE,
        "findings": FieldKind.TEXTS,
    }
    by_name = {entry.name: entry for entry in FORM.fields}
    assert (by_name["score"].limits, by_name["score"].words) == ("at most 10, at least 0", "10 is best") or (
        by_name["score"].limits == "at least 0, at most 10"
    )
    assert by_name["effort"].is_nullable
    assert [by_name[name].choices for name in ("risk", "colour", "level")] == [("low", "high"), ("red", "blue"), (1, 2)]
    assert [by_name[name].is_required for name in ("score", "risk")] == [True, False]
    assert (by_name["risk"].default, by_name["colour"].title) == ("low", "Colour")


class Inner(BaseModel):
    value: int


class Nested(BaseModel):
    inner: Inner


class Mixed(BaseModel):
    value: int | str


class Numbers(BaseModel):
    values: list[int]


class Empty(BaseModel):
    pass


class Odd(BaseModel):
    value: int = Field(alias="a.b")


class Wide(BaseModel):
    values: dict[str, str]


@pytest.mark.parametrize("model", [Nested, Mixed, Numbers, Empty, Odd, Wide])
def test_a_model_that_no_person_could_fill_in_is_refused_by_name(model):
    (problem,) = form_problems({"Bad": model, "Review": Review}).values()
    assert "Bad" in problem
    with pytest.raises(TerminalError, match="of node 'gate'"):
        named_form(Node("gate", {"human.form": "Bad"}), {"Bad": model})


def test_a_name_that_is_not_registered_names_the_nearest():
    with pytest.raises(TerminalError, match=r"did you mean .Review"):
        named_form(Node("gate", {"human.form": "Reviw"}), {"Review": Review})


def test_what_is_filled_in_comes_back_as_the_model_has_it():
    checked = check_answer(QUESTION, Answer("A", form={**GOOD, "score": "8"}))
    assert checked.form == {
        "score": 8,
        "summary": "Clear.",
        "effort": None,
        "is_urgent": False,
        "risk": "low",
        "colour": "red",
        "level": 1,
        "findings": [],
    }
    assert check_answer(QUESTION, checked) == checked


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({}, {"score": "Field required", "summary": "Field required"}),
        ({**GOOD, "score": 11}, {"score": "Input should be less than or equal to 10"}),
        ({**GOOD, "findings": ["much too long"]}, {"findings": "a finding is too long"}),
        ({**GOOD, "risk": "high"}, {"": "a high risk has no good score"}),
        ({**GOOD, "risk": "middle"}, {"risk": "Input should be 'low' or 'high'"}),
        ({**GOOD, "scor": 1}, {"scor": "the form has no such field; did you mean 'score'?"}),
        ({**GOOD, "effort": float("nan")}, None),
    ],
    ids=["nothing", "limit", "validator", "model", "choice", "unknown", "not-a-number"],
)
def test_what_is_wrong_is_said_at_the_field(values, problems):
    with pytest.raises(AnswerRefused) as caught:
        check_answer(QUESTION, Answer("A", form=values))
    if problems is None:
        assert caught.value.fields
        return
    assert {name: words.replace('"', "'") for name, words in caught.value.fields.items()} == problems


def test_a_validator_that_fails_is_a_refusal_and_no_foreign_error():
    class Broken(BaseModel):
        value: int

        @field_validator("value")
        @classmethod
        def fail(cls, value):
            raise RuntimeError("no connection")

    form = named_form(Node("gate", {"human.form": "Broken"}), {"Broken": Broken})
    with pytest.raises(AnswerRefused, match="model Broken cannot judge it: RuntimeError: no connection"):
        check_form(form, {"value": 1})


def test_the_choice_is_checked_before_the_form_and_a_lone_choice_need_not_be_named():
    with pytest.raises(AnswerRefused, match="not one of the choices"):
        check_answer(QUESTION, Answer("X", form=GOOD))
    with pytest.raises(AnswerRefused, match="names no choice"):
        check_answer(QUESTION, Answer(form=GOOD))
    alone = Question("Fill in", options=(Option("D", "Done"),), form=FORM)
    assert check_answer(alone, Answer(form=GOOD)).value == "D"


def test_a_question_without_a_form_takes_none():
    with pytest.raises(AnswerRefused, match="no form"):
        check_answer(Question("Good?", QuestionType.YES_NO), Answer("yes", form=GOOD))


def test_form_and_answer_survive_a_recording():
    asked = question_of(question_inputs(QUESTION))
    assert asked.form == FORM
    assert asked.form.judge is None
    given = answer_of(plain_answer(check_answer(QUESTION, Answer("A", form=GOOD))), "replay")
    assert check_answer(asked, given).form["summary"] == "Clear."
    with pytest.raises(AnswerRefused, match="score: takes a whole number, at least 0, at most 10"):
        check_form(asked.form, {**GOOD, "score": "many"})


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", " a, b ", "a, b"),
        ("whole", "7", 7),
        ("number", "7.5", 7.5),
        ("yes_no", "Y", True),
        ("yes_no", "no", False),
        ("choice", "B", "b"),
        ("choice", "1", 1),
        ("texts", "a, b,,", ["a", "b"]),
    ],
)
def test_a_typed_line_becomes_a_value(kind, text, value):
    assert value_of_text(FormField("x", FieldKind(kind), choices=("a", "b", 1)), text) == value


@pytest.mark.parametrize(("kind", "text"), [("whole", "7.5"), ("number", "x"), ("yes_no", "maybe"), ("choice", "c")])
def test_a_typed_line_that_means_nothing_is_refused_with_what_is_expected(kind, text):
    with pytest.raises(AnswerRefused, match="x: takes "):
        value_of_text(FormField("x", FieldKind(kind), choices=("a", "b")), text)


def test_a_form_survives_json_and_an_empty_one_is_none():
    assert Form.from_plain(FORM.to_plain()) == FORM
    assert Form.from_plain({}) is None
    assert form_words({"score": 7, "words": ["a"]}) == 'score=7, words=["a"]'


def test_a_schema_without_fields_or_with_too_many_is_no_form():
    with pytest.raises(OptionError, match="has no fields"):
        form_of("X", {"type": "string"})
    with pytest.raises(OptionError, match="has 51 fields"):
        form_of("X", {"properties": {f"f{number}": {"type": "string"} for number in range(51)}})
