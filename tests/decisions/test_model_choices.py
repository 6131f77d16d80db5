"""The model of a node, and the rule that chose it (spec 8.5)."""

import pytest

from attractor_nb import parse_dot
from attractor_nb.decisions.planning.model_choices import model_choices, nodes_that_ask
from attractor_nb.languages.stylesheet import parse_stylesheet
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.transforms import built_in_transforms
from attractor_nb.transforms.node_attributes import StylesheetApplication

ENDS = "start [shape=Mdiamond] exit [shape=Msquare]"


def choices(body, default=None):
    graph = parse_dot(f"digraph {{ {ENDS} {body} }}")
    for transform in built_in_transforms():
        graph = transform.apply(graph)
    return {
        choice.node_id: choice for choice in model_choices(graph, parse_stylesheet(graph.model_stylesheet), default)
    }


@pytest.mark.parametrize(
    ("body", "value", "origin", "selector"),
    [
        ('llm_model=g model_stylesheet="* {model: s}" a [llm_model=n]', "n", "node", ""),
        ('llm_model=g model_stylesheet="* {model: s} #a {model: i}" a', "i", "stylesheet", "#a"),
        ('model_stylesheet="#a {model: i} box {model: b}" a', "i", "stylesheet", "#a"),
        ('model_stylesheet=".x {model: c} .x {model: d}" a [class=x]', "d", "stylesheet", ".x"),
        ('model_stylesheet="* {model: s}" node [llm_model=b] a', "s", "stylesheet", "*"),
        ("llm_model=g node [llm_model=b] a", "b", "node [...]", ""),
        ("llm_model=g a", "g", "graph", ""),
        ("a", "fallback", "backend", ""),
    ],
)
def test_8_5_who_gave_a_node_its_model(body, value, origin, selector):
    choice = choices(body, ModelName("fallback", "ours"))["a"]
    assert (choice.model.value, choice.model.origin, choice.model.selector) == (value, origin, selector)


@pytest.mark.parametrize(
    ("body", "value", "origin"),
    [
        ("a [llm_model=claude-x]", "anthropic", "model's name"),
        ("a [llm_model=small]", "ours", "backend"),
        ("a [llm_model=small, llm_provider=theirs]", "theirs", "node"),
        ('model_stylesheet="* {provider: google}" a [llm_model=claude-x]', "google", "stylesheet"),
    ],
)
def test_who_gave_a_node_its_provider(body, value, origin):
    choice = choices(body, ModelName("", "ours"))["a"]
    assert (choice.provider.value, choice.provider.origin) == (value, origin)
    assert choice.name.provider == value


def test_nobody_names_anything():
    choice = choices("a")["a"]
    assert (choice.model.origin, choice.provider.origin, choice.effort.value) == ("default", "default", "high")
    assert str(choice.name) == ""


def test_a_line_is_that_of_the_stylesheet_or_attribute():
    found = choices('\nmodel_stylesheet="* {reasoning_effort: low}"\na [llm_model=x]')["a"]
    assert (found.model.line, found.model.reason) == (3, "node, line 3")


def test_only_nodes_that_ask_a_model_are_listed():
    graph = parse_dot(
        f"digraph {{ {ENDS} a t [shape=parallelogram] d [shape=diamond] j [shape=tripleoctagon] "
        'k [shape=tripleoctagon, prompt="Which?"] g [shape=hexagon] }'
    )
    assert [node.id for node in nodes_that_ask(graph)] == ["a", "k"]


def test_ends_by_their_id_ask_no_model():
    assert list(nodes_that_ask(parse_dot("digraph { Start end Start -> end }"))) == []


def test_equal_rules_elsewhere_keep_their_own_place():
    graph = StylesheetApplication().apply(parse_dot('digraph { model_stylesheet="* {model: x}" a }'))
    first, second = (parse_stylesheet(text) for text in ("* {model: x}", "\n\n* {model: x}"))
    lines = [model_choices(graph, sheet)[0].model.line for sheet in (first, second)]
    assert lines == [1, 3]
