"""Values that satisfy a ``response_schema``, and values that are only near it (ruling 26)."""

import json
import sys
import time

import pytest
from jsonschema import Draft202012Validator

from attractor_nb.decisions.response_schemas import ResponseSchema, native_schema, schema_problem
from attractor_nb.model.graph import Node

OPTIONAL = {"type": "object", "properties": {"items": {"type": "array"}, "note": {"type": "string"}}}
REQUIRED = {**OPTIONAL, "required": ["items"]}
OPEN = {**OPTIONAL, "additionalProperties": True}
NAMELESS = {"type": "object"}
REFERRED = {"$ref": "#/$defs/Order", "$defs": {"Order": OPTIONAL}}
EITHER = {"anyOf": [OPTIONAL, {"type": "object", "properties": {"error": {}}}]}
ALL = {"allOf": [{"$ref": "#/$defs/a~1b"}], "$defs": {"a/b": OPTIONAL}}
LIST = {"type": "array", "items": OPTIONAL}
ENDLESS = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}


@pytest.mark.parametrize(
    ("schema", "value", "is_satisfied", "has_shape"),
    [
        (OPTIONAL, {"items": []}, True, True),
        (OPTIONAL, {"items": [], "other": 1}, True, True),
        (OPTIONAL, {"a": 1}, False, False),
        (OPTIONAL, {}, True, False),
        (OPTIONAL, {"items": 1}, False, True),
        (OPTIONAL, [{"items": []}], False, False),
        (REQUIRED, {"note": "x"}, False, True),
        (REQUIRED, {}, False, False),
        (OPEN, {"a": 1}, True, True),
        (NAMELESS, {"a": 1}, True, True),
        (REFERRED, {"a": 1}, False, False),
        (REFERRED, {"note": ""}, True, True),
        (EITHER, {"error": 1}, True, True),
        (EITHER, {"a": 1}, False, False),
        (ALL, {"a": 1}, False, False),
        (ALL, {"items": []}, True, True),
        (LIST, [], True, True),
        (LIST, {"a": 1}, False, False),
        ({"type": "integer"}, 5, True, True),
        (True, {"a": 1}, True, True),
    ],
)
def test_an_object_needs_a_property_that_the_schema_names(schema, value, is_satisfied, has_shape):
    read = ResponseSchema(json.dumps(schema))
    assert (not read.complaint_about(value), read.has_shape(value)) == (is_satisfied, has_shape)


def test_the_complaint_names_the_properties():
    complaint = ResponseSchema(json.dumps(OPTIONAL)).complaint_about({"a": 1})
    assert complaint == "it has none of the properties items, note"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/schema.json", "file:///etc/passwd", "#/$defs/none", "#none"])
def test_what_refers_elsewhere_is_a_problem_of_the_schema_and_is_not_fetched(address):
    schema = {"properties": {"a": {"$ref": address}}}
    assert schema_problem(json.dumps(schema)) == f"'{address}' is not in it, and nothing is fetched"


def test_a_schema_within_a_schema_has_no_address_of_its_own():
    schema = {"$defs": {"a": {"$id": "http://x/y", "type": "string"}}}
    assert schema_problem(json.dumps(schema)) == "it has a schema with an $id of its own within it"


@pytest.mark.parametrize("reference", ["https://x/y#/$defs/a", "#/$defs/a", "#here", "#/allOf/0"])
def test_references_within_a_schema_are_followed(reference):
    leaf = {"$anchor": "here", "type": "string"}
    schema = {"$id": "https://x/y", "$defs": {"a": leaf}, "allOf": [{"type": ["string", "array"]}], "$ref": reference}
    assert schema_problem(json.dumps(schema)) == ""
    assert ResponseSchema(json.dumps(schema)).complaint_about(1)


def test_a_schema_that_refers_to_itself_for_ever_is_read():
    assert ResponseSchema(json.dumps(ENDLESS)).has_shape


@pytest.mark.parametrize(
    ("attrs", "is_bound"),
    [
        ({"response_schema": '{"type": "object"}'}, True),
        ({"response_schema": '{"type": "array"}'}, False),
        ({"response_schema": "not json"}, False),
        ({"response_schema": '{"type": "object", "properties": {"score": {}}}', "verdict": "json"}, False),
        ({"response_schema": '{"type": "object", "properties": {"outcome": {}}}', "verdict": "json"}, True),
        ({"verdict": "json"}, False),
    ],
)
def test_a_model_is_bound_to_an_object_that_lets_it_give_its_verdict(attrs, is_bound):
    assert (native_schema(Node("judge", attrs)) is not None) == is_bound


def nested(levels, value=1):
    """A value below so many objects."""
    for _ in range(levels):
        value = {"c": value}
    return value


