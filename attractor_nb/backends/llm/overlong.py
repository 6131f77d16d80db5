"""Refusals of a prompt that is too long, in the words of each server (``llm_fallback_on=overlong``).

pydantic-ai knows the words of the big providers. Servers of one's own and gateways have others, and most of them
send no code for it: one row of the table is one server's words, with where they can be read.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Wording(NamedTuple):
    """Words in which a server refuses a prompt that is too long."""

    server: str  #: Whose words they are.
    statuses: frozenset[int]  #: The HTTP statuses that it sends them with.
    pattern: str  #: An expression for the message or the error's type, in any case; empty for any message.
    source: str  #: Where the words can be read.


_BAD_REQUEST: Final = frozenset({400, 422, 500})
"""llama.cpp sent 500 before it sent 400."""
WORDINGS: Final = (
    Wording(
        "llama.cpp",
        _BAD_REQUEST,
        r"exceed_context_size_error|exceeds? the available context size|context size has been exceeded",
        "https://github.com/ggml-org/llama.cpp/issues/19774",
    ),
    Wording(
        "llama-cpp-python",
        _BAD_REQUEST,
        r"requested tokens \(\d+\) exceed context window",
        "https://github.com/abetlen/llama-cpp-python/issues/416",
    ),
    Wording(
        "LM Studio",
        _BAD_REQUEST,
        r"loaded with (?:a )?context length of only",
        "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546",
    ),
    Wording(
        "Ollama",
        _BAD_REQUEST,
        r"input (?:length )?exceeds (?:the )?(?:maximum )?context length",
        "https://github.com/nano-step/nano-brain/issues/208",
    ),
    Wording(
        "SGLang",
        _BAD_REQUEST,
        r"longer than the model\\?'s context length|input length \(\d+ tokens\) exceeds the maximum allowed length",
        "https://github.com/sgl-project/sglang/issues/8096, /4048",
    ),
    Wording(
        "TGI",
        _BAD_REQUEST,
        r"`inputs` (?:tokens \+ `max_new_tokens` must be <=|must have less than)",
        "https://github.com/huggingface/text-generation-inference/issues/628, /695",
    ),
    Wording(
        "vLLM", _BAD_REQUEST, r"longer than the maximum model length of", "https://github.com/thu-coai/Glyph/issues/9"
    ),
    Wording("any server or proxy", frozenset({413}), "", "RFC 9110, 15.5.14: content too large"),
)


def is_overlong(status: int, message: str) -> bool:
    """Whether a server refuses a prompt because it is too long.

    >>> is_overlong(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).")
    True

    Args:
        status: The HTTP status.
        message: What the server said, with the type of its error.
    """
    return any(status in each.statuses and re.search(each.pattern, message, re.IGNORECASE) for each in WORDINGS)
