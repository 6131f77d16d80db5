"""How values pass between a pipeline and its child: ``topic=context.topic, depth=3, tone='dry'`` (spec 9.4).

A comma-separated list of ``name=value``. A value is ``context.<key>``, a text in single or double quotes,
a number, ``true``, ``false`` or ``null``. Values are data: what a key holds is never read as part of a list.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

import msgspec

from attractor_nb.errors import MappingSyntaxError
from attractor_nb.model.vocabulary.comma_lists import QUOTED, EntryReader
from attractor_nb.model.vocabulary.value_paths import CONTEXT_PREFIX
from attractor_nb.source import SourceText

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_WORD: Final = re.compile(r"[^\s,]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?\Z")
_WORDS: Final = {"true": True, "false": False, "null": None}
_FORM: Final = "write name=context.key, name='text', name=3 or name=true, with commas between"


class Assignment(msgspec.Struct, frozen=True):
    """One ``name=value``."""

    name: str  #: The key that gets the value.
    key: str = ""  #: The context key that gives it; empty for a constant.
    value: Any = None  #: The constant.


def parse_mapping(text: str | SourceText) -> tuple[Assignment, ...]:
    """Read a list of assignments.

    >>> parse_mapping("topic=context.topic, n=3")
    (Assignment(name='topic', key='topic', value=None), Assignment(name='n', key='', value=3))
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    reader = EntryReader(source, partial(MappingSyntaxError, hint=_FORM))
    found: dict[str, Assignment] = {}
    for assignment, position in reader.entries(partial(_assignment, reader)):
        if assignment.name in found:
            span = source.span(position, position + len(assignment.name))
            raise MappingSyntaxError(f'"{assignment.name}" is assigned twice', span, hint="leave one of them out")
        found[assignment.name] = assignment
    return tuple(found.values())


def _assignment(reader: EntryReader, position: int) -> tuple[Assignment, int]:
    source, text = reader.source, reader.source.text
    name = _NAME.match(text, position)
    if name is None:
        raise reader.unexpected(position, "a name")
    equals = reader.after_space(name.end())
    if text[equals : equals + 1] != "=":
        raise reader.unexpected(equals, f'"=" after {name.group()}')
    start = reader.after_space(equals + 1)
    if quoted := QUOTED.match(text, start):
        return Assignment(name.group(), value=quoted.group()[1:-1]), quoted.end()
    word = _WORD.match(text, start)
    if word is None:
        raise reader.unexpected(start, "a value")
    if (key := word.group()).startswith(CONTEXT_PREFIX) and _NAME.fullmatch(key):
        return Assignment(name.group(), key=key.removeprefix(CONTEXT_PREFIX)), word.end()
    if key in _WORDS:
        return Assignment(name.group(), value=_WORDS[key]), word.end()
    if _NUMBER.match(key):
        return Assignment(name.group(), value=float(key) if "." in key else int(key)), word.end()
    hint = f"write context.{key} for a value of the context, or '{key}' for the text" if _NAME.fullmatch(key) else _FORM
    raise MappingSyntaxError(f'"{key}" is not a value', source.span(start, word.end()), hint=hint)
