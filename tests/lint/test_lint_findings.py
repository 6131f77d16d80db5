"""Findings of the rules, beyond their pages: one table of pipelines and one test for each ruling."""

import textwrap
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import Pipeline
from attractor_nb.decisions.planning.plan import find_cycles
from attractor_nb.errors import AttractorError
from attractor_nb.languages.dot import apply_edits, parse_dot
from attractor_nb.languages.dot.writer import quote
from attractor_nb.lint import BUILT_IN_RULES, LintOptions, validate
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.attribute_table import FOREIGN_NAMES
from attractor_nb.model.vocabulary.attributes import attribute
from attractor_nb.transforms.node_attributes import StylesheetApplication

ENDS = "start [shape=Mdiamond] exit [shape=Msquare]"
GATE = "ok [shape=hexagon]"
WORK = 'work [prompt="Do it"]'
FAN = 'fan [shape=component] a [prompt="A"] b [prompt="B"]'


def lint(body, **options):
    return validate(parse_dot(f"digraph {{ {body} }}"), options=LintOptions(**options))


def found(body, **options):
    return {each.rule for each in lint(body, **options)}


def messages(body, rule):
    return [each.message for each in lint(body) if each.rule == rule]


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        pytest.param("start_node", f"{ENDS} start2 [shape=Mdiamond] start -> exit start2 -> exit", id="two-starts"),
        pytest.param("start_node", "a -> b b -> a", id="no-start-no-candidate"),
        pytest.param("terminal_node", f"{ENDS} exit2 [shape=Msquare] start -> exit start -> exit2", id="two-exits"),
        pytest.param(
            "terminal_node", f"start [shape=Mdiamond] {WORK} start -> work work -> work", id="no-exit-no-candidate"
        ),
        pytest.param("start_no_incoming", f"{ENDS} start -> start start -> exit", id="start-loop"),
        pytest.param("edge_target_exists", f"{ENDS} {WORK} wrk -> exit start -> work -> exit", id="unknown-source"),
        pytest.param("edge_target_exists", f"{ENDS} start -> nowhere", id="only-a-target"),
        pytest.param("dead_end", "start [shape=Mdiamond] a [prompt=x] start -> a", id="dead-end-without-exit"),
        pytest.param("type_known", f'{ENDS} x [type="com.acme.robot"] start -> x -> exit', id="unregistered-type"),
        pytest.param("shape_known", f"{ENDS} x [shape=egg] start -> x -> exit", id="unlike-shape"),
        pytest.param("shape_alias", "a [shape=circle] b [shape=doublecircle] a -> b", id="circle-and-doublecircle"),
        pytest.param(
            "tool_without_command",
            f'{ENDS} t [shape=parallelogram, tool_command=" "] start -> t -> exit',
            id="blank-command",
        ),
        pytest.param("bad_value", f"{ENDS} {WORK} work [max_retries=-1] start -> work -> exit", id="below-minimum"),
        pytest.param("bad_value", f'{ENDS} {WORK} work [max_retries="many"] start -> work -> exit', id="no-integer"),
        pytest.param("bad_value", f'{ENDS} max_budget_usd="cheap" start -> exit', id="no-number"),
        pytest.param("bad_value", f"{ENDS} max_budget_usd=-1.5 start -> exit", id="negative-budget"),
        pytest.param("bad_value", f'{ENDS} {WORK} work [timeout="0s"] start -> work -> exit', id="no-time-at-all"),
        pytest.param("bad_value", f"{ENDS} rankdir=XX start -> exit", id="no-direction"),
        pytest.param(
            "bad_value", f'{ENDS} {WORK} work [retry_policy="patiant"] start -> work -> exit', id="almost-a-choice"
        ),
        pytest.param("bad_value", f'{ENDS} start -> exit [weight="heavy"]', id="edge-value"),
        pytest.param("bad_duration", f'{ENDS} max_duration="a while" start -> exit', id="graph-duration"),
        pytest.param("fidelity_valid", f'{ENDS} default_fidelity="summary:hgh" start -> exit', id="graph-fidelity"),
        pytest.param("fidelity_valid", f"{ENDS} start -> exit [fidelity=everything]", id="edge-fidelity"),
        pytest.param("attribute_typo", f"{ENDS} gaol=x start -> exit", id="graph-typo"),
        pytest.param("attribute_typo", f'{ENDS} start -> exit [conditon="outcome=success"]', id="edge-typo"),
        pytest.param("retry_target_exists", f"{ENDS} retry_target=elsewhere start -> exit", id="graph-target"),
        pytest.param(
            "retry_target_exists",
            f"{ENDS} {WORK} work [fallback_retry_target=wrk] start -> work -> exit",
            id="fallback-target",
        ),
        pytest.param(
            "gate_without_effect",
            "start [shape=Mdiamond, goal_gate=true] exit [shape=Msquare] start -> exit",
            id="gate-on-start",
        ),
        pytest.param(
            "condition_syntax", f'{ENDS} {WORK} start -> work work -> exit [condition="a > 1"]', id="no-mending"
        ),
        pytest.param(
            "ambiguous_unconditional", f"{ENDS} {WORK} start -> work -> exit start -> exit", id="tie-at-start"
        ),
        pytest.param(
            "accelerator_clash",
            f"{ENDS} {GATE} {WORK} start -> ok ok -> work ok -> exit [label=Work] work -> exit",
            id="clash-with-a-target",
        ),
        pytest.param(
            "unbounded_cycle",
            f'{ENDS} {WORK} more [prompt="x"] start -> work -> more more -> work start -> exit',
            id="no-way-out",
        ),
        pytest.param("unbounded_cycle", f"{ENDS} {GATE} start -> ok ok -> ok start -> exit", id="gate-without-way-out"),
        pytest.param(
            "no_join", f"{ENDS} {FAN} start -> fan fan -> a fan -> b a -> exit b -> fan", id="branch-comes-back"
        ),
        pytest.param(
            "duplicate_edge",
            f"{ENDS} start -> exit [weight=1] start -> exit start -> exit [weight=1]",
            id="third-equals-first",
        ),
        pytest.param(
            "unused_selector", f'{ENDS} model_stylesheet="hexagn {{ model: a }}" start -> exit', id="unknown-shape"
        ),
        pytest.param(
            "unused_selector", f'{ENDS} model_stylesheet="hexagon {{ model: a }}" start -> exit', id="absent-shape"
        ),
        pytest.param(
            "unused_class",
            f'{ENDS} {WORK} work [class="b, c"] model_stylesheet=".b {{ model: a }}" start -> work -> exit',
            id="unselected-class",
        ),
        *(
            pytest.param(rule, f'{ENDS} {WORK} work [{attribute}="{text}"] start -> work -> exit', id=text)
            for rule, attribute, text in [
                ("tools_known", "allowed_tools", "raed,write"),
                ("tools_known", "allowed_tools", "read,"),
                ("tools_known", "allowed_tools", "read write"),
                ("fallback_valid", "llm_fallback", ","),
                ("fallback_valid", "llm_fallback", ":gpt-5"),
                ("fallback_valid", "llm_fallback", "gpt-5,openai:"),
                ("cache_files_inside", "cache.files", "/etc/passwd"),
                ("cache_files_inside", "cache.files", "~/data"),
                ("cache_files_inside", "cache.files", "data/../../x"),
                ("cache_files_inside", "cache.files", "C:/data"),
                ("cache_files_inside", "cache.files", "a,,b"),
                ("base_url_valid", "llm.base_url", "ftp://example.org"),
                ("base_url_valid", "llm.base_url", "http://"),
                ("base_url_valid", "llm.base_url", "http://[::1"),
                ("provider_known", "llm_provider", "opanai"),
                ("provider_known", "llm_provider", "ours"),
                ("model_provider", "llm_model", "gemni-2.5-pro"),
            ]
        ),
        pytest.param("base_url_valid", f'{ENDS} llm.base_url="x" start -> exit', id="url-of-the-graph"),
        pytest.param("fallback_valid", f'{ENDS} llm_fallback="x,," start -> exit', id="fallback-of-the-graph"),
        pytest.param(
            "model_provider",
            f"{ENDS} {WORK} work [llm_model=large] more [prompt=x, llm_model=gpt-5] start -> work -> more -> exit",
            id="odd-one-out",
        ),
    ],
)
def test_the_rule_speaks(rule, body):
    assert rule in found(body)


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        pytest.param("start_node", "Start exit [shape=Msquare] Start -> exit", id="start-by-id"),
        pytest.param("terminal_node", "start [shape=Mdiamond] end start -> end", id="exit-by-id"),
        pytest.param("prompt_on_llm_nodes", "Start end Start -> end", id="ends-by-id-need-no-prompt"),
        pytest.param("reachability", "a [prompt=x] b [prompt=x] a -> b", id="no-start-no-orphans"),
        pytest.param(
            "shape_known", f'{ENDS} x [shape=egg, type="codergen"] start -> x -> exit', id="type-before-shape"
        ),
        pytest.param(
            "shape_alias",
            f'{ENDS} x [shape=circle, type="codergen", prompt=x] start -> x -> exit',
            id="type-before-alias",
        ),
        pytest.param(
            "handler_missing", f"{ENDS} {FAN} start -> fan fan -> a -> exit fan -> b -> exit", id="nobody-runs-it"
        ),
        pytest.param(
            "attribute_typo", f"{ENDS} {WORK} work [color=red, robot_arm=3] start -> work -> exit", id="foreign-names"
        ),
        pytest.param(
            "bad_value",
            f'{ENDS} {WORK} work [max_retries="3", goal_gate="true", retry_policy=""] start -> work -> exit',
            id="ruling-2-quoted-values",
        ),
        pytest.param("bad_duration", f"{ENDS} {WORK} work [timeout=90] start -> work -> exit", id="seconds"),
        pytest.param(
            "goal_gate_has_retry",
            f"{ENDS} {WORK} work [goal_gate=true] retry_target=work start -> work -> exit",
            id="target-of-the-graph",
        ),
        pytest.param(
            "gate_mixes_conditions",
            f'{ENDS} {WORK} start -> work work -> exit [condition="outcome=success"]',
            id="no-gate",
        ),
        pytest.param(
            "all_conditions_may_fail",
            f'{ENDS} {WORK} start -> work work -> exit [condition="outcome=success"] work -> work [default=true]',
            id="default-edge",
        ),
        pytest.param(
            "all_conditions_may_fail",
            f'{ENDS} {WORK} start -> work work -> exit [condition="context.x=1"] work -> work [condition="context.x!=1"]',
            id="complementary",
        ),
        pytest.param(
            "all_conditions_may_fail", f'{ENDS} {WORK} start -> work work -> exit [condition="a=="]', id="unreadable"
        ),
        pytest.param(
            "all_conditions_may_fail",
            f'{ENDS} {WORK} start -> work work -> exit [condition="outcome=success"] work -> work',
            id="one-without-condition",
        ),
        pytest.param(
            "ambiguous_unconditional",
            f"{ENDS} {GATE} {WORK} start -> ok ok -> work ok -> exit work -> exit",
            id="people-choose",
        ),
        pytest.param(
            "ambiguous_unconditional",
            f"{ENDS} {FAN} start -> fan fan -> a fan -> b a -> exit b -> exit",
            id="fan-out-takes-all",
        ),
        pytest.param(
            "ambiguous_unconditional",
            f"{ENDS} {WORK} start -> work work -> exit work -> work [default=true]",
            id="default-decides",
        ),
        pytest.param(
            "unbounded_cycle",
            f'{ENDS} {WORK} start -> work work -> work [weight=1] work -> exit [label="Done"]',
            id="label-may-be-preferred",
        ),
        pytest.param(
            "unbounded_cycle", f"{ENDS} {WORK} start -> work work -> work work -> exit", id="alphabet-leads-out"
        ),
        pytest.param(
            "unbounded_cycle",
            f'{ENDS} {GATE} {WORK} start -> work -> ok ok -> work [label="Again"] ok -> exit [label="Done"]',
            id="gate-in-the-cycle",
        ),
        pytest.param(
            "unbounded_cycle",
            f"{ENDS} {GATE} {WORK} start -> work -> ok ok -> work work -> work [weight=1] work -> exit",
            id="person-in-the-cycle",
        ),
        pytest.param(
            "unbounded_cycle",
            f'{ENDS} x [type="com.acme.x"] start -> x x -> x [weight=1] x -> exit',
            id="custom-handlers-choose",
        ),
        pytest.param(
            "no_join", f"{ENDS} {FAN} start -> fan fan -> a fan -> b a -> exit b -> exit", id="join-at-the-exit"
        ),
        pytest.param("no_join", f"{ENDS} {FAN} start -> fan fan -> a a -> exit b -> exit start -> b", id="one-branch"),
        pytest.param(
            "no_join",
            f'{ENDS} {FAN} start -> fan fan -> a fan -> b a -> exit b -> exit a -> fan [condition="outcome=fail"]',
            id="join-in-a-cycle",
        ),
        pytest.param("duplicate_edge", f'{ENDS} start -> exit start -> exit [condition="a=1"]', id="told-apart"),
        pytest.param(
            "unused_class",
            f'{ENDS} {WORK} work [class="b"] model_stylesheet="* {{ model: a }}" start -> work -> exit',
            id="no-class-selected",
        ),
        pytest.param(
            "unused_class",
            f'{ENDS} {WORK} work [class="b"] model_stylesheet="*" start -> work -> exit',
            id="unreadable-stylesheet",
        ),
        *(
            pytest.param(rule, f'{ENDS} {WORK} work [{attribute}="{text}"] start -> work -> exit', id=text)
            for rule, attribute, text in [
                ("tools_known", "allowed_tools", "read, run"),
                ("tools_known", "allowed_tools", ""),
                ("fallback_valid", "llm_fallback", "ollama:llama3:8b, large"),
                ("cache_files_inside", "cache.files", "data/*.csv, a..b, .hidden/x"),
                ("base_url_valid", "llm.base_url", "http://127.0.0.1:8000/v1"),
                ("base_url_valid", "llm.base_url", "http://[::1]:8000"),
                ("provider_known", "llm_provider", "Gemini"),
                ("model_provider", "llm_model", "large"),
                ("model_provider", "llm_model", "gpt-5.2"),
            ]
        ),
        pytest.param(
            "provider_known",
            f'{ENDS} {WORK} model_stylesheet="* {{ model }}" llm_provider=antropic start -> work -> exit',
            id="models-of-an-unreadable-stylesheet",
        ),
    ],
)
def test_the_rule_is_silent(rule, body):
    assert rule not in found(body)


