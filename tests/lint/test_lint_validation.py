"""The API of lint (spec 7.3, 7.4)."""

import pytest

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint import OFF, LintOptions, validate, validate_or_raise
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.protocols import LintRule

SOUND = """digraph {
    start [shape=Mdiamond]
    work  [prompt="Do it"]
    exit  [shape=Msquare]
    start -> work -> exit
}"""
BROKEN = SOUND.replace("start -> work -> exit", "start -> work\n    work -> exi")


class Shouting:
    """A rule of the caller."""

    name = "shouting"

    def apply(self, graph):
        return [
            Diagnostic(self.name, Severity.WARNING, "too loud", node_id=node.id, span=node.span)
            for node in graph.nodes.values()
            if node.prompt.isupper()
        ]


class Raising:
    name = "raising"

    def apply(self, graph):
        raise KeyError(graph.name)


class Babbling:
    name = "babbling"

    def apply(self, graph):
        return ["no diagnostic"]


class Nameless:
    def apply(self, graph):
        return []


def test_a_sound_pipeline_has_no_findings():
    assert validate(parse_dot(SOUND)) == []
    assert validate_or_raise(parse_dot(SOUND)) == []


def test_an_error_is_raised_with_all_findings_and_their_excerpts():
    with pytest.raises(ValidationError) as caught:
        validate_or_raise(parse_dot(BROKEN.replace('"Do it"', '"", timeout=soon'), name="demo.dot"))
    assert {each.rule for each in caught.value.diagnostics} >= {"edge_target_exists", "bad_duration"}
    assert "--> demo.dot:6:13" in str(caught.value)
    assert "^^^" in str(caught.value)


def test_warnings_alone_are_returned_not_raised():
    graph = parse_dot(SOUND.replace('"Do it"', '""'))
    assert [each.rule for each in validate_or_raise(graph)] == ["prompt_on_llm_nodes"]


def test_findings_come_in_source_order_those_about_the_whole_graph_first():
    graph = parse_dot(
        BROKEN.replace(' [prompt="Do it"]', ", fidelity=x")
        .replace("work ,", 'work [promt="x", timeout=soon]')
        .replace("[shape=Mdiamond]", "")
    )
    starts = [each.span.outermost().start if each.span else -1 for each in validate(graph)]
    assert starts == sorted(starts)
    assert len(starts) > 2


def test_custom_rules_join_the_built_in_ones():
    assert isinstance(Shouting(), LintRule)
    (found,) = validate(parse_dot(SOUND.replace("Do it", "DO IT")), [Shouting()])
    assert (found.rule, found.node_id) == ("shouting", "work")


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (Raising(), "the lint rule \"raising\" raised KeyError: ''"),
        (Babbling(), 'the lint rule "babbling" returned a str instead of a Diagnostic'),
        (Nameless(), "the lint rule \"Nameless\" raised AttributeError: 'Nameless' object has no attribute 'name'"),
    ],
    ids=["raises", "gives-something-else", "has-no-name"],
)
def test_a_custom_rule_that_fails_becomes_an_error_that_names_it(extra, message):
    (found,) = validate(parse_dot(SOUND), [extra])
    assert (found.severity, found.message) == (Severity.ERROR, message)


@pytest.mark.parametrize("level", [Severity.INFO, "info"])
def test_ruling_8_the_severity_of_any_rule_can_be_overridden(level):
    graph = parse_dot(BROKEN)
    found = validate(graph, severity={"edge_target_exists": level})
    assert [each.severity for each in found if each.rule == "edge_target_exists"] == [Severity.INFO]


def test_a_rule_can_be_switched_off_custom_ones_too():
    graph = parse_dot(BROKEN.replace("Do it", "DO IT"))
    found = validate(graph, [Shouting()], severity={"reachability": OFF, "shouting": "off"})
    assert {"reachability", "shouting"}.isdisjoint({each.rule for each in found})
    assert "edge_target_exists" in {each.rule for each in found}


def test_an_unknown_severity_is_refused_with_the_choices():
    with pytest.raises(OptionError) as caught:
        validate(parse_dot(SOUND), severity={"reachability": "eror"})
    assert str(caught.value).splitlines() == [
        '"eror" is not a severity for the rule "reachability"; did you mean "error"?',
        " hint: use one of error, warning, info, off",
    ]


def test_ruling_7_many_exits_are_accepted_on_request():
    graph = parse_dot(
        SOUND.replace("exit }", "").replace("}", 'done [shape=Msquare]  work -> done [condition="outcome=fail"] }')
    )
    assert "terminal_node" in {each.rule for each in validate(graph)}
    options = LintOptions(allow_many_exits=True)
    assert "terminal_node" not in {each.rule for each in validate(graph, options=options)}


def test_validate_leaves_the_graph_as_it_was():
    graph = parse_dot(BROKEN)
    before = graph.content_hash
    validate(graph)
    assert graph.content_hash == before
    assert graph == parse_dot(BROKEN)


def test_a_graph_that_came_from_no_text_is_linted_too():
    from attractor_nb.model.graph import Edge, Graph, Node

    nodes = [
        Node("start", {"shape": "circle"}),
        Node("work", {"promt": "x", "timeout": "soon", "class": "a"}),
        Node("gate", {"shape": "hexagon"}),
    ]
    edges = (
        Edge("start", "work"),
        Edge("work", "wrk", {"condition": "a=="}),
        Edge("work", "gate", {"condition": "outcome=succeeded"}),
        Edge("gate", "work", {"label": "Again"}),
        Edge("gate", "gate", {"label": "Amend"}),
        Edge("nowhere", "gate"),
    )
    sheet = "#wrk { model: a } .b { modl: b } "
    graph = Graph("G", {"model_stylesheet": sheet}, {node.id: node for node in nodes}, edges)
    found = validate(graph)
    assert {each.rule for each in found} >= {
        "terminal_node",
        "shape_alias",
        "attribute_typo",
        "bad_duration",
        "edge_target_exists",
        "condition_syntax",
        "outcome_alias",
        "accelerator_clash",
        "unused_selector",
        "unused_class",
        "unknown_property",
    }
    assert all(each.span is None for each in found)
    assert not any(each.fix.edits for each in found)
    broken = Graph("G", {"model_stylesheet": "*"}, graph.nodes, graph.edges)
    assert "stylesheet_syntax" in {each.rule for each in validate(broken)}
