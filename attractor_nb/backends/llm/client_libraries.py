"""The libraries behind the models of providers: whether they are installed, and loading them before they are needed.

It imports none of them itself, and does not know what they are used for.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.extras import has_package, install_command, missing_packages
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.providers import known_provider

if TYPE_CHECKING:
    from collections.abc import Generator

    from attractor_nb.backends.llm.model_requests import Target

_SLOW: Final = tuple(f"attractor_nb.backends.llm.{name}" for name in ("exchange", "clients", "thread_messages"))
"""Modules that load pydantic-ai and what is behind it."""


def check_installed() -> None:
    """Make sure that the extra ``llm`` is installed."""
    if missing := missing_packages("llm"):
        raise OptionError(
            f"the models of providers need {missing[0]}, which is not installed", hint=install_command("llm")
        )


def check_client(target: Target) -> None:
    """Make sure that the client of a provider is installed."""
    known = known_provider(target.provider)
    if known and not has_package(known.package):
        raise OptionError(f"{target} needs {known.package}, which is not installed", hint=install_command(known.extra))


async def load_libraries() -> None:
    """Import what takes seconds, in a thread; once that is done a call pays nothing for it."""
    if not all(name in sys.modules for name in _SLOW):
        check_installed()
        await call(_import_all)


def _import_all() -> None:
    for name in _SLOW:
        importlib.import_module(name)


@contextlib.contextmanager
def importing_without(variables: tuple[str, ...]) -> Generator[None]:
    """Import packages again that failed because of environment variables, with these unset for so long.

    Python keeps the modules of a package whose import failed halfway, and they would break the next import.
    """
    for name in list(sys.modules):
        if name.partition(".")[0] not in sys.modules:
            del sys.modules[name]
    values = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(values)
