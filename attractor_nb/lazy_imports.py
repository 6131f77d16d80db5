"""Names that a module offers, and modules that it uses, imported when they are first used (PEP 562).

Most processes need a small part of what a pipeline can do. A module that offers much writes its imports
twice: for type checkers and editors under ``if TYPE_CHECKING``, and as a table. One that seldom calls another
module names it there, too, and takes it by ``later``. A test compares both.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def deferred(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module, that imports a name when it is first asked for.

    Args:
        module: The module's ``__name__``.
        homes: For each name the module that defines it, below the package root: ``views.drawings.svg``.
    """
    root = module.partition(".")[0]

    def import_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(f"{root}.{homes[name]}"), name)
        setattr(sys.modules[module], name, value)
        return value

    return import_name


def later(module: str) -> Any:
    """A stand-in for a module, that imports it when something of it is first asked for.

    Args:
        module: Its full name.
    """
    return _Later(module)


class _Later:
    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)