def test_ruling_8_an_orphan_is_called_unreachable_and_orphan():
    (message,) = messages(f"{ENDS} {WORK} start -> exit work -> exit", "reachability")
    assert "unreachable" in message
    assert "orphan" in message
    assert '"work"' in message


@pytest.mark.parametrize(
    "jump",
    [
        "a [prompt=x, retry_target=fix]",
        "a [prompt=x, fallback_retry_target=fix]",
        "a [prompt=x] retry_target=fix",
        "a [prompt=x] fallback_retry_target=fix",
    ],
)
def test_ruling_8_retry_jumps_count_as_edges(jump):
    assert "reachability" not in found(f"{ENDS} {jump} fix [prompt=x] start -> a -> exit fix -> a")


def test_ruling_4_an_id_near_a_declared_one_is_an_error_with_the_nearest():
    body = f'{ENDS} implement [prompt="x"] start -> implment implment -> exit start -> implement -> exit'
    (first, *_) = messages(body, "edge_target_exists")
    assert first == 'the edge start -> implment names "implment", which is not declared; did you mean "implement"?'


def test_ruling_4_an_implicit_node_is_a_warning_whose_fix_declares_it():
    source = "digraph {\n    start [shape=Mdiamond]\n    exit [shape=Msquare]\n    start -> ship_it\n    ship_it -> exit\n}\n"
    graph = parse_dot(source)
    (finding,) = validate(graph)
    assert (finding.rule, finding.severity, finding.node_id) == ("implicit_node", "warning", "ship_it")
    assert apply_edits(graph.source, finding.fix.edits) == source.replace(
        "exit\n}", 'exit\n    ship_it [label="ship_it"]\n}'
    )


