"""Routes on what an answer, a tool or a function really said (ruling 50), in whole pipelines."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from attractor_nb import Answer, Outcome, Pipeline
from attractor_nb.interviewers import QueueInterviewer
from attractor_nb.model.events import RunWarning

FRAME = "digraph d {{ start [shape=Mdiamond] done [shape=Msquare] yes [prompt=y] no [prompt=n] {body} yes -> done no -> done }}"  # fmt: skip


class Review(BaseModel):
    """The answer that a model is asked for."""

    score: int
    level: str = "low"


class ReadyReview(Review):
    ready: bool = False


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


# -- guards of managers, and defaults of forms -------------------------------------------------------

WORKER = """digraph worker { start [shape=Mdiamond] work [prompt="Work"] done [shape=Msquare]
    start -> work -> done }"""
MANAGED = FRAME.format(
    body="""rate [prompt=rate, response_schema=Review]
    boss [shape=house, stack.child_pipeline=worker, manager.poll_interval=1s, manager.actions="observe,steer,wait",
        manager.instructions="Slow down", manager.{name}="context.rate.verdict.{field}=high"]
    start -> rate -> boss boss -> yes [condition="outcome=success"] boss -> no [default=true]"""
)


def managed(name, field="level"):
    text = MANAGED.replace("{name}", name).replace("{field}", field)
    return Pipeline(text, schemas={"Review": Review}, pipelines={"worker": WORKER})


@pytest.mark.parametrize(("level", "is_steered"), [("high", False), ("low", True)])
def test_ruling_50_a_guard_reads_a_field_of_an_answer(level, is_steered, tmp_path):
    def answer(node, prompt, context):
        return f'{{"score": 7, "level": "{level}"}}' if node.id == "rate" else "fine"

    pipeline = managed("guard")
    assert not pipeline.diagnostics
    run = pipeline.run(backend=answer, logs_root=tmp_path / "run", durability="fast")
    assert came_to(run.result(60)) == "yes"
    assert any(event.type == "ChildSteered" for event in run.events()) is is_steered


def test_ruling_50_a_manager_escalates_on_a_field_of_an_answer():
    def answer(node, prompt, context):
        return '{"score": 7, "level": "high"}' if node.id == "rate" else "fine"

    assert came_to(managed("escalate").run(backend=answer, wait=True, durability="none")) == "no"


@pytest.mark.parametrize("name", ["guard", "escalate", "stop_condition"])
def test_ruling_50_lint_knows_the_fields_in_the_conditions_of_managers(name):
    pipeline = managed(name, "levle")
    (found,) = pipeline.diagnostics
    assert (found.rule, found.node_id, found.span.text) == ("condition_key", "boss", "rate.verdict.levle")
    assert 'did you mean "rate.verdict.level"' in found.message
    assert f'manager.{name}="context.rate.verdict.level=high"' in pipeline.fixed().written


@pytest.mark.parametrize("name", ["guard", "stop_condition", "escalate"])
def test_ruling_50_a_literal_that_never_matches_is_reported_in_the_conditions_of_managers(name):
    source = MANAGED.replace("{name}", name).replace("{field}=high", "ready=True")
    pipeline = Pipeline(source, schemas={"Review": ReadyReview}, pipelines={"worker": WORKER})
    (found,) = pipeline.diagnostics
    assert (found.rule, found.node_id, found.span.text) == ("literal_spelling", "boss", "True")
    assert f'manager.{name}="context.rate.verdict.ready=true"' in pipeline.fixed().written


class Decision(BaseModel):
    """The form that a person fills in; most of it is proposed by the model."""

    score: int = Field(default="${rate.verdict.score}", le=10)
    level: Literal["low", "high"] = Field(default="${context.rate.verdict.level}")
    note: str = "costs $5"


GATED = FRAME.format(
    body="""rate [prompt=rate, response_schema=Review] gate [shape=hexagon, human.form=Decision]
    start -> rate -> gate gate -> yes [label="Yes"] gate -> no [label="No"]"""
)


def gated(answer):
    schemas = {"Review": Review, "Decision": Decision}

    def backend(node, prompt, context):
        return answer if node.id == "rate" else "fine"

    pipeline = Pipeline(GATED, schemas=schemas, backend=backend)
    assert not pipeline.diagnostics
    return pipeline


def test_ruling_50_the_defaults_of_a_form_are_fields_of_an_answer():
    asked = []

    def person(question):
        asked.extend(entry.default for entry in question.form.fields)
        return Answer("Y", form={"note": "no"})

    result = gated('{"score": 7, "level": "high"}').run(interviewer=person, wait=True, durability="none")
    assert came_to(result) == "yes"
    assert asked == [7, "high", "costs $5"]
    assert result.context["human.gate.form"] == {"score": 7, "level": "high", "note": "no"}


def test_ruling_50_what_is_filled_in_goes_before_the_default_of_a_form():
    answers = QueueInterviewer([Answer("Y", form={"score": 1})])
    result = gated('{"score": 7, "level": "high"}').run(interviewer=answers, wait=True, durability="none")
    assert result.context["human.gate.form"] == {"score": 1, "level": "high", "note": "costs $5"}


def test_ruling_50_nobody_approves_a_form_whose_default_does_not_fit():
    run = gated('{"score": 7, "level": "middle"}').run(interviewer="auto", wait=True, durability="none")
    assert run.status == "fail"
    assert "needs level" in run.reason


def test_ruling_50_the_model_judges_a_default_as_what_is_filled_in():
    answers = QueueInterviewer([Answer("Y"), Answer("Y", form={"score": 9})])
    result = gated('{"score": 70, "level": "high"}').run(interviewer=answers, wait=True, durability="none")
    assert result.context["human.gate.form.score"] == 9
