"""Findings about fields of structured values: answers, forms, typed inputs, items of lists (ruling 50)."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field

from attractor_nb import Pipeline
from attractor_nb.decisions.schema_fields import missing_field
from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import apply_edits

SHELL = (
    "digraph { %s start [shape=Mdiamond] done [shape=Msquare] rate [prompt=p, response_schema=%s] start -> rate %s }"
)


class File(BaseModel):
    name: str
    parent: File | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    level: str = ""


class Verdict(BaseModel):
    level: str
    kind: str = Field("", serialization_alias="sort")
    files: list[File] = []
    best: File | None = None
    by_path: dict[str, File] = {}
    mixed: File | Open | None = None
    anything: dict[str, Any] = {}
    whatever: Any = None
    pair: tuple[File, int] | None = None

    @computed_field
    def total(self) -> int:
        return len(self.files)


class Rating(BaseModel):
    verdict: Verdict


class Files(RootModel[list[File]]):
    pass


class Work(BaseModel):
    order: File
    files: list[File]


class Answer(BaseModel):
    order: str = ""


class Review(BaseModel):
    level: str = "${rate.verdict.verdict.lvl}"
    note: str = "${rate.verdict.verdict.level}"
    sort: str = "${rate.verdict.verdict.sorts}"


MODELS = {each.__name__: each for each in (Rating, Files, Work, Review, Answer, Open)}


def findings(body, head="", schema="Rating"):
    found = Pipeline(SHELL % (head, schema, body), schemas=MODELS).diagnostics
    return [each for each in found if each.rule not in {"child_pipeline", "reachability"}]


def in_prompt(key, schema="Rating"):
    return findings(f'work [prompt="See ${{{key}}}."] rate -> work -> done', schema=schema)


def in_condition(key, schema="Rating"):
    return findings(f'rate -> done [condition="context.{key}=high"] rate -> done [default=true]', schema=schema)


SLIPS = {
    "a field of a model": ("rate.verdict.verdict.lvl", "rate.verdict.verdict.level"),
    "a field of the items of a list": ("rate.verdict.verdict.files.0.nme", "rate.verdict.verdict.files.0.name"),
    "a list without an index": ("rate.verdict.verdict.files.name", "rate.verdict.verdict.files.0.name"),
    "a field of an optional model": ("rate.verdict.verdict.best.nme", "rate.verdict.verdict.best.name"),
    "a field of a recursive model": ("rate.verdict.verdict.best.parent.nme", "rate.verdict.verdict.best.parent.name"),
    "a field of the values of a dict": ("rate.verdict.verdict.by_path.x.nme", "rate.verdict.verdict.by_path.x.name"),
    "a field of an item of a tuple": ("rate.verdict.verdict.pair.0.nme", "rate.verdict.verdict.pair.0.name"),
    "the name before it": ("rate.verdict.verdct.level", "rate.verdict.verdict.level"),
    "a computed field": ("rate.verdict.verdict.totals", "rate.verdict.verdict.total"),
}


@pytest.mark.parametrize(("key", "meant"), SLIPS.values(), ids=SLIPS)
def test_a_misspelt_field_is_a_warning_at_its_place_with_the_field_that_was_meant(key, meant):
    (prompt,), (condition,) = in_prompt(key), in_condition(key)
    assert (prompt.rule, prompt.span.text) == ("variable_unknown", f"${{{key}}}")
    assert (condition.rule, condition.span.text) == ("condition_key", key)
    for found, fixed in ((prompt, f"write ${{{meant}}}"), (condition, f'write "{meant}"')):
        assert str(found.severity) == "warning"
        assert f'did you mean "{meant}"?' in found.message
        assert found.fix.title == fixed
        assert found.fix.edits


@pytest.mark.parametrize(
    "key",
    [
        "level", "total", "sort", "files.0", "files.0.name", "best.parent.parent.name", "by_path.x", "by_path.x.name",
        "mixed.nme", "mixed.level", "anything.nme.x", "whatever.nme", "pair.1", "pair.0.name",
    ],
)  # fmt: skip
def test_a_field_that_is_there_or_may_be_there_is_none(key):
    assert not in_prompt(f"rate.verdict.verdict.{key}")
    assert not in_condition(f"rate.verdict.verdict.{key}")


@pytest.mark.parametrize(
    ("key", "message", "remedy"),
    [
        ("verdict.severity", '"rate.verdict.verdict" has no field "severity"', "its fields: level, sort, files, best,"),
        ("verdict.level.x", '"rate.verdict.verdict.level" has no fields', 'write "rate.verdict.verdict.level"'),
        ("verdict.files.first", '"rate.verdict.verdict.files" is a list', "by its index"),
    ],
)
def test_a_path_that_never_leads_anywhere_is_a_warning_with_what_is_there(key, message, remedy):
    (found,) = in_prompt(f"rate.verdict.{key}")
    assert message in found.message
    assert remedy in found.fix.title


@pytest.mark.parametrize("key", ["rate.verdict.0.name", "rate.verdict.3"])
def test_a_model_that_is_a_list_has_items(key):
    assert not in_prompt(key, "Files")


def test_a_model_that_takes_other_fields_has_any():
    assert not in_prompt("rate.verdict.lvl", "Open")


def quoted(schema):
    return json.dumps(json.dumps(schema))


FILE = {"type": "object", "properties": {"name": {"type": "string"}}}
REFERRING = {"$defs": {"File": FILE}, "properties": {"files": {"items": {"$ref": "#/$defs/File"}}}}
RECURSIVE = {"$defs": {"N": {"properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"}


@pytest.mark.parametrize(
    ("schema", "key", "meant"),
    [
        (REFERRING, "files.0.nme", "files.0.name"),
        (RECURSIVE, "next.next.nxt", "next.next.next"),
        ({"anyOf": [FILE, {"type": "null"}]}, "nme", "name"),
        ({"allOf": [FILE, {"properties": {"size": {}}}]}, "szie", "size"),
        ({"properties": {"by": {"additionalProperties": FILE}}}, "by.x.nme", "by.x.name"),
    ],
    ids=["a reference", "a recursion", "alternatives", "parts of one", "values of a dict"],
)
def test_a_json_schema_is_followed(schema, key, meant):
    (found,) = in_prompt(f"rate.verdict.{key}", quoted(schema))
    assert f'did you mean "rate.verdict.{meant}"?' in found.message


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"$ref": "#/$defs/Gone"},
        {**FILE, "additionalProperties": True},
        {**FILE, "patternProperties": {"^n": {}}},
        {"anyOf": [FILE, {"type": "object"}]},
        {"anyOf": [FILE, {"enum": [{"nme": 1}]}]},
        {"if": {}, "then": {"properties": {"nme": {}}}, **FILE},
        {"properties": {"level": {}}},
    ],
    ids=str,
)
def test_a_json_schema_that_leaves_open_what_is_there_is_not_judged(schema):
    assert not [each for each in in_prompt("rate.verdict.nme", quoted(schema)) if each.rule == "variable_unknown"]


def test_a_schema_that_refers_to_nothing_but_itself_ends():
    whole = {"type": "array", "items": {"$ref": "#"}}
    assert missing_field([whole], whole, ["x"]).is_list


def test_misspelt_defaults_of_a_form_are_a_warning_at_the_gate():
    (found,) = findings('ask [shape=hexagon, label="Good?", human.form=Review] rate -> ask -> done')
    assert (found.rule, found.node_id, found.span.text) == ("variable_unknown", "ask", "Review")
    assert "the default of Review.level: ${rate.verdict.verdict.lvl} names nothing; did you mean" in found.message
    assert "the default of Review.sort: ${rate.verdict.verdict.sorts} names nothing" in found.message
    assert found.fix.title == "write ${rate.verdict.verdict.level} in the model"


def test_the_fields_of_a_form_and_of_typed_inputs_are_known():
    gate = 'ask [shape=hexagon, label="Good?", human.form=Answer] work [prompt="%s"] rate -> ask -> work -> done'
    for key, meant in (("human.gate.form.ordre", "human.gate.form.order"), ("files.0.nme", "files.0.name")):
        (found,) = findings(gate % f"${{{key}}}", "inputs_schema=Work")
        assert f'did you mean "{meant}"?' in found.message
    assert not findings(gate % "${human.gate.form.order} ${order.name} ${files.3.name}", "inputs_schema=Work")


def test_the_item_of_a_list_has_its_fields():
    body = 'each [for_each="item in rate.verdict.verdict.files", prompt="${item.%s}"] rate -> each -> done'
    assert not findings(body % "parent.name")
    (found,) = findings(body % "nme")
    assert '${item.nme} names nothing; did you mean "item.name"?' in found.message


@pytest.mark.parametrize(
    ("stage", "rule", "shown"),
    [
        ('type=pipeline, pipeline.name=x, pipeline.inputs="a=1, t=context.KEY"', "pipeline_mappings", "context.KEY"),
        ('prompt=x, carry="KEY"', "carry_known", '"KEY"'),
        ('prompt="$item", for_each="item in KEY"', "for_each", '"item in KEY"'),
    ],
    ids=["an input of a child", "a carried value", "a list"],
)
def test_every_attribute_that_names_a_key_knows_the_fields(stage, rule, shown):
    body = f"work [{stage}] rate -> work -> done"
    (found,) = findings(body.replace("KEY", "rate.verdict.verdict.fils"))
    assert (found.rule, str(found.severity)) == (rule, "warning")
    assert 'did you mean "rate.verdict.verdict.files"?' in found.message
    assert found.span.text == shown.replace("KEY", "rate.verdict.verdict.fils")
    assert found.fix.edits
    assert not findings(body.replace("KEY", "rate.verdict.verdict.files"))


def test_a_value_below_a_key_of_unknown_structure_is_not_judged():
    body = """each [for_each="item in files", prompt="$item"]
        work [prompt="${each.outputs.0} ${each.results.0.status} ${ticket.title}"] rate -> each -> work -> done"""
    assert not findings(body, 'inputs="files, ticket"')


def test_a_map_refuses_an_output_that_is_no_field():
    pipeline = Pipeline(SHELL % ("", "Rating", "rate -> done"), schemas=MODELS)
    with pytest.raises(OptionError, match=r'did you mean "rate\.verdict\.verdict\.level"'):
        pipeline.map([{"a": "1"}], outputs=["rate.verdict.verdict.lvl"], wait=True)


class Level(StrEnum):
    LOW = "low"
    VERY_HIGH = "very high"


class Graded(BaseModel):
    level: Level
    team: Literal["billing", "support"] | None = None
    grade: Literal[1, 2.5]
    urgent: bool
    notes: list[bool] = []
    by_team: dict[str, Literal["x"]] = {}
    free: str = ""
    either: Literal["a"] | str = ""
    size: int = 0


MODELS["Graded"] = Graded


def compared(clause):
    edges = f'rate -> done [condition="context.rate.verdict.{clause}"] rate -> done [default=true]'
    return findings(edges, schema="Graded")


@pytest.mark.parametrize(
    ("clause", "literal", "fixed"),
    [
        ("team=biling", "biling", "team=billing"),
        ("team!=suport", "suport", "team!=support"),
        ("level=hihg", "hihg", ""),
        ("level=High", "High", ""),
        (r"level=\"very hihg\"", r"\"very hihg\"", r"level=\"very high\""),
        ("grade=3", "3", ""),
        ("urgent=yes", "yes", ""),
        ("notes.0=no", "no", ""),
        ("by_team.any=y", "y", ""),
    ],
)
def test_ruling_50_a_literal_that_a_field_never_has_is_a_warning_at_its_place(clause, literal, fixed):
    (found,) = compared(clause)
    place = found.span.outermost()
    assert (found.rule, str(found.severity), place.text) == ("condition_literal", "warning", literal)
    assert "is never" in found.message
    if fixed:
        assert f'condition="context.rate.verdict.{fixed}"' in apply_edits(place.source, found.fix.edits)
    else:
        assert not found.fix.edits
        assert found.fix.title.startswith("its values: ")


@pytest.mark.parametrize(
    "clause",
    [
        "level=low", r"level=\"very high\"", r"team=\"\"", "grade=1.0", "grade=2.5", "urgent=true", "urgent!=false",
        "urgent", "notes.0=true", "free=x", "either=b", "size=12", "by_team.any=x",
    ],
)  # fmt: skip
def test_ruling_50_a_literal_that_a_field_may_have_is_none(clause):
    assert not compared(clause)


def test_ruling_50_a_misspelt_truth_value_of_a_field_is_one_finding():
    (found,) = compared("urgent=True")
    assert found.rule == "literal_spelling"


def test_ruling_50_a_manager_is_told_of_a_literal_that_a_field_never_has():
    boss = 'boss [shape=house, stack.child_pipeline=x, manager.guard="context.rate.verdict.team=biling"]'
    found = findings(f"{boss} rate -> boss -> done", schema="Graded")
    assert [(each.rule, each.node_id) for each in found] == [("condition_literal", "boss")]
