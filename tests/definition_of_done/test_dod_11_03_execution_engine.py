"""Section 11.3 of the specification, row by row."""

import json

import pytest

from attractor_nb import Context, Graph, Node, Outcome, Pipeline, StageStatus


def test_11_3_the_run_begins_at_the_start_node(run_dot):
    result = run_dot("first start -> first -> done")
    assert result.completed_nodes == ("start", "first", "done")


@pytest.mark.parametrize(
    ("attrs", "handler_type"),
    [
        ("shape=Mdiamond", "start"),
        ("shape=Msquare", "exit"),
        ("shape=box", "codergen"),
        ("", "codergen"),
        ("shape=hexagon", "wait.human"),
        ("shape=diamond", "conditional"),
        ("shape=component", "parallel"),
        ("shape=tripleoctagon", "parallel.fan_in"),
        ("shape=parallelogram", "tool"),
        ("shape=house", "stack.manager_loop"),
        ('shape=box, type="wait.human"', "wait.human"),
    ],
)
def test_11_3_the_handler_is_resolved_by_shape_and_explicit_type(attrs, handler_type):
    graph = Pipeline(f"digraph g {{ a [{attrs}] }}").graph
    assert graph.nodes["a"].handler_type == handler_type


def test_11_3_a_handler_gets_node_context_graph_and_logs_root(run_dot, tmp_path):
    seen = []

    def execute(node, context, graph, logs_root):
        seen.extend([node, context, graph, logs_root])
        return Outcome.success()

    result = run_dot(
        'a [type="own"] start -> a -> done', handlers={"own": execute}, durability="fast", logs_root=tmp_path / "run"
    )
    node, context, graph, logs_root = seen
    assert isinstance(node, Node)
    assert isinstance(context, Context)
    assert isinstance(graph, Graph)
    assert (node.id, logs_root) == ("a", result.logs_root)


def test_11_3_the_outcome_is_written_to_status_json(run_dot, tmp_path):
    run_dot("a start -> a -> done", durability="fast", logs_root=tmp_path / "run")
    for name in ("start", "a", "done"):
        assert json.loads((tmp_path / "run" / name / "status.json").read_text())["outcome"] == "success"


EDGES = {
    "condition": 'a -> by_condition [condition="outcome=success"]',
    "label": 'a -> by_label [label="[L] Left"]',
    "id": "a -> by_id",
    "weight": "a -> by_weight [weight=9]",
    "lexical": "a -> an_early_name a -> a_later_name",
}
TARGETS = "by_condition by_label by_id by_weight an_early_name a_later_name"


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (("condition", "label", "id", "weight", "lexical"), "by_condition"),
        (("label", "id", "weight", "lexical"), "by_label"),
        (("id", "weight", "lexical"), "by_id"),
        (("weight", "lexical"), "by_weight"),
        (("lexical",), "a_later_name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_11_3_edges_are_selected_in_five_steps(dot, edges, expected):
    body = "a " + " ".join(EDGES[name] for name in edges) + " start -> a "
    body += " ".join(f"{name} {name} -> done" for name in TARGETS.split())
    outcome = Outcome(StageStatus.SUCCESS, preferred_label="left", suggested_next_ids=("by_id",))
    pipeline = Pipeline(dot(body), severity={"reachability": "warning"}, backend=lambda prompt: outcome)
    result = pipeline.run(wait=True, durability="none")
    assert result.completed_nodes == ("start", "a", expected, "done")


def test_11_3_the_engine_loops_until_the_terminal_node(run_dot):
    result = run_dot(
        'a b start -> a -> b b -> a [condition="outcome=fail"] b -> done [condition="outcome=success"]',
        {"b": [Outcome.fail("once"), "fine"]},
    )
    assert result.completed_nodes == ("start", "a", "b", "a", "b", "done")


def test_11_3_a_terminal_node_stops_the_run(run_dot):
    result = run_dot("a start -> a -> done")
    assert result.completed_nodes[-1] == "done"
    assert result.next_node == ""


@pytest.mark.parametrize(
    ("reply", "status"), [("fine", "success"), (Outcome.fail("no"), "fail")], ids=["satisfied", "unsatisfied"]
)
def test_11_3_the_outcome_of_the_pipeline_depends_on_the_goal_gates(run_dot, reply, status):
    body = 'a [goal_gate=true] start -> a a -> done [condition="outcome=success"] '
    body += 'a -> done [condition="outcome=fail"]'
    assert run_dot(body, {"a": reply}).status == status
