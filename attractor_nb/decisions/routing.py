"""Which edge a stage leaves by (spec 3.3; rulings 12, 14).

Knows nothing of failures: after a FAIL, ``failures`` decides what of this applies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.languages.condition.evaluate import Lookup, evaluate_condition, explain_condition, value_at_key
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.labels import label_text, normalize_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.planning.plan import PlannedEdge, PlannedNode
    from attractor_nb.model.outcome import Outcome

MAX_VALUE_CHARACTERS = 80
_LIKE_FALSE: Final = frozenset({"false", "no", "0"})


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """What conditions and labels see: for a diamond, the stage before it (ruling 16)."""

    status: StageStatus
    preferred_label: str = ""


_SUCCESS = Seen(StageStatus.SUCCESS)


def seen_of(outcome: Outcome) -> Seen:
    """What the edges of a stage see of its outcome; SKIPPED routes like SUCCESS (ruling 20)."""
    label, status = outcome.preferred_label, outcome.status
    if status.is_skipped or status is _SUCCESS.status:
        return Seen(_SUCCESS.status, label) if label else _SUCCESS
    return Seen(status, label)


JUMPS: Final = frozenset({"retry_target", "fallback_retry_target", "graph_retry_target", "graph_fallback_retry_target"})
"""Routes that follow no edge, after a failure."""
BRANCH_END: Final = "branch_end"
"""The route of a stage whose way on would lead its branch back out: it ends there (ruling 36)."""


class Step(msgspec.Struct, frozen=True):
    """The next step."""

    target: str  #: Id of the next node; empty where a branch ends.
    edge: PlannedEdge | None  #: The edge taken, or None for a jump.
    #: What decided: ``condition``, ``preferred_label``, ``suggested_id``, ``default``, ``only_edge``, ``weight``,
    #: ``lexical``, ``conditional_target``, ``retry_target``, ``fallback_retry_target``, ``graph_retry_target`` or
    #: ``graph_fallback_retry_target``; of a fan-out ``join``; of a branch that ends here ``branch_end``.
    reason: str
    detail: str = ""  #: One line for people.


def select_edge(planned: PlannedNode, seen: Seen, suggested_ids: Sequence[str], lookup: Lookup) -> Step | None:
    """The edge by which a stage is left, or None when none matches (ruling 14).

    A condition that holds wins, then the preferred label, then the suggested ids in their order, then
    ``default=true``, then weight, then the target's id. An edge whose condition is false is never
    taken.
    """
    if planned.only_step is not None and not seen.preferred_label and not suggested_ids:
        return planned.only_step
    return (
        match_condition(planned, seen, lookup)
        or match_hint(planned, seen, suggested_ids)
        or match_default(planned)
        or match_weight(planned.unconditional)
    )


def match_condition(planned: PlannedNode, seen: Seen, lookup: Lookup) -> Step | None:
    """The best edge whose condition holds, or None."""
    status = read_status(planned, seen)
    for edge in planned.conditional:
        assert edge.condition is not None
        if evaluate_condition(edge.condition, status, seen.preferred_label, lookup):
            return Step(edge.target, edge, "condition", edge.edge.condition)
    return None


def read_status(planned: PlannedNode, seen: Seen) -> StageStatus:
    """What ``outcome`` reads in the conditions of a node's edges (ruling 35).

    A partial success is a success there, unless one of them tells the two apart.
    """
    is_success = seen.status is StageStatus.PARTIAL_SUCCESS and not planned.tells_partial
    return StageStatus.SUCCESS if is_success else seen.status


def misread_texts(planned: PlannedNode, lookup: Lookup) -> list[str]:
    """Warnings about keys that stand alone and hold a text that reads like false (ruling 50)."""
    found = ((key, value_at_key(key, lookup)) for key in planned.bare_keys)
    return [
        f"the condition `{key}` holds: its value is the text {value!r}, not false; write `{key}={value.strip()}`"
        for key, value in found
        if isinstance(value, str) and value.strip().lower() in _LIKE_FALSE
    ]


def match_hint(planned: PlannedNode, seen: Seen, suggested_ids: Sequence[str]) -> Step | None:
    """The unconditional edge that the stage asked for by label or target, or None.

    Of several edges with the preferred label one whose target is suggested wins: a person at a gate
    chose that edge. Then one whose label is written exactly so.
    """
    if seen.preferred_label and (edges := planned.by_label.get(normalize_label(seen.preferred_label))):
        exact = [edge for edge in edges if label_text(edge.edge.label) == label_text(seen.preferred_label)]
        edge = next((edge for edge in edges if edge.target in suggested_ids), (exact or edges)[0])
        return Step(edge.target, edge, "preferred_label", seen.preferred_label)
    for target in suggested_ids:
        if found := planned.by_target.get(target):
            return Step(target, found, "suggested_id", target)
    return None


def match_default(planned: PlannedNode) -> Step | None:
    """The edge marked ``default=true``, or None (ruling 12)."""
    if not planned.defaults:
        return None
    edge = planned.defaults[0]
    return Step(edge.target, edge, "default", "default=true")


def match_weight(edges: Sequence[PlannedEdge]) -> Step | None:
    """The first of unconditional edges, best first, or None."""
    if not edges:
        return None
    edge = edges[0]
    if len(edges) == 1:
        return Step(edge.target, edge, "only_edge", "the only unconditional edge")
    if edge.weight > edges[1].weight:
        return Step(edge.target, edge, "weight", f"weight {edge.weight} is the highest of {len(edges)}")
    return Step(edge.target, edge, "lexical", f"first by target id among weight {edge.weight}")


def describe_no_match(planned: PlannedNode, seen: Seen, lookup: Lookup) -> str:
    """Why no edge matched: each condition, and the values that it saw."""
    hint = f', preferred label "{seen.preferred_label}"' if seen.preferred_label else ""
    edges = [_refusal(planned, edge, seen, lookup) for edge in planned.edges]
    return f"no matching edge from {planned.id} (outcome {seen.status.value}{hint}): {'; '.join(edges)}"


def _refusal(planned: PlannedNode, edge: PlannedEdge, seen: Seen, lookup: Lookup) -> str:
    if edge.condition is None:
        return f"{edge.target} is not for a failure"
    verdicts = explain_condition(edge.condition, read_status(planned, seen).value, seen.preferred_label, lookup)
    saw = ", ".join(
        f'`{verdict.clause}` saw "{verdict.value[:MAX_VALUE_CHARACTERS]}"' for verdict in verdicts if not verdict.holds
    )
    return f"{edge.target} when {saw}"
