"""The syntax tree of a model stylesheet (spec 8.2). Knows neither parsing nor what a node is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span

PROPERTIES: Final = (
    "llm_model",
    "llm_provider",
    "reasoning_effort",
    "llm.temperature",
    "llm.max_tokens",
    "llm.base_url",
)
"""What a stylesheet can set: spec 8.4, and how and where a model is asked."""

PROPERTY_ALIASES: Final = {
    "model": "llm_model",
    "provider": "llm_provider",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "base_url": "llm.base_url",
}
"""Second names of properties (ruling 10)."""


class SelectorKind(IntEnum):
    """What a selector looks at; the number is its specificity (ruling 10)."""

    EVERY = 0
    SHAPE = 1
    CLASS = 2
    ID = 3


@dataclass(frozen=True, slots=True)
class Selector:
    """Which nodes a rule is for."""

    kind: SelectorKind  #: What it looks at.
    name: str = ""  #: The shape, class or id, without its sign; empty for ``*``.
    span: Span | None = field(default=None, compare=False, repr=False)  #: Where it stands.

    def __str__(self) -> str:
        return ("*", "", ".", "#")[self.kind] + self.name


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property and its value."""

    name: str  #: The property's canonical name, or an unknown name as written.
    value: str  #: Its value, quotes and escapes resolved.
    span: Span | None = field(default=None, compare=False, repr=False)  #: From the name to the end of the value.


class StyleRule(msgspec.Struct, frozen=True):
    """A selector and what it declares."""

    selector: Selector
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True)
class Stylesheet:
    """Rules in source order."""

    rules: tuple[StyleRule, ...] = ()  #: In source order; later ones win at equal specificity.
    #: What is right but worth a word, in the coordinates of the stylesheet's own text.
    notices: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def positions(self) -> Mapping[tuple[SelectorKind, str], Sequence[int]]:
        """Where in ``rules`` those are that select the same, by the kind and the name of their selector."""
        found: dict[tuple[SelectorKind, str], list[int]] = {}
        for position, rule in enumerate(self.rules):
            found.setdefault((rule.selector.kind, rule.selector.name), []).append(position)
        return found
