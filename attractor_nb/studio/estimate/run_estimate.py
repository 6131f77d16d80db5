"""The cost estimate of a pipeline, as a value that displays well in a cell: `pipeline.estimate()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from attractor_nb.backends import resolve_backend
from attractor_nb.backends.llm.metered_requests import has_prices, price_of
from attractor_nb.decisions.bounds import RunBounds, bounds_of
from attractor_nb.decisions.planning.model_choices import ModelChoice, ValueChoice, model_choices, nodes_that_ask
from attractor_nb.decisions.planning.plan import Plan, compile_plan, has_loops
from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.extras import install_command
from attractor_nb.handlers.codergen import compose_prompt, rendered_node
from attractor_nb.handlers.named_models import SchemaModels, with_named_schema
from attractor_nb.languages.stylesheet import Stylesheet, parse_stylesheet
from attractor_nb.lint.survey import embedded_text
from attractor_nb.model.calls.messages import ATTACH, ATTACHMENT_TOKENS, attached_names, estimated_tokens
from attractor_nb.model.calls.providers import ModelName, read_fallbacks
from attractor_nb.model.texts import no_such_key
from attractor_nb.protocols import HasOwnModel
from attractor_nb.studio.estimate.estimated_usage import Assumptions, Estimator, NodeCalls, NodeEstimate, RunEstimate
from attractor_nb.views.summary_line import cost_text
from attractor_nb.views.table import Column, DisplayedTable, Table, required_pandas

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Usage
    from attractor_nb.runtime.prepare.run_options import BackendSpec


_COLUMNS: Final = (
    Column("node", "place"),
    Column("model"),
    Column("calls", "number"),
    Column("tokens", "number"),
    Column("USD", "number"),
    Column("worst calls", "number"),
    Column("worst tokens", "number"),
    Column("worst USD", "number"),
)
_NO_MODEL: Final = "\N{EN DASH}"


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(DisplayedTable):
    """The estimated usage of a run of a pipeline, before it runs."""

    name: str  #: The pipeline.
    run: RunEstimate  #: The estimate itself.
    bounds: RunBounds  #: The bounds that it was made for.
    is_looping: bool  #: A way leads back, so that bounds alone end the costliest run.
    are_prices_known: bool  #: A price list is installed.

    @property
    def expected(self) -> Usage:
        """The usage of the likely path: each of its stages once, at its first attempt."""
        return self.run.expected

    @property
    def worst(self) -> Usage:
        """The usage of the costliest run that retries, loops and bounds allow."""
        return self.run.worst

    @property
    def nodes(self) -> tuple[NodeEstimate, ...]:
        """The nodes that ask a model, or run a child that does."""
        return self.run.nodes

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions where nothing says otherwise."""
        return self.run.assumptions

    def __getitem__(self, node_id: str) -> NodeEstimate:
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        raise no_such_key("the estimate", "node", node_id, [node.node_id for node in self.nodes])

    @property
    def table(self) -> Table:
        """The same as a table."""
        rows = [_row(node) for node in self.nodes]
        spent = [*_words(self.expected), str(self.worst.calls), *_words(self.worst)]
        total = ["total", "", str(self.expected.calls), *spent] if len(rows) > 1 else ()
        return Table(f"Estimate of {self.name}", _COLUMNS, rows, total=total, notes=self._notes())

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each node."""
        return required_pandas().DataFrame([_plain_node(node) for node in self.nodes]).set_index("node")

    def to_plain(self) -> dict[str, Any]:
        """JSON values; a price that is not known is null."""
        return {
            "pipeline": self.name,
            "expected": _plain(self.expected),
            "worst": _plain(self.worst),
            "nodes": [_plain_node(node) for node in self.nodes],
            "notes": list(self._notes()),
        }

    def _notes(self) -> list[str]:
        """The bounds of the figures, and the gaps in them."""
        if not self.nodes:
            return ["No node asks a model: a run costs nothing."]
        assumed, bounds = self.assumptions, self.bounds
        most = f"{assumed.max_response_tokens:,}"
        notes = [f"Expected: each stage of the likely path once, {assumed.response_tokens:,} tokens a response."]
        notes.append(
            f"Worst: all attempts, loops and fallbacks that the bounds allow, {most} tokens a response "
            "where llm.max_tokens says nothing."
        )
        if self.run.is_shared:
            notes.append(f"max_steps={bounds.max_steps} holds for all nodes together: less than their sum.")
        if self.is_looping and bounds.max_node_visits is None:
            notes.append("A loop ends by max_steps alone; max_node_visits bounds it closer.")
        if bounds.max_budget_usd is not None:
            notes.append(f"max_budget_usd={bounds.max_budget_usd:g} stops a run that has cost as much.")
        if bounds.max_tokens_total is not None:
            notes.append(f"max_tokens_total={bounds.max_tokens_total} stops a run that has used as many.")
        if self.expected.unpriced_calls or self.worst.unpriced_calls:
            why = "" if self.are_prices_known else f": {install_command('llm')} brings a price list"
            notes.append(f"Where a price is not known, USD says so and the total leaves it out{why}.")
        return notes


def estimate(
    graph: Graph,
    *,
    name: str,
    values: Mapping[str, Any],
    backend: BackendSpec,
    assumptions: Assumptions,
    bounds: Mapping[str, Any],
    schemas: SchemaModels,
) -> Estimate:
    """The estimate of a graph as it will run, its child pipelines included.

    Args:
        name: The pipeline's name.
        values: What the context begins with: conditions see it, and prompts have it in place of variables.
        backend: Whose own model holds for nodes without a model.
        assumptions: What is taken for granted.
        bounds: Bounds in place of the graph's own.
        schemas: Models that ``response_schema`` of a node may name: prompts have their text.
    """
    plan = compile_plan(graph, bounds=bounds_of(graph, bounds))
    found = _estimate(plan, values, own_model(backend), assumptions, schemas)
    return Estimate(name, found, plan.bounds, has_loops(plan), has_prices())


def _estimate(
    plan: Plan, values: Mapping[str, Any], own: ModelName | None, assumptions: Assumptions, schemas: SchemaModels
) -> RunEstimate:
    graph = plan.graph
    children = {
        node_id: _estimate(compile_plan(child), {}, own, assumptions, schemas)
        for node_id, child in graph.children.items()
    }
    choices = {choice.node_id: choice.name for choice in model_choices(graph, stylesheet_of(graph), own)}
    known = {**graph.mirrored(), **values}
    asked = {
        node.id: _asked(with_named_schema(rendered_node(node, graph, known.get), schemas)[0], graph, choices[node.id])
        for node in nodes_that_ask(graph)
    }
    return Estimator(plan, asked, children, price_of, assumptions).estimate(values.get)


def _asked(node: Node, graph: Graph, name: ModelName) -> NodeCalls:
    prompt = f"{node.get('llm.system_prompt', str, '')}{compose_prompt(node, graph)}"
    return NodeCalls(
        estimated_tokens(prompt) + ATTACHMENT_TOKENS * len(attached_names(node.get(ATTACH, str, ""))),
        (name, *read_fallbacks(node.get("llm_fallback", str, ""))),
        node.get("llm.max_tokens", int),
        node.get("llm.context_tokens", int),
        bool(node.get("allowed_tools", str, "").strip()),
    )


def _row(node: NodeEstimate) -> list[str]:
    model = "child run" if node.model is None else str(node.model) or _NO_MODEL
    calls = [str(node.expected.calls), *_words(node.expected)]
    return [node.node_id, model, *calls, str(node.worst.calls), *_words(node.worst)]


def _words(usage: Usage) -> tuple[str, str]:
    """Tokens and price."""
    if not usage.calls:
        return "0", cost_text(0)
    if usage.cost_usd is None:
        return f"{usage.total_tokens:,}", "unpriced"
    at_least = "≥ " if usage.unpriced_calls else ""
    return f"{usage.total_tokens:,}", at_least + cost_text(usage.cost_usd)


def _plain(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd if usage.calls else 0.0,
        "unpriced_calls": usage.unpriced_calls,
    }


def _plain_node(node: NodeEstimate) -> dict[str, Any]:
    worst = {f"worst_{key}": value for key, value in _plain(node.worst).items()}
    model = None if node.model is None else str(node.model) or None
    return {"node": node.node_id, "model": model, **_plain(node.expected), **worst}


# The models of a pipeline as a value that reads well in a cell: who answers what, and which rule says so.

_MODEL_COLUMNS: Final = (
    Column("node", "place"),
    Column("model"),
    Column("from"),
    Column("provider"),
    Column("from"),
    Column("effort"),
    Column("from"),
)
_NOTHING: Final = "\N{EN DASH}"


class ModelReport(DisplayedTable, Sequence["ModelChoice"]):
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
        return Table("Models", _MODEL_COLUMNS, rows, notes=notes)


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
    """The model that a backend asks by default; None when it has none, or does not say."""
    resolved = resolve_backend(backend)
    return resolved.own_model if isinstance(resolved, HasOwnModel) else None
