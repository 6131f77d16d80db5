"""The OpenAPI document says what the server does, and the server does what it says."""

import re

import jsonschema
import pytest

from attractor_nb.server.operations import OPERATIONS, openapi_document, path_parameters

SPEC_9_5 = [
    ("post", "/pipelines"),
    ("get", "/pipelines/{id}"),
    ("get", "/pipelines/{id}/events"),
    ("post", "/pipelines/{id}/cancel"),
    ("get", "/pipelines/{id}/graph"),
    ("get", "/pipelines/{id}/questions"),
    ("post", "/pipelines/{id}/questions/{qid}/answer"),
    ("post", "/pipelines/{id}/messages"),
    ("get", "/pipelines/{id}/checkpoint"),
    ("get", "/pipelines/{id}/context"),
]


@pytest.fixture(scope="module")
def document():
    return openapi_document("1.2.3")


@pytest.mark.parametrize(("method", "path"), SPEC_9_5)
def test_the_nine_endpoints_of_the_specification_are_there(document, method, path):
    assert method in document["paths"][path]


@pytest.mark.parametrize(("method", "path"), [("post", "/run"), ("get", "/status"), ("post", "/answer")])
def test_so_are_the_short_names(document, method, path):
    assert method in document["paths"][path]


def test_the_server_sends_it(client):
    reply = client.get("/openapi.json")
    assert reply.json()["openapi"] == "3.1.0"


def test_every_reference_leads_somewhere(document):
    references = set(re.findall(r"'\$ref': '#/components/schemas/([^']+)'", repr(document)))
    assert references <= set(document["components"]["schemas"])


def test_every_schema_is_a_schema(document):
    meta = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    problems = {name: list(meta.iter_errors(schema)) for name, schema in document["components"]["schemas"].items()}
    assert problems
    assert not any(problems.values()), problems


def test_every_path_parameter_is_described(document):
    for operation in OPERATIONS:
        path = operation.path.replace(":path}", "}")
        described = document["paths"][path][operation.method.lower()]["parameters"]
        names = {one["name"] for one in described if one["in"] == "path"}
        assert names == set(path_parameters(operation.path)) == set(re.findall(r"{(\w+)}", path))


def test_names_are_unique_and_refusals_are_said_everywhere(document):
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    for methods in document["paths"].values():
        for described in methods.values():
            assert {"401", "403"} <= set(described["responses"])


def checked(document, reply, path, method):
    """An answer against what the document says of it."""
    said = document["paths"][path][method]["responses"]
    assert str(reply.status_code) in said, (path, reply.status_code)
    media = reply.headers["content-type"].partition(";")[0]
    content = said[str(reply.status_code)]["content"]
    assert media in content, (path, media)
    if media.endswith("json"):
        schema = {**content[media]["schema"], "components": document["components"]}
        jsonschema.validate(reply.json(), schema, jsonschema.Draft202012Validator)


def test_answers_and_problems_are_as_documented(client, document, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    waiting = client.submit(sources.gate)
    client.wait_for(waiting, "InterviewStarted")
    values = {"qid": "review", "node": "plan", "name": "prompt.md", "artifact": "none"}
    for path, methods in document["paths"].items():
        for one in (run_id, waiting, "nobody"):
            place = path
            for name, value in {"id": one, **values}.items():
                place = place.replace(f"{{{name}}}", value)
            if "get" in methods and not path.endswith("/events"):
                checked(document, client.get(place), path, "get")
            if "post" in methods and not path.endswith("/cancel"):
                checked(document, client.post(place, {}), path, "post")
                checked(document, client.post(place, {"nonsense": 1}), path, "post")
