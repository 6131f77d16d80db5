"""The models of a pipeline as a value that reads well in a cell: who answers what, and which rule says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, overload

from attractor_nb.backends import resolve_backend
from attractor_nb.decisions.planning.model_choices import model_choices
from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.languages.stylesheet import Stylesheet, parse_stylesheet
from attractor_nb.lint.source_places import embedded_text
from attractor_nb.model.nearest_name import no_such_key
from attractor_nb.protocols import HasOwnModel
from attractor_nb.views.table import Column, Table, table_html, table_text

if TYPE_CHECKING:
    from attractor_nb.decisions.planning.model_choices import ModelChoice, ValueChoice
    from attractor_nb.model.calls.providers import ModelName
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.prepare.run_options import BackendSpec

_COLUMNS: Final = (
    Column("node", "place"),
    Column("model"),
    Column("from"),
    Column("provider"),
    Column("from"),
    Column("effort"),
    Column("from"),
)
_NOTHING: Final = "\N{EN DASH}"


class ModelReport(Sequence["ModelChoice"]):
    """The model of each node that asks one, in source order; ``report["plan"]`` is that of one node."""

    def __init__(self, choices: Sequence[ModelChoice]) -> None:
        self._choices = tuple(choices)

    @overload
    def __getitem__(self, index: int | str) -> ModelChoice: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ModelChoice, ...]: ...
    def __getitem__(self, index: int | str | slice) -> ModelChoice | tuple[ModelChoice, ...]:
        if isinstance(index, str):
            found = next((choice for choice in self._choices if choice.node_id == index), None)
            if found is None:
                raise no_such_key("the pipeline", "model stage", index, [choice.node_id for choice in self._choices])
            return found
        return self._choices[index]

    def __len__(self) -> int:
        return len(self._choices)

    @property
    def table(self) -> Table:
        """The same as a table."""
        rows = [
            [
                choice.node_id,
                *_choice_cells(choice.model, choice.name.model),
                *_choice_cells(choice.provider, choice.name.provider),
                *_choice_cells(choice.effort, choice.effort.value),
            ]
            for choice in self._choices
        ]
        notes = [] if rows else ["No node asks a model."]
        return Table("Models", _COLUMNS, rows, notes=notes)

    def __str__(self) -> str:
        return table_text(self.table)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": table_html(self.table), "text/plain": str(self)}


def _choice_cells(choice: ValueChoice, value: str) -> tuple[str, str]:
    return value or _NOTHING, choice.reason if value else ""


def model_report(graph: Graph, backend: BackendSpec) -> ModelReport:
    """The models of a graph as it will run."""
    return ModelReport(model_choices(graph, stylesheet_of(graph), own_model(backend)))


def stylesheet_of(graph: Graph) -> Stylesheet:
    """A graph's stylesheet with its places in the source; an empty one for what lint cannot read."""
    try:
        return parse_stylesheet(embedded_text(graph, "model_stylesheet", graph.model_stylesheet))
    except StylesheetSyntaxError:
        return Stylesheet()


def own_model(backend: BackendSpec) -> ModelName | None:
    """The model that a backend asks when nobody names one; None when it has none, or does not say."""
    resolved = resolve_backend(backend)
    return resolved.own_model if isinstance(resolved, HasOwnModel) else None
