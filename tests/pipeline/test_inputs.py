"""Declared inputs of runs, maps and children: nothing is written before all is there (ruling 34)."""

import pytest
from pydantic import BaseModel, Field

from attractor_nb import Context, Outcome, Pipeline, StageStatus
from attractor_nb.errors import ContextValueError, OptionError, ValidationError
from attractor_nb.pipeline.spec_names import run_pipeline

GRAPH = """digraph Triage { %s default_fidelity=truncate
    start [shape=Mdiamond] classify [prompt="Which team is $ticket for? Be ${tone}."] done [shape=Msquare]
    start -> classify -> done }"""
TEXT = GRAPH % 'inputs="ticket, tone=plain"'


class Recorder:
    def __init__(self):
        self.prompts = []

    def run(self, node, prompt, context):
        self.prompts.append(prompt.splitlines()[-1])
        return "printers"


@pytest.fixture
def backend():
    return Recorder()


def test_issue_16_the_prompt_of_a_row_holds_the_ticket(backend, tmp_path):
    result = Pipeline(TEXT, backend=backend).map(
        [{"ticket": "printer broken"}, {"ticket": "no light", "tone": "brief"}],
        wait=True,
        runs_dir=tmp_path,
        max_parallel=1,
    )
    assert result.status == "success"
    assert backend.prompts == ["Which team is printer broken for? Be plain.", "Which team is no light for? Be brief."]


def test_a_row_without_a_declaration_has_its_values_too(backend, tmp_path):
    Pipeline(GRAPH % "", backend=backend).map([{"ticket": "41", "tone": "brief"}], wait=True, runs_dir=tmp_path)
    assert backend.prompts == ["Which team is 41 for? Be brief."]


def test_a_row_without_a_declaration_that_leaves_a_variable_as_it_is_written_is_refused(backend, tmp_path):
    with pytest.raises(OptionError, match=r'params\[0\]: no value for \$tone in prompt of "classify"'):
        Pipeline(GRAPH % "", backend=backend).map([{"ticket": "41"}], wait=True, runs_dir=tmp_path / "runs")
    assert (backend.prompts, (tmp_path / "runs").exists()) == ([], False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, 'inputs of Triage: the input "ticket" is missing'),
        ({"tikcet": "41"}, 'inputs of Triage: "tikcet" is no input; did you mean "ticket"?'),
        ({"ticket": "41", "tony": "x"}, 'inputs of Triage: "tony" is no input; did you mean "tone"?'),
        ({"ticket": "41", "graph.goal": "x"}, "parameter 'graph.goal': internal.* and graph.*"),
    ],
)
def test_a_run_with_missing_or_misspelt_inputs_is_refused_and_nothing_is_written(backend, tmp_path, given, message):
    pipeline = Pipeline(TEXT, backend=backend)
    with pytest.raises(OptionError) as caught:
        pipeline.run(wait=True, params=given, runs_dir=tmp_path / "runs")
    assert caught.value.message.startswith(message)
    with pytest.raises(OptionError, match=r"params\[1\]: "):
        pipeline.map([{"ticket": "41"}, given], wait=True, runs_dir=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    assert backend.prompts == []


def test_values_of_the_pipeline_itself_count(backend, tmp_path):
    Pipeline(TEXT, backend=backend, params={"ticket": "7"}).run(wait=True, runs_dir=tmp_path)
    assert backend.prompts == ["Which team is 7 for? Be plain."]


class Ticket(BaseModel):
    ticket: int = Field(gt=0, description="Its number")
    tone: str = "formal"
    tags: list[str] = []


def test_a_registered_model_gives_names_defaults_and_types(backend, tmp_path):
    pipeline = Pipeline(GRAPH % 'inputs_schema="Ticket"', backend=backend, schemas={"Ticket": Ticket})
    assert [(each.name, each.type, each.is_required) for each in pipeline.inputs] == [
        ("ticket", "integer", True),
        ("tone", "string", False),
        ("tags", "array", False),
    ]
    result = pipeline.run(wait=True, params={"ticket": "41"}, runs_dir=tmp_path)
    assert (result.context["ticket"], result.context["tags"]) == (41, [])
    with pytest.raises(OptionError, match=r"they do not match Ticket: .*greater than 0 \(at \$.ticket\)"):
        pipeline.run(wait=True, params={"ticket": 0}, runs_dir=tmp_path)


def test_a_model_that_nobody_registered_is_refused_before_a_run(backend):
    pipeline = Pipeline(GRAPH % 'inputs_schema="Tiket"', backend=backend, schemas={"Ticket": Ticket})
    with pytest.raises(ValidationError, match='names the schema "Tiket", which is not registered'):
        pipeline.run(wait=True)


def test_a_restart_begins_with_the_defaults_too(tmp_path):
    prompts = []

    def answer(node, prompt, context):
        prompts.append(prompt.splitlines()[-1])

        return Outcome(StageStatus.SUCCESS, preferred_label="again" if len(prompts) == 1 else "on")

    pipeline = Pipeline(
        """digraph { inputs="tone=plain" default_fidelity=truncate start [shape=Mdiamond] done [shape=Msquare]
        work [prompt="Be $tone"] start -> work  work -> work [label=again, loop_restart=true]
        work -> done [label=on] }""",
        backend=answer,
    )
    assert pipeline.run(wait=True, runs_dir=tmp_path).status == "success"
    assert prompts == ["Be plain", "Be plain"]


PARENT = """digraph Parent { start [shape=Mdiamond] done [shape=Msquare]
    sub [type=pipeline, pipeline.name=triage, pipeline.inputs="%s"] start -> sub -> done }"""


def test_a_child_has_its_declared_inputs(backend, tmp_path):
    parent = Pipeline(PARENT % "ticket='41', tone='kind'", pipelines={"triage": TEXT}, backend=backend)
    assert parent.run(wait=True, runs_dir=tmp_path).status == "success"
    assert backend.prompts == ["Which team is 41 for? Be kind."]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [("tone='kind'", 'the input "ticket" is missing'), ("tikcet='41'", '"tikcet" is no input; did you mean "ticket"?')],
)
def test_a_child_that_would_be_refused_refuses_its_parent(backend, inputs, message):
    parent = Pipeline(PARENT % inputs, pipelines={"triage": TEXT}, backend=backend)
    with pytest.raises(ValidationError) as caught:
        parent.run(wait=True)
    assert message in str(caught.value)


