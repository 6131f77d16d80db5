"""Transforms: they change a graph between parsing and lint (spec 9.1, 9.2; ruling 9).

Each transform has its own file. A transform returns a new graph, and depends neither on lint, nor on the
engine, nor on another transform. Custom transforms run after these, in the order of registration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.lazy_imports import deferred
from attractor_nb.transforms.node_attributes import ForeignSubPipelines, StylesheetApplication, VariableExpansion

if TYPE_CHECKING:
    from attractor_nb.protocols import Transform
    from attractor_nb.transforms.splicing import MergeTransform as MergeTransform
else:
    __getattr__ = deferred(__name__, {"MergeTransform": "transforms.splicing"})

__all__ = ["ForeignSubPipelines", "MergeTransform", "StylesheetApplication", "VariableExpansion", "built_in_transforms"]


def built_in_transforms() -> tuple[Transform, ...]:
    """The transforms that every pipeline goes through, in their order."""
    return (ForeignSubPipelines(), VariableExpansion(), StylesheetApplication())
