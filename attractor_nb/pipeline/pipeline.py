"""A pipeline: a definition, and all that can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import later
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.pipeline.methods.fill_in_form import FillingIn
from attractor_nb.pipeline.methods.over_rows import OverRows
from attractor_nb.pipeline.methods.resume_directory import ResumingDirectory
from attractor_nb.pipeline.methods.resume_map import ResumingMap
from attractor_nb.pipeline.methods.start_run import Starting
from attractor_nb.pipeline.methods.try_out import Trying
from attractor_nb.pipeline.preview import Previewing

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.model import text_files
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.pipeline import run
    from attractor_nb.pipeline.run import Run
    from attractor_nb.studio.edit.editor import Editor
    from attractor_nb.transforms import merge
else:
    merge = later("attractor_nb.transforms.merge")
    run = later("attractor_nb.pipeline.run")
    text_files = later("attractor_nb.model.text_files")


class Pipeline(Starting, ResumingDirectory, OverRows, ResumingMap, Trying, FillingIn, Previewing):
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

    @property
    def run_kind(self) -> type[Run]:
        """What its runs are handed out as."""
        return run.Run

    def node(self, node_id: str) -> PipelineNode:
        """A node, to be looked at or replaced by another pipeline's inside (spec 9.4).

        Args:
            node_id: The node's id.

        Raises:
            OptionError: There is no such node.
        """
        return PipelineNode(self, node_id)

    def edit(self) -> Editor:
        """An editor of the text: each change is the smallest one, is linted, and can be taken back."""
        from attractor_nb.studio.edit.editor import Editor  # noqa: PLC0415 - for who edits

        return Editor(self)

    def fixed(self, *rules: str) -> Self:
        """This pipeline with the fixes of all findings, or of those of some rules, applied.

        ``lint().fix()`` shows what they change; a fix may lay bare the next finding.

        Args:
            *rules: Names of rules; those of all findings without any.
        """
        made = self.edit().fix(*rules).pipeline()
        assert isinstance(made, type(self)), "a definition of another text is of the same kind"
        return made


@dataclass(frozen=True)
class PipelineNode:
    """A node of a pipeline."""

    pipeline: Pipeline  #: The pipeline.
    id: str  #: The node's id.

    def __post_init__(self) -> None:
        """Check that there is such a node."""
        if self.id not in self.pipeline.graph.nodes:
            near = did_you_mean(self.id, self.pipeline.graph.nodes)
            raise OptionError(f'the pipeline has no node "{self.id}"{near}')

    @property
    def value(self) -> Node:
        """The node as it will run."""
        return self.pipeline.graph.nodes[self.id]

    def replace(self, other: Pipeline | Graph | str | Path, *, prefix: str | None = None) -> Pipeline:
        """A new pipeline in which the inside of another stands in place of this node.

        This pipeline stays as it is. The other's start and exit are left out, its ids are prefixed, and the
        edges of this node are those of its first and last nodes; see docs/composition.md.

        Args:
            other: A pipeline, a graph, DOT text, or a path to a .dot file.
            prefix: What its ids get in front; ``<id>_`` by default.

        Raises:
            OptionError: It cannot stand there, and why.
            DotSyntaxError: Its text does not parse.
        """
        host = self.pipeline
        inner = other if isinstance(other, type(host)) else host.with_source(other)  # pyright: ignore[reportArgumentType] - the rest is a source
        for found in inner.diagnostics:
            if found.rule == text_files.TEXT_FILE:
                raise OptionError(found.message, hint="fix the pipeline that takes the place of the node")
        graph = text_files.with_literal_texts(inner.graph)  # as read: none names a file of the host's
        graph = merge.replaced(host.parsed, self.id, graph, f"{self.id}_" if prefix is None else prefix)
        return host.with_source(graph, inner)
