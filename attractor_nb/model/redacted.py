"""The values of a run without secrets: events, outcomes, questions, answers, graphs.

Each gives back the very value it was given when there is nothing to take out, which is nearly always.
What *is* secret the redaction package knows; here is only where in a value texts are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import structs

from attractor_nb.model.calls.response import Response
from attractor_nb.model.events import Event, StageEvent
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.redaction import holds_secret, may_hold, redacted, redacted_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.form import Form
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.question import Answer, Option, Question
    from attractor_nb.model.vocabulary.attribute_kinds import AttrValue

_CLEAN = (int, float, Usage, Event)
"""What holds no text of strangers; an event in an event went through its own stream."""
_OURS = frozenset({"run_id", "graph_hash", "saved_node", "branch", "carried"})
_OURS_OF_STAGES = frozenset({"name", "next_node", "handler_type", "fidelity", "route", "context", "logs"})
"""Ids, which lint keeps clean (``secret_in_id``), words of ours, and what the context took in redacted."""
_NO_TEXT = frozenset(
    {"Count", "Count | None", "int", "float", "float | None", "bool", "Usage | None", "tuple[Count, ...]"}
)
"""Types of fields, as events spell them, that hold no text."""


def redact_event(event: Event) -> None:
    """Take the secrets out of an event, for all who hold it: what is logged is what is seen."""
    for name in _text_fields(type(event)):
        value = getattr(event, name)
        if not value or isinstance(value, _CLEAN):
            continue
        if type(value) is str:
            if may_hold(value):
                setattr(event, name, redacted(value))
        elif type(value) is Outcome:
            setattr(event, name, redacted_outcome(value))
        else:
            setattr(event, name, redacted_value(value))


@cache
def _text_fields(kind: type[Event]) -> tuple[str, ...]:
    """The fields of an event that can hold text of strangers."""
    ours = _OURS | _OURS_OF_STAGES if issubclass(kind, StageEvent) else _OURS
    spelled = {name: spelled for base in reversed(kind.__mro__) for name, spelled in _annotations(base).items()}
    return tuple(name for name in kind.__struct_fields__ if name not in ours and spelled.get(name) not in _NO_TEXT)


def _annotations(kind: type) -> dict[str, Any]:
    """The types of the fields that a class adds, as it spells them."""
    return vars(kind).get("__annotations__", {})


def redacted_outcome(outcome: Outcome) -> Outcome:
    """An outcome without secrets."""
    if _is_clean(outcome):
        return outcome
    return structs.replace(
        outcome,
        preferred_label=redacted_value(outcome.preferred_label),
        suggested_next_ids=redacted_value(outcome.suggested_next_ids),
        context_updates=redacted_value(outcome.context_updates),
        notes=redacted_value(outcome.notes),
        failure_reason=redacted_value(outcome.failure_reason),
        complaint=redacted_value(outcome.complaint),
    )


_SCALARS = frozenset({int, float, bool, type(None)})


def _is_clean(outcome: Outcome) -> bool:
    """Whether texts, ids, keys and flat values surely hold no secret, in one look; False says nothing."""
    updates = outcome.context_updates
    looked_at = [outcome.notes, outcome.failure_reason, outcome.preferred_label, outcome.complaint]
    looked_at += outcome.suggested_next_ids
    for key, value in updates.items():
        looked_at.append(key)
        if type(value) is str:
            looked_at.append(value)
        elif type(value) not in _SCALARS:
            return False
    try:
        return not may_hold("\n".join(looked_at))
    except TypeError:  # one of them is no text
        return False


def redacted_response(text: str) -> str:
    """A response without secrets, and with what it carries beside its text."""
    clean = redacted(text)
    if isinstance(text, Response) and clean is not text:
        note = redacted(text.note)
        return Response(clean, usage=text.usage, is_truncated=text.is_truncated, note=note)
    return clean


def redacted_question(question: Question) -> Question:
    """A question without secrets; the keys of its choices stay."""
    return structs.replace(
        question,
        text=redacted(question.text),
        options=tuple(_redacted_option(option) for option in question.options),
        default=None if question.default is None else redacted_answer(question.default),
        metadata=redacted_value(question.metadata),
        form=None if question.form is None else _redacted_form(question.form),
    )


def _redacted_form(form: Form) -> Form:
    """A form without secrets in what is read of it; names and choices stay, for they are answered by."""
    fields = (
        structs.replace(
            entry,
            title=redacted(entry.title),
            words=redacted(entry.words),
            limits=redacted(entry.limits),
            default=redacted_value(entry.default),
        )
        for entry in form.fields
    )
    return replace(form, fields=tuple(fields))


def redacted_answer(answer: Answer) -> Answer:
    """An answer without secrets."""
    option = answer.selected_option
    return structs.replace(
        answer,
        value=redacted(answer.value),
        selected_option=None if option is None else _redacted_option(option),
        selected_options=tuple(_redacted_option(chosen) for chosen in answer.selected_options),
        text=redacted(answer.text),
        answered_by=redacted(answer.answered_by),
        form=redacted_value(answer.form),
    )


def _redacted_option(option: Option) -> Option:
    return structs.replace(option, label=redacted(option.label))


def redacted_graph(graph: Graph) -> Graph:
    """A graph to be shown: without secrets in names, attributes and ids. It is not for running."""
    if not holds_secret("\n".join(_texts(graph))):
        return graph
    names = _shown_ids(graph)
    nodes = {
        names.get(node.id, node.id): structs.replace(
            node,
            id=names.get(node.id, node.id),
            attrs=_clean(node.attrs),
            derived_classes=redacted_value(node.derived_classes),
        )
        for node in graph.nodes.values()
    }
    edges = tuple(
        structs.replace(
            edge,
            source=names.get(edge.source, edge.source),
            target=names.get(edge.target, edge.target),
            attrs=_clean(edge.attrs),
        )
        for edge in graph.edges
    )
    groups = tuple(
        replace(
            group,
            id=redacted(group.id),
            label=redacted(group.label),
            derived_class=redacted(group.derived_class),
            members=tuple(names.get(member, member) for member in group.members),
            attrs=_clean(group.attrs),
        )
        for group in graph.subgraphs
    )
    return replace(
        graph, name=redacted(graph.name), attrs=_clean(graph.attrs), nodes=nodes, edges=edges, subgraphs=groups
    )


def _texts(graph: Graph) -> Iterator[str]:
    """All texts of a graph."""
    yield graph.name
    for group in graph.subgraphs:
        yield from (group.id, group.label, group.derived_class)
    for edge in graph.edges:
        yield from (edge.source, edge.target)
    for thing in (graph, *graph.nodes.values(), *graph.edges, *graph.subgraphs):
        for value in thing.attrs.values():
            if isinstance(value, str):
                yield value
    yield from graph.nodes


def _shown_ids(graph: Graph) -> dict[str, str]:
    """What stands for ids that hold a secret: names that are ids themselves."""
    ids = dict.fromkeys([*graph.nodes, *(end for edge in graph.edges for end in (edge.source, edge.target))])
    hidden = [node_id for node_id in ids if holds_secret(node_id)]
    return {node_id: f"redacted_{number}" for number, node_id in enumerate(hidden, 1)}


def _clean(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue]:
    clean: Any = redacted_value(attrs)
    return clean
