"""The registry of handlers, which resolves the handler of a node (spec 4.2, 4.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.maybe_async import call
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, DEFAULT_TYPE, type_of_shape
from attractor_nb.protocols import Handler, MaybeAwaitable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node


class FunctionHandler:
    """A handler made of a function with the arguments of ``Handler.execute``."""

    def __init__(self, function: Callable[..., MaybeAwaitable[Outcome | None]]) -> None:
        self.function = function
        self.is_shippable = bool(getattr(function, "is_shippable", False))
        self.version = getattr(function, "version", None)

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome | None:
        """Call the function; a plain one in a thread."""
        return await call(self.function, node, context, graph, logs_root)

    def __repr__(self) -> str:
        return f"FunctionHandler({getattr(self.function, '__qualname__', self.function)!s})"


class HandlerRegistry:
    """Handlers by type.

    A built-in type without a handler is an error and not a model's task: a fan-out that a model
    merely talks about would be a success although nothing was executed.
    """

    def __init__(self, handlers: Mapping[str, Handler] | None = None) -> None:
        self._handlers: dict[str, Handler] = dict(handlers or {})

    def register(self, handler_type: str, handler: Handler | Callable[..., Any]) -> None:
        """Give a type its handler, in place of an earlier one.

        Args:
            handler_type: The value of a node's ``type`` attribute, or a built-in type to replace.
            handler: An object with ``execute``, or a function with the same arguments.
        """
        if not isinstance(handler_type, str) or not handler_type.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise OptionError("a handler type is a non-empty text", hint='registry.register("my.type", handler)')
        if isinstance(handler, type):
            raise OptionError(
                f"handler {handler_type!r} is the class {handler.__name__}, not an object of it",
                hint=f"register {handler.__name__}(…)",
            )
        if isinstance(handler, Handler):
            self._handlers[handler_type] = handler
        elif callable(handler):
            self._handlers[handler_type] = FunctionHandler(handler)
        else:
            raise OptionError(
                f"handler {handler_type!r} is a {type(handler).__name__} without an execute method",
                hint="give an object with execute(node, context, graph, logs_root), or such a function",
            )

    def register_all(self, handlers: Mapping[str, Handler | Callable[..., Any]]) -> None:
        """``register`` each of them."""
        for handler_type, handler in handlers.items():
            self.register(handler_type, handler)

    def resolve(self, node: Node) -> Handler:
        """The handler of a node: by its type, else by its shape, else the model's (spec 4.2)."""
        if node.handler_type in self._handlers:
            return self._handlers[node.handler_type]
        wanted = node.type if node.type in BUILT_IN_TYPES else type_of_shape(node.shape)
        found = self._handlers.get(wanted)
        if found is not None:
            return found
        raise TerminalError(
            f"node {node.id!r} needs a handler of type {wanted!r}, and none is registered",
            hint=f"register one for {wanted!r}; there are handlers for {', '.join(sorted(self.known_types))}"
            if self._handlers
            else f"register one for {DEFAULT_TYPE!r}",
        )

    @property
    def known_types(self) -> frozenset[str]:
        """All types that have a handler."""
        return frozenset(self._handlers)

    def copy(self) -> HandlerRegistry:
        """A separate registry with the same handlers."""
        return HandlerRegistry(self._handlers)

    def __repr__(self) -> str:
        return f"HandlerRegistry({', '.join(sorted(self._handlers))})"


# Nodes that do nothing themselves: the start, the exit, the diamond (spec 4.3, 4.4, 4.7; ruling 16).


class StartHandler:
    """Does nothing, successfully."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success()


class ExitHandler:
    """Does nothing, successfully."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success()


class ConditionalHandler:
    """Does nothing: routing belongs to the traversal, which is deterministic and can be inspected."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success(f"Conditional node evaluated: {node.id}")
