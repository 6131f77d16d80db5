"""How a server is named on a command line and in the environment."""

from __future__ import annotations

from typing import Final

SERVER_VARIABLE: Final = "ATTRACTOR_SERVER"
TOKEN_VARIABLE: Final = "ATTRACTOR_TOKEN"  # noqa: S105 - the name of a variable


def is_url(text: str) -> bool:
    """Whether a text names a server, or something on it."""
    return text.startswith(("http://", "https://"))