def test_an_estimate_counts_the_inputs_and_refuses_misspelt_ones():
    pipeline = Pipeline(TEXT)
    short = pipeline.estimate().expected.input_tokens
    long = pipeline.estimate({"ticket": "broken " * 400}).expected.input_tokens
    assert long > short + 300
    with pytest.raises(OptionError, match="did you mean"):
        pipeline.estimate({"tikcet": "x"})


def test_a_context_of_an_earlier_run_gives_only_what_is_declared(backend, tmp_path):
    context = Context({"ticket": "9", "outcome": "success", "last_stage": "x"})
    assert run_pipeline(TEXT, context, llm_callback=backend, runs_dir=tmp_path).status == "success"


def test_an_input_that_cannot_be_kept_is_refused_as_before():
    with pytest.raises(ContextValueError):
        Pipeline(TEXT).run(wait=True, params={"ticket": {1, 2}})


def test_the_declaration_survives_the_editor():
    edited = Pipeline(TEXT).edit().set("", inputs="ticket, product").pipeline()
    assert [each.name for each in edited.inputs] == ["ticket", "product"]


BEFORE = """digraph Two { default_fidelity=truncate start [shape=Mdiamond] one [prompt="One"] two [prompt="Two"]
    done [shape=Msquare] start -> one -> two -> done }"""


@pytest.fixture
def finished(backend, tmp_path):
    pipeline = Pipeline(BEFORE, backend=backend)
    run = pipeline.run(logs_root=tmp_path / "run", params={"kept": "as it was"})
    run.result(60)
    backend.prompts.clear()
    return run


def changed(inputs):
    return BEFORE.replace("digraph Two {", f'digraph Two {{ inputs="{inputs}"').replace('"Two"', '"Two: $kept $later"')


def test_a_fork_into_a_graph_that_asks_for_more_is_refused_before_it_is_written(finished, backend, tmp_path):
    asking = Pipeline(changed("kept, later"), backend=backend)
    with pytest.raises(OptionError, match='the run began without "later", which the graph asks for now'):
        finished.fork("two", pipeline=asking)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["run"]
    assert finished.fork("two", pipeline=asking, context={"later": "new"}).result(60).status == "success"
    assert backend.prompts == ["Two: as it was new"]


