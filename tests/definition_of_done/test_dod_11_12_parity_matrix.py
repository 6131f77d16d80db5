"""Section 11.12 of the specification: one test for each cell."""

import pytest

from attractor_nb import Outcome, Pipeline, Severity, StageStatus, parse_dot, validate
from attractor_nb.testing import ManualClock, ScriptedBackend, ScriptedInterviewer


def test_11_12_parse_a_simple_linear_pipeline(dot):
    graph = parse_dot(dot("A B start -> A -> B -> done"))
    assert [(edge.source, edge.target) for edge in graph.edges] == [("start", "A"), ("A", "B"), ("B", "done")]


def test_11_12_parse_graph_level_attributes():
    graph = parse_dot('digraph g { graph [goal="Ship", label="Release"] }')
    assert (graph.goal, graph.label) == ("Ship", "Release")


def test_11_12_parse_multi_line_node_attributes(dot):
    node = parse_dot(dot('A [\n label="First",\n prompt="Do it"\n]')).nodes["A"]
    assert (node.label, node.prompt) == ("First", "Do it")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param("digraph g { A done [shape=Msquare] A -> done }", "start_node", id="missing_start"),
        pytest.param("digraph g { start [shape=Mdiamond] A start -> A }", "terminal_node", id="missing_exit"),
        pytest.param(
            "digraph g { start [shape=Mdiamond] done [shape=Msquare] A start -> done }", "reachability", id="orphan"
        ),
    ],
)
def test_11_12_validate(text, rule):
    """The matrix asks for a warning about orphans; 7.2 and ruling 8 make it an error."""
    found = {each.rule: each.severity for each in validate(parse_dot(text))}
    assert found[rule] is Severity.ERROR


def test_11_12_execute_a_linear_three_node_pipeline(run_dot):
    result = run_dot("A B C start -> A -> B -> C -> done")
    assert (result.status, result.completed_nodes) == ("success", ("start", "A", "B", "C", "done"))


@pytest.mark.parametrize(
    ("reply", "expected"), [("fine", "good"), (Outcome.fail("no"), "bad")], ids=["success", "fail"]
)
def test_11_12_execute_with_conditional_branching(run_dot, reply, expected):
    result = run_dot(
        'A good bad start -> A A -> good [condition="outcome=success"] A -> bad [condition="outcome=fail"]'
        " good -> done bad -> done",
        {"A": reply},
    )
    assert result.completed_nodes == ("start", "A", expected, "done")


def test_11_12_execute_with_retry_on_failure(run_dot):
    backend = ScriptedBackend({"A": [Outcome.fail("1"), Outcome.fail("2"), "third time"]})
    result = run_dot("A [max_retries=2] start -> A -> done", backend=backend)
    assert result.status == "success"
    assert len(backend.calls) == 3


def test_11_12_a_goal_gate_blocks_the_exit_when_unsatisfied(run_dot):
    result = run_dot('A [goal_gate=true] start -> A A -> done [condition="outcome=fail"]', {"A": Outcome.fail("no")})
    assert (result.status, "done" in result.completed_nodes) == ("fail", False)


def test_11_12_a_goal_gate_allows_the_exit_when_satisfied(run_dot):
    assert run_dot("A [goal_gate=true] B [goal_gate=true] start -> A -> B -> done").status == "success"


@pytest.mark.parametrize(("key", "target"), [("Y", "ship"), ("N", "mend")])
def test_11_12_wait_human_presents_choices_and_routes_on_selection(run_dot, key, target):
    interviewer = ScriptedInterviewer({"ask": key})
    result = run_dot(
        'ask [shape=hexagon] ship mend start -> ask ask -> ship [label="[Y] Yes"] ask -> mend [label="[N] No"]'
        " ship -> done mend -> done",
        interviewer=interviewer,
    )
    assert [option.key for option in interviewer.questions[0].options] == ["Y", "N"]
    assert result.completed_nodes == ("start", "ask", target, "done")


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        pytest.param('A -> x [condition="outcome=success"] A -> y [weight=99]', "x", id="condition_over_weight"),
        pytest.param("A -> x [weight=1] A -> y [weight=2]", "y", id="weight"),
        pytest.param("A -> y A -> x", "x", id="lexical"),
    ],
)
def test_11_12_edge_selection(run_dot, edges, expected):
    result = run_dot(f"A x y start -> A {edges} x -> done y -> done")
    assert result.completed_nodes[2] == expected


