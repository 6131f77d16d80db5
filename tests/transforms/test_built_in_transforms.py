"""Variable expansion and stylesheet application (spec 8.5, 8.6, 9.2, 11.10, 11.11)."""

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.protocols import Transform
from attractor_nb.transforms import ForeignSubPipelines, StylesheetApplication, VariableExpansion, built_in_transforms

SPEC_8_6 = """
digraph Pipeline {
    graph [
        goal="Implement feature X",
        model_stylesheet="
            * { llm_model: claude-sonnet-4-5; llm_provider: anthropic; }
            .code { llm_model: claude-opus-4-6; llm_provider: anthropic; }
            #critical_review { llm_model: gpt-5.2; llm_provider: openai; reasoning_effort: high; }
        "
    ]

    start [shape=Mdiamond]
    exit  [shape=Msquare]

    plan            [label="Plan", class="planning"]
    implement       [label="Implement", class="code"]
    critical_review [label="Critical Review", class="code"]

    start -> plan -> implement -> critical_review -> exit
}
"""


def apply_all(text):
    graph = parse_dot(text)
    for transform in built_in_transforms():
        graph = transform.apply(graph)
    return graph


def test_the_built_in_transforms_are_expansion_then_stylesheet():
    dialect, first, second = built_in_transforms()
    assert isinstance(dialect, ForeignSubPipelines)
    assert isinstance(first, VariableExpansion)
    assert isinstance(second, StylesheetApplication)
    assert isinstance(first, Transform)
    assert isinstance(second, Transform)


@pytest.mark.parametrize(
    ("goal", "prompt", "expanded"),
    [
        ("ship", "Plan: $goal.", "Plan: ship."),
        ("ship", "$goal, again $goal", "ship, again ship"),
        ("a $goal b", "Do $goal", "Do a $$goal b"),
        ("ship", "no variable", "no variable"),
        ("ship", "$other ${goal}", "$other ship"),
        ("ship", "$$goal $goals", "$$goal $goals"),
        ("", "Do $goal", "Do $goal"),
    ],
)
def test_11_11_goal_is_expanded_in_prompts_by_plain_replacement(goal, prompt, expanded):
    graph = apply_all(f'digraph {{ goal="{goal}" work [prompt="{prompt}"] }}')
    assert graph.nodes["work"].prompt == expanded


def test_only_prompts_are_expanded():
    node = apply_all('digraph { goal="x" work [label="$goal", tool_command="echo $goal"] }').nodes["work"]
    assert (node.label, node.tool_command) == ("$goal", "echo $goal")


def test_8_6_the_example_of_the_spec():
    nodes = apply_all(SPEC_8_6).nodes
    assert {
        name: (nodes[name].llm_model, nodes[name].llm_provider) for name in ("plan", "implement", "critical_review")
    } == {
        "plan": ("claude-sonnet-4-5", "anthropic"),
        "implement": ("claude-opus-4-6", "anthropic"),
        "critical_review": ("gpt-5.2", "openai"),
    }


@pytest.mark.parametrize(
    ("text", "model"),
    [
        pytest.param('model_stylesheet="* { model: sheet }" work [llm_model=own]', "own", id="node-over-stylesheet"),
        pytest.param(
            'model_stylesheet="* { model: sheet }" node [llm_model=block] work',
            "sheet",
            id="stylesheet-over-default-block",
        ),
        pytest.param('model_stylesheet="* { model: sheet }" llm_model=whole work', "sheet", id="stylesheet-over-graph"),
        pytest.param("llm_model=whole node [llm_model=block] work", "block", id="default-block-over-graph"),
        pytest.param("llm_model=whole work", "whole", id="graph-over-system"),
        pytest.param("llm_model=whole work [llm_model=own]", "own", id="node-over-graph"),
        pytest.param("work", "", id="system-default"),
        pytest.param('model_stylesheet="* { model }" llm_model=whole work', "whole", id="unreadable-stylesheet"),
        pytest.param('model_stylesheet="box { model: sheet }" work', "sheet", id="11-10-by-shape"),
        pytest.param(
            'model_stylesheet=".loop-a { model: sheet }" subgraph cluster_a { label="Loop A" work }',
            "sheet",
            id="derived-class",
        ),
    ],
)
def test_8_5_the_order_of_precedence(text, model):
    assert apply_all(f"digraph {{ {text} }}").nodes["work"].llm_model == model


def test_reasoning_effort_comes_from_the_graph_and_its_system_default_is_high():
    assert apply_all("digraph { reasoning_effort=low work }").nodes["work"].reasoning_effort == "low"
    assert apply_all("digraph { work }").nodes["work"].reasoning_effort == "high"


@pytest.mark.parametrize("name", ["llm.system_prompt", "llm.base_url", "llm_fallback"])
def test_what_the_graph_says_of_its_models_holds_for_nodes_that_say_nothing(name):
    nodes = apply_all(f'digraph {{ {name}="of the graph" a b [{name}="of the node"] a -> b }}').nodes
    assert [nodes[node_id].attrs[name] for node_id in "ab"] == ["of the graph", "of the node"]


def test_resolved_values_do_not_count_as_explicit_and_a_second_round_changes_nothing():
    once = apply_all(SPEC_8_6)
    assert "llm_model" not in once.nodes["plan"].explicit
    assert StylesheetApplication().apply(once) == once


@pytest.mark.parametrize("transform", built_in_transforms(), ids=lambda each: type(each).__name__)
def test_a_transform_leaves_its_input_as_it_was(transform):
    text = SPEC_8_6.replace('label="Plan"', 'prompt="$goal"').replace("{", "{ sub [dot_file=x] ", 1)
    graph = parse_dot(text)
    assert transform.apply(graph) != graph
    assert graph == parse_dot(text)


@pytest.mark.parametrize("transform", built_in_transforms(), ids=lambda each: type(each).__name__)
def test_a_graph_without_anything_to_do_is_given_back(transform):
    graph = parse_dot("digraph { work }")
    assert transform.apply(graph) is graph


def test_a_stylesheet_without_a_match_gives_the_graph_back():
    graph = parse_dot('digraph { model_stylesheet="#other { model: a }" work }')
    assert StylesheetApplication().apply(graph) is graph