def test_ruling_5_an_unknown_attribute_like_a_known_one_is_an_info():
    (finding,) = [
        each for each in lint(f"{ENDS} {WORK} work [promt=x] start -> work -> exit") if each.rule == "attribute_typo"
    ]
    assert (finding.severity, finding.span.text) == ("info", "promt")


def test_a_slip_beside_the_attribute_that_it_resembles_is_not_renamed():
    (finding,) = [
        each for each in lint(f"{ENDS} work [promt=x, prompt=y] start -> work -> exit") if each.rule == "attribute_typo"
    ]
    assert finding.fix.edits == ()


def test_ruling_6_circles_are_start_and_exit_with_a_warning():
    findings = lint("a [shape=circle] b [shape=doublecircle] a -> b")
    assert [(each.rule, each.severity) for each in findings] == [("shape_alias", "warning")] * 2


@pytest.mark.parametrize(
    ("alias", "ends", "types"),
    [
        ("doublecircle", "start [shape=Mdiamond] exit [shape=Msquare]", {"start": "start", "exit": "exit"}),
        ("circle", "start [shape=Mdiamond] exit [shape=Msquare]", {"start": "start", "exit": "exit"}),
        ("circle", "a [type=start] exit [shape=Msquare]", {"a": "start", "exit": "exit"}),
        ("circle", "end [shape=Msquare]", {"other": "start", "end": "exit"}),
        ("doublecircle", "go [shape=circle]", {"go": "start", "other": "exit"}),
    ],
)
def test_ruling_6a_an_alias_is_an_end_only_where_no_node_has_the_shape_itself(alias, ends, types):
    graph = parse_dot(f"digraph {{ {ends} other [shape={alias}, prompt=x] }}")
    assert graph.handler_types == {"other": "codergen", **types}
    found = {each.rule for each in validate(graph) if each.node_id == "other"}
    assert ("shape_alias" in found, "shape_known" in found) == ("other" in types, "other" not in types)
    assert not {"start_node", "terminal_node"} & {each.rule for each in validate(graph)} or len(types) < 2


@pytest.mark.parametrize("literal", ["2.0", '"2.0"', "2.000"])
def test_an_integral_number_is_read_as_the_whole_number_with_a_warning(literal):
    source = (
        f"digraph {{ {ENDS} max_steps={literal} {WORK} work [max_retries={literal}]"
        f" start -> work -> exit [weight={literal}] }}"
    )
    graph = parse_dot(source)
    assert (graph.edges[0].weight, graph.nodes["work"].max_retries, graph.attrs["max_steps"]) == (2, 2, 2)
    found = [each for each in validate(graph) if each.rule == "whole_number"]
    assert [each.severity for each in found] == ["warning"] * 3
    assert found[2].message == f"weight {literal} is read as the whole number 2"
    edits = list(dict.fromkeys(edit for each in found for edit in each.fix.edits))
    mended = apply_edits(graph.source, edits)
    assert mended == source.replace(literal, "2")


def test_a_number_with_a_fraction_is_no_whole_number():
    (found,) = [each for each in lint(f"{ENDS} start -> exit [weight=2.5]") if each.severity == "error"]
    assert found.message == 'weight "2.5" is not a whole number'


def test_ruling_11_an_outcome_alias_is_an_info_whose_fix_respells_it():
    source = f'digraph {{ {ENDS} start -> exit [condition="context.a=\\"x\\" && outcome=failed"] }}'
    graph = parse_dot(source)
    (finding,) = [each for each in validate(graph) if each.rule == "outcome_alias"]
    assert finding.severity == "info"
    assert finding.span.outermost().text == "failed"
    assert apply_edits(graph.source, finding.fix.edits) == source.replace("failed", "fail")


def test_ruling_14_conditions_that_may_all_fail_are_an_info_that_names_the_case():
    body = f'{ENDS} {WORK} start -> work work -> exit [condition="outcome=success && context.n=1"] work -> work [condition="outcome!=success"]'
    assert messages(body, "all_conditions_may_fail") == [
        'no edge of "work" matches when outcome=success and n is not one of 1'
    ]


@pytest.mark.parametrize(
    ("condition", "case"),
    [
        ("context.ok", "ok is empty"),
        ("context.ok=true", "ok is not one of true"),
        ('context.ok!=\\"\\"', "ok is empty"),
        ("preferred_label=Yes", "preferred_label is not one of Yes"),
        ('context.ok=\\"\\"', "ok is set"),
    ],
)
def test_the_uncovered_case_is_told_in_words(condition, case):
    body = f'{ENDS} {WORK} start -> work work -> exit [condition="{condition}"]'
    assert messages(body, "all_conditions_may_fail") == [f'no edge of "work" matches when {case}']


