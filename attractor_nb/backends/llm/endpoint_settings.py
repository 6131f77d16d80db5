"""The user's own endpoints: ``endpoints.toml`` in the folder of the user's settings.

A table for each: ``[local]``, ``url = "http://127.0.0.1:8080/v1"``, ``key_env = "LOCAL_API_KEY"``; and for a
provider that is known by name, for its rates: ``[openai]``, ``requests_per_minute = 500``.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import OptionError
from attractor_nb.model.calls.model_endpoints import Endpoint, read_endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME: Final = "endpoints.toml"
MAX_BYTES: Final = 1 << 20
VARIABLE: Final = "ATTRACTOR_CONFIG_DIR"
"""Names another folder than the usual one."""


def settings_file() -> Path | None:
    """Where the user's endpoints are kept; None when the user has no home."""
    if given := os.environ.get(VARIABLE):
        return Path(given) / FILE_NAME
    base = os.environ.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "attractor_nb" / FILE_NAME


def users_endpoints() -> dict[str, Endpoint]:
    """The endpoints of the user's file; none when there is no file.

    Raises:
        OptionError: The file cannot be read, or an endpoint of it is none.
    """
    file = settings_file()
    try:
        if file is None or not file.is_file():
            return {}
        if file.stat().st_size > MAX_BYTES:
            raise OptionError(f"{file} is over {MAX_BYTES} bytes", hint="keep only endpoints in it")
        tables = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # of TOML and of UTF-8, too
        raise OptionError(f"{file} cannot be read: {error}", hint="correct the file, or remove it") from None
    return endpoints_from(tables, str(file))


def endpoints_from(tables: Mapping[str, Any], where: str) -> dict[str, Endpoint]:
    """Endpoints by name.

    Args:
        tables: What is written of each: its fields, or an ``Endpoint``.
        where: Who wrote it, for messages.

    Raises:
        OptionError: One of them is none.
    """
    found: dict[str, Endpoint] = {}
    for name, facts in tables.items():
        if isinstance(facts, Endpoint):
            found[name] = facts
            continue
        if not isinstance(facts, dict):
            raise OptionError(
                f"{where}: {name} is not an endpoint", hint=f'such as [{name}] with url = "https://…"'
            )
        try:
            endpoint = read_endpoint(name, cast("dict[str, Any]", facts))
            found[endpoint.name] = endpoint
        except ValueError as error:
            raise OptionError(f"{where}: {error}", hint="see docs/models.md") from None
    return found