def test_a_fork_or_resume_into_a_graph_with_another_default_has_it(finished, backend, tmp_path):
    asking = Pipeline(changed("kept, later=plain"), backend=backend)
    assert finished.fork("two", pipeline=asking).result(60).status == "success"
    again = asking.resume(tmp_path / "run", rewind_to="two", on_graph_change="accept")
    assert again.result(60).status == "success"
    assert backend.prompts == ["Two: as it was plain", "Two: as it was plain"]
    refused = Pipeline(changed("kept, more"), backend=backend)
    with pytest.raises(OptionError, match='the run began without "more"'):
        refused.resume(tmp_path / "run", rewind_to="two", on_graph_change="accept")


def test_a_map_that_goes_on_with_a_graph_that_asks_for_more_is_refused(backend, tmp_path):
    rows = [{"ticket": "41", "tone": "brief"}]
    Pipeline(GRAPH % "", backend=backend).map(rows, wait=True, map_dir=tmp_path / "map")
    asking = Pipeline(GRAPH % 'inputs="ticket, tone, product"', backend=backend)
    with pytest.raises(OptionError, match=r'params\[0\]: inputs of Triage: the input "product" is missing'):
        asking.resume_map(tmp_path / "map", on_graph_change="accept")
    assert (
        Pipeline(TEXT, backend=backend).resume_map(tmp_path / "map", on_graph_change="accept").result().status
        == "success"
    )


OF_THE_ENGINE = [
    ("human.gate.label", "Approve"),
    ("outcome", "success"),
    ("tool.exit_code", 0),
    ("classify.response", "printers"),
    ("classify.verdict", {"ok": True}),
    ("classify.verdict.ok", True),
    ("classify", {"verdict": {"ok": True}}),
    ("human", {"gate": {"label": "Approve"}}),
    ("context.outcome", "success"),
]


@pytest.mark.parametrize(("key", "value"), OF_THE_ENGINE, ids=[key for key, _ in OF_THE_ENGINE])
def test_ruling_34_no_input_says_what_the_engine_says_of_a_stage(backend, tmp_path, key, value):
    pipeline = Pipeline(GRAPH % "", backend=backend)
    with pytest.raises(OptionError, match=f"parameter '{key}' .* the engine sets for a stage"):
        pipeline.run(wait=True, params={"ticket": "41", key: value}, runs_dir=tmp_path / "runs")
    with pytest.raises(OptionError, match=rf"params\[1\]: parameter '{key}'"):
        pipeline.map([{"ticket": "41", "tone": "brief"}, {key: value}], wait=True, runs_dir=tmp_path / "runs")
    assert (backend.prompts, (tmp_path / "runs").exists()) == ([], False)


def test_ruling_34_an_input_may_be_named_like_what_another_graph_made(backend):
    params = {"ticket": "41", "draft.response": "a text", "stack": "python", "tool": "a hammer"}
    result = Pipeline(GRAPH % "", backend=backend).run(wait=True, params=params, durability="none")
    assert {key: result.context[key] for key in params} == params


def test_ruling_34_a_context_of_an_earlier_run_begins_another_without_what_the_engine_said(backend):
    context = Context({"ticket": "41"})
    for _ in range(2):
        result = run_pipeline(GRAPH % "", context, llm_callback=backend.run, durability="none")
        assert (result.status, context.get("classify.response")) == ("success", "printers")


@pytest.mark.parametrize("name", ["human.gate.label", "outcome", "tool.exit_code", "sub.verdict", "sub.verdict.ok"])
def test_ruling_34_no_output_of_a_child_says_what_the_engine_says_of_a_stage(name):
    with pytest.raises(ValidationError, match=f'"{name}" is a key that the engine sets'):
        parent_of(name).run(wait=True, durability="none")


def test_ruling_34_no_output_of_a_child_is_an_object_in_the_place_of_engine_keys():
    result = parent_of("human").run(wait=True, durability="none")
    assert result.status == "fail"
    assert "pipeline.outputs of sub is a key that the engine sets for a stage: human" in result.reason
    assert "human" not in result.context


def parent_of(name):
    """A pipeline that gets an object from its child under a name."""
    shell = "digraph g { start [shape=Mdiamond] done [shape=Msquare] %s start -> sub -> done }"
    sub = f'sub [type=pipeline, pipeline.name=child, pipeline.outputs="{name}=context.made"]'
    made = Outcome.success(context_updates={"made": {"gate": {"label": "Approve"}}})
    child = Pipeline(shell % "sub [type=make]", handlers={"make": lambda *_: made})
    return Pipeline(shell % sub, pipelines={"child": child})
