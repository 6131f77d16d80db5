"""Backends of model stages: none, a function, a model, or an agent (spec 1.4, 4.5).

A backend knows a node, a prompt and the context; never a handler or a run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from attractor_nb.backends.function_backends import FunctionBackend as FunctionBackend
from attractor_nb.backends.function_backends import SimulatedBackend
from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import deferred
from attractor_nb.model.texts import did_you_mean
from attractor_nb.protocols import CodergenBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.backends.agents.agent_backend import AgentBackend as AgentBackend
    from attractor_nb.backends.agents.agent_backend import ClaudeBackend as ClaudeBackend
    from attractor_nb.backends.agents.agent_backend import CodexBackend as CodexBackend
    from attractor_nb.backends.agents.agent_backend import GeminiBackend as GeminiBackend
    from attractor_nb.backends.agents.command_line import CommandLineBackend as CommandLineBackend
    from attractor_nb.backends.llm.provider_backend import ProviderBackend as ProviderBackend
    from attractor_nb.backends.local_model import LocalModelBackend as LocalModelBackend
else:
    __getattr__ = deferred(
        __name__,
        {
            "AgentBackend": "backends.agents.agent_backend",
            "ClaudeBackend": "backends.agents.agent_backend",
            "CodexBackend": "backends.agents.agent_backend",
            "GeminiBackend": "backends.agents.agent_backend",
            "CommandLineBackend": "backends.agents.command_line",
            "FunctionBackend": "backends.function_backends",
            "ProviderBackend": "backends.llm.provider_backend",
            "LocalModelBackend": "backends.local_model",
        },
    )

__all__ = [
    "AgentBackend",
    "ClaudeBackend",
    "CodexBackend",
    "CommandLineBackend",
    "FunctionBackend",
    "GeminiBackend",
    "LocalModelBackend",
    "ProviderBackend",
    "SimulatedBackend",
    "is_agent",
    "is_provider",
    "resolve_backend",
]


def _maker(name: str, method: str = "") -> Callable[[], CodergenBackend]:
    """A factory that imports a backend when it makes it."""

    def make() -> CodergenBackend:
        kind: Any = getattr(sys.modules[__name__], name)
        return getattr(kind, method)() if method else kind()

    return make


AGENTS: Final = frozenset({"claude", "codex", "gemini"})
"""Names of backends that are agents of the command line."""
NAMED: dict[str, Callable[[], CodergenBackend]] = {
    "simulated": SimulatedBackend,
    "local": _maker("LocalModelBackend", "installed"),
    "llm": _maker("ProviderBackend", "installed"),
    "claude": _maker("ClaudeBackend"),
    "codex": _maker("CodexBackend"),
    "gemini": _maker("GeminiBackend"),
}
"""The backends that an option can name."""
UNINSTALLED: dict[str, Callable[[], CodergenBackend]] = {"llm": _maker("ProviderBackend")}
"""Those that can say what goes into their calls without the libraries that make them."""


def is_provider(backend: object) -> TypeGuard[ProviderBackend]:
    """True if models of providers answer. Imports nothing: who has such a backend has imported it."""
    module = sys.modules.get("attractor_nb.backends.llm.provider_backend")
    return module is not None and isinstance(backend, module.ProviderBackend)


def is_agent(backend: object) -> TypeGuard[AgentBackend]:
    """True if a coding agent answers. Imports nothing either."""
    module = sys.modules.get("attractor_nb.backends.agents.agent_backend")
    return module is not None and isinstance(backend, module.AgentBackend)


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
        from attractor_nb.backends.function_backends import FunctionBackend  # noqa: PLC0415 - for callers' functions

        return FunctionBackend(spec)
    raise OptionError(
        f"a {type(spec).__name__} is not a backend",
        hint=f"give one of {', '.join(NAMED)}, an object with run(node, prompt, context), or a function",
    )
