"""One slip, one finding: what a misspelling entails is left out beside the finding that names it.

A finding that knows what was meant hands over the graph as it was meant (``meant``). What the rules do not
find in that graph any more is a consequence: it would only hide its cause. The cause is as bad as the worst
of what it entails, so that nothing runs that did not run before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from attractor_nb.lint.meant import Meant
    from attractor_nb.model.graph import Graph

MAX_APART: Final = 8
"""Slips that are mended one by one to tell which consequence is whose; of more the first has them all."""
_WORST_FIRST: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


class Slip(NamedTuple):
    """A finding that knows what was meant.

    Attributes:
        finding: The finding.
        meant: Gives the graph without the slip.
    """

    finding: Diagnostic
    meant: Meant


def without_consequences(
    found: Sequence[Diagnostic],
    slips: Sequence[Slip],
    graph: Graph,
    diagnose: Callable[[Graph], Iterable[Diagnostic]],
) -> list[Diagnostic]:
    """The findings without those that would be gone if the slips were mended.

    Args:
        found: All findings.
        slips: Those that know what was meant.
        graph: The graph as it is.
        diagnose: What the rules find in a graph.
    """
    causes = {_key(slip.finding) for slip in slips}
    others = [each for each in found if _key(each) not in causes]
    if not others:
        return list(found)
    mended = graph
    for slip in slips:
        mended = slip.meant(mended)
    left = {_key(each) for each in diagnose(mended)}
    entailed = [each for each in others if _key(each) not in left]
    if not entailed:
        return list(found)
    owners = _owners(entailed, slips, graph, diagnose)
    gone = {_key(each) for each in entailed}
    return [_as_bad(each, owners.get(_key(each), ())) for each in found if _key(each) not in gone]


def _owners(
    entailed: Sequence[Diagnostic],
    slips: Sequence[Slip],
    graph: Graph,
    diagnose: Callable[[Graph], Iterable[Diagnostic]],
) -> dict[Hashable, list[Diagnostic]]:
    """The consequences of each slip; those that several entail together are the first one's."""
    owners: dict[Hashable, list[Diagnostic]] = {_key(slip.finding): [] for slip in slips}
    left_over = list(entailed)
    if 1 < len(slips) <= MAX_APART:
        for slip in slips:
            left = {_key(each) for each in diagnose(slip.meant(graph))}
            owners[_key(slip.finding)] += [each for each in left_over if _key(each) not in left]
            left_over = [each for each in left_over if _key(each) in left]
    owners[_key(slips[0].finding)] += left_over
    return owners


def _as_bad(cause: Diagnostic, entailed: Sequence[Diagnostic]) -> Diagnostic:
    """A cause with the severity of the worst that it entails, which it then tells."""
    worst = min(entailed, key=lambda each: _WORST_FIRST.index(each.severity), default=cause)
    if _WORST_FIRST.index(worst.severity) >= _WORST_FIRST.index(cause.severity):
        return cause
    so = " As it stands, " if cause.message.endswith("?") else "; as it stands, "
    return replace(cause, severity=worst.severity, message=f"{cause.message}{so}{worst.message}")


def _key(found: Diagnostic) -> Hashable:
    """What tells one finding from another, whatever its node or edge is called after the slip."""
    if found.span is None:
        return found.rule, found.message
    place = found.span.outermost()
    return found.rule, place.start, place.end
