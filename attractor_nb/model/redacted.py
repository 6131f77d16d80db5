"""The values of a run without secrets: events, outcomes, questions, answers, graphs.

Each gives back the very value it was given when there is nothing to take out, which is nearly always.
What *is* secret the redaction package knows; here is only where in a value texts are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from attractor_nb.errors import ContextValueError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.calls.messages import Attachment
from attractor_nb.model.events import Event, StageEvent
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.redaction import holds_secret, may_hold, redacted, redacted_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.question import Answer, Form, Option, Question
    from attractor_nb.model.vocabulary.attribute_table import AttrValue


_CLEAN = (int, float, Usage, Event)
"""Types without foreign text; an event within an event went through its own stream."""
_OURS = frozenset({"run_id", "graph_hash", "saved_node", "branch", "carried"})
_OURS_OF_STAGES = frozenset({"name", "next_node", "handler_type", "fidelity", "route", "context", "logs"})
"""Ids, which lint keeps clean (``secret_in_id``), our own words, and what the context took in redacted."""
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
    """The fields of an event that can hold foreign text."""
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
    """True if texts, ids, keys and flat values surely hold no secret, in one look; False says nothing."""
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
    """The replacements of ids that hold a secret: names that are ids themselves."""
    ids = dict.fromkeys([*graph.nodes, *(end for edge in graph.edges for end in (edge.source, edge.target))])
    hidden = [node_id for node_id in ids if holds_secret(node_id)]
    return {node_id: f"redacted_{number}" for number, node_id in enumerate(hidden, 1)}


def _clean(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue]:
    clean: Any = redacted_value(attrs)
    return clean


# Values of a context: JSON values, copied so that no other code can change them (spec 5.1; ruling 31).
#
# A value that cannot be kept is refused with its key, the reason and a remedy.

MAX_DEPTH = 64
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1
REFERENCE_TYPE = "artifact_ref"
SCALARS = frozenset({str, int, float, bool, type(None)})


def is_plain(key: object, value: object) -> bool:
    """True if key and value can be kept without a closer look, as nearly all can."""
    if type(key) is not str or not key or not key.isascii():
        return False
    if type(value) is str:
        return len(value) < 1024 and value.isascii() and not may_hold(value)
    return (type(value) is int and -(2**31) < value < 2**31) or value is True or value is False


def is_reference(value: Any) -> bool:
    """True if a recorded value is a reference to an artifact (run-directory 5)."""
    if not isinstance(value, dict):
        return False
    entries = cast("dict[str, Any]", value)
    return entries.get("type") == REFERENCE_TYPE and "artifact_id" in entries


def is_encodable(text: str) -> bool:
    """True if a text has a form in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def copied(value: Any, key: str, depth: int) -> tuple[Any, int]:
    """A deep copy of a JSON value and about its size in bytes."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
    if kind is str:
        return value, _text_size(value, key)
    if value is None or kind is bool:
        return value, 5
    if kind is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise _refused(key, "it is an integer of more than 64 bits", "keep it as text")
        return value, 8
    if kind is float:
        if not math.isfinite(value):
            raise _refused(key, f"{value} has no JSON form", "use null, or a text")
        return value, 16
    if depth >= MAX_DEPTH:
        raise _refused(key, f"it is nested deeper than {MAX_DEPTH} levels", "flatten it; a cycle cannot be kept")
    if kind is dict:
        return _copied_dict(value, key, depth)
    if kind is list:
        return _copied_list(value, key, depth)
    return _copied_other(value, key, depth)


def _copied_other(value: Any, key: str, depth: int) -> tuple[Any, int]:
    if isinstance(value, Attachment):
        return _copied_dict(value.to_plain(), key, depth)
    kind = cast("type[Any]", type(value))
    raise _refused(key, f"{kind.__name__} values do not survive a JSON round trip", _REMEDIES.get(kind, _REMEDY))


_REMEDY = "use text, numbers, booleans, null, lists and dicts with text keys"
_REMEDIES = {
    tuple: "use a list",
    set: "use a list",
    frozenset: "use a list",
    bytes: "decode it, write it to the stage directory, or give an image or a PDF as an Attachment",
}


def _copied_dict(value: dict[Any, Any], key: str, depth: int) -> tuple[dict[str, Any], int]:
    if is_reference(value):
        raise _refused(key, f'dicts with "type": "{REFERENCE_TYPE}" stand for stored artifacts', "rename a key")
    copy: dict[str, Any] = {}
    total = 2
    for name, item in value.items():
        if type(name) is not str:
            raise _refused(key, f"dict keys must be text, not {type(name).__name__}", _REMEDY)
        total += 4 + (len(name) if name.isascii() else _text_size(name, key) - 2)
        if type(item) is str and item.isascii():  # as most are, and a call for each would be most of the time
            copy[name] = item
            total += len(item) + 2
        else:
            copy[name], size = copied(item, key, depth + 1)
            total += size
    return copy, total


def _copied_list(value: list[Any], key: str, depth: int) -> tuple[list[Any], int]:
    copy: list[Any] = []
    total = 2
    for item in value:
        if type(item) is str and item.isascii():
            copy.append(item)
            total += len(item) + 3
        else:
            kept, size = copied(item, key, depth + 1)
            copy.append(kept)
            total += size + 1
    return copy, total


def _text_size(text: str, key: str) -> int:
    if text.isascii():
        return len(text) + 2
    try:
        return len(text.encode()) + 2
    except UnicodeEncodeError:
        raise _refused(key, "the text has a lone surrogate", "decode it with errors='replace'") from None


def _refused(key: str, what: str, hint: str) -> ContextValueError:
    return ContextValueError(f"context key {key!r} cannot keep this value: {what}", hint=hint)
