"""What graph, node and edge share: attributes that are read by the types of the attribute table."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - nodes are structs, whose types are looked up
from types import MappingProxyType
from typing import ClassVar, TypeVar, overload

import msgspec

from attractor_nb.model.vocabulary.attribute_kinds import AttrValue, Scope  # noqa: TC001 - as above
from attractor_nb.model.vocabulary.attributes import attribute, literal_text
from attractor_nb.model.vocabulary.duration import Duration
from attractor_nb.source import Span  # noqa: TC001 - as above

T = TypeVar("T", str, int, float, bool, Duration)
NO_ATTRS: Mapping[str, AttrValue] = MappingProxyType({})


class AttrSpan(msgspec.Struct, frozen=True):
    """Where an attribute stands: its name, and its value as written (quotes included)."""

    name: Span
    value: Span


NO_SPANS: Mapping[str, AttrSpan] = MappingProxyType({})


class Attributed:
    """Typed reading of ``attrs`` through the attribute table, shared by graph, node and edge."""

    __slots__ = ()
    attrs: Mapping[str, AttrValue]
    _scope: ClassVar[Scope]

    @overload
    def get(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def get(self, name: str, kind: type[T], default: T) -> T: ...
    def get(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of an attribute if it is set and of that kind, else ``default``.

        A value of the wrong kind was reported by lint and counts as unset.
        """
        value = self.attrs.get(name)
        if kind is str and value is not None and not isinstance(value, str):
            value = literal_text(value)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        if default is None and (row := attribute(self._scope, name)) and isinstance(row.default, kind):
            return row.default
        return default
