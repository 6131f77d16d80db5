"""What lint must be told about its surroundings: it knows no registry and no engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attractor_nb.model.shapes import BUILT_IN_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.child_problem import ChildProblem


@dataclass(frozen=True, slots=True)
class LintOptions:
    """How strict lint is, and which handlers there are.

    Attributes:
        known_types: Handler types that mean something: the built-in ones and those registered.
        runnable_types: Types that have a handler, or None when nobody is going to run the graph.
        schemas: Names of the schemas that are registered, or None when nobody is going to run the graph.
        tools: Names of the functions that models may call, or None when nobody has given any.
        unfit_forms: Of the registered schemas those that cannot be filled in as forms, and why.
        allow_many_exits: Several exit nodes are accepted (ruling 7).
        child_problems: What is wrong with the child pipelines that the graph names, as who can read files
            has found.
        taken_over: Built-in types that the caller's own handlers execute, as they see fit.
    """

    known_types: frozenset[str] = BUILT_IN_TYPES
    runnable_types: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    unfit_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_many_exits: bool = False
    child_problems: Sequence[ChildProblem] = ()
    taken_over: frozenset[str] = frozenset()
