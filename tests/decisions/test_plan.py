"""Decisions before a run begins."""

from __future__ import annotations

import pytest

from attractor_nb.decisions.bounds import RunBounds
from attractor_nb.decisions.planning import plan as plan_module
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.errors import ConditionSyntaxError, OptionError
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.vocabulary.value_forms import Duration


def test_edges_are_sorted_into_conditional_unconditional_and_default_best_first(build):
    plan = build.plan(
        [
            ("work", "b"),
            ("work", "a"),
            ("work", "c", {"weight": 5}),
            ("work", "d", {"default": True}),
            ("work", "f", {"condition": "x=1"}),
            ("work", "e", {"condition": "x=2"}),
        ]
    )
    work = plan.nodes["work"]
    assert [edge.target for edge in work.edges] == ["b", "a", "c", "d", "f", "e"]
    assert [edge.target for edge in work.unconditional] == ["c", "a", "b"]
    assert [edge.target for edge in work.defaults] == ["d"]
    assert [edge.target for edge in work.conditional] == ["e", "f"]


def test_a_default_edge_with_a_condition_is_conditional(build):
    work = build.plan([("work", "a", {"default": True, "condition": "x=1"})]).nodes["work"]
    assert (len(work.conditional), work.defaults) == (1, ())


def test_an_edge_knows_its_position_in_the_graph(build):
    plan = build.plan([("start", "work"), ("work", "done")])
    assert plan.graph.edges[plan.nodes["work"].edges[0].index].target == "done"


def test_labels_are_normalised_once(build):
    edge = build.plan([("work", "a", {"label": "[Y] Yes, Deploy"})]).nodes["work"].edges[0]
    assert edge.label == "yes, deploy"


def test_equal_conditions_are_parsed_once(build):
    work = build.plan([("work", "a", {"condition": "x=1"}), ("work", "b", {"condition": "x=1"})]).nodes["work"]
    assert work.edges[0].condition is work.edges[1].condition


NODE_FACTS = {
    "a box": ({}, {"handler_type": "codergen", "is_conditional": False, "is_exit": False, "timeout_seconds": None}),
    "a diamond": ({"shape": "diamond"}, {"handler_type": "conditional", "is_conditional": True}),
    "an exit": ({"shape": "Msquare"}, {"handler_type": "exit", "is_exit": True}),
    "an explicit type before the shape": ({"shape": "diamond", "type": "tool"}, {"is_conditional": False}),
    "a timeout": ({"timeout": Duration(1500)}, {"timeout_seconds": 1.5}),
    "flags": (
        {"goal_gate": True, "allow_partial": True, "auto_status": True},
        {"is_goal_gate": True, "allow_partial": True, "auto_status": True},
    ),
    "ruling 16: a diamond is no goal gate": ({"shape": "diamond", "goal_gate": True}, {"is_goal_gate": False}),
    "retry targets that exist": (
        {"retry_target": "nowhere", "fallback_retry_target": "start"},
        {"retry_targets": ("start",)},
    ),
    "one retry target twice": (
        {"retry_target": "start", "fallback_retry_target": "start"},
        {"retry_targets": ("start",)},
    ),
    "ruling 29: a cut-off stage is run again": ({}, {"on_interrupted": "rerun"}),
    "a cut-off command is asked about": ({"shape": "parallelogram"}, {"on_interrupted": "ask"}),
    "a cut-off command by its attribute": ({"type": "my", "tool_command": "make"}, {"on_interrupted": "ask"}),
    "an idempotent command is run again": ({"shape": "parallelogram", "idempotent": True}, {"on_interrupted": "rerun"}),
    "what is written holds": ({"shape": "parallelogram", "on_interrupted": "fail"}, {"on_interrupted": "fail"}),
    "an unknown word counts as unset": ({"on_interrupted": "hope"}, {"on_interrupted": "rerun"}),
}


@pytest.mark.parametrize(("attrs", "facts"), NODE_FACTS.values(), ids=NODE_FACTS)
def test_a_planned_node_has_its_facts_resolved(build, attrs, facts):
    planned = build.plan(nodes={"work": attrs}).nodes["work"]
    assert {name: getattr(planned, name) for name in facts} == facts


