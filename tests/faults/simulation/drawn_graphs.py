"""Random graphs, kept in a form of which an oracle can read the rules without our parser."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LABELS = ("go", "back", "other")
KEYS = ("a", "b")
VALUES = ("0", "1", "2")
FINAL_BOUNDS = {"max_steps": 40, "max_restarts": 2, "max_goal_gate_redirects": 3}
Clause = tuple[str, str, str]
"""Key, ``=`` or ``!=``, value."""
_SHAPES = {"codergen": "box", "tool": "parallelogram", "diamond": "diamond", "gate": "hexagon"}


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge."""

    source: str
    target: str
    clauses: tuple[Clause, ...] = ()
    label: str = ""
    weight: int = 0
    is_default: bool = False
    is_restart: bool = False
    max_taken: int = 0

    def text(self) -> str:
        """As DOT writes it."""
        attrs: dict[str, object] = {}
        if self.clauses:
            attrs["condition"] = '"' + " && ".join("".join(clause) for clause in self.clauses) + '"'
        if self.label:
            attrs["label"] = self.label
        if self.weight:
            attrs["weight"] = self.weight
        if self.is_default:
            attrs["default"] = "true"
        if self.is_restart:
            attrs["loop_restart"] = "true"
        if self.max_taken:
            attrs["max_taken"] = self.max_taken
        return f"{self.source} -> {self.target}{_listed(attrs)}"


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node: ``start``, ``exit``, ``codergen``, ``tool``, ``diamond`` or ``gate``."""

    id: str
    kind: str
    attrs: Mapping[str, object] = field(default_factory=dict[str, object])

    def text(self) -> str:
        """As DOT writes it."""
        shape = {"start": "Mdiamond", "exit": "Msquare", **_SHAPES}[self.kind]
        return f"{self.id}{_listed({'shape': shape, **self.attrs})}"


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """A graph.

    Attributes:
        attrs: Its attributes.
        nodes: Its nodes by id.
        edges: Its edges, in source order.
    """

    attrs: Mapping[str, object]
    nodes: Mapping[str, DrawnNode]
    edges: tuple[DrawnEdge, ...]

    def leaving(self, node_id: str) -> list[DrawnEdge]:
        """The edges of a node."""
        return [edge for edge in self.edges if edge.source == node_id]

    def text(self) -> str:
        """The graph as DOT."""
        lines = [node.text() for node in self.nodes.values()] + [edge.text() for edge in self.edges]
        return "\n    ".join(["digraph Drawn {", f"graph{_listed(self.attrs)}", *lines]) + "\n}\n"


def _listed(attrs: Mapping[str, object]) -> str:
    return " [" + ", ".join(f"{name}={value}" for name, value in attrs.items()) + "]" if attrs else ""


def draw_graph(seed: int) -> DrawnGraph:
    """The graph of a seed: a chain from start to exit with what else chance adds."""
    chance = random.Random(f"graph {seed}")
    names = [f"n{number}" for number in range(1, chance.randint(1, 13) + 1)]
    nodes = {"start": DrawnNode("start", "start")}
    nodes |= {name: _node(chance, name, names) for name in names}
    nodes["done"] = DrawnNode("done", "exit")
    edges = [DrawnEdge("start", names[0])]
    for position, name in enumerate(names):
        following = names[position + 1] if position + 1 < len(names) else "done"
        edges += _leaving(chance, nodes[name], following, [*names, "done"])
    return DrawnGraph(_graph_attrs(chance, names), nodes, tuple(edges))


def _graph_attrs(chance: random.Random, names: list[str]) -> dict[str, object]:
    attrs: dict[str, object] = {"goal": '"simulate"', **FINAL_BOUNDS}
    if chance.random() < 0.2:
        attrs["default_max_retries"] = chance.randint(0, 2)
    if chance.random() < 0.2:
        attrs["retry_target"] = chance.choice(names)
    rare = {"on_fail": "continue", "conditional_outcome": "own", "strict_gates": "true"}
    return attrs | {name: value for name, value in rare.items() if chance.random() < 0.1}


def _node(chance: random.Random, name: str, names: list[str]) -> DrawnNode:
    kind = chance.choices(list(_SHAPES), (50, 15, 18, 17))[0]
    attrs: dict[str, object] = {"label": f'"{name}"'}
    if kind == "diamond":
        return DrawnNode(name, kind, attrs)
    often: list[tuple[str, float, object]] = [
        ("max_retries", 0.3, chance.randint(0, 2)),
        ("allow_partial", 0.15, "true"),
        ("goal_gate", 0.25, "true"),
        ("retry_target", 0.35, chance.choice(names)),
        ("fallback_retry_target", 0.1, chance.choice(names)),
        ("on_interrupted", 0.1, chance.choice(("ask", "rerun"))),
        *_OWN[kind],
    ]
    attrs |= {attr: value for attr, likelihood, value in often if chance.random() < likelihood}
    own = {"codergen": ("prompt", "work on"), "tool": ("tool_command", "run")}
    if kind in own:
        attr, verb = own[kind]
        attrs[attr] = f'"{verb} {name}"'
    return DrawnNode(name, kind, attrs)


_OWN: dict[str, list[tuple[str, float, object]]] = {
    "codergen": [("timeout", 0.2, '"60s"')],
    "tool": [("timeout", 0.2, '"60s"'), ("idempotent", 0.3, "true")],
    "gate": [("human.timeout", 0.4, '"3600s"'), ("human.default_choice", 0.4, "yes")],
}
"""Attributes that only nodes of a kind may have: attribute, likelihood, value."""


def _leaving(chance: random.Random, node: DrawnNode, following: str, targets: list[str]) -> list[DrawnEdge]:
    others = [chance.choice(targets) for _ in range(chance.choices((0, 1, 2, 3), (35, 35, 20, 10))[0])]
    if node.kind == "gate":
        labels = ("yes", "no", "later", "never")
        wanted = dict.fromkeys([following, *others])
        return [
            DrawnEdge(node.id, target, label=label, max_taken=_bound(chance, target, following))
            for label, target in zip(labels, wanted, strict=False)
        ]
    edges: list[DrawnEdge] = []
    for position, target in enumerate(dict.fromkeys([following, *others])):
        is_guarded = chance.random() < (0.75 if node.kind == "diamond" else 0.35 if position else 0.15)
        clauses = tuple(_clause(chance) for _ in range(chance.randint(1, 2))) if is_guarded else ()
        edges.append(
            DrawnEdge(
                node.id,
                target,
                clauses,
                label=chance.choice(LABELS) if chance.random() < 0.3 else "",
                weight=chance.choice((0, 0, 0, 1, 5)),
                is_default=not clauses and chance.random() < 0.1,
                is_restart=position > 0 and target != "done" and chance.random() < 0.08,
                max_taken=_bound(chance, target, following),
            )
        )
    return edges


def _bound(chance: random.Random, target: str, following: str) -> int:
    """The number of times that a run may take an edge; 0 for any number."""
    return chance.randint(1, 2) if chance.random() < (0.05 if target == following else 0.25) else 0


def _clause(chance: random.Random) -> Clause:
    key = chance.choice(("outcome", "outcome", "outcome", "preferred_label", "context"))
    operator = chance.choice(("=", "=", "!="))
    if key == "outcome":
        return key, operator, chance.choice(("success", "success", "fail", "partial_success"))
    if key == "preferred_label":
        return key, operator, chance.choice(LABELS)
    return f"context.{chance.choice(KEYS)}", operator, chance.choice(VALUES)
