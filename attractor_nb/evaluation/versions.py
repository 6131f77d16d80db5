"""Versions of scorers: a digest of all that a function's answer depends on, as far as it can be read.

A stored score is reused for the same version alone. A function depends on its source, its defaults, what it closes
over, and the globals that it names: values, and functions of its own package with theirs. A library counts by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from hashlib import sha256
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, Final, cast

_ADDRESS: Final = " at 0x"
_MAPPINGS: Final = (dict, MappingProxyType)
_PLAIN: Final = (list, tuple, set, frozenset)


def version_of(thing: object) -> str:
    """Digest of a function or object; empty when no source can be read, as of one that was typed into ``python``."""
    own = getattr(thing, "version", None)
    if own is not None:
        return str(own)
    if isinstance(thing, partial):
        inner = version_of(thing.func)
        return inner and f"{inner} {_digest(_Reader(_package(thing.func)).text([thing.args, thing.keywords]))}"
    if not _source(thing if inspect.isroutine(thing) else type(thing)):
        return ""
    package = _package(thing if inspect.isroutine(thing) else type(thing))
    return _digest(_Reader(package).text(thing))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def _package(thing: object) -> str:
    return str(getattr(thing, "__module__", "")).partition(".")[0]


def _code_names(code: CodeType) -> set[str]:
    """The names that code reads, with those of the functions and comprehensions inside it."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_code_names, inner))


class _Reader:
    """Reads what a function depends on, each thing once, as a text that another process would read, too."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._seen: dict[int, object] = {}  # by identity, which holds while the value is kept

    def text(self, value: object, *, is_attribute: bool = False) -> str:
        """A value as a text; an object that is an attribute of another one counts by its class."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        if id(value) in self._seen:
            return "again"
        self._seen[id(value)] = value
        if isinstance(value, MethodType):
            return f"{self.text(value.__func__)} of {self.text(value.__self__)}"
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, type):
            return self._of_class(value)
        if isinstance(value, ModuleType) or inspect.isroutine(value):
            return f"{getattr(value, '__module__', '')}.{value.__name__}"
        kind: type[object] = type(value)
        if kind in _MAPPINGS:
            pairs = cast("Mapping[object, object]", value).items()
            return repr([f"{name!r}={self.text(each, is_attribute=is_attribute)}" for name, each in pairs])
        if kind in _PLAIN:
            found = [self.text(each, is_attribute=is_attribute) for each in cast("Iterable[object]", value)]
            return repr(sorted(found) if isinstance(value, AbstractSet) else found)
        if isinstance(value, dict):  # a Counter, a cache: what a scorer fills
            return self.text(kind)
        return self._of_object(value, is_attribute=is_attribute)

    def _of_function(self, function: FunctionType) -> str:
        name = f"{function.__module__}.{function.__qualname__}"
        if _package(function) != self._package:
            return name
        named = sorted(_code_names(function.__code__) & function.__globals__.keys())
        parts: list[object] = [
            function.__defaults__,
            function.__kwdefaults__,
            inspect.getclosurevars(function).nonlocals,
            {each: function.__globals__[each] for each in named},
        ]
        return "\0".join([_source(function) or name, *map(self.text, parts)])

    def _of_class(self, kind: type) -> str:
        name = f"{kind.__module__}.{kind.__qualname__}"
        return name if _package(kind) != self._package else f"{name}\0{_source(kind)}"

    def _of_object(self, value: Any, *, is_attribute: bool) -> str:
        own = cast("type[object]", type(value))
        kind = self.text(own)
        try:
            shown = "" if own.__repr__ is object.__repr__ else repr(value)
        except Exception:  # noqa: BLE001 - of an object of the caller
            shown = ""
        if shown and _ADDRESS not in shown:
            return f"{kind} {shown}"
        return kind if is_attribute else f"{kind} {self.text(object.__getstate__(value), is_attribute=True)}"
