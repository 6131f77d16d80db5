"""What a pipeline tells and shows without being run: findings, estimates, needs, pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from attractor_nb.lazy_imports import later
from attractor_nb.model.graph import plain_attrs
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import BoundKeywords, as_dict, as_path, given_options, takes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from pathlib import Path

    import networkx as nx

    from attractor_nb.runtime.prepare import declared_inputs
    from attractor_nb.runtime.prepare.run_options import BackendSpec
    from attractor_nb.studio.edit import lint_report
    from attractor_nb.studio.edit.lint_report import LintReport
    from attractor_nb.studio.estimate import estimated_usage, model_report, preflight, run_estimate
    from attractor_nb.studio.estimate.estimated_usage import Assumptions
    from attractor_nb.studio.estimate.hindsight import Hindsight
    from attractor_nb.studio.estimate.model_report import ModelReport
    from attractor_nb.studio.estimate.preflight import Preflight
    from attractor_nb.studio.estimate.run_estimate import Estimate
    from attractor_nb.views import findings_table, mermaid, text_table
    from attractor_nb.views.drawings import still, svg
else:
    estimated_usage = later("attractor_nb.studio.estimate.estimated_usage")
    run_estimate = later("attractor_nb.studio.estimate.run_estimate")
    findings_table = later("attractor_nb.views.findings_table")
    lint_report = later("attractor_nb.studio.edit.lint_report")
    mermaid = later("attractor_nb.views.mermaid")
    model_report = later("attractor_nb.studio.estimate.model_report")
    preflight = later("attractor_nb.studio.estimate.preflight")
    declared_inputs = later("attractor_nb.runtime.prepare.declared_inputs")
    still = later("attractor_nb.views.drawings.still")
    svg = later("attractor_nb.views.drawings.svg")
    text_table = later("attractor_nb.views.text_table")


class Previewing(Definition):
    """The part of a pipeline that looks at its graph and at past runs only."""

    def lint(self) -> LintReport:
        """All findings; ``lint().fix()`` shows what the fixes would change."""
        return lint_report.LintReport(self.diagnostics, self.source)

    def models(self, backend: BackendSpec = None) -> ModelReport:
        """Which model answers each node's prompt, and which rule of stylesheet or graph says so (spec 8.5).

        Args:
            backend: The backend whose own model holds for nodes that nobody names one for; this pipeline's
                by default.
        """
        return model_report.model_report(self.graph, self._defaults["backend"] if backend is None else backend)

    @takes(BoundKeywords)
    def estimate(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        backend: BackendSpec = None,
        assumptions: Assumptions | None = None,
        **options: Unpack[BoundKeywords],
    ) -> Estimate:
        """What a run will consume, as expected and at worst, in tokens and USD; nothing is run or asked.

        Args:
            params: Inputs of the run: conditions on the likely path see them, and prompts have their text.
            backend: The backend whose own model holds for nodes that nobody names one for.
            assumptions: What is taken for granted where nothing says otherwise.

        Raises:
            ValidationError: Lint found errors.
            OptionError: A bound or the backend is none, or an input is misspelt.
        """
        self.refuse_errors()
        return run_estimate.estimate(
            self.graph,
            name=self.name,
            values=declared_inputs.checked_inputs(
                self, {**self.params, **as_dict("params", params or {})}, is_whole=False
            ),
            backend=self._defaults["backend"] if backend is None else backend,
            assumptions=assumptions or estimated_usage.Assumptions(),
            bounds=given_options(options),
            schemas=self.schemas,
        )

    def doctor(
        self, backend: BackendSpec = None, *, runs_dir: str | Path | None = None, online: bool = False
    ) -> Preflight:
        """What a run would need, and whether it is there: models, keys, programs, disk. Nothing is run.

        Args:
            backend: What would answer prompts; this pipeline's by default.
            runs_dir: Where runs would be kept; this pipeline's by default.
            online: Look whether the servers of its models can be reached, too.
        """
        place = self._defaults["runs_dir"] if runs_dir is None else runs_dir
        return preflight.examine(
            self.graph,
            name=self.name,
            diagnostics=self.judged_for_a_run(),
            backend=self._defaults["backend"] if backend is None else backend,
            runs_dir=None if place is None else as_path(place, "runs_dir"),
            is_online=online,
        )

    def hindsight(self, runs: object) -> Hindsight:
        """Which past runs would go elsewhere on this graph; no model is called and nothing is run.

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
        from attractor_nb.studio.share.png import write_png  # noqa: PLC0415 - as above

        return write_png(self.to_svg(), path, theme=theme, scale=scale)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return mermaid.to_mermaid(self.graph)

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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return still.picture_bundle(self.to_svg(), str(self))
