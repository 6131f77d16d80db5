"""Graphs merged with graphs, and nodes replaced by them (spec 9.4)."""

import pytest

from attractor_nb import Outcome, Pipeline, StageStatus, parse_dot
from attractor_nb.errors import OptionError, UntrustedSource
from attractor_nb.testing import ScriptedBackend
from attractor_nb.transforms import MergeTransform
from attractor_nb.transforms.splicing import replaced

HOST = """digraph host { goal="a boat" start [shape=Mdiamond] plan [prompt="Plan $goal"] work [prompt="Work"]
  review [prompt="Review", retry_target=work] done [shape=Msquare]
  start -> plan -> work -> review  review -> done [condition="outcome=success"] review -> work [condition="outcome=fail"] }"""
OTHER = """digraph qa { goal="a test" default_max_retries=2 model_stylesheet="* { llm_model: small; }"
  begin [shape=Mdiamond] write [prompt="Write $goal"] run [prompt="Run it", retry_target=begin] end [shape=Msquare]
  begin -> write -> run  run -> end [condition="outcome=success"] run -> write [condition="outcome=fail"] }"""


def ends(graph):
    """Edges as texts."""
    return [f"{edge.source}>{edge.target} {edge.condition}".strip() for edge in graph.edges]


def test_a_merge_puts_the_inside_of_another_graph_beside_the_nodes():
    merge = MergeTransform(OTHER, prefix="qa_", connect={"plan": "qa_begin", "qa_end": ["review", "done"]})
    host = parse_dot(HOST)
    graph = merge.apply(host)
    assert list(graph.nodes) == ["start", "plan", "work", "review", "done", "qa_write", "qa_run"]
    assert [edge for edge in ends(graph) if "qa_" in edge] == [
        "plan>qa_write",
        "qa_run>review outcome=success",
        "qa_run>done outcome=success",
        "qa_write>qa_run",
        "qa_run>qa_write outcome=fail",
    ]
    assert host == parse_dot(HOST)


def test_what_the_other_graph_said_as_a_whole_is_on_its_nodes():
    pipeline = Pipeline(
        HOST, transforms=[MergeTransform(OTHER, prefix="qa_", connect={"plan": "qa_begin", "qa_end": "review"})]
    )
    write, run = pipeline.graph.nodes["qa_write"], pipeline.graph.nodes["qa_run"]
    assert (write.prompt, write.llm_model, write.max_retries) == ("Write a test", "small", 2)
    assert run.retry_target == "qa_write"
    assert pipeline.graph.nodes["plan"].prompt == "Plan a boat"
    assert not [found for found in pipeline.diagnostics if found.is_error]


def test_hooks_of_the_other_graph_stay_around_the_tool_calls_of_its_models():
    other = parse_dot("""digraph qa { tool_hooks.pre="./allow" s [shape=Mdiamond] e [shape=Msquare]
        work [allowed_tools="write"] talk [prompt="Talk"] s -> work -> talk -> e }""")
    graph = MergeTransform(other, prefix="qa_", connect={"plan": "qa_s", "qa_e": "review"}).apply(parse_dot(HOST))
    assert graph.nodes["qa_work"].get("tool_hooks.pre", str, "") == "./allow"
    assert "tool_hooks.pre" not in graph.nodes["qa_talk"].attrs


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        (OTHER, {"prefix": ""}, 'a node "write"'),
        (OTHER, {"prefix": "qa_", "connect": {"plam": "qa_begin"}}, 'did you mean "plan"'),
        ("digraph { a -> b }", {"prefix": "x_"}, "0 starts"),
        ("digraph { s [shape=Mdiamond] e [shape=Msquare] s -> e }", {"prefix": "x_"}, "straight to its exit"),
        (7, {"prefix": "x_"}, "not with int"),
    ],
)
def test_a_merge_that_cannot_be_says_why(other, options, message):
    with pytest.raises(OptionError, match=message):
        MergeTransform(other, **options).apply(
            parse_dot(HOST.replace("plan", "write") if not options["prefix"] else HOST)
        )


