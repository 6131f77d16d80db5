"""What a source has come to: its graph as written and as it will run, its texts, inputs and findings, its plan.

It does not know what is plugged in, nor how it was prepared or is run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.nearest_name import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb import lint
    from attractor_nb.decisions.fan_outs import joins
    from attractor_nb.decisions.limits.bounds import RunBounds
    from attractor_nb.decisions.planning import plan_compiling
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.handlers.named_models import SchemaModels
    from attractor_nb.languages.dot import writer
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.inputs import Input
    from attractor_nb.runtime.prepare import declared_inputs
    from attractor_nb.runtime.prepare.preparation import Prepared
    from attractor_nb.runtime.prepare.text_sources import TextFiles
    from attractor_nb.source import SourceText
else:
    joins = later("attractor_nb.decisions.fan_outs.joins")
    plan_compiling = later("attractor_nb.decisions.planning.plan_compiling")
    lint = later("attractor_nb.lint")
    declared_inputs = later("attractor_nb.runtime.prepare.declared_inputs")
    writer = later("attractor_nb.languages.dot.writer")


class PreparedSource:
    """A source that was read, transformed and linted: see ``Pipeline``."""

    def __init__(self, files: TextFiles, severity: Mapping[str, Severity], schemas: SchemaModels, name: str) -> None:
        """Be ready to hold what is prepared.

        Args:
            files: Those that its texts may name.
            severity: Severities by the name of a rule, as the caller chose them.
            schemas: Pydantic models by name.
            name: The name that its runs have in place of the graph's; empty for that.
        """
        self._files = files
        self._name = name
        self._severity = severity
        self.schemas: SchemaModels = schemas
        self._plan: Plan | None = None

    def _hold(self, prepared: Prepared) -> None:
        """Be what was prepared now; its inputs and its plan are found anew."""
        self.parsed: Graph = prepared.parsed
        self.graph: Graph = prepared.graph
        self._document = prepared.document
        self.source: SourceText | None = prepared.document.source if prepared.document else None
        self.diagnostics: tuple[Diagnostic, ...] = prepared.diagnostics
        self._inputs: tuple[Input, ...] | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the graph declares (ruling 34); none where it takes any values.

        Raises:
            InputsSyntaxError: Its ``inputs`` does not parse.
        """
        if self._inputs is None:
            self._inputs = declared_inputs.declared_inputs(self.graph, self.schemas)
        return self._inputs

    def to_dot(self) -> str:
        """The source with the texts of files in it; for a pipeline made of a graph its canonical DOT text."""
        return self._files.contained(self._document) if self._document else writer.write_dot(self.whole)

    @property
    def whole(self) -> Graph:
        """The graph as written, with the texts of files in it."""
        return self._files.contained_graph(self.parsed)

    @property
    def written(self) -> str:
        """The source as written; for a pipeline made of a graph, its canonical DOT text."""
        return self.source.text if self.source is not None else writer.write_dot(self.parsed)

    def compile(self, bounds: RunBounds) -> Plan:
        """The graph made ready to run within bounds; most of the work is done once for all runs.

        Args:
            bounds: The bounds.
        """
        if self._plan is None or self._plan.graph is not self.graph:
            self._plan = plan_compiling.compile_plan(self.graph, bounds=bounds)
        return msgspec.structs.replace(self._plan, bounds=bounds, name=self._name or self.graph.name)

    def refuse_errors(self) -> None:
        """Refuse to run what lint found errors in.

        Raises:
            ValidationError: It found some.
        """
        found = self.judged_for_a_run()
        if any(each.is_error for each in found):
            raise ValidationError(found)

    def judged_for_a_run(self) -> tuple[Diagnostic, ...]:
        """Lint findings at run time: a missing handler counts as an error.

        For the text alone that is a warning (spec 7.2). A severity that the caller chose for the rule holds.
        """
        if lint.HANDLER_MISSING in self._severity:
            return self.diagnostics
        return tuple(
            replace(found, severity=Severity.ERROR) if found.rule == lint.HANDLER_MISSING else found
            for found in self.diagnostics
        )

    def join_of(self, node_id: str) -> str:
        """Where the branches of a fan-out meet: the node at which the run goes on after them (ruling 22).

        Args:
            node_id: The fan-out.

        Returns:
            The node's id; empty when the branches have no node in common and run to their ends.

        Raises:
            OptionError: There is no such fan-out.
        """
        found = joins.joins_of(self.graph)
        if node_id not in found:
            raise OptionError(
                f"{node_id!r} is not a fan-out{did_you_mean(node_id, found)}", hint="name a node of shape component"
            )
        return found[node_id].node_id
