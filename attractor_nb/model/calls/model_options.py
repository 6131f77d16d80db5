"""Options of a request that are passed on to the provider: ``llm.extra.top_p`` and so on (spec 4.5).

Pure. Some are known by one name to all providers; any other is put into the body of the request as it is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

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
"""What each is called by pydantic-ai, the types it may have, and these for people."""
OURS: Final = {
    "model": "llm_model",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "max_completion_tokens": "llm.max_tokens",
    "max_output_tokens": "llm.max_tokens",
    "reasoning_effort": "reasoning_effort",
    "response_format": "response_schema",
    "tools": "allowed_tools",
    "messages": "prompt",
    "input": "prompt",
    "stream": "",
    "api_key": "endpoint.NAME.key_env",
}
"""What has an attribute of its own, or is ours to say."""


def read_option(name: str, value: object) -> Any:
    """The value of an option: JSON where it is written as JSON, else the text.

    Raises:
        ValueError: It is not for this place, or has another type than it has to have.

    >>> read_option("top_p", "0.9"), read_option("stop", "END"), read_option("stop", '["a", "b"]')
    (0.9, ['END'], ['a', 'b'])
    """
    if name in OURS:
        where = f": write {OURS[name]}" if OURS[name] else ": it is not yours to say"
        raise ValueError(f"{PREFIX}{name} is not passed on{where}")
    read: Any = value
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            read = value
    if name not in KNOWN:
        return read
    if name == "stop" and not _is_one_of(read, (list,)):
        return [str(value)]
    _, types, words = KNOWN[name]
    if not _is_one_of(read, types):
        raise ValueError(f"{PREFIX}{name} is {value!r}, and has to be {words}")
    return read


def _is_one_of(value: object, types: tuple[type, ...]) -> bool:
    """Whether a value has just one of these types: a boolean is no number here."""
    return type(value) in types


def written_options(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The options among attributes, as they are written."""
    return {name.removeprefix(PREFIX): value for name, value in attrs.items() if name.startswith(PREFIX)}
