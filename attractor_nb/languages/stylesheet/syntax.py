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
    """Which nodes a rule is for.

    Attributes:
        kind: What it looks at.
        name: The shape, class or id, without its sign; empty for ``*``.
        span: Where it stands.
    """

    kind: SelectorKind
    name: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return ("*", "", ".", "#")[self.kind] + self.name


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property and its value.

    Attributes:
        name: The property's canonical name, or an unknown name as written.
        value: Its value, quotes and escapes resolved.
        span: From the name to the end of the value.
    """

    name: str
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)


class StyleRule(msgspec.Struct, frozen=True):
    """A selector and what it declares."""

    selector: Selector
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True)
class Stylesheet:
    """Rules in source order.

    Attributes:
        rules: In source order; later ones win at equal specificity.
        notices: What is right but worth a word, in the coordinates of the stylesheet's own text.
    """

    rules: tuple[StyleRule, ...] = ()
    notices: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def positions(self) -> Mapping[tuple[SelectorKind, str], Sequence[int]]:
        """Where in ``rules`` those are that select the same, by the kind and the name of their selector."""
        found: dict[tuple[SelectorKind, str], list[int]] = {}
        for position, rule in enumerate(self.rules):
            found.setdefault((rule.selector.kind, rule.selector.name), []).append(position)
        return found
