"""What is wrong with characters that begin no token: messages, places and hints.

For outside of attribute blocks. Used only once reading has failed, so it may look around at leisure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.attribute_mistakes import assignment_mistake
from attractor_nb.languages.dot.expression_words import NAME_AND_EQUALS, STRING, symbol_mistake
from attractor_nb.languages.dot.literals import KEYWORDS, is_identifier, text_of

if TYPE_CHECKING:
    from attractor_nb.source import SourceText

_RUN: Final = re.compile(r"""(?:(?!->|--|//|/\*)[^\s\[\]{}();,="'<>&+])+""")
_WHAT: Final = {"DIGRAPH": "a bare name", "SUBGRAPH": "a group's id"}
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


def statement_mistake(source: SourceText, start: int, before: str) -> DotSyntaxError:
    """Why no statement can be read at an offset; ``before`` is the terminal of the token before it."""
    text = source.text
    if found := NAME_AND_EQUALS.match(text, start):
        if text.startswith("=>", found.end() - 1):
            return symbol_mistake(source, found.end() - 1)
        return assignment_mistake(source, start, found.end())
    if text[start] == '"':
        return _string_mistake(source, start, before)
    found = _RUN.match(text, start)
    run = found[0] if found else ""
    end = start + len(run)
    if not run or is_identifier(run) or run.lower() in KEYWORDS:
        return symbol_mistake(source, end)
    if ":" in run:
        colon = start + run.index(":")
        return DotSyntaxError(
            "ports are not supported", source.span(colon, end), hint='write the edge from id to id, without ":"'
        )
    if not any(char.isalnum() or char == "_" for char in run):
        return symbol_mistake(source, start)
    what = _WHAT.get(before, "a node id")
    return DotSyntaxError(
        f'"{_shown(run)}" cannot be {what}: {_why_no_id(run)}', source.span(start, end), hint=_with_label(run, before)
    )


def _string_mistake(source: SourceText, start: int, before: str) -> DotSyntaxError:
    found = STRING.match(source.text, start)
    if found is None:
        return symbol_mistake(source, start)
    text = text_of(found[0])
    if text.lower() in KEYWORDS:
        return DotSyntaxError(
            f'"{text}" is a keyword and cannot be an id',
            source.span(*found.span()),
            hint=f'use another id and write label="{text}"',
        )
    return DotSyntaxError(
        "a quoted id must be a plain identifier: letters, digits and _",
        source.span(*found.span()),
        hint=_with_label(text, before),
    )


def _why_no_id(run: str) -> str:
    """What keeps a run of characters from being an identifier."""
    wrong = next((char for char in run if char != "_" and not (char.isascii() and char.isalnum())), None)
    if wrong is None:
        return "it begins with a digit"
    return f'it contains "{wrong}"' if wrong.isprintable() else f"it contains U+{ord(wrong):04X}"


def _with_label(text: str, before: str) -> str:
    """The advice to keep a text as the label of a node or group with a plain id."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    plain = _NO_WORD.sub("_", ascii_text).strip("_").lower() or "node_1"
    if not is_identifier(plain):
        plain = f"n_{plain}"
    shown = _shown(text).replace('"', '\\"')
    if before == "DIGRAPH":
        return f'write digraph "{shown}"'
    if before == "SUBGRAPH":
        return f'write subgraph {plain[:40]} {{ label="{shown}" ... }}'
    return f'write {plain[:40]} [label="{shown}"]'


def _shown(text: str) -> str:
    """A text as a one-line message can show it."""
    flat = "".join(char if char.isprintable() else " " for char in text)
    return flat if len(flat) <= 60 else f"{flat[:59]}…"
