"""What a built-in rule is: a function that finds things, its name, its severity and its page."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.lint.consequences import Slip
from attractor_nb.lint.source_places import replacing_value, value_span
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity
from attractor_nb.model.graph import Node
from attractor_nb.model.nearest_name import nearest, suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from attractor_nb.lint.consequences import Meant
    from attractor_nb.model.graph import Graph
    from attractor_nb.source import Span


class Finding(NamedTuple):
    """What a rule's function yields; the rule adds its name and severity."""

    message: str  #: What is wrong, naming the thing.
    span: Span | None = None  #: Where it stands, or None for graphs that came from no text.
    node_id: str = ""  #: The node concerned, or empty.
    edge: tuple[str, str] | None = None  #: Source and target of the edge concerned, or None.
    fix: Fix | None = None  #: How to fix it, or None.
    severity: Severity | None = None  #: Another severity than the rule's own, or None.
    #: For a misspelling: gives the graph without it, so that what it entails is not told, too.
    meant: Meant | None = None


@dataclass(frozen=True)
class Rule:
    """A built-in rule; as a ``LintRule`` it can also be applied alone."""

    name: str  #: Its identifier.
    severity: Severity  #: How bad its findings are, unless a finding says otherwise.
    check: Callable[[Survey], Iterable[Finding]] = field(repr=False)  #: Finds things in a surveyed graph.

    @property
    def page(self) -> str:
        """The rule's documentation: what, why, a bad and a good snippet."""
        return inspect.getdoc(self.check) or ""

    def apply(self, graph: Graph) -> list[Diagnostic]:
        """All findings in a graph."""
        return self.diagnose(Survey(graph, LintOptions()))

    def diagnose(self, survey: Survey) -> list[Diagnostic]:
        """All findings in a surveyed graph, one for each place.

        A value that many nodes inherit from one default block, or many edges from one chain, is
        reported once.
        """
        seen: set[Span] = set()
        diagnostics: list[Diagnostic] = []
        for found in self.check(survey):
            if found.span is not None:
                # Embedded texts with the same words compare equal; their places in the source do not.
                place = found.span.outermost()
                if place in seen:
                    continue
                seen.add(place)
            diagnostics.append(
                Diagnostic(
                    self.name,
                    found.severity or self.severity,
                    found.message,
                    found.node_id,
                    found.edge,
                    found.fix,
                    found.span,
                )
            )
            if found.meant is not None:
                survey.slips.append(Slip(diagnostics[-1], found.meant))
        return diagnostics


def rule(severity: Severity) -> Callable[[Callable[[Survey], Iterable[Finding]]], Rule]:
    """Make a rule of a function: its name is the rule's, its docstring the rule's page."""

    def make(check: Callable[[Survey], Iterable[Finding]]) -> Rule:
        return Rule(check.__name__, severity, check)

    return make


def unregistered(
    thing: Graph | Node, attribute: str, claim: str, name: str, option: str, known: Collection[str]
) -> Finding:
    """The finding about a name that is not registered; its fix is the nearest that is, or how to register it.

    Args:
        thing: Has the attribute.
        attribute: Its name; its value is the name that is not registered.
        claim: How the message begins: ``"judge" names the schema``.
        name: The name.
        option: The option of ``Pipeline`` that registers it.
        known: The names that are registered.
    """
    message = f'{claim} "{name}", which is not registered'
    fix = Fix(f'register it: Pipeline(…, {option}={{"{name}": {name}}})')
    if near := nearest(name, sorted(known)):
        message += suggestion(near)
        fix = replacing_value(thing, attribute, near, f'write "{near}"')
    return Finding(message, value_span(thing, attribute), thing.id if isinstance(thing, Node) else "", fix=fix)
