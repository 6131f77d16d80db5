"""``executor=``: which plugs of a run do their work on workers, and whether they can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from attractor_nb.backends import resolve_backend
from attractor_nb.decisions.planning.plan_compiling import compile_plan
from attractor_nb.handlers.handler_registry import HandlerRegistry
from attractor_nb.protocols import BackendLifetime
from attractor_nb.runtime.prepare.run_options import worker_wait_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.protocols import CodergenBackend, Handler, Processes
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.workers.shipping import Shipping


class Plugs(Struct, frozen=True):
    """What stands behind the model and tool stages of a run."""

    backend: CodergenBackend  #: What answers prompts.
    processes: Processes  #: What runs commands.
    shipping: Shipping | None = None  #: The way to the workers; None when all is done here.

    @property
    def lifetimes(self) -> tuple[BackendLifetime, ...]:
        """What is opened before the first stage and closed after the last; a shipped backend is there."""
        if self.shipping is not None:
            return (self.shipping,)
        return (self.backend,) if isinstance(self.backend, BackendLifetime) else ()

    def shipped(self, handlers: dict[str, Handler]) -> dict[str, Handler]:
        """Handlers by node, those that may travel behind the way to the workers."""
        if self.shipping is None:
            return handlers
        from attractor_nb.workers.plugs import ShippedHandler, is_shippable, packed  # noqa: PLC0415 - for executors alone

        found: dict[int, Handler] = {}
        for handler in handlers.values():
            if is_shippable(handler) and id(handler) not in found:
                found[id(handler)] = ShippedHandler(self.shipping, handler, packed(handler, "the handler"))
        return {node_id: found.get(id(handler), handler) for node_id, handler in handlers.items()}


def shipping_of(options: RunOptions, plan: Plan) -> Shipping | None:
    """The way to the workers of ``executor=``, not opened yet; None without one."""
    if options.executor is None:
        return None
    from attractor_nb.workers.shipping import Shipping  # noqa: PLC0415 - for executors alone

    return Shipping(options.executor, wait_seconds=worker_wait_seconds(options.worker_wait), once=_once(plan))


def _once(plan: Plan) -> dict[str, bool]:
    """By node: whether its work must not happen twice unasked; one of a child run of that name counts, too."""
    once = {planned.id: planned.on_interrupted != "rerun" for planned in plan.nodes.values()}
    for child in plan.graph.children.values():
        for node_id, is_once in _once(compile_plan(child)).items():
            once[node_id] = once.get(node_id, False) or is_once
    return once


def shipped_plugs(plugs: Plugs, options: RunOptions, shipping: Shipping) -> Plugs:
    """The same plugs, done by the workers of ``executor=``. Processes of the caller's own stay here."""
    from attractor_nb.workers.plugs import ShippedBackend, ShippedProcesses  # noqa: PLC0415 - for executors alone

    return Plugs(
        ShippedBackend(shipping, plugs.backend, backend_name(options)),
        plugs.processes if options.processes is not None else ShippedProcesses(shipping),
        shipping,
    )


def check_shipping(options: RunOptions, handlers: Mapping[str, Handler | Callable[..., Any]]) -> None:
    """Check that what ``executor=`` ships can travel, before anything is made for a run."""
    if options.executor is None:
        return
    from attractor_nb.workers.plugs import check_executor, is_shippable, packed  # noqa: PLC0415 - for executors alone

    check_executor(options.executor)
    if not backend_name(options):
        packed(resolve_backend(options.backend), "the backend")
    registry = HandlerRegistry()
    for handler_type, handler in handlers.items():
        registry.register(handler_type, handler)
        if is_shippable(handler):
            packed(handler, f"the handler of type {handler_type!r}")


def backend_name(options: RunOptions) -> str:
    """The name of the backend, if it has one: then each worker makes its own."""
    if options.backend is None:
        return "simulated"
    return options.backend if isinstance(options.backend, str) else ""
