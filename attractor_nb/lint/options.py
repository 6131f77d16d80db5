"""What lint must be told about its surroundings: it knows no registry and no engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from attractor_nb.model.shapes import SHAPE_TO_TYPE

BUILT_IN_TYPES: Final = frozenset(SHAPE_TO_TYPE.values())
"""The handler types of spec 2.8."""


@dataclass(frozen=True, slots=True)
class LintOptions:
    """How strict lint is, and which handlers there are.

    Attributes:
        known_types: Handler types that mean something: the built-in ones and those registered.
        runnable_types: Types that have a handler, or None when nobody is going to run the graph.
        allow_many_exits: Several exit nodes are accepted (ruling 7).
    """

    known_types: frozenset[str] = BUILT_IN_TYPES
    runnable_types: frozenset[str] | None = None
    allow_many_exits: bool = False
