"""Lists with commas: of plain words, and of entries with a form of their own (pure)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attractor_nb.errors import AttractorError
    from attractor_nb.source import SourceText, Span

    Unexpected = Callable[[str, Span], AttractorError]
    """Makes the error of what cannot stand at a place: its message, and the place."""

EntryT = TypeVar("EntryT")
QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
"""A text in single or double quotes, which holds commas and has no escapes."""
_SPACE: Final = re.compile(r"\s*")


def comma_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas, without blanks around them and without empty ones.

    >>> comma_list("a.txt, src/**/*.py,")
    ('a.txt', 'src/**/*.py')
    """
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


class EntryReader(NamedTuple):
    """A text whose entries are read one after the other."""

    source: SourceText  #: The text.
    error: Unexpected  #: Makes the error of what cannot stand at a place.

    def entries(self, read: Callable[[int], tuple[EntryT, int]]) -> Iterator[tuple[EntryT, int]]:
        """Each entry with the offset where it begins; a comma at the end may stand.

        Args:
            read: Reads the entry at an offset; gives it and the offset behind it.
        """
        text = self.source.text
        position = self.after_space(0)
        while position < len(text):
            entry, end = read(position)
            yield entry, position
            position = self.after_space(end)
            if position < len(text):
                if text[position] != ",":
                    raise self.unexpected(position, 'a ","')
                position = self.after_space(position + 1)

    def unexpected(self, position: int, wanted: str) -> AttractorError:
        """The error at an offset where something else should stand."""
        end = min(position + 1, len(self.source.text))
        return self.error(f"expected {wanted}", self.source.span(min(position, end), end))

    def after_space(self, position: int) -> int:
        """The offset behind the blanks at an offset."""
        match = _SPACE.match(self.source.text, position)
        return match.end() if match else position
