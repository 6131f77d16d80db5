"""Check before a run that its budget can hold, for unknown prices are never counted (ruling 18)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from attractor_nb import backends
from attractor_nb.decisions.bounds import bounds_of, node_bounds
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import later
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.backends import AgentBackend, ProviderBackend
    from attractor_nb.backends.agents import output_reader
    from attractor_nb.backends.llm import metered_requests
    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import CodergenBackend
else:
    output_reader = later("attractor_nb.backends.agents.output_reader")
    metered_requests = later("attractor_nb.backends.llm.metered_requests")

_HINT: Final = "set max_tokens_total, too: tokens are counted whatever they cost"
_ONE_EACH = Usage(1, 1, calls=1)


def check_budget(graph: Graph, bounds: Mapping[str, Any], backend: CodergenBackend) -> None:
    """Refuse a price as the only bound on spending where a model has no known price.

    Args:
        graph: What will run.
        bounds: Bounds in place of the graph's own.
        backend: What answers; models of providers are priced by their names, and so are those of agents that
            tell no price themselves.
    """
    _check_nodes(graph, backend)
    chosen = bounds_of(graph, bounds)
    if chosen.max_budget_usd is None or chosen.max_tokens_total is not None:
        return
    if why := _unpriced(graph, backend):
        raise OptionError(f"max_budget_usd={chosen.max_budget_usd:g} cannot hold: {why}", hint=_HINT)


def _check_nodes(graph: Graph, backend: CodergenBackend) -> None:
    """Check the bounds of nodes; of each what it asks itself."""
    for node in graph.nodes.values():
        bounds = node_bounds(node)
        if bounds is None or bounds.max_budget_usd is None or bounds.max_tokens_total is not None:
            continue
        children = {node.id: graph.children[node.id]} if node.id in graph.children else {}
        alone = replace(graph, nodes={node.id: node}, edges=(), children=children)
        if why := _unpriced(alone, backend):
            what = f"max_budget_usd={bounds.max_budget_usd:g} of {node.id}"
            raise OptionError(f"{what} cannot hold: {why}", hint=_HINT)
    for child in graph.children.values():
        _check_nodes(child, backend)


def _unpriced(graph: Graph, backend: CodergenBackend) -> str:
    """The reason a price is not known, in words; empty when all prices are known or the backend cannot be inspected."""
    if backends.is_agent(backend):
        return "" if backend.dialect.tells_price else _unpriced_by_agent(graph, backend)
    if backends.is_provider(backend):
        for node_id, name in unpriced_models(graph, backend):
            return f"the price of {name}, which {node_id} asks, is not known"
    return ""


def _unpriced_by_agent(graph: Graph, backend: AgentBackend) -> str:
    """The first node whose model has no list price, of an agent that tells none; empty without one."""
    name = backend.dialect.name
    for node in nodes_that_ask(graph):
        model = output_reader.priced_model(backend.dialect.price_provider, node.llm_model)
        if not model.model:
            return f"{name} reports no price, and {node.id} names no model that has one"
        if metered_requests.price_of(model, _ONE_EACH) is None:
            return f"{name} reports no price, and that of {model.model}, which {node.id} asks, is not known"
    children = (_unpriced_by_agent(child, backend) for child in graph.children.values())
    return next(filter(None, children), "")


def unpriced_models(graph: Graph, backend: ProviderBackend) -> Iterator[tuple[str, str]]:
    """Nodes and their models without a known price, fallbacks and child pipelines included."""
    for node in nodes_that_ask(graph):
        for target in backend.targets_of(node):
            name = ModelName(target.model, target.provider)
            if metered_requests.price_of(name, _ONE_EACH) is None:
                yield node.id, str(target)
    for child in graph.children.values():
        yield from unpriced_models(child, backend)