def explosive(*, kind, levels):
    """A schema of a few hundred bytes that asks 2 ** levels times for the same value."""
    more = {f"a{at}": {kind: [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(levels)}
    return {"$defs": {**more, f"a{levels}": {"type": "string"}}, "$ref": "#/$defs/a0"}


TWICE = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}
GROWING = {
    "$ref": "#/$defs/n",
    "$defs": {"n": {"anyOf": [{"type": "string"}, {"properties": {"c": TWICE}, "minimum": 2}]}},
}


@pytest.mark.parametrize(
    ("schema", "value", "complaint"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 100_000 + "!", "'aaa"),
        ({"pattern": "^(a|a)*(a|a)*(a|a)*$"}, "a" * 100_000 + "!", "'aaa"),
        (explosive(kind="anyOf", levels=12), 1, "1 is not valid under any of the given schemas"),
        (explosive(kind="anyOf", levels=12), "x", ""),
        (GROWING, nested(90), "takes too long to check"),
        (GROWING, nested(16), "too many alternatives to say why"),
        ({"properties": {"c": {"$ref": "#"}}, "type": "object"}, nested(90, {}), ""),
        ({"properties": {"c": {"$ref": "#"}}, "type": "object"}, nested(90), "is not of type 'object' (at $.c.c"),
        ({"anyOf": [{"type": "string"}] * 200}, {"a": ["x" * 10] * 100_000}, "takes too long to check"),
        ({"items": {"type": "string"}}, [1] * 100_000, "1 is not of type 'string' (at $[0])"),
    ],
    ids=["pattern", "patterns", "no", "yes", "growing", "grown", "self", "not-self", "large", "long"],
)
def test_no_answer_blocks_the_engine_ruling_52(schema, value, complaint):
    text = json.dumps(schema)
    assert schema_problem(text) == ""
    before = time.thread_time()
    told = ResponseSchema(text).complaint_about(value)
    assert time.thread_time() - before < 20, "seconds on a slow machine, where it would have been years"
    assert complaint in told[:100]
    assert bool(complaint) == bool(told)


@pytest.mark.parametrize("kind", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("more", [{}, {"unevaluatedProperties": False}, {"unevaluatedItems": False}])
def test_a_schema_that_refers_to_the_same_parts_again_and_again_is_a_problem_ruling_52(kind, more):
    text = json.dumps({**more, **explosive(kind=kind, levels=60)})
    assert schema_problem(text).startswith("it refers to the same parts of itself again and again")


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?<!a)b", r"(a)\1", "a{1,1000}{1,1000}{1,100}"])
def test_a_pattern_that_takes_more_than_linear_time_is_a_problem_of_the_schema_ruling_52(pattern):
    problem = schema_problem(json.dumps({"properties": {"a": {"pattern": pattern}}}))
    assert problem.startswith(f"{pattern!r} is not a 'regex'")
    if "1000" not in pattern:
        assert "that is matched in linear time: it has lookaround or a backreference" in problem


def test_a_schema_is_nested_at_most_100_levels_ruling_52():
    assert schema_problem(json.dumps(nested(101, {}))) == "it is nested deeper than 100 levels"
    assert schema_problem(json.dumps(nested(99, {}))) == ""
    assert schema_problem("[" * 100_000)


def test_decimals_are_decimals():
    read = ResponseSchema('{"multipleOf": 0.01}')
    assert read.complaint_about(19.99) == ""
    assert read.complaint_about(19.995) == "19.995 is not a multiple of 0.01 (at $)"


def test_half_a_character_is_one():
    assert ResponseSchema('{"properties": {"a": {"maxLength": 1}}}').complaint_about({"a": "\ud800"}) == ""


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["c"]}, {"b": 2}),
        ({"required": ["c"], "properties": {"b": {"type": "string"}}}, {"b": 2}),
        ({"required": ["x", "y"]}, {}),
        ({"type": ["string", "null"]}, 1),
        ({"type": "object"}, [{"a": None, "b": True}]),
        ({"enum": ["a", None, 1.5]}, "c"),
        ({"const": {"a": 1}}, 1),
        ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 2),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, None),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"z": 2, "a": 1, "b": 3}),
        ({"minItems": 1}, []),
        ({"minItems": 2}, [1]),
        ({"maxItems": 0}, [1]),
        ({"maxItems": 1}, [1, 2]),
        ({"minLength": 1}, ""),
        ({"minLength": 2}, "a"),
        ({"maxLength": 0}, "a"),
        ({"maxLength": 1}, "äö"),
        ({"minProperties": 1}, {}),
        ({"minProperties": 2}, {"a": 1}),
        ({"maxProperties": 0}, {"a": 1}),
        ({"maxProperties": 1}, {"a": 1, "b": 2}),
        ({"minimum": 1}, 0.5),
        ({"maximum": 1.5}, 2),
        ({"exclusiveMinimum": 1}, 1),
        ({"exclusiveMaximum": 1}, 1),
        ({"multipleOf": 3}, 4),
        ({"pattern": "^a+$"}, "b'c"),
        ({"uniqueItems": True}, [1, 1]),
        ({"not": {"type": "string"}}, "x"),
        ({"contains": {"type": "string"}}, [1]),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "a"),
        ({"properties": {"a b": {"items": {"type": "string"}}}}, {"a b": ["x", 1]}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 1),
        (False, 1),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0}, -1),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_complaints_are_those_that_people_know_from_jsonschema(schema, value):
    (first, *_) = Draft202012Validator(schema).iter_errors(value)
    assert ResponseSchema(json.dumps(schema)).complaint_about(value) == f"{first.message} (at {first.json_path})"


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"minimum": "x"}, {"pattern": "("}, {"items": [{}]}, {"$ref": 5}, 5, {"minLength": -1}],
    ids=json.dumps,
)
def test_what_is_wrong_with_a_schema_is_told_in_the_same_words(schema):
    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
    (first, *_) = meta.iter_errors(schema)
    assert schema_problem(json.dumps(schema)) == f"{first.message} (at {first.json_path})"


def test_a_schema_is_not_called_checked_where_its_library_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert schema_problem('{"type": "object"}').startswith(
        "no schema can be checked here: jsonschema-rs is not installed"
    )
