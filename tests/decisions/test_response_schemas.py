"""What satisfies a ``response_schema``, and what is only near it (ruling 26)."""

import json

import pytest

from attractor_nb.decisions.answers.response_schemas import ResponseSchema, SchemaElsewhere, native_schema
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


def test_what_refers_elsewhere_is_not_fetched():
    read = ResponseSchema('{"$ref": "http://127.0.0.1:9/schema.json"}')
    with pytest.raises(SchemaElsewhere):
        read.complaint_about({"a": 1})


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
