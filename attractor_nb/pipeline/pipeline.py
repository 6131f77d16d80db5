"""A pipeline: a definition, and all that can be done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import later
from attractor_nb.model.graph import Graph, Node, plain_attrs
from attractor_nb.model.texts import did_you_mean
from attractor_nb.pipeline.methods.evaluate import Evaluating
from attractor_nb.pipeline.methods.map import OverRows, ResumingMap
from attractor_nb.pipeline.methods.start_run import FillingIn, ResumingDirectory, Starting, Trying
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import BackendSpec, BoundKeywords, as_dict, as_path, given_options, takes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from pathlib import Path

    import networkx as nx

    from attractor_nb.model import graph as text_files
    from attractor_nb.pipeline import run
    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime.prepare import declared_inputs
    from attractor_nb.studio.analysis import analysis
    from attractor_nb.studio.analysis.analysis import Analysis
    from attractor_nb.studio.edit import lint_report
    from attractor_nb.studio.edit.editor import Editor
    from attractor_nb.studio.edit.lint_report import LintReport
    from attractor_nb.studio.estimate import estimated_usage, preflight, run_estimate
    from attractor_nb.studio.estimate.estimated_usage import Assumptions
    from attractor_nb.studio.estimate.hindsight import Hindsight
    from attractor_nb.studio.estimate.preflight import Preflight
    from attractor_nb.studio.estimate.run_estimate import Estimate, ModelReport
    from attractor_nb.transforms import splicing
    from attractor_nb.views import findings_table, graphviz_source, mermaid, text_table
    from attractor_nb.views.drawings import svg
    from attractor_nb.views.graphviz_source import GraphvizSource
else:
    analysis = later("attractor_nb.studio.analysis.analysis")
    estimated_usage = later("attractor_nb.studio.estimate.estimated_usage")
    run_estimate = later("attractor_nb.studio.estimate.run_estimate")
    findings_table = later("attractor_nb.views.findings_table")
    lint_report = later("attractor_nb.studio.edit.lint_report")
    graphviz_source = later("attractor_nb.views.graphviz_source")
    mermaid = later("attractor_nb.views.mermaid")
    preflight = later("attractor_nb.studio.estimate.preflight")
    declared_inputs = later("attractor_nb.runtime.prepare.declared_inputs")
    svg = later("attractor_nb.views.drawings.svg")
    text_table = later("attractor_nb.views.text_table")
    splicing = later("attractor_nb.transforms.splicing")
    run = later("attractor_nb.pipeline.run")
    text_files = later("attractor_nb.model.graph")


# The static parts of a pipeline, which run nothing: findings, estimates, needs, pictures.


class Previewing(Definition):
    """The part of a pipeline that looks at its graph and at past runs only."""

    def lint(self) -> LintReport:
        """All findings; ``lint().fix()`` shows what the fixes would change."""
        return lint_report.LintReport(self.diagnostics, self.source)

    def models(self, backend: BackendSpec = None) -> ModelReport:
        """The model that answers each node's prompt, and the rule of stylesheet or graph that decides it (spec 8.5).

        Args:
            backend: The backend whose own model holds for nodes without a model; this pipeline's
                by default.
        """
        return run_estimate.model_report(self.graph, self._defaults["backend"] if backend is None else backend)

    @takes(BoundKeywords)
    def estimate(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        backend: BackendSpec = None,
        assumptions: Assumptions | None = None,
        **options: Unpack[BoundKeywords],
    ) -> Estimate:
        """Estimate the usage of a run, expected and worst, in tokens and USD. Nothing is run or asked.

        Args:
            params: Inputs of the run: conditions on the likely path see them, and prompts have their text.
            backend: The backend whose own model holds for nodes without a model.
            assumptions: What is taken for granted where nothing says otherwise.

        Raises:
            ValidationError: Lint found errors.
            OptionError: A bound or the backend is none, or an input is misspelt.
        """
        self.refuse_errors()
        return run_estimate.estimate(
            self.graph,
            name=self.name,
            values=self._known_values(params),
            backend=self._defaults["backend"] if backend is None else backend,
            assumptions=assumptions or estimated_usage.Assumptions(),
            bounds=given_options(options),
            schemas=self.schemas,
        )

    def analyse(self, params: Mapping[str, Any] | None = None) -> Analysis:
        """Find out what holds for all runs: what each passes, the critical path, loops, gates that can be avoided.

        A notebook shows a picture, with findings that ``lint()`` does not have: the rules on demand of docs/rules.md.

        Args:
            params: Inputs of the run: conditions on the likely path see them.

        Raises:
            ValidationError: Lint found errors.
            OptionError: An input is misspelt.
        """
        return analysis.analyse(self.graph, self.estimate(params), self._known_values(params))

    def _known_values(self, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """The values that the context of a run begins with, as far as they are known."""
        return declared_inputs.checked_inputs(self, {**self.params, **as_dict("params", params or {})}, is_whole=False)

    def doctor(
        self, backend: BackendSpec = None, *, runs_dir: str | Path | None = None, online: bool = False
    ) -> Preflight:
        """Check that everything a run needs is there: models, keys, programs, disk. Nothing is run.

        Args:
            backend: What would answer prompts; this pipeline's by default.
            runs_dir: Where runs would be kept; this pipeline's by default.
            online: Look whether the servers of its models can be reached, too.
        """
        place = self._defaults["runs_dir"] if runs_dir is None else runs_dir
        return preflight.examine(
            self.graph,
            name=self.name,
            diagnostics=self.run_diagnostics(),
            backend=self._defaults["backend"] if backend is None else backend,
            runs_dir=None if place is None else as_path(place, "runs_dir"),
            is_online=online,
        )

    def hindsight(self, runs: object) -> Hindsight:
        """Find past runs that would take another path on this graph. No model is called and nothing is run.

        Args:
            runs: Runs, results or directories: one, or several, such as ``runs()`` gives.

        Raises:
            ValidationError: Lint found errors.
            OptionError: Something among them can be no run.
        """
        from attractor_nb.studio.estimate.hindsight import hindsight  # noqa: PLC0415 - few pipelines look back

        self.refuse_errors()
        return hindsight(self.graph, runs)

    # -- drawing -------------------------------------------------------------------------------------

    def to_svg(self) -> str:
        """The graph as a picture, errors marked."""
        return svg.render_svg(self.graph, diagnostics=self.diagnostics, is_whole=False)

    def to_png(self, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
        """Write the drawing as PNG, with the extra ``png``.

        Args:
            path: The file.
            theme: ``light`` or ``dark``.
            scale: Pixels for each unit of the drawing.
        """
        from attractor_nb.studio.export_page import write_png  # noqa: PLC0415 - as above

        return write_png(self.to_svg(), path, theme=theme, scale=scale)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return mermaid.to_mermaid(self.graph)

    def to_graphviz(self) -> GraphvizSource:
        """The graph for Graphviz's own layout engines and formats: a ``graphviz.Source``, which a notebook shows.

        ``.engine`` and ``.format`` choose, ``.pipe()`` gives the picture, ``.render()`` writes it, ``.view()`` opens
        it. It needs Graphviz: the program ``dot``, or the extra ``graphviz``.
        """
        return graphviz_source.graphviz_source(self.graph)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph with all attributes, for analysis; parallel edges are kept."""
        import networkx as nx  # noqa: PLC0415 - 600 ms that most sessions never need

        result: nx.MultiDiGraph[str] = nx.MultiDiGraph()  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType] - it takes none at run time
        result.graph.update(plain_attrs(self.graph.attrs), name=self.graph.name)
        for node in self.graph.nodes.values():
            result.add_node(node.id, handler_type=self.graph.handler_types[node.id], **plain_attrs(node.attrs))
        for index, edge in enumerate(self.graph.edges):
            result.add_edge(edge.source, edge.target, key=index, **plain_attrs(edge.attrs))
        return result

    def __str__(self) -> str:
        parts = [text_table.graph_text(self.graph)]
        if self.diagnostics:
            parts.append(findings_table.findings_text(self.diagnostics))
        return "\n".join(parts)

    __repr__ = __str__

    # Not of DisplayedPicture: what imports the class loads no view.
    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return svg.picture_bundle(self.to_svg(), str(self))


