"""A request's options as a model takes them: reasoning effort, temperature, limits (spec 2.6).

Pure. What a model thinks with, and what it takes beside, its profile says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.calls.model_options import KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.llm.model_requests import Request

EFFORTS: Final = ("low", "medium", "high")
_THINKING_BUDGETS: Final = {"low": 2048, "medium": 10_000, "high": 16_384}
"""Tokens that Anthropic's models think for where their thinking has a budget, which is part of the limit."""
_COOL_THINKERS: Final = frozenset({"openai", "anthropic", "azure", "bedrock"})
"""Whose models take no temperature while they think."""


def model_settings(
    request: Request,
    provider: str,
    profile: Mapping[str, Any],
    *,
    read_seconds: float,
) -> dict[str, Any]:
    """Settings of a call, by pydantic-ai's names.

    Temperature and thinking exclude each other with some providers. There a written effort goes before a
    temperature, and a temperature before the default effort.

    Args:
        request: What the node asks for.
        provider: Whose model it is.
        profile: What the model can do.
        read_seconds: How long a server may be silent.
    """
    settings: dict[str, Any] = {
        "max_retries": 0,  # the engine's retries are the only ones (ruling 13)
        "timeout": read_seconds,
    }
    others = {name: value for name, value in request.extra.items() if name not in KNOWN}
    settings.update((KNOWN[name][0], value) for name, value in request.extra.items() if name in KNOWN)
    if others:
        settings["extra_body"] = others
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    effort = _effort(request, provider, profile)
    if effort is not None:
        settings["thinking"] = effort
    is_thinking = bool(effort) and provider in _COOL_THINKERS
    if request.temperature is not None and not is_thinking:
        settings["temperature"] = request.temperature
    return settings


def _effort(request: Request, provider: str, profile: Mapping[str, Any]) -> str | bool | None:
    """How hard the model thinks; False for not at all, None where it cannot."""
    if not profile.get("supports_thinking", False):
        return None
    is_always = bool(profile.get("thinking_always_enabled", False))
    is_cool = request.temperature is not None and provider in _COOL_THINKERS
    if is_cool and not request.is_effort_asked and not is_always:
        return False
    if provider != "anthropic" or profile.get("anthropic_supports_adaptive_thinking", False):
        return request.effort
    limit = request.max_tokens
    fitting = [
        word
        for word in EFFORTS[: EFFORTS.index(request.effort) + 1 if request.effort in EFFORTS else 0]
        if limit is None or _THINKING_BUDGETS[word] < limit
    ]
    return fitting[-1] if fitting else False
