"""Rules about which edge a run takes: conditions, ties, gates and cycles (spec 3.3)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.condition import Condition, Operator, evaluate_condition
from attractor_nb.lint.survey import BUILT_IN_TYPES, Finding, Survey, replacing_value, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.shapes import CONDITIONAL_TYPE, HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import accelerator_key, label_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.model.graph import Edge

_FAN_OUT: Final = "parallel"
_CHOOSERS: Final = frozenset({HUMAN_TYPE, _FAN_OUT, "stack.manager_loop"})
"""Built-in types that choose their way themselves, or take every edge."""
_DECIDED: Final = BUILT_IN_TYPES - _CHOOSERS
"""Types for which the engine decides by conditions, weights and the alphabet."""

MAX_ROWS: Final = 2_000
"""Tables beyond this are not looked at: such conditions were not written to be complete."""

_OF_A_FAILURE: Final = frozenset({"outcome=fail", "outcome!=success"})
_OTHER: Final = "\N{SUBSTITUTE}other"
_ROUTED: Final = (StageStatus.SUCCESS, StageStatus.FAIL)
"""Statuses that edges see; RETRY has become another one by then, SKIPPED routes like SUCCESS, and so does a
partial success where no condition names it (ruling 35)."""


@rule(Severity.INFO)
def all_conditions_may_fail(survey: Survey) -> Iterator[Finding]:
    """Every edge of a node has a condition, and all of them may be false.

    If no condition holds, the run fails with "no matching edge", even if all stages succeeded (ruling 14).

    Bad:

        digraph { start [shape=Mdiamond] test [prompt="Test"] fix [prompt="Fix"] exit [shape=Msquare]
            start -> test  test -> exit [condition="context.score=high"]
            test -> fix [condition="context.score=low"]  fix -> test }

    Good:

        digraph { start [shape=Mdiamond] test [prompt="Test"] fix [prompt="Fix"] exit [shape=Msquare]
            start -> test  test -> exit [condition="context.score=high"]
            test -> fix [condition="context.score!=high"]  fix -> test }
    """
    gaps: dict[tuple[str, ...], str] = {}
    for node_id in dict.fromkeys(edge.source for edge, _ in survey.conditional_edges):
        edges = survey.graph.outgoing_edges(node_id)
        if any("condition" not in edge.attrs for edge in edges):
            continue
        texts = tuple(edge.condition for edge in edges)
        conditions = [survey.conditions.get(text) for text in texts]
        read = [each for each in conditions if each is not None]
        if len(read) < len(conditions) or any(edge.is_default for edge in edges):
            continue
        if texts not in gaps:
            gaps[texts] = find_gap(read)
        if gap := gaps[texts]:
            node = survey.graph.nodes.get(node_id)
            message = f'no edge of "{node_id}" matches when {gap}'
            fix = Fix("add an edge without a condition, or with default=true")
            yield Finding(message, node.span if node else edges[0].span, node_id, fix=fix)


@rule(Severity.INFO)
def ambiguous_unconditional(survey: Survey) -> Iterator[Finding]:
    """Nothing tells the unconditional edges of a node apart.

    With equal weights the alphabet decides, unless the stage names a label or a target (spec 3.3).

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] build [prompt="Build"] exit [shape=Msquare]
            start -> plan  plan -> build  plan -> exit  build -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] build [prompt="Build"] exit [shape=Msquare]
            start -> plan  plan -> build [weight=1]  plan -> exit  build -> exit }
    """
    for node_id in survey.forks:
        if survey.types[node_id] not in _DECIDED:
            continue
        free = _unconditional(survey.graph.outgoing_edges(node_id))
        if len(free) < 2 or any(edge.is_default for edge in free):
            continue
        heaviest = max(edge.weight for edge in free)
        tied = sorted({edge.target for edge in free if edge.weight == heaviest})
        if len(tied) > 1:
            others = ", ".join(tied[1:])
            message = f'"{node_id}" goes to "{tied[0]}" by alphabetical order only; also possible: {others}'
            fix = Fix("give one edge a weight, a condition or default=true")
            yield Finding(message, survey.graph.nodes[node_id].span, node_id, fix=fix)


@rule(Severity.WARNING)
def gate_mixes_conditions(survey: Survey) -> Iterator[Finding]:
    """An edge of a human gate has a condition.

    An edge whose condition holds is taken before the person's choice is considered (spec 3.3, step 1), and an edge
    whose condition does not hold is offered as a choice that cannot be taken.

    Bad:

        digraph { start [shape=Mdiamond] ok [shape=hexagon, label="OK?"] exit [shape=Msquare]
            start -> ok  ok -> exit [label="Yes"]  ok -> start2 [label="No", condition="context.n=1"]
            start2 [prompt="Again"]  start2 -> ok }

    Good:

        digraph { start [shape=Mdiamond] ok [shape=hexagon, label="OK?"] exit [shape=Msquare]
            start -> ok  ok -> exit [label="Yes"]  ok -> start2 [label="No"]
            start2 [prompt="Again"]  start2 -> ok }
    """
    for edge, text in survey.conditional_edges:
        if survey.types.get(edge.source) == HUMAN_TYPE:
            message = f'the condition `{text.strip()}` overrides the choice made at the gate "{edge.source}"'
            fix = Fix("remove the condition, or decide in a diamond after the gate")
            span = value_span(edge, "condition")
            yield Finding(message, span, edge.source, (edge.source, edge.target), fix)


@rule(Severity.WARNING)
def accelerator_clash(survey: Survey) -> Iterator[Finding]:
    """Two choices of a human gate have the same key or text.

    The second of two choices with the same key gets another key, which its label does not show (spec 4.6, ruling 23).
    Texts that differ only in case can be chosen only by their key or by the exact text.

    Bad:

        digraph { start [shape=Mdiamond] ok [shape=hexagon] fix [prompt="Fix"] exit [shape=Msquare]
            start -> ok  ok -> exit [label="Approve"]  ok -> fix [label="Amend"]  fix -> ok }

    Good:

        digraph { start [shape=Mdiamond] ok [shape=hexagon] fix [prompt="Fix"] exit [shape=Msquare]
            start -> ok  ok -> exit [label="[A] Approve"]  ok -> fix [label="[M] Amend"]  fix -> ok }
    """
    for node_id in survey.of_type(HUMAN_TYPE):
        edges = survey.graph.outgoing_edges(node_id)
        keys = {accelerator_key(edge.label or edge.target) for edge in edges}
        first: dict[str, Edge] = {}
        texts: dict[str, Edge] = {}
        for edge in edges:
            label = edge.label or edge.target
            key = accelerator_key(label)
            twin = texts.setdefault(label_text(label).casefold(), edge)
            other = twin.label or twin.target
            if accelerator_key(other) != key and label_text(other) != label_text(label):
                message = f'the choices "{other}" and "{label}" of "{node_id}" differ in case alone'
                fix = Fix("give one of them another text")
                yield Finding(message, value_span(edge, "label"), node_id, (edge.source, edge.target), fix)
            if first.setdefault(key, edge) is not edge:
                other = first[key].label or first[key].target
                message = f'the choices "{other}" and "{label}" of "{node_id}" both have the key {key}'
                fix = _other_key(edge, label, keys)
                ends = (edge.source, edge.target)
                yield Finding(message, value_span(edge, "label"), node_id, ends, fix)


def _other_key(edge: Edge, label: str, taken: set[str]) -> Fix:
    """The fix that gives a choice its own key, from its own letters if it has one to spare."""
    text = label_text(label)
    letters = (char.upper() for char in f"{text}ABCDEFGHIJKLMNOPQRSTUVWXYZ" if char.isalnum())
    key = next((letter for letter in letters if letter not in taken), "")
    if not key or not edge.label:
        return Fix("give one of them a label with another key, such as `[X] …`")
    taken.add(key)
    return replacing_value(edge, "label", f"[{key}] {text}", f'write "[{key}] {text}"')


@rule(Severity.WARNING)
def unbounded_cycle(survey: Survey) -> Iterator[Finding]:
    """A cycle has no exit that a run can take.

    A run can leave a cycle by a condition, by a choice at a human gate in it, by a label that a stage may prefer, or by
    the winning edge among those without a condition. Otherwise it loops until `max_steps` fails the run (ruling 18).
    Not reported where each way around the cycle has an edge with `max_taken`.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] exit [shape=Msquare]
            start -> work -> check  check -> work [weight=1]  check -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] exit [shape=Msquare]
            start -> work -> check  check -> work [condition="outcome=fail"]  check -> exit }
    """
    for cycle in survey.cycles:
        if survey.is_bounded(cycle):
            continue
        members = set(cycle)
        leaving = [
            edge
            for node_id in cycle
            for edge in survey.graph.outgoing_edges(node_id)
            if edge.target not in members and edge.target in survey.graph.nodes
        ]
        if any(can_be_taken(survey, edge) for edge in leaving):
            continue
        if leaving and any(survey.types[node_id] == HUMAN_TYPE for node_id in cycle):
            continue
        shown = " -> ".join([*cycle[:6], *(["…"] if len(cycle) > 6 else []), cycle[0]])
        what = "has no edge out of it that a run would choose" if leaving else "has no edge out of it"
        node = survey.graph.nodes[cycle[0]]
        fix = Fix("add an edge out of it with a condition, or a human gate")
        yield Finding(f"the cycle {shown} {what}", node.span, node.id, fix=fix)


def can_be_taken(survey: Survey, edge: Edge) -> bool:
    """True if something in a run can choose this edge."""
    if edge.condition.strip() or edge.label or edge.is_default:
        return True
    if survey.types[edge.source] not in _DECIDED:
        return True
    rivals = _unconditional(survey.graph.outgoing_edges(edge.source))
    ranked = sorted(rivals, key=lambda each: (not each.is_default, -each.weight, each.target))
    before = ranked[: next(place for place, each in enumerate(ranked) if each is edge)]
    return all(each.max_taken is not None for each in before)


def _unconditional(edges: tuple[Edge, ...]) -> list[Edge]:
    return [edge for edge in edges if "condition" not in edge.attrs or not edge.condition.strip()]


@rule(Severity.WARNING)
def edge_bound(survey: Survey) -> Iterator[Finding]:
    """A bound on an edge has no effect, or leaves a run without a next edge.

    An edge that was taken `max_taken` times in a run is not eligible any more. If then no other edge matches, the run
    fails, as wherever no edge matches (ruling 14), unless a retry target leads on. An edge without a condition out of a
    fan-out begins a branch in every pass, so its bound has no effect.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] exit [shape=Msquare]
            start -> work -> check  check -> exit [condition="outcome=success"]
            check -> work [condition="outcome=fail", max_taken=2] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] exit [shape=Msquare]
            person [shape=hexagon, label="Two attempts failed"]
            start -> work -> check  check -> exit [condition="outcome=success"]
            check -> work [condition="outcome=fail", max_taken=2]  check -> person [default=true]
            person -> exit [label="[A] Accept"]  person -> work [label="[R] Rework"] }
    """
    for edge in survey.graph.edges:
        if edge.max_taken is None or edge.max_taken < 1 or edge.source not in survey.types:
            continue
        is_plain = not edge.condition.strip()
        if is_plain and survey.types[edge.source] == _FAN_OUT:
            message = (
                f"max_taken of {edge.source} -> {edge.target} has no effect: the edge begins a branch in every pass"
            )
            fix = Fix("remove it, or bound the edge that leads back to the fan-out")
        elif what := _missing_fallback(survey, edge):
            often = "once" if edge.max_taken == 1 else f"{edge.max_taken} times"
            message = f"when {edge.source} -> {edge.target} was taken {often}, {what}"
            fix = Fix(f"add an edge for what follows then: {edge.source} -> … [default=true]")
        else:
            continue
        yield Finding(message, value_span(edge, "max_taken"), edge.source, (edge.source, edge.target), fix)


def _missing_fallback(survey: Survey, edge: Edge) -> str:
    """The effect of a bound that leaves a run without a next edge when it is reached, or empty."""
    node_id = edge.source
    left = [each for each in survey.graph.outgoing_edges(node_id) if each.max_taken is None]
    if survey.jumps.get(node_id) or survey.graph_jumps or any(each.is_default for each in left):
        return ""
    if not left:
        return f"no edge of {node_id} is left: the run fails there"
    ours = survey.conditions.get(edge.condition)
    wanted = (
        {} if ours is None else {each.key: each.literal for each in ours.clauses if each.operator is Operator.EQUALS}
    )
    plain = _unconditional(tuple(left))
    if not plain:
        read = [found for each in left if (found := survey.conditions.get(each.condition)) is not None]
        possible = [found for found in read if not _excludes(found, wanted)]
        is_open = len(read) == len(left) and (find_gap(read) if ours is None else not possible)
        return f"the other edges of {node_id} have conditions: where none holds, the run fails there" if is_open else ""
    asked = [] if ours is None else [str(clause) for clause in ours.clauses]
    is_failure = survey.types[node_id] != CONDITIONAL_TYPE and not _OF_A_FAILURE.isdisjoint(asked)
    is_caught = survey.graph.get("on_fail", str, "") == "continue" or any(
        survey.types.get(each.target) == CONDITIONAL_TYPE or each.condition.strip() for each in left
    )
    if is_failure and not is_caught:
        return f"no edge of {node_id} is left for a failure: the run fails there"
    return ""


def _excludes(condition: Condition, wanted: Mapping[str, str]) -> bool:
    """True if a condition asks for another value than one that is given."""
    return any(
        clause.operator is Operator.EQUALS and wanted.get(clause.key, clause.literal) != clause.literal
        for clause in condition.clauses
    )


RULES: Final = (
    all_conditions_may_fail,
    ambiguous_unconditional,
    gate_mixes_conditions,
    accelerator_clash,
    unbounded_cycle,
    edge_bound,
)


def find_gap(conditions: Sequence[Condition]) -> str:
    """A case in which none of the conditions holds, in words; empty when there is none.

    >>> from attractor_nb.languages.condition import parse_condition
    >>> find_gap([parse_condition("outcome=success"), parse_condition("outcome=partial_success")])
    'outcome=fail'
    >>> find_gap([parse_condition("outcome=success"), parse_condition("outcome=fail")])
    ''
    """
    values = _distinguished(conditions)
    size = 1
    for choices in values.values():
        size *= len(choices)
    if size > MAX_ROWS:
        return ""
    for row in product(*values.values()):
        case = dict(zip(values, row, strict=True))
        status, label = case.get("outcome", ""), case.get("preferred_label", "")
        if not any(evaluate_condition(each, status, label, case.get) for each in conditions):
            return " and ".join(_word(key, value, values[key]) for key, value in case.items())
    return ""


def _distinguished(conditions: Sequence[Condition]) -> dict[str, list[str]]:
    """By key, the values that make a difference to any clause, and one that stands for all others."""
    values: dict[str, list[str]] = {}
    for condition in conditions:
        for clause in condition.clauses:
            key = clause.key.removeprefix("context.")
            choices = values.setdefault(key, list(_ROUTED) if key == "outcome" else [_OTHER])
            literal = "" if clause.operator is Operator.IS_TRUE else clause.literal
            if literal not in choices and (key != "outcome" or literal):
                choices.append(literal)
    return values


def _word(key: str, value: str, choices: Sequence[str]) -> str:
    if value != _OTHER:
        return f"{key}={value}" if value else f"{key} is empty"
    named = [choice for choice in choices if choice not in (_OTHER, "")]
    return f"{key} is not one of {', '.join(named)}" if named else f"{key} is set"
