"""The optional extras of this package: what each installs, whether it is there, and how to install it.

Each import of a package that is no dependency is made after a look here, so that users read which extra is missing.
"""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sysconfig
from typing import Final, NamedTuple


class Extra(NamedTuple):
    """An extra."""

    packages: tuple[str, ...]  #: The packages that this package imports from it.
    purpose: str  #: The feature that needs them.
    programs: tuple[str, ...] = ()  #: The programs of which it needs one; the last one comes with the extra.


EXTRAS: Final = {
    "llm": Extra(
        ("pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices", "httpx2"), "models of providers"
    ),
    "bedrock": Extra(("boto3",), "models of Amazon Bedrock"),
    "local": Extra(("xllamacpp", "httpx2"), "the local model"),
    "mcp": Extra(("mcp", "httpx2"), "MCP servers"),
    "server": Extra(("starlette", "uvicorn"), "`attractor-nb serve`"),
    "proxy": Extra(("jupyter_server_proxy", "starlette", "uvicorn"), "runs and graphs in JupyterLab"),
    "graphviz": Extra((), "Graphviz's layout engines", ("dot", "graphviz-pure")),
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
    """The packages of an extra that are not installed, and its program where none is."""
    wanted = EXTRAS[extra]
    missing = [name for name in wanted.packages if not has_package(name)]
    return missing if not wanted.programs or find_program(extra) else [*missing, wanted.programs[-1]]


def find_program(extra: str) -> str | None:
    """The first program of an extra that is there: on the path, or beside this Python, as in a kernel's environment."""
    scripts = sysconfig.get_path("scripts")
    places = (shutil.which(name) or shutil.which(name, path=scripts) for name in EXTRAS[extra].programs)
    return next((place for place in places if place), None)


def install_command(extra: str) -> str:
    """The command that adds an extra to this installation, from where the package itself was installed.

    A clone is named by its directory, an archive or a repository by its URL without user and password.
    """
    return f"pip install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    """The argument of pip: pip keeps the place of an installation in ``direct_url.json`` (PEP 610)."""
    import json  # noqa: PLC0415 - five imports for a message
    from importlib import metadata  # noqa: PLC0415 - as above
    from urllib.parse import urlsplit, urlunsplit  # noqa: PLC0415 - as above
    from urllib.request import url2pathname  # noqa: PLC0415 - as above

    name = f"attractor_nb[{extra}]"
    try:
        record = json.loads(metadata.distribution("attractor_nb").read_text("direct_url.json") or "{}")
        url = urlsplit(str(record["url"]))
        if "dir_info" in record:
            option = "-e " if record["dir_info"].get("editable") else ""
            return option + shlex.quote(f"{url2pathname(url.path)}[{extra}]")
        vcs = f"{record['vcs_info']['vcs']}+" if "vcs_info" in record else ""
    except (metadata.PackageNotFoundError, KeyError, TypeError, ValueError, AttributeError):
        return shlex.quote(name)  # installed from an index, or used without an installation
    return shlex.quote(f"{name} @ {vcs}{urlunsplit(url._replace(netloc=url.netloc.rpartition('@')[2]))}")
