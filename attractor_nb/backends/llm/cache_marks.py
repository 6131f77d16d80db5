"""Where a provider is told what of a request it may keep: Anthropic keeps nothing that is not marked.

Writing to a cache costs a quarter more than sending, reading from it a tenth: what nobody will send again is
not marked. Other providers know prefixes again by themselves; for them it is enough that a prompt begins
with what stays the same. Loads pydantic-ai.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.messages import CachePoint

from attractor_nb.model.calls.prompt_sections import stable_length
from attractor_nb.model.calls.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

MARKING: Final = frozenset({"anthropic"})
"""Providers that keep what is marked."""
LEAST_CHARACTERS: Final = 1024 * CHARACTERS_PER_TOKEN
"""About the least that they keep."""


def cache_settings(provider: str, *, is_talk: bool) -> dict[str, Any]:
    """Settings by which instructions and tools are kept, and of a talk all that was said.

    Args:
        provider: Whose model it is.
        is_talk: More requests follow that begin with this one: of a tool loop, or of a thread.

    >>> cache_settings("anthropic", is_talk=True), cache_settings("openai", is_talk=True)
    ({'cache': True}, {})
    """
    if provider not in MARKING:
        return {}
    return {"cache": True if is_talk else {"messages": False}}


def marked_prompt(prompt: str, provider: str, *, is_talk: bool) -> str | list[UserContent]:
    """A prompt with a mark behind what the prompts of a run share, where that is long enough to be kept.

    Args:
        prompt: The prompt.
        provider: Whose model is asked.
        is_talk: All of it is kept by the settings already, and a thread keeps its prompts as texts.
    """
    length = 0 if is_talk or provider not in MARKING else stable_length(prompt)
    if length < LEAST_CHARACTERS:
        return prompt
    return [prompt[:length], CachePoint(), prompt[length:]]
