"""The form of one thing of a graph: which attributes its handler has, and what they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.vocabulary.attributes import AttrType, Scope, attributes_of, literal_text
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from attractor_nb.redaction import redacted
from attractor_nb.studio.edit.draft import find_place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.vocabulary.attributed import Attributed
    from attractor_nb.model.vocabulary.attributes import AttributeSpec

_LOOKS: Final = ("label", "shape", "type")
_STAGE: Final = ("max_retries", "retry_policy", "goal_gate", "retry_target", "timeout")
_MODEL: Final = (
    "prompt",
    "llm_model",
    "llm_provider",
    "reasoning_effort",
    "fidelity",
    "carry",
    "allowed_tools",
)
_OF_TYPE: Final = {
    "start": _LOOKS,
    "exit": _LOOKS,
    "conditional": _LOOKS,
    "codergen": (*_LOOKS, *_MODEL, *_STAGE),
    "tool": (*_LOOKS, "tool_command", "idempotent", *_STAGE),
    "wait.human": (*_LOOKS, "human.prompt", "human.type", "human.timeout", "human.default_choice"),
    "parallel": (*_LOOKS, "join_policy", "join_k", "join_quorum", "error_policy", "max_parallel", *_STAGE),
    "parallel.fan_in": (*_LOOKS, "merge", *_MODEL, *_STAGE),
    "stack.manager_loop": (
        *_LOOKS,
        "stack.child_dotfile",
        "stack.child_pipeline",
        "manager.poll_interval",
        "manager.max_cycles",
        "manager.stop_condition",
        "manager.guard",
        "manager.escalate",
        "manager.instructions",
        *_STAGE,
    ),
    "pipeline": (
        *_LOOKS,
        "pipeline.dotfile",
        "pipeline.name",
        "pipeline.inputs",
        "pipeline.outputs",
        *_STAGE,
    ),
}
"""The attributes that the form of each handler type begins with; the others wait in a list below it."""
_OF_GRAPH: Final = (
    "goal",
    "inputs",
    "label",
    "model_stylesheet",
    "default_max_retries",
    "max_steps",
    "rankdir",
)
_OF_EDGE: Final = ("label", "condition", "weight", "default", "loop_restart")
_LONG: Final = frozenset(
    {
        "prompt",
        "human.prompt",
        "tool_command",
        "model_stylesheet",
        "manager.instructions",
        "condition",
        "goal",
    }
)


def form_of(graph: Graph, target: object) -> dict[str, Any]:
    """The form of a thing as plain data: ``title``, ``kind``, ``node``, ``edge``, ``fields``, ``more``.

    A field has ``name``, ``type``, ``value`` (what the thing itself says, or None), ``inherited``,
    ``default``, ``choices``, ``meaning``, ``is_long``, ``is_prose``, and ``is_locked``: it holds a secret.

    Args:
        graph: The graph as written.
        target: What is meant, as of ``Editor.set``.

    Raises:
        OptionError: There is no such thing.
    """
    place = find_place(graph, target)
    thing = place.thing(graph)
    if place.scope is Scope.NODE:
        node, handler_type = graph.nodes[place.node_id], graph.handler_types[place.node_id]
        title, kind, own = node.label, f"{node.id}, {handler_type}", node.explicit
        first = _OF_TYPE.get(handler_type, tuple(row.name for row in attributes_of(Scope.NODE)))
    elif place.scope is Scope.EDGE:
        edge = graph.edges[place.position]
        title, kind, first = f"{edge.source} → {edge.target}", "edge", _OF_EDGE
        own = frozenset(edge.attrs)
    else:
        title, kind, first, own = graph.label or "Graph", "graph", _OF_GRAPH, frozenset(graph.attrs)
    rows = {row.name: row for row in attributes_of(place.scope) if not row.alias_of}
    names = dict.fromkeys((*first, *sorted(thing.attrs)))
    return {
        "title": redacted(title),
        "kind": redacted(kind),
        "node": place.node_id,
        "edge": place.position if place.scope is Scope.EDGE else None,
        "fields": [_field(thing, name, rows.get(name), own, graph) for name in names],
        "more": [_field(thing, name, row, own, graph) for name, row in rows.items() if name not in names],
    }


def _field(
    thing: Attributed, name: str, row: AttributeSpec | None, own: Iterable[str], graph: Graph
) -> dict[str, Any]:
    written = literal_text(thing.attrs[name]) if name in thing.attrs else None
    shown = None if written is None else redacted(written)
    kind = row.type if row else AttrType.STRING
    choices: tuple[str, ...] = row.choices if row else ()
    if kind is AttrType.NODE_ID:
        choices = tuple(graph.nodes)
    elif name == "shape":
        choices = tuple(SHAPE_TO_TYPE)
    is_own = name in own
    return {
        "name": redacted(name),
        "type": kind.value,
        "value": shown if is_own else None,
        "inherited": None if is_own else shown,
        "default": None if row is None or row.default is None else literal_text(row.default),
        "choices": list(choices),
        "meaning": row.meaning if row else "Not known here; kept for a custom handler.",
        "is_long": name in _LONG or "\n" in (written or ""),
        "is_prose": name in {"label", "prompt", "human.prompt", "goal", "manager.instructions"},
        "is_locked": shown != written,
    }
