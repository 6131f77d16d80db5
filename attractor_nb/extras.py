"""The optional extras of this package: what each installs, whether it is there, and how to install it.

Each import of a package that is no dependency is made after a look here, so that users read which extra is missing.
"""

from __future__ import annotations

import importlib.util
from typing import Final, NamedTuple


class Extra(NamedTuple):
    """An extra."""

    packages: tuple[str, ...]  #: The packages that this package imports from it.
    purpose: str  #: The feature that needs them.


EXTRAS: Final = {
    "llm": Extra(
        ("pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices", "httpx2"), "models of providers"
    ),
    "bedrock": Extra(("boto3",), "models of Amazon Bedrock"),
    "local": Extra(("xllamacpp", "httpx2"), "the local model"),
    "mcp": Extra(("mcp", "httpx2"), "MCP servers"),
    "server": Extra(("starlette", "uvicorn"), "`attractor-nb serve`"),
    "proxy": Extra(("jupyter_server_proxy", "starlette", "uvicorn"), "runs and graphs in JupyterLab"),
    "lsp": Extra(("pygls", "lsprotocol"), "`attractor-nb lsp` for editors"),
    "png": Extra(("resvg_py",), "PNG pictures"),
    "tracing": Extra(("opentelemetry.trace",), "traces"),
    "dask": Extra(("distributed",), "workers of a Dask cluster"),
}
"""Those of ``pyproject.toml`` that this package imports anything of, the most used first."""


def has_package(name: str) -> bool:
    """True if a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of a part, its whole
        return False


def missing_packages(extra: str) -> list[str]:
    """The packages of an extra that are not installed."""
    return [name for name in EXTRAS[extra].packages if not has_package(name)]


def install_command(extra: str) -> str:
    """The command that installs an extra.

    >>> install_command("server")
    "pip install 'attractor-nb[server]'"
    """
    return f"pip install 'attractor-nb[{extra}]'"
