"""The libraries behind the models of providers: whether they are installed, and loading them before they are needed.

It imports none of them itself, and does not know what they are used for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Final

from attractor_nb.calling import call
from attractor_nb.errors import OptionError
from attractor_nb.model.calls.providers import known_provider

if TYPE_CHECKING:
    from attractor_nb.backends.llm.model_requests import Target

EXTRA: Final = "llm"
INSTALL: Final = f"pip install 'attractor-nb[{EXTRA}]'"
_SLOW: Final = tuple(f"attractor_nb.backends.llm.{name}" for name in ("exchange", "clients", "thread_messages"))
"""Modules that load pydantic-ai and what is behind it."""


def check_installed() -> None:
    """Make sure that the extra ``llm`` is installed.

    Raises:
        OptionError: It is not; the hint is the command for it.
    """
    missing = [name for name in ("pydantic_ai", "openai", "anthropic") if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(f"the models of providers need {missing[0]}, which is not installed", hint=INSTALL)


def check_client(target: Target) -> None:
    """Make sure that the client of a provider is installed that the extra ``llm`` does not bring.

    Raises:
        OptionError: It is not; the hint is the command for it.
    """
    known = known_provider(target.provider)
    if known and known.extra != EXTRA and importlib.util.find_spec(known.package) is None:
        raise OptionError(
            f"{target} needs {known.package}, which is not installed", hint=f"pip install 'attractor-nb[{known.extra}]'"
        )


async def load_libraries() -> None:
    """Import what takes seconds, in a thread; once that is done a call pays nothing for it.

    Raises:
        OptionError: The extra ``llm`` is not installed.
    """
    if not all(name in sys.modules for name in _SLOW):
        check_installed()
        await call(_import_all)


def _import_all() -> None:
    for name in _SLOW:
        importlib.import_module(name)