def test_11_12_context_updates_are_visible_to_the_next_node(run_dot):
    backend = ScriptedBackend({"A": Outcome.success(context_updates={"found": [1, 2]})})
    run_dot("A B start -> A -> B -> done", backend=backend)
    assert backend.calls[1].context["found"] == [1, 2]


def test_11_12_checkpoint_save_and_resume_produce_the_same_result(dot, tmp_path):
    source = dot(
        'A B [max_retries=1] start -> A -> B B -> A [condition="context.round!=2"]'
        ' B -> done [condition="context.round=2"]'
    )

    def answer(node, prompt, context):
        return Outcome.success(context_updates={"round": context.get("round", 0) + (node.id == "B")})

    pipeline = Pipeline(source, backend=answer)
    whole = pipeline.run(wait=True, logs_root=tmp_path / "whole")
    cut = pipeline.run(wait=True, logs_root=tmp_path / "cut", stop_after=3)
    assert cut.status == "paused"
    resumed = pipeline.resume(tmp_path / "cut").result()
    assert resumed.completed_nodes == whole.completed_nodes
    assert resumed.context.snapshot() == whole.context.snapshot()
    assert (resumed.status, resumed.node_outcomes) == (whole.status, whole.node_outcomes)


def test_11_12_a_stylesheet_overrides_the_model_by_shape(dot):
    pipeline = Pipeline(dot('model_stylesheet="box { llm_model: large; }" A [shape=box] start -> A -> done'))
    assert pipeline.graph.nodes["A"].llm_model == "large"


def test_11_12_the_goal_is_expanded_in_prompts(run_dot):
    backend = ScriptedBackend()
    run_dot('goal="World" A [prompt="Hello $goal"] start -> A -> done', backend=backend)
    assert backend.calls[0].prompt == "Hello World"


def test_11_12_a_custom_handler_is_registered_and_executed(dot):
    pipeline = Pipeline(dot('A [type="mine"] start -> A -> done'))
    pipeline.register("mine", lambda node, context, graph, logs_root: Outcome.success(context_updates={"mine": True}))
    assert pipeline.run(wait=True, durability="none").context["mine"] is True


def test_11_12_a_pipeline_of_more_than_ten_nodes_completes(run_dot):
    names = [f"n{number}" for number in range(15)]
    result = run_dot(f"{' '.join(names)} start -> {' -> '.join(names)} -> done", clock=ManualClock())
    assert result.completed_nodes == ("start", *names, "done")
    assert set(result.node_outcomes.values()) == {StageStatus.SUCCESS}


def test_11_12_parallel_fan_out_and_fan_in_complete_correctly(run_dot):
    result = run_dot(
        "fan [shape=component] A B B2 C join [shape=tripleoctagon] D start -> fan"
        " fan -> A -> join fan -> B -> B2 -> join fan -> C -> join join -> D -> done",
        {"B2": Outcome(StageStatus.SUCCESS, notes="best", context_updates={"score": 2}), "C": Outcome.fail("no")},
    )
    assert (result.status, result.completed_nodes) == ("success", ("start", "fan", "join", "D", "done"))
    assert [(each["id"], each["status"]) for each in result.context["parallel.results"]] == [
        ("A", "success"),
        ("B", "success"),
        ("C", "fail"),
    ]
    assert result.outcomes["fan"].status is StageStatus.PARTIAL_SUCCESS
    assert result.context["parallel.fan_in.best_id"] == "B"
