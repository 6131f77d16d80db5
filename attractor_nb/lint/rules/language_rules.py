"""Rules about the languages within attributes: conditions (spec 10, ruling 11), stylesheets (spec 8)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import ConditionSyntaxError, StylesheetSyntaxError
from attractor_nb.languages.condition import mend_condition, parse_condition
from attractor_nb.languages.dot import apply_edits
from attractor_nb.languages.dot.writer import embed_value
from attractor_nb.languages.stylesheet import Selector, SelectorKind
from attractor_nb.lint.entailed_findings import with_value
from attractor_nb.lint.survey import (
    Finding,
    KnownNames,
    Survey,
    embedded_text,
    outward,
    replacing_value,
    rule,
    value_span,
)
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.graph import Node
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.value_forms import comma_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.model.graph import Edge
    from attractor_nb.source import SourceText, Span

_ATTRIBUTE: Final = "model_stylesheet"


@rule(Severity.ERROR, is_local=True)
def condition_syntax(survey: Survey) -> Iterator[Finding]:
    """A condition is not a list of clauses `key=value` or `key!=value`, joined by `&&`.

    A condition that cannot be parsed cannot be evaluated, so its edge could never be taken (spec 7.2, 10.2).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome == success"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    for edge, text in survey.conditional_edges:
        if survey.conditions[text] is None:
            try:
                parse_condition(embedded_text(edge, "condition", text))
            except ConditionSyntaxError as error:
                yield _syntax_error(edge, error)


def _syntax_error(edge: Edge, error: ConditionSyntaxError) -> Finding:
    mended = mend_condition(edge.condition)
    fix = Fix(error.hint) if mended is None else replacing_value(edge, "condition", mended, f"write `{mended}`")
    message = f"condition `{edge.condition.strip()}`: {error.message}"
    span = error.span if error.span is not None and error.span.source.host else edge.span
    return Finding(message, span, edge=(edge.source, edge.target), fix=fix)


def condition_finding(
    thing: Edge | Node, name: str, message: str, span: Span | None, fix: Fix | None, *, meant: str = ""
) -> Finding:
    """A finding about a part of a condition.

    Args:
        thing: The edge or the manager that has the condition.
        name: Its attribute.
        message: The problem.
        span: The part, in the embedded text.
        fix: The remedy, with edits of the embedded text.
        meant: The whole condition as it was meant, for a misspelling.
    """
    is_node = isinstance(thing, Node)
    scope = Scope.NODE if is_node else Scope.EDGE
    return Finding(
        message,
        span if span is not None and span.source.host else thing.span,
        thing.id if is_node else "",
        edge=None if is_node else (thing.source, thing.target),
        fix=outward(fix),
        meant=with_value(scope, name, thing.attrs[name], meant) if meant else None,
    )


def _condition_notices(survey: Survey, rule_name: str) -> Iterator[Finding]:
    for thing, name, notice in survey.condition_notices:
        if notice.rule == rule_name:
            meant = _meant(notice)
            found = condition_finding(thing, name, notice.message, notice.span, notice.fix, meant=meant)
            yield found._replace(severity=notice.severity)


def _meant(notice: Diagnostic) -> str:
    """The condition that is mended as a notice proposes; empty for one that needs no mending."""
    if notice.fix is None or not notice.fix.edits or notice.severity is Severity.INFO:
        return ""
    return apply_edits(notice.fix.edits[0].span.source, notice.fix.edits)


@rule(Severity.INFO, is_local=True)
def outcome_alias(survey: Survey) -> Iterator[Finding]:
    """A condition uses an alias of a status instead of the specification's name.

    `succeeded`, `failed`, `SUCCESS` and similar words are read as the status that they mean. Other tools compare them
    letter by letter, and never take the edge there (ruling 11).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=succeeded"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _condition_notices(survey, "outcome_alias")


@rule(Severity.WARNING, is_local=True)
def outcome_unknown(survey: Survey) -> Iterator[Finding]:
    """A condition compares `outcome` with an unknown status.

    No stage has any other outcome, so the comparison gives the same answer in every run (spec 10.3).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=sucess"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _condition_notices(survey, "outcome_unknown")