def test_a_node_belongs_to_the_class_of_its_innermost_group():
    nodes = {"start": Node("start", {"shape": "Mdiamond"}), "work": Node("work", derived_classes=("outer", "inner"))}
    plan = compile_plan(Graph("demo", nodes=nodes))
    assert (plan.nodes["work"].subgraph_class, plan.nodes["start"].subgraph_class) == ("inner", "")


GRAPH_FACTS = {
    "nothing written": (
        {},
        {
            "name": "demo",
            "start": "start",
            "is_fail_continued": False,
            "are_diamonds_own": False,
            "is_gate_strict": False,
            "graph_retry_targets": (),
            "bounds": RunBounds(),
        },
    ),
    "on_fail": ({"on_fail": "continue"}, {"is_fail_continued": True}),
    "conditional_outcome": ({"conditional_outcome": "own"}, {"are_diamonds_own": True}),
    "strict_gates": ({"strict_gates": True}, {"is_gate_strict": True}),
    "retry targets": (
        {"retry_target": "start", "fallback_retry_target": "done"},
        {"graph_retry_targets": ("start", "done")},
    ),
    "a bound": ({"max_steps": 7}, {"bounds": RunBounds(max_steps=7)}),
}


@pytest.mark.parametrize(("attrs", "facts"), GRAPH_FACTS.values(), ids=GRAPH_FACTS)
def test_a_plan_has_the_graphs_settings_resolved(build, attrs, facts):
    plan = build.plan(**attrs)
    assert {name: getattr(plan, name) for name in facts} == facts


def test_bounds_of_the_caller_replace_those_of_the_graph(build):
    graph = build.graph(max_steps=7)
    assert compile_plan(graph, bounds=RunBounds(max_steps=3)).bounds.max_steps == 3


def test_goal_gates_are_listed_in_source_order(build):
    gate = {"goal_gate": True}
    assert build.plan(nodes={"b": gate, "a": gate, "c": {}}).goal_gates == ("b", "a")


def test_a_graph_without_a_start_node_is_refused():
    with pytest.raises(OptionError, match="no start node"):
        compile_plan(Graph("empty"))


def test_an_edge_into_nowhere_is_refused(build):
    graph = build.graph([("start", "work")])
    without = Graph("demo", nodes={"start": graph.nodes["start"]}, edges=graph.edges)
    with pytest.raises(OptionError, match='start -> work enters "work", which is not a node'):
        compile_plan(without)


def test_a_condition_that_does_not_parse_is_refused_with_its_place(build):
    with pytest.raises(ConditionSyntaxError):
        build.plan([("work", "a", {"condition": "=success"})])


def test_nodes_and_edges_are_planned_when_they_are_first_looked_up_and_once(build, monkeypatch):
    planned = []
    policy = plan_module.build_retry_policy
    monkeypatch.setattr(
        plan_module, "build_retry_policy", lambda node, graph: planned.append(node.id) or policy(node, graph)
    )
    plan = build.plan([(f"n{number}", f"n{number + 1}") for number in range(50)])
    assert planned == []
    last = plan.nodes["n49"]
    assert (plan.nodes["n49"] is last, planned) == (True, ["n49"])
    assert plan.edges[49] is last.edges[0]


def test_what_is_planned_on_demand_is_a_mapping_of_all_nodes_and_edges(build):
    plan = build.plan([("start", "work"), ("work", "done")])
    assert set(plan.nodes) == {"start", "work", "done"}
    assert [plan.nodes[name].id for name in plan.nodes] == list(plan.nodes)
    assert ("ghost" in plan.nodes, plan.nodes.get("ghost"), 2 in plan.edges, len(plan.edges)) == (False, None, False, 2)
    with pytest.raises(KeyError):
        plan.nodes["ghost"]


def test_the_plan_says_without_planning_a_node_what_executes_it(build):
    plan = build.plan(nodes={"work": {}, "check": {"shape": "diamond"}, "tool": {"type": "tool"}})
    assert plan.handler_types == {name: plan.nodes[name].handler_type for name in plan.nodes}