def test_conditions_with_too_many_cases_are_left_alone():
    many = " && ".join(f"context.k{number}=1" for number in range(12))
    assert "all_conditions_may_fail" not in found(f'{ENDS} {WORK} start -> work work -> exit [condition="{many}"]')


def test_ruling_16_a_goal_gate_on_a_diamond_checks_nothing():
    (message,) = messages(
        f"{ENDS} d [shape=diamond, goal_gate=true] retry_target=d start -> d -> exit", "gate_without_effect"
    )
    assert message == '"d" is a conditional node, so its goal_gate has no effect'


def test_ruling_22_branches_without_a_common_node_are_a_warning():
    (finding,) = [
        each for each in lint(f"{ENDS} {FAN} start -> fan fan -> a fan -> b a -> exit") if each.rule == "no_join"
    ]
    assert (finding.severity, finding.node_id) == ("warning", "fan")


@pytest.mark.parametrize(
    ("attribute", "value", "severity"),
    [
        ("llm_provider", "antropic", "warning"),
        ("llm_provider", "ours", "info"),
        ("llm_model", "cluade-opus-4-6", "warning"),
        ("llm.base_url", "http://models.example.org", "warning"),
        ("llm.base_url", "models.example.org", "error"),
    ],
)
def test_what_names_a_model_is_as_bad_as_it_is_likely_a_slip(attribute, value, severity):
    (finding,) = lint(f'{ENDS} {WORK} work [{attribute}="{value}"] start -> work -> exit')
    assert (finding.severity, finding.node_id) == (severity, "work")


@pytest.mark.parametrize(
    ("attribute", "value"), [("llm_provider", "zai"), ("llm_provider", "antropic"), ("llm_model", "cluade-opus-4-6")]
)
def test_ruling_40_no_fix_writes_another_provider_or_model(attribute, value):
    (finding,) = lint(f'{ENDS} {WORK} work [{attribute}="{value}"] start -> work -> exit')
    assert "did you mean" in finding.message
    assert not finding.fix.edits


def test_a_slip_in_a_stylesheet_is_mended_where_it_stands():
    source = (
        "digraph { start [shape=Mdiamond] exit [shape=Msquare] a [prompt=x] b [prompt=x] start -> a -> b -> exit "
        'endpoint.local.url="https://models.example.org/v1" model_stylesheet="* { model: m; provider: locla }" }'
    )
    graph = StylesheetApplication().apply(parse_dot(source))
    (finding,) = validate(graph)
    assert (finding.rule, finding.severity) == ("provider_known", "warning")
    assert apply_edits(graph.source, finding.fix.edits) == source.replace("locla", "local")


FOUR = "fan -> a fan -> b a -> j b -> j j [shape=tripleoctagon] j -> exit"


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ("join_policy=k_of_n", "fan: join_policy=k_of_n needs join_k"),
        ("join_policy=k_of_n, join_k=3", "fan: join_k=3 of 2 branches cannot be reached"),
        ("join_policy=quorum", "fan: join_policy=quorum needs join_quorum"),
        ("join_policy=quorum, join_quorum=0", "fan: join_quorum=0 is not a fraction of the branches"),
        ("join_policy=quorum, join_quorum=1.5", "fan: join_quorum=1.5 is not a fraction of the branches"),
        ("join_policy=quorum, join_quorum=-0.5", "fan: join_quorum=-0.5 is not a fraction of the branches"),
    ],
)
def test_ruling_22_a_policy_that_the_branches_cannot_meet_is_an_error(attrs, message):
    body = f"{ENDS} {FAN} fan [{attrs}] start -> fan {FOUR}"
    (finding,) = [each for each in lint(body) if each.is_error]
    assert (finding.rule, finding.message, finding.node_id) == ("fan_out_policy", message, "fan")
    assert finding.fix.title


@pytest.mark.parametrize(
    "attrs",
    [
        "join_policy=k_of_n, join_k=2",
        "join_policy=quorum, join_quorum=1",
        "join_policy=quorum, join_quorum=0.01",
        "join_policy=first_success, error_policy=ignore",
    ],
)
def test_a_policy_that_can_be_met_is_no_finding(attrs):
    assert lint(f"{ENDS} {FAN} fan [{attrs}] start -> fan {FOUR}") == []


@pytest.mark.parametrize(
    "attrs",
    [
        "join_policy=some",
        "error_policy=shrug",
        "join_policy=k_of_n, join_k=two",
        "join_policy=k_of_n, join_k=0",
        "join_policy=quorum, join_quorum=half",
        "max_parallel=0",
    ],
)
def test_a_policy_that_cannot_be_read_is_one_error_of_the_attribute_table(attrs):
    errors = [each for each in lint(f"{ENDS} {FAN} fan [{attrs}] start -> fan {FOUR}") if each.is_error]
    assert [each.rule for each in errors] == ["bad_value"]


def test_a_merge_that_is_none_is_an_error():
    body = f"{ENDS} {FAN} start -> fan {FOUR} j [merge=everything]"
    assert [each.rule for each in lint(body) if each.is_error] == ["bad_value"]


@pytest.mark.parametrize(
    ("attrs", "name"), [("join_k=2", "join_k"), ("join_policy=k_of_n, join_k=1, join_quorum=0.5", "join_quorum")]
)
def test_a_number_that_the_join_policy_does_not_read_is_a_warning(attrs, name):
    (finding,) = lint(f"{ENDS} {FAN} fan [{attrs}] start -> fan {FOUR}")
    assert (finding.rule, finding.severity, finding.span.text) == ("fan_out_policy", "warning", name)


@pytest.mark.parametrize(
    ("edges", "message", "severity"),
    [
        (
            "fan -> a -> j fan -> b -> j fan -> j",
            'the branch of "fan" to "j" is empty: the branches meet there',
            "warning",
        ),
        (
            'fan -> a -> j fan -> a [label="again"] fan -> b -> j',
            'two branches of "fan" begin at "a" and do the same work',
            "warning",
        ),
        (
            "fan -> a -> j fan -> b -> j fan -> fan",
            'a branch of "fan" leads back to the fan-out itself, without end',
            "error",
        ),
    ],
    ids=["empty", "twice", "itself"],
)
def test_ruling_22_a_branch_begins_at_a_node_of_its_own(edges, message, severity):
    body = f"{ENDS} {FAN} j [shape=tripleoctagon] start -> fan {edges} j -> exit"
    (finding,) = [each for each in lint(body) if each.rule == "branch_start"]
    assert (finding.message, finding.severity) == (message, severity)


@pytest.mark.parametrize(
    "body", ["", 'x [prompt=x] fan -> x [condition="outcome=fail"] x -> exit'], ids=["none", "conditional"]
)
def test_ruling_22_a_fan_out_without_branches_is_an_error(body):
    rules = {
        each.rule for each in lint(f"{ENDS} fan [shape=component] start -> fan start -> exit {body}") if each.is_error
    }
    assert rules == {"fan_out_branches"}


