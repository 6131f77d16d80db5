"""Rules about the text of conditions (spec 10, ruling 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.languages.condition import mend_condition
from attractor_nb.languages.dot import apply_edits
from attractor_nb.lint.meant import with_value
from attractor_nb.lint.rule import Finding, rule
from attractor_nb.lint.source_places import outward, replacing_value
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.attributes import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.lint.meant import Meant
    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Edge


@rule(Severity.ERROR)
def condition_syntax(survey: Survey) -> Iterator[Finding]:
    """A condition is clauses `key=value` or `key!=value`, joined by `&&`.

    An edge whose condition cannot be read could never be taken with confidence (spec 7.2, 10.2).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome == success"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    for edge, error in survey.condition_errors:
        mended = mend_condition(edge.condition)
        if mended is None:
            fix = Fix(error.hint)
        else:
            fix = replacing_value(edge, "condition", mended, f"write `{mended}`")
        message = f"condition `{edge.condition.strip()}`: {error.message}"
        span = error.span if error.span is not None and error.span.source.host else edge.span
        yield Finding(message, span, edge=(edge.source, edge.target), fix=fix)


def _noticed(survey: Survey, name: str) -> Iterator[Finding]:
    for edge, notice in survey.condition_notices:
        if notice.rule == name:
            is_embedded = notice.span is not None and notice.span.source.host
            span = notice.span if is_embedded else edge.span
            ends, fix = (edge.source, edge.target), outward(notice.fix)
            meant = _meant(edge, notice)
            yield Finding(notice.message, span, edge=ends, fix=fix, severity=notice.severity, meant=meant)


def _meant(edge: Edge, notice: Diagnostic) -> Meant | None:
    """The graph with a condition that is mended as a notice proposes."""
    if notice.fix is None or not notice.fix.edits or notice.severity is Severity.INFO:
        return None
    text = apply_edits(notice.fix.edits[0].span.source, notice.fix.edits)
    return with_value(Scope.EDGE, "condition", edge.attrs["condition"], text)


@rule(Severity.INFO)
def outcome_alias(survey: Survey) -> Iterator[Finding]:
    """A condition spells a status as the specification does.

    `succeeded`, `failed`, `SUCCESS` and their like are read as the status they mean; other tools compare
    them letter by letter, and there the edge is never taken (ruling 11).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=succeeded"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _noticed(survey, "outcome_alias")


@rule(Severity.WARNING)
def outcome_unknown(survey: Survey) -> Iterator[Finding]:
    """A condition compares `outcome` with a status.

    No stage ends in any other word, so such a comparison has the same answer in every run (spec 10.3).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=sucess"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _noticed(survey, "outcome_unknown")


@rule(Severity.WARNING)
def status_as_key(survey: Survey) -> Iterator[Finding]:
    """A condition names what it compares.

    A word alone is the key of a context value. `success` alone asks whether the context has something
    under that name, not how the stage ended (spec 10.4, 10.5).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="success"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="outcome=success"] }
    """
    return _noticed(survey, "status_as_key")


@rule(Severity.WARNING)
def literal_unquoted(survey: Survey) -> Iterator[Finding]:
    r"""A literal of several words is quoted.

    It is read as the words up to the next `&&` (spec 10.5), which the grammar of 10.2 does not have.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="preferred_label=Ship it"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it"] exit [shape=Msquare]
            start -> work  work -> exit [condition="preferred_label=\"Ship it\""] }
    """
    return _noticed(survey, "literal_unquoted")


RULES: Final = (condition_syntax, outcome_alias, outcome_unknown, status_as_key, literal_unquoted)
