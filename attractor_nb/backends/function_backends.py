"""Backends that ask no model: any function of the caller's, and fixed texts (spec 4.5)."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.replays.cache_keys import (
    READS_ATTRIBUTE,
    RunPaths,
    attribute_inputs,
    context_inputs,
    read_values,
)
from attractor_nb.errors import OptionError
from attractor_nb.maybe_async import call
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.vocabulary.value_forms import comma_list
from attractor_nb.stage import stream_output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import MaybeAwaitable

_ARGUMENTS = ("node", "prompt", "context")


class FunctionBackend:
    """Answer prompts with a function. A plain function runs in its own thread.

    Args:
        function: Takes ``(node, prompt, context)``, or one argument: the prompt. Returns the
            response text or an Outcome.

    Raises:
        OptionError: The function takes neither.
    """

    takes_attachments: Final = True
    """Attachments of a stage are in ``current_stage().attachments``."""

    def __init__(self, function: Callable[..., MaybeAwaitable[str | Outcome]] | Callable[..., Any]) -> None:
        self._function = function
        self._takes_prompt_alone = _takes_prompt_alone(function)

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """Return the result of the function."""
        if self._takes_prompt_alone:
            return await call(self._function, prompt)
        return await call(self._function, node, prompt, context)

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any] | None:
        """Its name and version, and whatever it is called with beside the prompt; None without a version.

        The version is an attribute of the function, a text that changes with what it answers:
        ``ask.version = "2"``.
        """
        version = getattr(self._function, "version", None)
        if version is None:
            return None
        name = getattr(self._function, "__qualname__", type(self._function).__qualname__)
        inputs: dict[str, Any] = {"backend": name, "version": str(version)}
        if not self._takes_prompt_alone:
            declared = node.get(READS_ATTRIBUTE, str)
            values = {key: context.get(key) for key in context}
            read = read_values(values, None if declared is None else comma_list(declared))
            inputs["attributes"] = attribute_inputs(node.attrs)
            inputs["context"] = context_inputs(read, RunPaths())
        return inputs

    def cache_inputs(self, node: Node) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of all backends
        """The module of the function: one of the same name elsewhere answers otherwise (ruling 44)."""
        return {"module": str(getattr(self._function, "__module__", type(self._function).__module__))}

    def __repr__(self) -> str:
        return f"FunctionBackend({getattr(self._function, '__qualname__', self._function)!s})"


def _takes_prompt_alone(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C and silent about its arguments, such as str
        return True
    required = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    # One required argument is the prompt, whatever options come after it.
    for count in (1, 3) if len(required) == 1 else (3, 1):
        try:
            signature.bind(*_ARGUMENTS[:count])
        except TypeError:
            continue
        return count == 1
    raise OptionError(
        f"a backend function takes (node, prompt, context) or (prompt), not {signature}",
        hint="def backend(node, prompt, context): ...",
    )


class SimulatedBackend:
    """Answers every prompt with ``[Simulated] Response for stage: <id>``.

    Args:
        delay_seconds: How long each response takes, word by word, so that a demonstration can be
            followed.
        sleep: How it waits.
    """

    takes_attachments: Final = True
    """Attachments of a stage are in ``current_stage().attachments``."""

    def __init__(
        self, *, delay_seconds: float = 0.0, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._delay_seconds = delay_seconds
        self._sleep = sleep

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:  # noqa: ARG002 - the interface of all backends
        """The fixed text, with a verdict of success where the node asks for one.

        A node with a ``response_schema`` gets an outcome that says that nothing was checked: no text
        satisfies every schema.
        """
        if node.get("response_schema", str, ""):
            return Outcome.success(f"[Simulated] {node.id}: no response, so response_schema was not checked")
        text = f"[Simulated] Response for stage: {node.id}"
        if node.get("verdict", str, "") == "json":
            text += '\n\n```json\n{"outcome": "success", "notes": "simulated"}\n```'
        await self._stream(text)
        return text

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of all backends
        """Its name and the stage's, which are all that its answer depends on."""
        return {"backend": "simulated", "stage": node.id}

    async def _stream(self, text: str) -> None:
        if not self._delay_seconds:
            stream_output(text)
            return
        words = text.split(" ")
        for position, word in enumerate(words):
            await self._sleep(self._delay_seconds / len(words))
            stream_output(word if position == 0 else f" {word}")

    def __repr__(self) -> str:
        return f"SimulatedBackend(delay_seconds={self._delay_seconds})"