@rule(Severity.WARNING, is_local=True)
def status_as_key(survey: Survey) -> Iterator[Finding]:
    """A condition consists of a status alone, without `outcome=`.

    A word alone is the key of a context value: `success` alone asks whether the context has a value under that name,
    not how the stage ended (spec 10.4, 10.5).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="success"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _condition_notices(survey, "status_as_key")


@rule(Severity.WARNING, is_local=True)
def literal_unquoted(survey: Survey) -> Iterator[Finding]:
    r"""A literal of several words is not quoted.

    It is read as the words up to the next `&&` (spec 10.5); the grammar of conditions does not have it (spec 10.2).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="preferred_label=Ship it"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="preferred_label=\"Ship it\""] }
    """
    return _condition_notices(survey, "literal_unquoted")


@rule(Severity.WARNING, is_local=True)
def literal_spelling(survey: Survey) -> Iterator[Finding]:
    r"""A literal resembles a truth value, a number or null, but matches none.

    `true` and `false` match truth values, `3` matches 3 and 3.0, `""` matches null and a missing value (ruling 50).
    `True`, `03` and `null` match only texts that are spelled so; put such a literal in quotes if that text is meant.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="context.passed=True"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="context.passed=true"] }
    """
    return _condition_notices(survey, "literal_spelling")


CONDITION_RULES: Final = (
    condition_syntax,
    outcome_alias,
    outcome_unknown,
    status_as_key,
    literal_unquoted,
    literal_spelling,
)


@rule(Severity.ERROR, is_local=True)
def stylesheet_syntax(survey: Survey) -> Iterator[Finding]:
    """The model stylesheet cannot be parsed.

    Without it every stage would run with a model that was not chosen (spec 7.2, 8.2).

    Bad:

        digraph { model_stylesheet="* { llm_model }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }

    Good:

        digraph { model_stylesheet="* { llm_model: small }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }
    """
    error = survey.stylesheet
    if isinstance(error, StylesheetSyntaxError):
        message = f"stylesheet: {error.message}{_in_file(error.span)}"
        yield Finding(message, _placed(survey, error.span), fix=Fix(error.hint))


def _placed(survey: Survey, span: Span | None) -> Span | None:
    """A span of the stylesheet if it points into the source, else that of the attribute."""
    return span if span is not None and span.source.host else value_span(survey.graph, _ATTRIBUTE)


def _in_file(span: Span | None) -> str:
    """Place of the stylesheet's error in its file; empty for one in the source."""
    is_in_file = span is not None and span.source.host is None and not span.source.name.startswith("<")
    return f" ({span.place})" if span is not None and is_in_file else ""


def _stylesheet_notices(survey: Survey, name: str) -> Iterator[Finding]:
    if isinstance(survey.stylesheet, StylesheetSyntaxError):
        return
    for notice in survey.stylesheet.notices:
        if notice.rule == name:
            message = f"{notice.message}{_in_file(notice.span)}"
            yield Finding(message, _placed(survey, notice.span), fix=outward(notice.fix))


@rule(Severity.WARNING, is_local=True)
def unknown_property(survey: Survey) -> Iterator[Finding]:
    """A stylesheet sets an unknown property.

    A stylesheet sets model, provider, `reasoning_effort`, `temperature`, `max_tokens` and `base_url`. Any other
    property has no effect (spec 8.4, ruling 10).

    Bad:

        digraph { model_stylesheet="* { llm_modl: small }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }

    Good:

        digraph { model_stylesheet="* { llm_model: small }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }
    """
    return _stylesheet_notices(survey, "unknown_property")


@rule(Severity.WARNING, is_local=True)
def style_value(survey: Survey) -> Iterator[Finding]:
    """A value in the stylesheet has the wrong type or is not one of the choices.

    `reasoning_effort` is `low`, `medium` or `high`, the only values that providers know (spec 8.4). A number that
    cannot be read has no effect.

    Bad:

        digraph { model_stylesheet="* { reasoning_effort: hgh }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }

    Good:

        digraph { model_stylesheet="* { reasoning_effort: high }"
            start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }
    """
    return _stylesheet_notices(survey, "style_value")


@rule(Severity.WARNING)
def unused_selector(survey: Survey) -> Iterator[Finding]:
    """The stylesheet selects an id or shape that no node has.

    A rule for a node that does not exist has no effect.

    Bad:

        digraph { model_stylesheet="#reveiw { llm_model: large }"
            start [shape=Mdiamond] review [prompt="Review"] exit [shape=Msquare]
            start -> review -> exit }

    Good:

        digraph { model_stylesheet="#review { llm_model: large }"
            start [shape=Mdiamond] review [prompt="Review"] exit [shape=Msquare]
            start -> review -> exit }
    """
    shapes = {node.shape for node in survey.graph.nodes.values()} if _selectors(survey) else set[str]()
    for selector in _selectors(survey):
        if selector.kind is SelectorKind.ID and selector.name not in survey.graph.nodes:
            yield _unmatched(survey, selector, survey.nearest_node(selector.name), "no node has that id")
        elif selector.kind is SelectorKind.SHAPE and selector.name not in shapes:
            near = "" if selector.name in SHAPE_TO_TYPE else nearest(selector.name, sorted(shapes))
            yield _unmatched(survey, selector, near, "no node has that shape")


@rule(Severity.WARNING)
def unused_class(survey: Survey) -> Iterator[Finding]:
    """A class is used only in the stylesheet or only on nodes.

    A rule for a class that no node has is without effect, a WARNING. A class on a node that no rule selects, in a graph
    whose stylesheet selects classes, is an INFO (spec 2.12, 8.3).

    Bad:

        digraph { model_stylesheet=".critcal { llm_model: large }"
            start [shape=Mdiamond] review [prompt="Review", class="critical"] exit [shape=Msquare]
            start -> review -> exit }

    Good:

        digraph { model_stylesheet=".critical { llm_model: large }"
            start [shape=Mdiamond] review [prompt="Review", class="critical"] exit [shape=Msquare]
            start -> review -> exit }
    """
    selected = {each.name: each for each in _selectors(survey) if each.kind is SelectorKind.CLASS}
    if not selected:
        return
    carried = {name for node in survey.graph.nodes.values() for name in node.classes}
    known, seen = KnownNames(sorted(carried)), set(selected)
    for selector in _selectors(survey):
        if selector.kind is SelectorKind.CLASS and selector.name not in carried:
            near = known.nearest(selector.name)
            # A slip of the stylesheet is reported here; reporting it at the node too would mend it twice.
            seen.add(near)
            yield _unmatched(survey, selector, near, "no node has that class")
    known = KnownNames(selected)
    for node in survey.having("class"):
        unselected = [name for name in dict.fromkeys(_own_classes(node)) if name not in seen]
        seen.update(unselected)
        spans = _class_spans(node) if unselected else {}
        for name in unselected:
            yield _unselected(node, name, known.nearest(name), spans.get(name))


def _selectors(survey: Survey) -> Iterable[Selector]:
    if isinstance(survey.stylesheet, StylesheetSyntaxError):
        return ()
    return [each.selector for each in survey.stylesheet.rules]


def _unmatched(survey: Survey, selector: Selector, near: str, reason: str) -> Finding:
    message = f"the stylesheet selects `{selector}`, but {reason}{_in_file(selector.span)}"
    span = _placed(survey, selector.span)
    if not near or selector.span is None:
        return Finding(message, span, fix=Fix("remove the rule, or select existing nodes"))
    meant = str(selector)[: len(str(selector)) - len(selector.name)] + near
    fix = outward(Fix(f"write `{meant}`", (TextEdit(selector.span, meant),)))
    return Finding(f"{message}; did you mean `{meant}`?", span, fix=fix)


def _own_classes(node: Node) -> tuple[str, ...]:
    return comma_list(node.get("class", str, ""))


def _class_spans(node: Node) -> dict[str, Span]:
    """Place of each class of a node."""
    written = node.attr_spans.get("class")
    if written is None:
        return {}
    text = embed_value(written.value)
    found = reversed(list(re.finditer(r"[^,]+", text.text)))  # of a class that is written twice the first place counts
    return {part[0].strip(): _without_blanks(text, *part.span()) for part in found}


def _without_blanks(text: SourceText, start: int, end: int) -> Span:
    part = text.text[start:end]
    return text.span(start + len(part) - len(part.lstrip()), start + len(part.rstrip()))


def _unselected(node: Node, name: str, near: str, written: Span | None) -> Finding:
    message = f'no rule of the stylesheet selects the class "{name}" of "{node.id}"{suggestion(near)}'
    span, fix = written or value_span(node, "class"), Fix("add a rule for it, or remove it")
    if written is not None and near:
        fix = outward(Fix(f'write "{near}"', (TextEdit(written, near),)))
    return Finding(message, span, node.id, fix=fix, severity=Severity.INFO)


STYLESHEET_RULES: Final = (stylesheet_syntax, unknown_property, style_value, unused_selector, unused_class)
