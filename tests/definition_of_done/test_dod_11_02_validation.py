"""Section 11.2 of the specification, row by row."""

import pytest

from attractor_nb import Pipeline, Severity, ValidationError, parse_dot, validate, validate_or_raise

ENDS = "start [shape=Mdiamond] done [shape=Msquare]"


def errors_of(body):
    return {found.rule for found in validate(parse_dot(f"digraph g {{ {body} }}")) if found.is_error}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param("a [shape=Msquare] b b -> a", "start_node", id="no_start"),
        pytest.param(
            "s [shape=Mdiamond] t [shape=Mdiamond] e [shape=Msquare] s -> e t -> e", "start_node", id="two_starts"
        ),
        pytest.param("s [shape=Mdiamond] b s -> b", "terminal_node", id="no_exit"),
        pytest.param(
            "s [shape=Mdiamond] e [shape=Msquare] f [shape=Msquare] s -> e s -> f", "terminal_node", id="two_exits"
        ),
        pytest.param(f"{ENDS} a start -> a -> done a -> start", "start_no_incoming", id="into_the_start"),
        pytest.param(f"{ENDS} a start -> a -> done -> a", "exit_no_outgoing", id="out_of_the_exit"),
        pytest.param(f"{ENDS} a start -> done", "reachability", id="orphan"),
        pytest.param(f"{ENDS} start -> nowhere", "edge_target_exists", id="unknown_target"),
        pytest.param(f'{ENDS} start -> done [condition="outcome ~ success"]', "condition_syntax", id="condition"),
        pytest.param(f'{ENDS} model_stylesheet="* llm_model" start -> done', "stylesheet_syntax", id="stylesheet"),
    ],
)
def test_11_2_what_keeps_a_pipeline_from_running_is_an_error(body, rule):
    assert rule in errors_of(body)


def test_11_2_a_whole_pipeline_has_no_errors():
    assert errors_of(f'{ENDS} a [prompt="x"] start -> a -> done') == set()


def test_11_2_a_model_stage_without_a_prompt_is_a_warning():
    found = [
        each
        for each in validate(parse_dot(f"digraph g {{ {ENDS} a start -> a -> done }}"))
        if each.rule == "prompt_on_llm_nodes"
    ]
    assert [(each.severity, each.node_id) for each in found] == [(Severity.WARNING, "a")]


def test_11_2_validate_or_raise_throws_on_errors():
    with pytest.raises(ValidationError, match="unreachable"):
        validate_or_raise(parse_dot(f"digraph g {{ {ENDS} a start -> done }}"))


def test_11_2_a_pipeline_with_errors_is_never_run(tmp_path):
    pipeline = Pipeline(f"digraph g {{ {ENDS} a start -> done }}")
    with pytest.raises(ValidationError):
        pipeline.run(wait=True)
    assert not (tmp_path / ".attractor").exists()


def test_11_2_a_finding_has_rule_severity_place_and_message():
    (found,) = (
        each for each in validate(parse_dot(f"digraph g {{ {ENDS} a start -> done }}")) if each.rule == "reachability"
    )
    assert (found.rule, found.severity, found.node_id) == ("reachability", "error", "a")
    assert "unreachable" in found.message
    edge = next(
        each
        for each in validate(parse_dot(f"digraph g {{ {ENDS} start -> nowhere }}"))
        if each.rule == "edge_target_exists"
    )
    assert edge.edge == ("start", "nowhere")
