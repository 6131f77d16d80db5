"""What stands behind a model stage: nothing, a function, a model, or an agent (spec 1.4, 4.5).

A backend knows a node, a prompt and the context; never a handler or a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.backends.agents import ClaudeBackend, CodexBackend, CommandLineBackend, GeminiBackend
from attractor_nb.backends.function import FunctionBackend
from attractor_nb.backends.llm import ProviderBackend
from attractor_nb.backends.local_model import LocalModelBackend
from attractor_nb.backends.simulated import SimulatedBackend
from attractor_nb.errors import OptionError
from attractor_nb.model.spelling import did_you_mean
from attractor_nb.protocols import CodergenBackend

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ClaudeBackend",
    "CodexBackend",
    "CommandLineBackend",
    "FunctionBackend",
    "GeminiBackend",
    "LocalModelBackend",
    "ProviderBackend",
    "SimulatedBackend",
    "resolve_backend",
]

NAMED: dict[str, Callable[[], CodergenBackend]] = {
    "simulated": SimulatedBackend,
    "local": LocalModelBackend.installed,
    "llm": ProviderBackend.installed,
    "claude": ClaudeBackend,
    "codex": CodexBackend,
    "gemini": GeminiBackend,
}
"""The backends that an option can name."""
UNINSTALLED: dict[str, Callable[[], CodergenBackend]] = {"llm": ProviderBackend}
"""Those that can say what goes into their calls without the libraries that make them."""


def resolve_backend(spec: str | CodergenBackend | Callable[..., object] | None) -> CodergenBackend:
    """The backend that an argument or option means.

    Args:
        spec: A name of ``NAMED``, a backend, or a function of ``(node, prompt, context)`` or
            ``(prompt)``. None: simulated (spec 4.5).

    Raises:
        OptionError: It means none, or what it means is not installed.
    """
    if spec is None:
        return SimulatedBackend()
    if isinstance(spec, str):
        if spec in NAMED:
            return NAMED[spec]()
        raise OptionError(
            f"there is no backend {spec!r}{did_you_mean(spec, NAMED)}",
            hint=f"one of {', '.join(NAMED)}; or give a backend or a function of a prompt",
        )
    if isinstance(spec, type):
        raise OptionError(
            f"the backend is the class {spec.__name__}, not an object of it", hint=f"give {spec.__name__}(…)"
        )
    if isinstance(spec, CodergenBackend):
        return spec
    if callable(spec):
        return FunctionBackend(spec)
    raise OptionError(
        f"a {type(spec).__name__} is not a backend",
        hint=f"give one of {', '.join(NAMED)}, an object with run(node, prompt, context), or a function",
    )
