"""A pipeline: a definition, and the ways to run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.pipeline import features
from attractor_nb.pipeline.definition import Definition
from attractor_nb.pipeline.signatures.continuing import Continuing
from attractor_nb.pipeline.signatures.mapping import OverRows
from attractor_nb.pipeline.signatures.starting import Starting
from attractor_nb.pipeline.signatures.trying import Trying

if TYPE_CHECKING:
    from attractor_nb.pipeline.composing import PipelineNode


class Pipeline(Definition, Starting, Continuing, OverRows, Trying):
    """A pipeline that can be linted, drawn and run.

    Attributes:
        graph: The graph as it will run: parsed, transformed.
        parsed: The graph as written.
        source: The text it came from, or None.
        diagnostics: What lint found, in source order.
        origin: The file or stream that the source came from; None for the caller's own text. For own text
            that names child files with commands the first of these.
        family: The child pipelines that its nodes run, by node.
        params: Values that every run's context starts with.
        handlers: Custom handlers by type.
        observers: Called with every event of every run.

    >>> hello = Pipeline("digraph hello { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    >>> hello.run(wait=True, durability="none").status
    'success'
    """

    def node(self, node_id: str) -> PipelineNode:
        """A node, to be looked at or replaced by another pipeline's inside (spec 9.4).

        Args:
            node_id: The node's id.

        Raises:
            OptionError: There is no such node.
        """
        return features.PipelineNode(self, node_id)