def test_ruling_22_a_condition_on_an_edge_of_a_fan_out_is_told_to_be_a_way_after_it():
    body = f'{ENDS} {FAN} start -> fan {FOUR} x [prompt=x] fan -> x [condition="outcome=fail"] x -> exit'
    (finding,) = lint(body)
    assert (finding.rule, finding.severity, finding.edge) == ("branch_condition", "info", ("fan", "x"))
    assert "is taken after the branches when `outcome=fail` holds" in finding.message


@pytest.mark.parametrize(
    ("edge", "count"),
    [
        ('a -> a [loop_restart=true, condition="outcome=fail"]', 1),
        ("fan -> c [loop_restart=true] c [prompt=c] c -> j", 1),
        ('j -> fan [loop_restart=true, condition="outcome=fail"]', 0),
        ('fan -> a [loop_restart=true, condition="outcome=fail"]', 0),
    ],
    ids=["within", "first-edge", "after-the-join", "after-the-branches"],
)
def test_ruling_22_a_restart_within_a_branch_is_a_warning(edge, count):
    body = f"{ENDS} {FAN} start -> fan {FOUR} {edge}"
    assert len([each for each in lint(body) if each.rule == "restart_in_branch"]) == count


CHECK = f'{ENDS} {WORK} check [prompt="Check"] ask [shape=hexagon] start -> work -> check'
ON_FAIL = 'condition="outcome=fail"'


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        (
            f"check -> exit check -> work [{ON_FAIL}, max_taken=2]",
            "2 times, no edge of check is left for a failure: the",
        ),
        ("check -> exit [max_taken=1]", "check -> exit was taken once, no edge of check is left: the run fails there"),
        (
            f'check -> exit [condition="outcome=success"] check -> work [{ON_FAIL}, max_taken=2]',
            "the other edges of check have conditions: where none holds, the run fails there",
        ),
        (f"check -> exit check -> work [{ON_FAIL}, max_taken=2] check -> ask [default=true]", ""),
        (f"check -> exit check -> work [{ON_FAIL}, max_taken=2] check -> ask [{ON_FAIL}]", ""),
        (f"check -> exit check -> work [{ON_FAIL}, max_taken=2] check [retry_target=work]", ""),
        (f"on_fail=continue check -> exit check -> work [{ON_FAIL}, max_taken=2]", ""),
        ('check -> exit check -> work [label="Again", max_taken=2]', ""),
        (f'check -> ask [condition="outcome=success"] check -> exit [{ON_FAIL}] check -> work [max_taken=2]', ""),
    ],
)
def test_a_bound_without_another_edge_is_a_warning_that_says_what_happens(edges, words):
    told = messages(f"{CHECK} {edges}", "edge_bound")
    assert [words in message for message in told] == [True] * bool(words)


def test_a_misspelled_prompt_beside_a_label_is_a_warning():
    (finding,) = lint(f'{ENDS} work [label="Write", promt="Write it"] start -> work -> exit')
    assert (finding.rule, finding.severity, finding.span.text) == ("attribute_typo", "warning", "promt")
    assert finding.message.endswith(
        'did you mean "prompt"? As it stands, the label of "work" would be its prompt: "Write"'
    )
    assert finding.fix.edits[0].text == "prompt"


def test_a_misspelled_prompt_of_no_model_is_no_warning():
    (finding,) = lint(f'{ENDS} {WORK} work [label="Write", promt="x"] start -> work -> exit')
    assert (finding.rule, finding.severity) == ("attribute_typo", "info")


def test_a_bound_on_the_beginning_of_a_branch_has_no_effect():
    told = messages(f"{ENDS} {FAN} start -> fan fan -> a [max_taken=2] fan -> b a -> exit b -> exit", "edge_bound")
    assert told == ["max_taken of fan -> a has no effect: the edge begins a branch in every pass"]


@pytest.mark.parametrize(("value", "words"), [("0", "max_taken 0 is below 1"), ("-1", "max_taken -1 is below 1")])
def test_a_bound_is_at_least_1(value, words):
    (finding,) = lint(f"{CHECK} check -> work [max_taken={value}] check -> ask [default=true] ask -> exit")
    assert (finding.rule, finding.severity, finding.message) == ("bad_value", "error", words)


@pytest.mark.parametrize("value", ["two", '"1.5"', "true"])
def test_a_bound_is_a_whole_number(value):
    (finding,) = lint(f"{CHECK} check -> work [max_taken={value}] check -> ask [default=true] ask -> exit")
    assert (finding.rule, finding.severity) == ("bad_value", "error")
    assert "is not a whole number" in finding.message


def test_a_bound_on_a_node_belongs_on_an_edge():
    (finding,) = [each for each in lint(f"{CHECK} check [max_taken=2] check -> exit") if "max_taken" in each.message]
    assert finding.message == '"max_taken" has no effect on a node; the edge\'s attribute "max_taken" does that'


def test_a_loop_with_a_bounded_edge_has_an_end():
    assert "unbounded_cycle" in found(f"{CHECK} check -> work [weight=1] check -> exit")
    assert "unbounded_cycle" not in found(f"{CHECK} check -> work [weight=1, max_taken=2] check -> exit")
    parallel = "check -> work [weight=2] check -> work [weight=1, max_taken=2]"
    assert "unbounded_cycle" in found(f"{CHECK} {parallel} check -> exit")


def test_a_fan_in_behind_a_fan_out_need_not_be_its_join():
    body = f"{ENDS} {FAN} start -> fan {FOUR.replace('j -> exit', 'j -> k')} k [shape=tripleoctagon] k -> exit"
    assert "fan_in_without_fan_out" not in found(body)


def test_a_thousand_fan_outs_are_linted():
    parts = [
        f"f{n} [shape=component] a{n} [prompt=x] b{n} [prompt=x] j{n} [prompt=x] "
        f"f{n} -> a{n} -> j{n} f{n} -> b{n} -> j{n} j{n} -> {f'f{n + 1}' if n < 999 else 'exit'}"
        for n in range(1000)
    ]
    assert lint(f"{ENDS} start -> f0 {' '.join(parts)}") == []


def test_ruling_23_choices_with_the_same_key_are_a_warning_whose_fix_gives_another():
    source = f'digraph {{ {ENDS} {GATE} fix [prompt=x] start -> ok ok -> exit [label="Approve"] ok -> fix [label="[A] Amend"] fix -> ok }}'
    graph = parse_dot(source)
    (finding,) = [each for each in validate(graph) if each.rule == "accelerator_clash"]
    assert "both have the key A" in finding.message
    assert apply_edits(graph.source, finding.fix.edits) == source.replace("[A] Amend", "[M] Amend")


def test_choices_whose_texts_differ_in_case_alone_are_a_warning():
    body = f'{ENDS} {GATE} fix [prompt=x] start -> ok ok -> exit [label="[A] Weiß"] ok -> fix [label="[B] weiss"] fix -> ok'
    (finding,) = [each for each in lint(body) if each.rule == "accelerator_clash"]
    assert finding.message == 'the choices "[A] Weiß" and "[B] weiss" of "ok" differ in case alone'


