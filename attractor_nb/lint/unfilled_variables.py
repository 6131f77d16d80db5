"""Names that a graph's texts or its callers use and that only the values of a run can fill.

Lint cannot judge them: it does not know the values. The caller with the values asks here before anything runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from attractor_nb.lint.rules.variable_rules import (
    OPEN_PREFIXES,
    dotted_or_slipped,
    known_names,
    meant_key,
    texts_with_variables,
)
from attractor_nb.lint.structured_keys import StructuredKeys
from attractor_nb.model.texts import in_order, nearest, slipped
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX
from attractor_nb.model.vocabulary.variables import variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from attractor_nb.lint.survey import Survey


class OpenVariable(msgspec.Struct, frozen=True):
    """A variable that a run begins without a value for, unless it is given one."""

    node_id: str  #: The node whose text has it.
    attribute: str  #: The text: ``prompt``.
    name: str  #: Its name.
    is_first: bool  #: No stage before the node can set it.

    def is_filled(self, given: Collection[str]) -> bool:
        """True if one of these values is its own, or has it as a field.

        >>> OpenVariable("a", "prompt", "ticket.title", True).is_filled(["ticket"])
        True
        """
        return _names_a_part(self.name, given)


def open_variables(survey: Survey) -> tuple[OpenVariable, ...]:
    """The variables of a graph that nothing but the values of a run can be known to fill."""
    return tuple(dict.fromkeys(_open_variables(survey)))


def _open_variables(survey: Survey) -> Iterator[OpenVariable]:
    known = frozenset(known_names(survey, ()))
    for node, attribute in texts_with_variables(survey):
        for variable in variables(node.get(attribute, str, "")):
            name = variable.name.removeprefix(CONTEXT_PREFIX)
            if variable.default is None and not _names_a_part(name, known) and not name.startswith(OPEN_PREFIXES):
                yield OpenVariable(node.id, attribute, name, node.id not in survey.behind_free_stages)


def first_unfilled(found: Iterable[OpenVariable], given: Collection[str]) -> tuple[OpenVariable, str] | None:
    """The first variable that stays as it is written with these values, and the one that was meant, or empty.

    Behind a stage that may set any key, only a slip of the fingers is certain.
    """
    for variable in found:
        if variable.is_filled(given):
            continue
        if variable.is_first:
            return variable, nearest(variable.name, given)
        if near := slipped(variable.name, given):
            return variable, near
    return None


def key_that_nothing_sets(survey: Survey, keys: Iterable[str], given: Collection[str]) -> tuple[str, str] | None:
    """The first context key that nothing sets, and the one that was meant, or empty.

    Behind a stage that may set any key, only a slip of the fingers is certain.

    Args:
        survey: The graph.
        keys: The keys that a caller asks for; each may continue into a structured value.
        given: The keys that a run begins with.
    """
    structured = StructuredKeys(survey)
    known = [*in_order(given), *known_names(survey, (), structured)]
    for key in keys:
        plain = key.removeprefix(CONTEXT_PREFIX)
        if (slip := structured.slip(plain)) and slip.is_certain:
            return key, slip.near
        if _names_a_part(plain, known):
            continue
        near = meant_key(plain)
        if not near and plain.startswith(OPEN_PREFIXES):
            continue
        if near := near or dotted_or_slipped(plain, known):
            return key, near
        if not survey.behind_free_stages:
            return key, nearest(plain, known)
    return None


def _names_a_part(key: str, given: Collection[str]) -> bool:
    """True if a key is one of these, or continues into the value of one."""
    names = key.split(".")
    return any(".".join(names[:count]) in given for count in range(1, len(names) + 1))
