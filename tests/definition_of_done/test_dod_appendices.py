"""Appendices A and B of the specification: attributes and shapes."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.attributes import attribute

UNSET = (None, "")
ATTRIBUTES = [
    *((Scope.GRAPH, name, "") for name in ("goal", "label", "model_stylesheet", "default_fidelity")),
    *((Scope.GRAPH, name, "") for name in ("retry_target", "fallback_retry_target", "stack.child_dotfile")),
    *((Scope.GRAPH, name, "") for name in ("stack.child_workdir", "tool_hooks.pre", "tool_hooks.post")),
    (Scope.GRAPH, "default_max_retry", 0),
    (Scope.NODE, "shape", "box"),
    *((Scope.NODE, name, "") for name in ("label", "type", "prompt", "retry_target", "fallback_retry_target")),
    *((Scope.NODE, name, "") for name in ("fidelity", "thread_id", "class", "timeout")),
    *((Scope.NODE, name, "") for name in ("llm_model", "llm_provider", "max_retries")),
    (Scope.NODE, "goal_gate", False),
    (Scope.NODE, "reasoning_effort", "high"),
    (Scope.NODE, "auto_status", False),
    (Scope.NODE, "allow_partial", False),
    *((Scope.EDGE, name, "") for name in ("label", "condition", "fidelity", "thread_id")),
    (Scope.EDGE, "weight", 0),
    (Scope.EDGE, "loop_restart", False),
]


@pytest.mark.parametrize(("scope", "name", "default"), ATTRIBUTES, ids=lambda value: str(value) or "unset")
def test_appendix_a_every_attribute_is_in_the_table_with_its_default(scope, name, default):
    row = attribute(scope, name)
    assert row is not None
    assert row.default == default or (default in UNSET and row.default in UNSET)
    assert row.meaning


@pytest.mark.parametrize(
    ("shape", "handler_type"),
    [
        ("Mdiamond", "start"),
        ("Msquare", "exit"),
        ("box", "codergen"),
        ("hexagon", "wait.human"),
        ("diamond", "conditional"),
        ("component", "parallel"),
        ("tripleoctagon", "parallel.fan_in"),
        ("parallelogram", "tool"),
        ("house", "stack.manager_loop"),
    ],
)
def test_appendix_b_every_shape_has_its_handler_type(shape, handler_type):
    assert Pipeline(f"digraph g {{ a [shape={shape}] }}").graph.nodes["a"].handler_type == handler_type