def test_a_built_in_type_without_handler_is_a_warning_where_the_pipeline_is_to_run():
    body = f"{ENDS} {FAN} start -> fan fan -> a -> exit fan -> b -> exit"
    runnable = frozenset({"start", "exit", "codergen"})
    (finding,) = [each for each in lint(body, runnable_types=runnable) if each.rule == "handler_missing"]
    assert (finding.severity, finding.node_id, finding.span.text) == ("warning", "fan", "component")
    assert finding.message.endswith("none is registered: a run is refused")
    assert finding.fix.title.endswith('"parallel", or use one of the types codergen, exit, start')


def test_a_registered_type_is_known():
    body = f'{ENDS} x [type="com.acme.x"] start -> x -> exit'
    assert "type_known" not in found(body, known_types=frozenset({"com.acme.x"}))


def test_11_2_a_label_in_place_of_a_prompt_is_an_info_nothing_at_all_a_warning():
    body = f'{ENDS} a [label="A"] b start -> a -> b -> exit'
    severities = {each.node_id: each.severity for each in lint(body) if each.rule == "prompt_on_llm_nodes"}
    assert severities == {"a": "info", "b": "warning"}


def test_a_value_inherited_from_a_default_block_is_reported_once():
    body = f'{ENDS} node [timeout="soon"] a [prompt=x] b [prompt=x] start -> a -> b -> exit'
    assert len(messages(body, "bad_duration")) == 1


def test_the_same_mistake_at_two_edges_is_reported_twice():
    body = f'{ENDS} {WORK} start -> work [condition="a=="] work -> exit [condition="a=="]'
    assert len(messages(body, "condition_syntax")) == 2


def test_a_condition_of_a_chain_is_reported_once():
    body = f'{ENDS} {WORK} start -> work -> exit [condition="a=="]'
    assert len(messages(body, "condition_syntax")) == 1


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("5 minutes", "5m"),
        ("30 sec", "30s"),
        ("2 Hours", "2h"),
        ("250 msec", "250ms"),
        ("1 day", "1d"),
        ("100 milliseconds", "100ms"),
    ],
)
def test_a_duration_in_words_is_mended(written, mended):
    source = f'digraph {{ {ENDS} work [prompt=x, timeout="{written}"] start -> work -> exit }}'
    graph = parse_dot(source)
    (finding,) = [each for each in validate(graph) if each.rule == "bad_duration"]
    assert finding.fix.title == f'write "{mended}"'
    assert validate(parse_dot(apply_edits(graph.source, finding.fix.edits))) == []


@pytest.mark.parametrize(
    ("written", "mended"),
    [("yes", "true"), ("On", "true"), ("1", "true"), ("no", "false"), ("OFF", "false"), ("0", "false")],
)
def test_a_switch_in_other_words_is_mended(written, mended):
    source = f"digraph {{ {ENDS} work [prompt=x, goal_gate={written}, retry_target=work] start -> work -> exit }}"
    graph = parse_dot(source)
    (finding,) = [each for each in validate(graph) if each.rule == "bad_value"]
    assert finding.message == f'goal_gate "{written}" must be true or false'
    assert finding.fix.title == f"write {mended}"
    assert f"goal_gate={mended}" in apply_edits(graph.source, finding.fix.edits)


def test_a_switch_in_words_that_mean_neither_is_not_mended():
    body = f"{ENDS} work [prompt=x, goal_gate=perhaps, retry_target=work] start -> work -> exit"
    (finding,) = [each for each in lint(body) if each.rule == "bad_value"]
    assert finding.fix is None


def test_a_bare_condition_is_mended_as_a_quoted_one():
    graph = parse_dot(f"digraph {{ {ENDS} start -> exit [condition=success] }}")
    (finding,) = [each for each in validate(graph) if each.rule == "status_as_key"]
    assert 'condition="outcome=success"' in apply_edits(graph.source, finding.fix.edits)


@pytest.mark.parametrize("ending", ["exit }", "exit\n}", "exit\n  }\n\n", "exit }\n// the end }", "exit /* } */ }"])
def test_a_declaration_is_added_wherever_the_last_brace_stands(ending):
    source = f"digraph {{ {ENDS} start -> ship_it ship_it -> {ending}"
    graph = parse_dot(source)
    (finding,) = [each for each in validate(graph) if each.rule == "implicit_node"]
    after = apply_edits(graph.source, finding.fix.edits)
    assert ("implicit_node" in {each.rule for each in validate(parse_dot(after))}) is (not finding.fix.edits)


def test_suggestions_stay_affordable_however_many_ids_are_wrong():
    targets = " ".join(f"start -> wrong_{number}" for number in range(200))
    assert len(messages(f"{ENDS} start -> exit {targets}", "edge_target_exists")) == 200


def test_a_class_that_no_rule_selects_is_pointed_at_and_mended_in_its_list():
    source = f'digraph {{ {ENDS} a [prompt=x, class="precod, critical"] b [prompt=x, class="critical, code,cod"] model_stylesheet=".critical {{ model: m }} .code {{ model: n }}" start -> a -> b -> exit }}'
    graph = parse_dot(source)
    first, second = [each for each in validate(graph) if each.rule == "unused_class"]
    assert (first.span.text, first.fix.edits) == ("precod", ())
    assert apply_edits(graph.source, second.fix.edits) == source.replace("code,cod", "code,code")


def test_a_gate_with_every_key_taken_gets_a_remedy_without_an_edit():
    labels = [f"[{key}] x" for key in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    edges = " ".join(
        f'ok -> n{number} [label="{label}"] n{number} -> exit' for number, label in enumerate([*labels, "[A] x"])
    )
    (finding,) = [each for each in lint(f"{ENDS} {GATE} start -> ok {edges}") if each.rule == "accelerator_clash"]
    assert finding.fix.edits == ()


def test_many_nodes_with_the_same_conditions_are_told_apart():
    body = f'{ENDS} a [prompt=x] b [prompt=x] start -> a a -> b [condition="outcome=success"] b -> exit [condition="outcome=success"]'
    assert [each.node_id for each in lint(body) if each.rule == "all_conditions_may_fail"] == ["a", "b"]


ADJACENCY = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14)


@given(ADJACENCY)
def test_cycles_are_the_components_that_networkx_finds(pairs):
    import networkx as nx

    successors = {name: [target for source, target in pairs if source == name] for name in "abcdef"}
    predecessors = {name: [source for source, target in pairs if target == name] for name in "abcdef"}
    graph = nx.DiGraph(pairs)
    expected = {
        frozenset(each)
        for each in nx.strongly_connected_components(graph)
        if len(each) > 1 or any(graph.has_edge(node, node) for node in each)
    }
    cycles = find_cycles(successors, predecessors)
    assert {frozenset(each) for each in cycles} == expected
    assert sum(map(len, cycles)) == len({node for each in cycles for node in each})


