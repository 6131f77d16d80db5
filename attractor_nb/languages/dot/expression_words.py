"""The expressions and symbol messages that all modules of mistakes share."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import DotSyntaxError

if TYPE_CHECKING:
    from attractor_nb.source import SourceText

_GAP = r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/|\#[^\n]*+)*)"
STRING: Final = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?>(?:\.[A-Za-z_][A-Za-z0-9_]*+)*)")
NAME_AND_EQUALS: Final = re.compile(rf"(?:{NAME.pattern}|{STRING.pattern}){_GAP}=", re.DOTALL)

_BEGINS_A_LINE: Final = re.compile(r"(?:\A|\n)[ \t\r]*\Z")

_SYMBOLS: Final = (
    ("-->", "no such arrow", 'write "->"'),
    ("--", "undirected edges are not supported", 'write "->" in place of "--"'),
    ("<->", "edges have one direction", "write two edges, one for each direction"),
    ("<-", "edges point to the right", 'write the edge the other way round, with "->"'),
    ("=>", "no such arrow", 'write "->"'),
    ("=", 'a name is missing before "="', 'write name="value"'),
    ("/*", "the comment is never closed", 'add "*/" where the comment ends'),
    ("*/", "there is no comment to close here", 'remove "*/", or begin the comment with "/*"'),
    ("<", "HTML labels are not supported", 'write a string in double quotes; "\\n" breaks its lines'),
    ("+", "strings cannot be joined", "write one string; it may span several lines"),
    ("&", 'nodes cannot be grouped with "&"', "write one edge for each node"),
    ("->", "the edge has no source here", "write a node id before the arrow"),
    ('"', "the string is never closed", 'add the closing quote; inside a string write \\" for a quote'),
    ("'", "strings are written in double quotes", "write \"text\" in place of 'text'"),
    ("`", "strings are written in double quotes", 'write "text" in place of `text`'),
    ("\N{LEFT SINGLE QUOTATION MARK}", "strings are written in straight double quotes", 'write "text"'),
    ("\N{RIGHT SINGLE QUOTATION MARK}", "strings are written in straight double quotes", 'write "text"'),
    ("\N{LEFT DOUBLE QUOTATION MARK}", "strings are written in straight double quotes", 'write "text"'),
    ("\N{RIGHT DOUBLE QUOTATION MARK}", "strings are written in straight double quotes", 'write "text"'),
    ("(", "parentheses have no meaning here", 'write attributes in "[" and "]", groups in "{" and "}"'),
    (")", "parentheses have no meaning here", 'write attributes in "[" and "]", groups in "{" and "}"'),
)


def symbol_mistake(source: SourceText, at: int) -> DotSyntaxError:
    """What is wrong with the symbol at an offset."""
    if source.text.startswith("--", at) and _BEGINS_A_LINE.search(source.text[:at]):
        return DotSyntaxError(
            'a line cannot begin with "--"',
            source.span(at, at + 2),
            hint='comments begin with "//" or "#"; an edge is written a -> b',
        )
    for symbol, message, hint in _SYMBOLS:
        if source.text.startswith(symbol, at):
            return DotSyntaxError(message, source.span(at, at + len(symbol)), hint=hint)
    char = source.text[at : at + 1]
    if char.isprintable():
        return DotSyntaxError(
            f'unexpected "{char}"', source.span(at, at + 1), hint="put text into double quotes, or remove the character"
        )
    name = unicodedata.name(char, "").lower()
    return DotSyntaxError(
        f"unexpected invisible character U+{ord(char):04X}{f' ({name})' if name else ''}",
        source.span(at, at + 1),
        hint="remove it; only spaces, tabs and line ends may separate words",
    )