def test_a_replaced_node_gives_its_edges_to_the_others_inside():
    host = Pipeline(HOST)
    pipeline = host.node("work").replace(OTHER)
    assert ends(pipeline.graph) == [
        "start>plan",
        "plan>work_write",
        "work_run>review outcome=success",
        "review>done outcome=success",
        "review>work_write outcome=fail",
        "work_write>work_run",
        "work_run>work_write outcome=fail",
    ]
    assert pipeline.graph.nodes["review"].retry_target == "work_write"
    assert "work" in host.graph.nodes
    assert not [found for found in pipeline.diagnostics if found.is_error]


def test_conditions_of_both_edges_must_hold():
    other = OTHER.replace("begin -> write", 'begin -> write [condition="context.deep=true"] begin -> run write')
    host = HOST.replace("retry_target=work", "").replace(
        "plan -> work", 'plan -> work [condition="outcome=success"] work'
    )
    pipeline = Pipeline(host)
    edges = ends(pipeline.node("work").replace(other.replace("retry_target=begin", "")).graph)
    assert "plan>work_write outcome=success && context.deep=true" in edges
    assert "plan>work_run outcome=success" in edges


def test_a_pipeline_with_a_replaced_node_runs_and_keeps_what_both_had():
    inner = Pipeline(
        OTHER.replace('run [prompt="Run it"', "run [type=counter"),
        handlers={"counter": lambda node, context, graph, logs_root: Outcome(StageStatus.SUCCESS)},
        params={"from_inner": 1},
    )
    backend = ScriptedBackend()
    host = Pipeline(HOST, backend=backend, params={"from_host": 2})
    result = host.node("work").replace(inner, prefix="in_").run(wait=True, durability="none")
    assert result.completed_nodes[:4] == ("start", "plan", "in_write", "in_run")
    assert (result.context.get("from_inner"), result.context.get("from_host")) == (1, 2)


@pytest.mark.parametrize(("node", "message"), [("wrok", 'did you mean "work"'), ("start", "start or exit")])
def test_only_a_node_between_can_be_replaced(node, message):
    with pytest.raises(OptionError, match=message):
        Pipeline(HOST).node(node).replace(OTHER)


MANY = "digraph { s [shape=Mdiamond] a [prompt=x%s] b [prompt=y] e [shape=Msquare] s -> a s -> b a -> e b -> e }"


@pytest.mark.parametrize(
    ("node", "other", "message"),
    [
        (
            "work",
            MANY % "",
            "a target that named work leads to the other graph, which begins at several nodes: in_a, in_b",
        ),
        (
            "plan",
            MANY % ", retry_target=s",
            "retry_target of a leads to the other graph, which begins at several nodes",
        ),
        ("plan", MANY % ", retry_target=e", "retry_target of a names the exit, which is left out"),
        ("wrok", OTHER, 'the pipeline has no node "wrok"; did you mean "work"?'),
    ],
    ids=["named-node", "named-start", "named-exit", "no-such-node"],
)
def test_a_replacement_that_would_lead_nowhere_says_which_name_does(node, other, message):
    with pytest.raises(OptionError) as caught:
        replaced(parse_dot(HOST), node, other, "in_")
    assert caught.value.message.startswith(message)


def test_commands_of_a_file_that_replaces_a_node_must_be_trusted(tmp_path):
    file = tmp_path / "sweep.dot"
    file.write_text(OTHER.replace('run [prompt="Run it"', 'run [shape=parallelogram, tool_command="rm -r ."'))
    with pytest.raises(UntrustedSource):
        Pipeline(HOST).node("work").replace(file).run(wait=True, logs_root=tmp_path / "run")


def test_ruling_34_prompts_of_the_other_graph_name_its_stages_by_their_new_ids():
    other = """digraph qa { goal="a $plan" s [shape=Mdiamond] e [shape=Msquare] write [prompt="Write $goal"]
        judge [prompt="Judge: ${write.response:tail 9} ${plan.response}"] s -> write -> judge -> e }"""
    merged = MergeTransform(other, prefix="qa_", connect={"plan": "qa_s", "qa_e": "review"}).apply(parse_dot(HOST))
    assert merged.nodes["qa_judge"].prompt == "Judge: ${qa_write.response:tail 9} ${plan.response}"
    assert merged.nodes["qa_write"].prompt == "Write a $$plan", "its goal is no variable of the host"