SLIPPED = st.sampled_from(
    [
        "start [shape=Mdiamon]",
        "exit [shape=doublecircle]",
        'work [promt="x"]',
        'work [timeout="5 minutes", class="a,b"]',
        "node [fidelity=ful]",
        "start -> work -> exit",
        "start -> wrk -> exit",
        "work -> ship_it -> fix_it",
        "ship_it -> exit",
        'work -> exit [condition="outcome == succeeded"]',
        'work -> work [condition="preferred_label=Do it && outcome=failed"]',
        "exit -> work -> start [condition=success]",
        "ok [shape=hexagon, goal_gate=yes]",
        'ok -> work [label="Yes"]',
        'ok -> exit [label="Yeah"]',
        "retry_target=wrok",
        'model_stylesheet="* { modl: x } .aa { model: y } #wrok { model: z }"',
        'subgraph cluster_x { label="X"  work [goal_gate=on] }',
        'x [type="tol"]',
        'weight="1" edge [weight="x"]',
    ]
)


@given(st.lists(SLIPPED, max_size=8, unique=True), st.sampled_from([" ", "\n"]))
def test_all_fixes_together_give_a_text_that_can_be_read_and_has_fewer_findings(statements, separator):
    graph = parse_dot(f"digraph {{{separator}{separator.join(statements)}{separator}}}")
    findings = validate(graph)
    edits = list(dict.fromkeys(edit for each in findings if each.fix for edit in each.fix.edits))
    after = validate(parse_dot(apply_edits(graph.source, edits)))
    mended = {(each.rule, each.message) for each in findings if each.fix and each.fix.edits}
    left = {(each.rule, each.message) for each in after}
    assert {rule for rule, _ in mended & left} <= {"accelerator_clash", "dead_end"}


VALUES = st.one_of(
    st.text(max_size=8),
    st.integers(-2, 9),
    st.booleans(),
    st.sampled_from(["outcome=fail", "* { model: a }", "start", "wait.human", "parallel"]),
)
NAMES = st.sampled_from(
    [
        "shape",
        "type",
        "prompt",
        "label",
        "condition",
        "retry_target",
        "goal_gate",
        "timeout",
        "class",
        "model_stylesheet",
        "fidelity",
        "weight",
        "x",
    ]
)
ATTRS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(
    st.dictionaries(st.sampled_from("abcd"), ATTRS, max_size=4),
    st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), ATTRS), max_size=8),
    ATTRS,
)
def test_any_graph_is_linted_without_an_exception(nodes, edges, attrs):
    graph = Graph(
        "G", attrs, {name: Node(name, each) for name, each in nodes.items()}, tuple(Edge(*each) for each in edges)
    )
    for each in validate(graph, options=LintOptions(runnable_types=frozenset())):
        assert each.message
        assert each.fix is None or each.fix.title


def test_deep_chains_need_no_stack():
    size = 5_000
    nodes = {f"n{number}": Node(f"n{number}", {"prompt": "x"}) for number in range(size)}
    edges = tuple(Edge(f"n{number}", f"n{(number + 1) % size}") for number in range(size))
    assert "unbounded_cycle" in {each.rule for each in validate(Graph("G", {}, nodes, edges))}


def test_a_hub_of_many_equal_edges_is_linted():
    edges = (*(Edge("start", "exit", {"label": "x"}) for _ in range(10_000)),)
    nodes = {"start": Node("start", {"shape": "Mdiamond"}), "exit": Node("exit", {"shape": "Msquare"})}
    findings = validate(Graph("G", {}, nodes, edges))
    assert len(findings) == 9_999


def one(body, rule):
    (found,) = [each for each in lint(body) if each.rule == rule]
    return found


def test_a_missing_start_or_exit_names_the_shape_and_the_statement():
    start = one("a [prompt=x] done [shape=Msquare] a -> done", "start_node")
    assert start.message == "the pipeline has no start node: no node has shape=Mdiamond"
    assert start.fix.title == 'add a start node before "a": start [shape=Mdiamond]; start -> a'
    end = one("start [shape=Mdiamond] a [prompt=x] start -> a", "terminal_node")
    assert end.message == "the pipeline has no exit node: no node has shape=Msquare"
    assert end.fix.title == 'add an exit node after "a": exit [shape=Msquare]; a -> exit'


@pytest.mark.parametrize(
    ("attribute", "message", "title"),
    [
        (
            "max_visits=3",
            '"max_visits" has no effect on a node; the graph\'s attribute "max_node_visits" does that',
            'write max_node_visits=3 on the graph, or remove "max_visits"',
        ),
        (
            "timeout_ms=500",
            '"timeout_ms" has no effect on a node; the attribute "timeout" does that',
            'write timeout="500ms"',
        ),
        (
            'system_prompt="Be brief"',
            '"system_prompt" has no effect on a node; the attribute "llm.system_prompt" does that',
            'write "llm.system_prompt"',
        ),
        (
            'command="make"',
            '"command" has no effect on a node; the attribute "tool_command" does that',
            'write tool_command=make on the node, or remove "command"',
        ),
    ],
)
def test_an_attribute_of_another_runner_is_a_warning_that_names_ours(attribute, message, title):
    found = one(f"{ENDS} work [prompt=x, {attribute}] start -> work -> exit", "foreign_attribute")
    assert (found.severity, found.message, found.fix.title) == ("warning", message, title)


def test_a_handler_of_the_callers_own_may_read_any_attribute():
    body = f'{ENDS} work [type="my.own", max_visits=3] start -> work -> exit'
    assert "foreign_attribute" not in {each.rule for each in lint(body, known_types=frozenset({"my.own"}))}


@pytest.mark.parametrize(("scope", "name"), [(scope, name) for scope, names in FOREIGN_NAMES.items() for name in names])
def test_a_foreign_name_is_unknown_and_ours_is_known(scope, name):
    place, ours = FOREIGN_NAMES[scope][name]
    assert attribute(scope, name) is None
    assert attribute(place, ours) is not None


@pytest.mark.parametrize(
    ("tools", "message", "title"),
    [
        (
            "READ,Grap,Bish(git:*)",
            'allowed_tools "READ", "Grap", "Bish(git:*)" are not of read, write, list, run',
            "use read, write, list, run, with commas between",
        ),
        ("READ,wirte", 'allowed_tools "READ", "wirte" are not of read, write, list, run', 'write "read,write"'),
        (
            "Grep,wirte",
            'allowed_tools "wirte" is not one of read, write, list, run; did you mean "write"?',
            'write "Grep,write"',
        ),
    ],
)
def test_a_fix_of_allowed_tools_is_valid_or_no_edit(tools, message, title):
    found = one(f'{ENDS} work [prompt=x, allowed_tools="{tools}"] start -> work -> exit', "tools_known")
    assert (found.message, found.fix.title) == (message, title)
    assert bool(found.fix.edits) == title.startswith("write ")


def test_tools_of_an_agent_are_a_warning_for_other_backends():
    found = one(f'{ENDS} work [prompt=x, allowed_tools="Read, Bash(git:*), read"] start -> work -> exit', "tools_known")
    assert found.severity is Severity.WARNING
    assert found.message == "allowed_tools Read, Bash(git:*): only the agent claude knows these names"


CARRYING = f"""{ENDS} plan [prompt=x] test [shape=parallelogram, tool_command=true]
    work [prompt=x, carry="%s"] start -> plan -> test -> work -> exit"""