class Pipeline(Starting, ResumingDirectory, Evaluating, OverRows, ResumingMap, Trying, FillingIn, Previewing):
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
        """The class of its runs."""
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
        from attractor_nb.studio.edit.editor import Editor  # noqa: PLC0415 - only for editing

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
        """A new pipeline in which the inside of another is in place of this node.

        This pipeline stays as it is. The other's start and exit are left out, its ids are prefixed, and the
        edges of this node are those of its first and last nodes; see docs/composition.md.

        Args:
            other: A pipeline, a graph, DOT text, or a path to a .dot file.
            prefix: What its ids get in front; ``<id>_`` by default.

        Raises:
            OptionError: It cannot be there, and why.
            DotSyntaxError: Its text does not parse.
        """
        host = self.pipeline
        inner = other if isinstance(other, type(host)) else host.with_source(other)  # pyright: ignore[reportArgumentType] - the rest is a source
        for found in inner.diagnostics:
            if found.rule == text_files.TEXT_FILE:
                raise OptionError(found.message, hint="fix the pipeline that takes the place of the node")
        graph = text_files.with_literal_texts(inner.graph)  # as read: none names a file of the host's
        graph = splicing.replaced(host.parsed, self.id, graph, f"{self.id}_" if prefix is None else prefix)
        return host.with_source(graph, inner)
