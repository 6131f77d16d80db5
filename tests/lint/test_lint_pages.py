"""A rule's docstring is its page: its bad snippet triggers the rule, its good one does not."""

import re
import textwrap
from dataclasses import replace

import pytest

from attractor_nb.languages.dot import apply_edits, parse_dot
from attractor_nb.lint import BUILT_IN_RULES, BUILT_IN_TYPES, LintOptions, validate
from attractor_nb.lint.rules import path_rules
from attractor_nb.model.diagnostic import Severity
from attractor_nb.runtime.prepare.text_sources import TextFiles
from attractor_nb.transforms import built_in_transforms

ALL_RULES = (*BUILT_IN_RULES, *path_rules.RULES)
OPTIONS = LintOptions(runnable_types=BUILT_IN_TYPES, functions=frozenset())
SPEC_RULES = {
    "start_node": "error",
    "terminal_node": "error",
    "reachability": "error",
    "edge_target_exists": "error",
    "start_no_incoming": "error",
    "exit_no_outgoing": "error",
    "condition_syntax": "error",
    "stylesheet_syntax": "error",
    "type_known": "warning",
    "fidelity_valid": "warning",
    "retry_target_exists": "warning",
    "goal_gate_has_retry": "warning",
    "prompt_on_llm_nodes": "warning",
}


def lint(text):
    graph, problems = TextFiles(None, "a page").put_in(parse_dot(text))
    for transform in built_in_transforms():
        graph = transform.apply(graph)
    return graph, validate(graph, path_rules.RULES, options=replace(OPTIONS, text_problems=problems))


def snippet(rule, kind):
    found = re.search(rf"^{kind}[^\n]*:\n\n((?:    [^\n]*\n?|\n)+)", rule.page, re.MULTILINE)
    assert found, f"{rule.name} has no {kind.lower()} snippet"
    return textwrap.dedent(found[1])


@pytest.fixture(params=ALL_RULES, ids=lambda rule: rule.name)
def rule(request):
    return request.param


def test_every_rule_has_a_page_with_a_first_sentence_and_a_reason(rule):
    first, _, rest = rule.page.partition("\n\n")
    assert first.endswith(".")
    assert "\n" not in first
    assert len(rest.split("Bad")[0].split()) > 5


def test_the_bad_snippet_triggers_the_rule(rule):
    _, found = lint(snippet(rule, "Bad"))
    assert rule.name in {each.rule for each in found}


def test_the_good_snippet_is_free_of_the_rule_and_of_errors(rule):
    _, found = lint(snippet(rule, "Good"))
    assert rule.name not in {each.rule for each in found}
    assert not [each for each in found if each.is_error]


def test_every_finding_names_its_place_and_a_remedy(rule):
    _, found = lint(snippet(rule, "Bad"))
    (first, *_) = [each for each in found if each.rule == rule.name]
    assert first.fix is not None
    assert first.fix.title
    assert first.span is not None or rule.name in {"start_node", "terminal_node"}
    assert all(edit.span.source.host is None for edit in first.fix.edits)
    assert first.report_lines()


def test_the_edits_of_a_fix_mend_the_source(rule):
    graph, found = lint(snippet(rule, "Bad"))
    mine = [each for each in found if each.rule == rule.name]
    edits = [edit for each in mine for edit in each.fix.edits]
    if edits:
        _, after = lint(apply_edits(graph.source, edits))
        assert rule.name not in {each.rule for each in after}


def test_these_rules_mend_the_source_themselves():
    fixable = set()
    for rule in BUILT_IN_RULES:
        _, found = lint(snippet(rule, "Bad"))
        if any(each.fix.edits for each in found if each.rule == rule.name):
            fixable.add(rule.name)
    assert fixable == {
        "accelerator_clash",
        "attribute_typo",
        "bad_duration",
        "bad_value",
        "carry_known",
        "condition_key",
        "condition_literal",
        "condition_syntax",
        "dead_end",
        "edge_target_exists",
        "fallback_on_known",
        "fidelity_valid",
        "for_each",
        "implicit_node",
        "literal_spelling",
        "literal_unquoted",
        "missing_arrow",
        "outcome_alias",
        "outcome_unknown",
        "retry_target_exists",
        "shape_alias",
        "start_node",
        "status_as_key",
        "style_value",
        "terminal_node",
        "tools_known",
        "unknown_property",
        "unused_class",
        "unused_selector",
        "variable_form",
        "variable_unknown",
        "whole_number",
    }


@pytest.mark.parametrize(("name", "severity"), SPEC_RULES.items(), ids=SPEC_RULES)
def test_7_2_the_rule_exists_with_its_severity(name, severity):
    (rule,) = [each for each in BUILT_IN_RULES if each.name == name]
    assert rule.severity == Severity(severity)


def test_names_of_rules_are_distinct():
    names = [rule.name for rule in ALL_RULES]
    assert len(set(names)) == len(names)


def test_a_built_in_rule_can_be_applied_alone():
    (rule,) = [each for each in BUILT_IN_RULES if each.name == "dead_end"]
    (found,) = rule.apply(parse_dot(snippet(rule, "Bad")))
    assert found.node_id == "notes"
