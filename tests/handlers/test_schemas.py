"""Schemas by name: pydantic models that ``response_schema`` may name (ruling 26)."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel, Field, field_validator

from attractor_nb import Pipeline, ValidationError
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.handlers.codergen import CodergenHandler
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import StageStatus
from attractor_nb.testing import ScriptedBackend, try_stage

FRAME = 'digraph d { start [shape=Mdiamond] done [shape=Msquare] rate [prompt="Rate it", response_schema=Review] start -> rate -> done }'


class Review(BaseModel):
    """The answer of a reviewer."""

    score: int = Field(ge=0, le=10)
    words: list[str] = []

    @field_validator("words")
    @classmethod
    def short(cls, words):
        """Beyond what a JSON Schema says."""
        if any(len(word) > 5 for word in words):
            raise ValueError("a word is too long")
        return words


def rate(tmp_path, answer, schemas=None):
    handler = CodergenHandler(ScriptedBackend(default=answer), {"Review": Review} if schemas is None else schemas)
    node = Node("rate", {"prompt": "Rate it", "response_schema": "Review"})
    return asyncio.run(try_stage(handler, node, tmp_path))


def test_ruling_26_the_model_is_told_the_schema_and_its_value_is_kept_as_the_model_has_it(tmp_path):
    trial = rate(tmp_path, 'Good.\n```json\n{"score": 7}\n```')
    assert trial.outcome.status is StageStatus.SUCCESS
    assert trial.outcome.context_updates["rate.verdict"] == {"score": 7, "words": []}
    assert json.dumps(Review.model_json_schema(), ensure_ascii=False) in trial.files.read_text("prompt.md")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no json", "does not end with a JSON verdict"),
        ('{"score": "7"}', "'7' is not of type 'integer' (at $.score)"),
        ('{"score": 11}', "11 is greater than the maximum of 10 (at $.score)"),
        ('{"score": 1, "words": ["astonishing"]}', "Value error, a word is too long (at $.words)"),
    ],
    ids=["missing", "type", "range", "validator"],
)
def test_ruling_26_a_value_that_the_model_refuses_is_retry(tmp_path, answer, reason):
    outcome = rate(tmp_path, answer).outcome
    assert outcome.status is StageStatus.RETRY
    assert reason in outcome.failure_reason


def test_a_name_that_is_not_registered_fails_before_anybody_is_asked(tmp_path):
    with pytest.raises(TerminalError, match=r"names 'Review', which is not registered; did you mean .Reviews"):
        rate(tmp_path, '{"score": 1}', {"Reviews": Review})
    assert not (tmp_path / "rate" / "prompt.md").exists()


def test_a_pipeline_with_schemas_runs_and_one_without_is_refused(tmp_path):
    with pytest.raises(ValidationError, match='names the schema "Review", which is not registered'):
        Pipeline(FRAME).run(wait=True)
    asked = []

    def backend(node, prompt, context):
        asked.append(node.get("response_schema", str, ""))
        return '{"score": 3}'

    result = Pipeline(FRAME, schemas={"Review": Review}).run(wait=True, backend=backend, durability="none")
    assert (result.status, result.context.get("rate.verdict")) == ("success", {"score": 3, "words": []})
    assert json.loads(asked[0])["title"] == "Review"  # a provider can be bound to it


def test_a_schema_can_be_registered_later(tmp_path):
    pipeline = Pipeline(FRAME)
    pipeline.register_schema("Review", Review)
    assert not [each for each in pipeline.diagnostics if each.is_error]
    assert pipeline.with_source(FRAME).schemas == {"Review": Review}


def test_a_child_knows_the_schemas_of_its_parent():
    parent = Pipeline(
        """digraph p { start [shape=Mdiamond] done [shape=Msquare]
        sub [type="pipeline", pipeline.name="child", pipeline.outputs="verdict=context.rate.verdict"]
        start -> sub -> done }""",
        pipelines={"child": FRAME},
        schemas={"Review": Review},
    )
    result = parent.run(wait=True, backend=lambda prompt: '{"score": 3}', durability="none")
    assert (result.status, result.context.get("verdict")) == ("success", {"score": 3, "words": []})


def test_a_schema_travels_to_a_worker_with_its_node(tmp_path):
    pipeline = Pipeline(FRAME, schemas={"Review": Review})
    with ThreadPoolExecutor(1) as executor:
        result = pipeline.run(
            wait=True, backend=lambda prompt: '{"score": 3}', executor=executor, logs_root=tmp_path / "run"
        )
    assert result.context.get("rate.verdict") == {"score": 3, "words": []}


def test_rows_with_a_schema_stay_here_and_their_stages_may_travel():
    pipeline = Pipeline(FRAME, schemas={"Review": Review})
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(OptionError, match="registered schemas stay here"):
            pipeline.map([{}], wait=True, backend=lambda prompt: "", executor=executor, ship="rows")
        result = pipeline.map(
            [{}],
            wait=True,
            backend=lambda prompt: '{"score": 3}',
            executor=executor,
            outputs=["rate.verdict"],
            durability="none",
        )
    assert (result.status, result[0].outputs["rate.verdict"]["score"]) == ("success", 3)


class Broken:
    """No model."""

    @classmethod
    def model_json_schema(cls):
        """It cannot say."""
        raise RuntimeError("no schema today")


@pytest.mark.parametrize(
    ("schemas", "message"),
    [
        ({"Review": {"type": "object"}}, "is dict .*, not a pydantic model"),
        ({"Review": Review(score=1)}, "not a pydantic model"),
        ({"a b": Review}, "a schema's name must be a word, not 'a b'"),
        ({"true": Review}, "a schema's name must be a word"),
        ({7: Review}, "a schema's name must be a word, not 7"),
        ({"Broken": Broken}, "has no JSON Schema: no schema today"),
        (7, "schemas must be a dict, not int"),
    ],
)
def test_what_is_no_schema_is_refused(schemas, message):
    with pytest.raises(OptionError, match=message):
        Pipeline(FRAME, schemas=schemas)
