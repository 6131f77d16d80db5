"""Whether a budget can hold: asked before a run, for unknown prices are never counted (ruling 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.backends import ProviderBackend
from attractor_nb.backends.agents import AgentBackend
from attractor_nb.backends.llm.prices import price_of
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.model_choices import is_model_asked, nodes_that_ask
from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Usage
from attractor_nb.model.providers import ModelName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import CodergenBackend

_ONE_EACH = Usage(1, 1, calls=1)


def check_budget(graph: Graph, bounds: Mapping[str, Any], backend: CodergenBackend) -> None:
    """Refuse a price as the only bound on spending where a model has no known price.

    Args:
        graph: What will run.
        bounds: Bounds in place of the graph's own.
        backend: What answers; only models of providers are priced by their names, and of agents it is known
            which tell a price.

    Raises:
        OptionError: A model has no known price, and ``max_tokens_total`` bounds nothing either.
    """
    chosen = bounds_of(graph, bounds)
    if chosen.max_budget_usd is None or chosen.max_tokens_total is not None:
        return
    if why := _unpriced(graph, backend):
        raise OptionError(
            f"max_budget_usd={chosen.max_budget_usd:g} cannot hold: {why}",
            hint="set max_tokens_total, too: tokens are counted whatever they cost",
        )


def _unpriced(graph: Graph, backend: CodergenBackend) -> str:
    """What is asked and has no known price; empty when there is nothing, or nobody can tell."""
    if isinstance(backend, AgentBackend):
        return (
            ""
            if backend.dialect.tells_price or not is_model_asked(graph)
            else f"{backend.dialect.name} tells no price"
        )
    if isinstance(backend, ProviderBackend):
        for node_id, name in unpriced_models(graph, backend):
            return f"the price of {name}, which {node_id} asks, is not known"
    return ""


def unpriced_models(graph: Graph, backend: ProviderBackend) -> Iterator[tuple[str, ModelName]]:
    """Nodes and their models without a known price, fallbacks and child pipelines included.

    Raises:
        TerminalError: A node names no model that can be asked.
    """
    for node in nodes_that_ask(graph):
        for target in backend.targets_of(node):
            name = ModelName(target.model, target.provider)
            if price_of(name, _ONE_EACH) is None:
                yield node.id, name
    for child in graph.children.values():
        yield from unpriced_models(child, backend)
