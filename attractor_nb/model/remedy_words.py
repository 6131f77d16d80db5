"""Remedies that name Python, in the words of a front end that is not Python.

The layers below write for those who call them. The command line and the server show the same errors, each with a table
of what it has in place of a call. What a table does not have stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_REMEDY: Final = re.compile(r" (?:hint|fix): ")


@dataclass(frozen=True, slots=True)
class RemedyWords:
    """The words of one front end."""

    calls: Sequence[tuple[re.Pattern[str], str]]  #: Python as remedies have it, and its words, applied in this order.
    setting: re.Pattern[str]  #: An option of Python with its value, such as ``backend="llm"``: groups 1 and 2.
    set_words: Callable[[str, str], str]  #: The words for a setting, of its name and its value, quotes included.

    def of(self, remedy: str) -> str:
        """A remedy in these words."""
        for python, words in self.calls:
            remedy = python.sub(words, remedy)
        return self.setting.sub(lambda found: self.set_words(found[1], found[2] or ""), remedy)

    def of_line(self, line: str) -> str:
        """A line of a report, in these words if it is a remedy; what is quoted from a source stays."""
        head = _REMEDY.match(line)
        return line if head is None else head[0] + self.of(line[head.end() :])

    def of_reason(self, reason: str) -> str:
        """The reason of a failure, with the remedy in brackets at its end in these words."""
        if not reason.endswith(")"):
            return reason
        depth = 0
        for place in range(len(reason) - 1, 0, -1):
            depth += (reason[place] == ")") - (reason[place] == "(")
            if not depth:
                return reason[: place + 1] + self.of(reason[place + 1 : -1]) + ")"
        return reason


def calls_of(*rows: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """The rows of a table of calls: a pattern, and what stands in its place."""
    return tuple((re.compile(pattern), words) for pattern, words in rows)


def setting_of(names: str) -> re.Pattern[str]:
    """The pattern of a setting, of names with bars between them.

    >>> setting_of("backend|cache").search('give backend="llm" or "local"').groups()
    ('backend', '"llm" or "local"')
    """
    return re.compile(rf'(?<![\w.])({names})=("[\w.-]+"(?: or "[\w.-]+")*|[\w.-]+)?')
