"""Where attributes stand, as a mapping that makes its spans only when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from attractor_nb.model.vocabulary.attributed import AttrSpan

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import Attr
    from attractor_nb.source import SourceText


class AttrSpans(Mapping[str, AttrSpan]):
    """Spans by canonical attribute name."""

    __slots__ = ("_source", "_written")

    def __init__(self, source: SourceText, written: Mapping[str, Attr]) -> None:
        self._source = source
        self._written = written

    def __getitem__(self, name: str) -> AttrSpan:
        attr = self._written[name]
        return AttrSpan(self._source.span(attr.start, attr.name_end), self._source.span(attr.value_start, attr.end))

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __repr__(self) -> str:
        return f"AttrSpans({', '.join(self._written)})"
