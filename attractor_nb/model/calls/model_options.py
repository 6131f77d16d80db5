"""Options of a request that are passed on to the provider: ``llm.extra.top_p`` and so on (spec 4.5).

Pure. Some are known by one name to all providers; a few others a provider takes in the body of the request, as its
row in ``providers`` says.
No others are let through: a body can make a provider fetch addresses, run tools, keep a conversation or follow
other instructions than the run records and prices (ruling 43).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.providers import PROVIDERS, known_provider
from attractor_nb.model.texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "llm.extra."
KNOWN: Final = {
    "top_p": ("top_p", (int, float), "a number"),
    "top_k": ("top_k", (int,), "a whole number"),
    "seed": ("seed", (int,), "a whole number"),
    "stop": ("stop_sequences", (list,), "a text, or a JSON list of texts"),
    "presence_penalty": ("presence_penalty", (int, float), "a number"),
    "frequency_penalty": ("frequency_penalty", (int, float), "a number"),
    "logit_bias": ("logit_bias", (dict,), "a JSON object"),
    "parallel_tool_calls": ("parallel_tool_calls", (bool,), "true or false"),
    "service_tier": ("service_tier", (str,), "a word"),
}
"""pydantic-ai's name of each option, its types, and their description."""
_IN_A_BODY: Final = {name: form for provider in PROVIDERS for name, form in provider.body.items()}
PASSED_ON: Final = frozenset(KNOWN) | frozenset(_IN_A_BODY)
"""All names that some provider takes."""
_WRITTEN: Final = sorted(PREFIX + name for name in PASSED_ON)
OURS: Final = {
    "model": "llm_model",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "max_completion_tokens": "llm.max_tokens",
    "max_output_tokens": "llm.max_tokens",
    "reasoning_effort": "reasoning_effort",
    "response_format": "response_schema",
    "tools": "allowed_tools",
    "functions": "allowed_tools",
    "mcp_servers": "mcp.NAME.command",
    "system": "llm.system_prompt",
    "instructions": "llm.system_prompt",
    "messages": "prompt",
    "input": "prompt",
    "models": "llm_fallback",
    "stream": "",
    "api_key": "endpoint.NAME.key_env",
}
"""Options that have their own attribute, or that only we set."""


def read_option(name: str, value: object) -> Any:
    """The value of an option: JSON where it is written as JSON, else the text.

    >>> read_option("top_p", "0.9"), read_option("stop", "END"), read_option("stop", '["a", "b"]')
    (0.9, ['END'], ['a', 'b'])
    """
    if name in OURS:
        where = f": write {OURS[name]}" if OURS[name] else ": it is not yours to say"
        raise ValueError(f"{PREFIX}{name} is not passed on{where}")
    if name not in PASSED_ON:
        raise ValueError(f"{PREFIX}{name} is not passed on{did_you_mean(PREFIX + name, _WRITTEN)}")
    read: Any = value
    if isinstance(value, str):
        try:
            read = read_bounded_json(value)
        except ValueError:
            read = value
    if name == "stop" and not _is_one_of(read, (list,)):
        return [str(value)]
    types, words = KNOWN[name][1:] if name in KNOWN else _IN_A_BODY[name]
    if not _is_one_of(read, types):
        raise ValueError(f"{PREFIX}{name} is {value!r}, and has to be {words}")
    return read


def is_taken(name: str, provider: str) -> bool:
    """True if an option is passed on to a provider.

    >>> is_taken("top_p", "anthropic"), is_taken("min_p", "anthropic"), is_taken("min_p", "openai")
    (True, False, True)
    """
    entry = known_provider(provider)
    return name in KNOWN or (entry is not None and name in entry.body)


def _is_one_of(value: object, types: tuple[type, ...]) -> bool:
    """True if a value has just one of these types: a boolean is no number here."""
    return type(value) in types


def written_options(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The options among attributes, as they are written."""
    return {name.removeprefix(PREFIX): value for name, value in attrs.items() if name.startswith(PREFIX)}
