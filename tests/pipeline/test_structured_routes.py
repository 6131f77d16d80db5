"""Routes on what an answer, a tool or a function really said (ruling 50), in whole pipelines."""

import pytest
from pydantic import BaseModel

from attractor_nb import Outcome, Pipeline
from attractor_nb.model.events import RunWarning

FRAME = "digraph d {{ start [shape=Mdiamond] done [shape=Msquare] yes [prompt=y] no [prompt=n] {body} yes -> done no -> done }}"  # fmt: skip


class Review(BaseModel):
    """What a model is asked for."""

    score: int
    level: str = "low"


def came_to(result):
    assert result.status == "success", result.reason
    return next(name for name in ("yes", "no") if name in result.completed_nodes)


def test_ruling_50_a_field_of_a_structured_answer_decides_and_is_put_into_prompts():
    source = FRAME.format(
        body="""rate [prompt=rate, response_schema=Review] next [prompt="It is ${rate.verdict.level}, ${rate.verdict.score}."]
        start -> rate -> next
        next -> yes [condition="context.rate.verdict.level=high && context.rate.verdict.score=7"] next -> no"""
    )
    prompts = {}

    def answer(node, prompt, context):
        prompts[node.id] = prompt
        return '{"score": 7, "level": "high"}' if node.id == "rate" else "fine"

    pipeline = Pipeline(source, schemas={"Review": Review}, backend=answer)
    assert not pipeline.diagnostics
    assert came_to(pipeline.run(wait=True, durability="none")) == "yes"
    assert "It is high, 7." in prompts["next"]


def test_ruling_50_a_tools_printed_word_matches():
    source = FRAME.format(
        body="""t [shape=parallelogram, tool_command="echo red"] start -> t
        t -> yes [condition="context.tool.output=red"] t -> no [condition="context.tool.output!=red"]"""
    )
    assert came_to(Pipeline(source, backend=lambda *_: "fine").run(wait=True, durability="none", trust=True)) == "yes"


@pytest.mark.parametrize("text", ["false", "no", "0", "False "])
def test_ruling_50_a_text_like_false_is_true_where_its_key_stands_alone_and_the_run_warns(text, tmp_path):
    source = FRAME.format(body='a [prompt=a] start -> a a -> yes [condition="context.passed"] a -> no [default=true]')

    def answer(node, prompt, context):
        return Outcome.success(context_updates={"passed": text}) if node.id == "a" else "fine"

    run = Pipeline(source, backend=answer).run(logs_root=tmp_path / "run")
    assert came_to(run.result(60)) == "yes"
    (warning,) = (event for event in run.events() if isinstance(event, RunWarning))
    assert f"context.passed={text.strip()}" in warning.message


def test_ruling_50_carry_and_a_childs_inputs_take_fields():
    child = Pipeline('digraph c { inputs="level" start [shape=Mdiamond] done [shape=Msquare] say [prompt="Level $level"] start -> say -> done }')  # fmt: skip
    source = FRAME.format(
        body="""rate [prompt=rate, response_schema=Review]
        sub [type=pipeline, pipeline.name=child, pipeline.inputs="level=context.rate.verdict.level"]
        yes [prompt=y, carry="rate.verdict.score"] start -> rate -> sub -> yes no -> yes [weight=-1] yes -> no [weight=-1]"""
    ).replace("yes [prompt=y] ", "")
    prompts = {}

    def answer(node, prompt, context):
        prompts[node.id] = prompt
        return '{"score": 7, "level": "high"}' if node.id == "rate" else "fine"

    Pipeline(source, schemas={"Review": Review}, pipelines={"child": child}, backend=answer).run(
        wait=True, durability="none"
    )
    assert "Level high" in prompts["say"]
    assert "rate.verdict.score: 7" in prompts["yes"]


@pytest.mark.parametrize(
    "schema",
    [
        "Review",
        '{\\"type\\": \\"object\\", \\"properties\\": {\\"score\\": {}, \\"level\\": {\\"type\\": \\"string\\"}}}',
    ],
    ids=["a model", "JSON"],
)
@pytest.mark.parametrize("place", ["condition", "prompt"])
def test_ruling_50_lint_knows_the_fields_and_names_the_nearest(schema, place):
    quoted = schema if schema == "Review" else f'"{schema}"'
    condition = "context.rate.verdict.levle=high" if place == "condition" else "context.rate.verdict.level=high"
    prompt = "${rate.verdict.levle}" if place == "prompt" else "${rate.verdict.level}"
    source = FRAME.format(
        body=f"""rate [prompt=rate, response_schema={quoted}] b [prompt="{prompt}"] start -> rate -> b
        b -> yes [condition="{condition}"] b -> no [default=true]"""
    )
    (found,) = Pipeline(source, schemas={"Review": Review}).diagnostics
    assert 'did you mean "rate.verdict.level"' in found.message
