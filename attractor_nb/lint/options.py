"""What lint must be told about its surroundings: it knows no registry and no engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.child import ChildProblem
    from attractor_nb.model.inputs import Input
    from attractor_nb.model.text_files import TextFileProblem


def no_inputs(_name: str) -> None:
    """What is registered where nothing is."""


@dataclass(frozen=True, slots=True)
class LintOptions:
    """How strict lint is, and which handlers there are.

    Attributes:
        known_types: Handler types that mean something: the built-in ones and those registered.
        runnable_types: Types that have a handler, or None when nobody is going to run the graph.
        schemas: Names of the schemas that are registered, or None when nobody is going to run the graph.
        tools: Names of the functions that models may call, or None when nobody has given any.
        unfit_forms: Of the registered schemas those that cannot be filled in as forms, and why.
        schema_inputs: Gives the inputs that a registered schema declares, by its name; None where nothing is
            registered under it.
        allow_many_exits: Several exit nodes are accepted (ruling 7).
        child_problems: What is wrong with the child pipelines that the graph names, as who can read files
            has found.
        child_inputs: By node: the inputs that its child declares and that only the node can give, or may.
        text_problems: What is wrong with the files that texts name, as who can read files has found.
        taken_over: Built-in types that the caller's own handlers execute, as they see fit.
    """

    known_types: frozenset[str] = BUILT_IN_TYPES
    runnable_types: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    unfit_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    schema_inputs: Callable[[str], Sequence[Input] | None] = no_inputs
    allow_many_exits: bool = False
    child_problems: Sequence[ChildProblem] = ()
    child_inputs: Mapping[str, Sequence[Input]] = field(default_factory=dict[str, "Sequence[Input]"])
    text_problems: Sequence[TextFileProblem] = ()
    taken_over: frozenset[str] = frozenset()
