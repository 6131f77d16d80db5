"""Where the models of providers are, and which key goes there. Reads the environment, loads no library."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from attractor_nb.model.providers import known_provider

if TYPE_CHECKING:
    from attractor_nb.backends.llm.asking import Target

_ADDRESSES: Final = {
    "deepseek": "https://api.deepseek.com",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://localhost:11434/v1",
}
"""Where providers are that speak OpenAI's language at an address of their own."""
_OFFICIAL: Final = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""Where the clients of the others go by themselves."""
_ADDRESS_VARIABLES: Final = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


def address_of(target: Target) -> str:
    """Where a target is: its own address, the environment's, the provider's; empty for the official one."""
    known = known_provider(target.provider)
    variable = (known.address if known else "") or _ADDRESS_VARIABLES.get(target.provider, "")
    set_there = os.environ.get(variable, "") if variable else ""
    return target.base_url or set_there or _ADDRESSES.get(target.provider, "")


def public_address_of(target: Target) -> str:
    """The same, and for the official address what that is; empty when nobody knows."""
    return address_of(target) or _OFFICIAL.get(target.provider, "")


def key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables that can hold a provider's key."""
    known = known_provider(provider)
    return known.keys if known else ()


def set_key(provider: str) -> tuple[str, str] | None:
    """The variable that holds a provider's key, and the key; None when none is set."""
    for name in key_variables(provider):
        if key := os.environ.get(name, "").strip():
            return name, key
    return None


def needs_key(target: Target, address: str) -> bool:
    """Whether a target cannot be asked without a key: at an address of one's own it may."""
    if not key_variables(target.provider):
        return False
    return not address or address == _ADDRESSES.get(target.provider)
