"""The syntax tree of a condition (spec 10.2). Knows neither how it is parsed nor what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span


class Operator(StrEnum):
    """How a clause compares its key with its literal."""

    EQUALS = "="
    DIFFERS = "!="
    IS_TRUE = ""
    """A key alone: whether its value is true as Python takes it; every text but the empty one is (ruling 50)."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison."""

    key: str  #: What is looked up: ``outcome``, ``preferred_label``, or a context key.
    operator: Operator = Operator.IS_TRUE  #: How it is compared.
    #: The text it is compared with: quotes and escapes resolved, outcome aliases replaced by the status they mean
    #: (ruling 11). Empty when the key stands alone.
    literal: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)  #: The whole clause.

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{self.literal}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Clauses that must all hold; none at all always holds (spec 10.3)."""

    clauses: tuple[Clause, ...] = ()  #: In source order.
    #: What is right but worth a word: rule, severity, span and fix, in the coordinates of the condition's own text.
    notices: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return " && ".join(str(clause) for clause in self.clauses)