@pytest.mark.parametrize(
    ("names", "message", "title"),
    [
        (
            "plan.reponse, tool.output",
            'carry names "plan.reponse", which no stage sets; did you mean "plan.response"?',
            'write "plan.response, tool.output"',
        ),
        (
            "somebody.response",
            'carry names "somebody.response", which no stage sets',
            "name a value that an earlier stage sets, such as plan.response or tool.output",
        ),
    ],
)
def test_carry_names_what_a_stage_sets(names, message, title):
    found = one(CARRYING % names, "carry_known")
    assert (found.message, found.fix.title) == (message, title)


def test_carry_may_name_what_params_and_backends_of_ones_own_set():
    assert "carry_known" not in found(CARRYING % "plan.response, tool.output, ticket, tests.failed")


MALFORMED = Path(__file__).parents[1] / "languages" / "malformed"
IN_A_PIPELINE = {
    "condition": "digraph {{ start [shape=Mdiamond] done [shape=Msquare] start -> work -> done work [prompt=x]"
    " work -> start [condition={text}] }}",
    "stylesheet": "digraph {{ graph [model_stylesheet={text}] start [shape=Mdiamond] done [shape=Msquare]"
    " start -> work -> done work [prompt=x] }}",
}
ONE_FINDING = """digraph {{ start [shape=Mdiamond] done [shape=Msquare]
    build [{attrs}, prompt="say it"]
    start -> build -> done }}"""


@pytest.mark.parametrize(
    "attrs", ['type="exec", command="make"', 'type="exi"', 'type="strat"', "shape=Msquar", "shape=Mdiamon", "shape=bx"]
)
def test_ruling_40_a_fix_never_changes_what_a_node_is(attrs):
    pipeline = Pipeline(ONE_FINDING.format(attrs=attrs))
    fixed = pipeline.fixed()
    assert fixed.graph.handler_types == pipeline.graph.handler_types
    assert fixed.graph.nodes["build"].type == pipeline.graph.nodes["build"].type
    assert "say it" in fixed.to_dot()


def _mendable_texts():
    for entry in BUILT_IN_RULES:
        bad = entry.page.partition("Bad:")[2].partition("Good:")[0]
        yield pytest.param(textwrap.dedent(bad.strip("\n")), id=entry.name)
    for case in tomllib.loads((MALFORMED / "dot.toml").read_text("utf-8"))["malformed"]:
        yield pytest.param(case["source"], id=case["name"])
    for language, pipeline in IN_A_PIPELINE.items():
        for case in tomllib.loads((MALFORMED / f"{language}.toml").read_text("utf-8"))["case"]:
            yield pytest.param(pipeline.format(text=quote(case["source"])), id=f"{language}: {case['name']}")


@pytest.mark.parametrize("text", list(_mendable_texts()))
def test_ruling_40_after_a_fix_there_are_fewer_findings_and_no_new_one(text):
    try:
        pipeline = Pipeline(text)
    except AttractorError:
        return  # a text that cannot be read has no findings to fix
    check_fixes(pipeline)


@given(
    st.sampled_from(["shape", "type", "fidelity", "retry_target", "goal_gate", "max_retries", "class", "label"]),
    st.text("abdegimqrstuxMo.=_ 019", max_size=9),
)
def test_ruling_40_fixes_of_drawn_values_mend_and_change_no_handler(name, value):
    check_fixes(Pipeline(ONE_FINDING.format(attrs=f'{name}="{value}"')))


def check_fixes(pipeline):
    before = pipeline.lint()
    preview = before.fix()
    if not preview.fixed:
        return
    fixed = Pipeline(preview.text)
    # A condition that could not be read hid what a milder rule has to say of it.
    ranks = list(Severity)[: 1 + max(list(Severity).index(each.severity) for each in preview.fixed)]
    old, new = ([each.rule for each in report if each.severity in ranks] for report in (before, fixed.lint()))
    assert len(new) < len(old), str(fixed.lint())
    assert not Counter(new) - Counter(old), str(fixed.lint())
    for node_id, handler_type in pipeline.graph.handler_types.items():
        assert fixed.graph.handler_types.get(node_id, handler_type) == handler_type


def test_a_fan_out_whose_policy_nobody_can_read_is_another_rules_to_tell():
    body = f"""{ENDS} fan [shape=component, join_policy=POLICY] ok [shape=hexagon, label="OK?"] b [prompt="B"]
        join [shape=tripleoctagon] start -> fan fan -> ok fan -> b -> join ok -> join [label="Yes"] join -> exit"""
    assert "gate_may_be_skipped" in found(body.replace("POLICY", "first_success"))
    unreadable = found(body.replace("POLICY", "sometimes"))
    assert "gate_may_be_skipped" not in unreadable
    assert "bad_value" in unreadable


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("tool_stdout", "tool.output"),
        ("tool.stdout", "tool.output"),
        ("tool_exit_code", "tool.exit_code"),
        ("tool.exitcode", "tool.exit_code"),
        ("tool.last-line", "tool.last_line"),
        ("human.gate.answer", "human.gate.label"),
        ("human.gate.txet", "human.gate.text"),
        ("human.gate.form.city", ""),
        ("tool.last_line", ""),
        ("toolbox", ""),
    ],
)
def test_a_key_that_looks_like_the_engines_and_that_nothing_sets_names_the_right_one(written, meant):
    texts = [f'work -> other [condition="context.{written}=x"]'] if "-" not in written else []
    texts.append(f'work [prompt="${{{written}}}"]')
    for text in texts:
        found = lint(
            f"{ENDS} {WORK} other [prompt=o] t [shape=parallelogram, tool_command=make] {text} start -> t -> work -> exit other -> exit"
        )
        said = [each.message for each in found if each.rule in {"condition_key", "variable_unknown"}]
        assert [f'did you mean "{meant}"' in each for each in said] == [True] * bool(meant), text


@pytest.mark.parametrize(
    ("command", "is_hidden"),
    [
        ("make test | tail -5", True),
        ("make test |& tail -5", True),
        ("pytest || true", True),
        ("pytest ; :", True),
        ("make test &", True),
        ("make test; echo done", True),
        ("make test || echo failed", True),
        ("set -e; make test; echo done", False),
        ("if grep -q ERROR file; then exit 1; fi; echo none", False),
        ("make test && echo done", False),
        ("make test; echo done > log", False),
        ("make test", False),
        ("make lint || make test", False),
        ("make lint && make test", False),
        ("grep -q 'a|b' file", False),
        ("make test >| log", False),
        ("set -o pipefail; make test | tail", False),
        ('make test | tail", tool_shell="bash', False),
        ("make test 2>&1", False),
    ],
)
def test_a_goal_gate_whose_command_hides_the_failure_of_its_check_is_a_finding(command, is_hidden):
    tool = f'test [shape=parallelogram, tool_command="{command}"%s] start -> test -> exit'
    rules = [[each.rule for each in lint(f"{ENDS} {tool % more}")] for more in (", goal_gate=true", "")]
    assert ["pipe_hides_failure" in found for found in rules] == [is_hidden, False]
