"""Error messages for DOT text: messages, places and hints for characters, structure and attributes.

This module runs only after parsing has failed, so it may take its time.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.writer import KEYWORDS, is_identifier, text_of

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import Attr, Gap
    from attractor_nb.source import SourceText, Span


# Characters that begin no token, outside of attribute blocks.

_CHARACTER_RUN: Final = re.compile(r"""(?:(?!->|--|//|/\*)[^\s\[\]{}();,="'<>&+])+""")
_WHAT: Final = {"DIGRAPH": "a bare name", "SUBGRAPH": "a group's id"}
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")


def statement_mistake(source: SourceText, start: int, before: str) -> DotSyntaxError:
    """The error for an offset at which no statement can be read; ``before`` is the terminal of the token before it."""
    text = source.text
    if found := NAME_AND_EQUALS.match(text, start):
        if text.startswith("=>", found.end() - 1):
            return symbol_mistake(source, found.end() - 1)
        return assignment_mistake(source, start, found.end())
    if text[start] == '"':
        return _string_mistake(source, start, before)
    if _ARROW.match(text, start):
        return symbol_mistake(source, start)
    found = _CHARACTER_RUN.match(text, start)
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
    if arrow := _ARROW.search(run):
        return symbol_mistake(source, start + arrow.start())
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
    """The reason why a run of characters is no identifier."""
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


# Tokens that fit nowhere: a table from (token before, token found) to advice. The first row that matches counts.

_ANY: Final = frozenset[str]()
_KEYWORD: Final = frozenset({"DIGRAPH", "GRAPH", "NODE", "EDGE", "SUBGRAPH", "STRICT"})
_SCOPES: Final = frozenset({"GRAPH", "NODE", "EDGE"})
_START: Final = frozenset({"START"})
_AFTER_THE_GRAPH: Final = frozenset({"LAST_RBRACE"})
_END: Final = frozenset({"$END"})
# After the id of a node all of these are right, so they are wrong only after the name of a graph or group.
_AFTER_AN_ID: Final = frozenset(
    {"ARROW", "LBRACK", "SEMICOLON", "RBRACE", "ATTR", "ID", "NODE", "EDGE", "GRAPH", "SUBGRAPH", "$END"}
)

WORDS: Final = {
    "DIGRAPH": '"digraph"',
    "GRAPH": '"graph"',
    "NODE": '"node"',
    "EDGE": '"edge"',
    "SUBGRAPH": '"subgraph"',
    "STRICT": '"strict"',
    "ID": "a node id",
    "NAME": "a name",
    "ATTR": "name=value",
    "ARROW": '"->"',
    "LBRACE": '"{"',
    "RBRACE": '"}"',
    "LBRACK": '"["',
    "RBRACK": '"]"',
    "COMMA": '","',
    "SEMICOLON": '";"',
    "$END": "the end of the text",
}
"""Name of each terminal in messages."""


class _Row(NamedTuple):
    """``found`` after ``before`` (empty: whatever) means ``message``; ``{}`` is the text found.

    ``is_before_wrong``: the token before is the offending one.
    """

    before: frozenset[str]
    found: frozenset[str]
    message: str
    hint: str
    is_before_wrong: bool = False


_WRITE_GRAPH: Final = "begin with: digraph Name { start [shape=Mdiamond] exit [shape=Msquare] start -> exit }"
_TABLE: Final = (
    _Row(_START, _END, "there is no graph in this text", _WRITE_GRAPH),
    _Row(_START, frozenset({"STRICT"}), '"strict" graphs are not supported', 'remove "strict"'),
    _Row(_START, frozenset({"GRAPH"}), "undirected graphs are not supported", 'write "digraph" and edges with "->"'),
    _Row(_START, _ANY, 'expected "digraph" at the beginning, found {}', _WRITE_GRAPH),
    _Row(
        _AFTER_THE_GRAPH,
        frozenset({"DIGRAPH", "GRAPH", "STRICT"}),
        "only one graph is allowed in a file",
        "move the second graph to another file",
    ),
    _Row(_AFTER_THE_GRAPH, frozenset({"RBRACE"}), 'this "}" closes nothing', "remove it"),
    _Row(_AFTER_THE_GRAPH, frozenset({"SEMICOLON"}), "nothing may follow the graph, found {}", "remove it"),
    _Row(
        _AFTER_THE_GRAPH, _ANY, "nothing may follow the graph, found {}", 'move it before the closing "}" of the graph'
    ),
    _Row(frozenset({"DIGRAPH"}), _KEYWORD, "{} is a keyword and cannot name the graph", "use another name or none"),
    _Row(frozenset({"DIGRAPH"}), _ANY, 'expected the graph\'s name or "{", found {}', "write: digraph Name { ... }"),
    _Row(
        frozenset({"ID", "NAME"}), _AFTER_AN_ID, 'expected "{" after the name, found {}', "write: digraph Name { ... }"
    ),
    _Row(
        frozenset({"ARROW"}),
        frozenset({"LBRACE", "SUBGRAPH"}),
        "an edge to a group is not supported",
        "write one edge for each node: A -> B and A -> C",
    ),
    _Row(frozenset({"ARROW"}), _KEYWORD, "{} is a keyword and cannot be a node id", "use another id"),
    _Row(frozenset({"ARROW"}), frozenset({"ARROW"}), "two arrows in a row", "write a node id between them"),
    _Row(frozenset({"ARROW"}), _ANY, "the edge has no target", "write a node id after the arrow", is_before_wrong=True),
    _Row(frozenset({"LBRACK"}), frozenset({"COMMA", "SEMICOLON"}), "an attribute is missing before {}", "remove {}"),
    _Row(
        frozenset({"COMMA", "SEMICOLON"}),
        frozenset({"COMMA", "SEMICOLON"}),
        "an attribute is missing between two separators",
        "remove one of them",
    ),
    _Row(frozenset({"SUBGRAPH"}), _KEYWORD, "{} is a keyword and cannot be an id", "use another id"),
    _Row(
        frozenset({"SUBGRAPH"}),
        _ANY,
        'expected the group\'s id or "{", found {}',
        "write: subgraph cluster_name { ... }",
    ),
    _Row(
        _SCOPES,
        frozenset({"ARROW"}),
        "{before} is a keyword and cannot be a node id",
        "use another id",
        is_before_wrong=True,
    ),
    _Row(_SCOPES, _ANY, 'expected "[" after {before}, found {}', "write: {bare} [name=value]"),
    _Row(
        frozenset({"RBRACK"}),
        frozenset({"LBRACK"}),
        "a statement has only one attribute block",
        "join the two with a comma",
    ),
    _Row(
        frozenset({"RBRACK"}),
        frozenset({"ARROW"}),
        "attributes must follow the whole edge",
        "write: A -> B [name=value]",
    ),
    _Row(
        frozenset({"RBRACE"}),
        frozenset({"ARROW"}),
        "an edge from a group is not supported",
        "write one edge for each node: A -> C and B -> C",
    ),
    _Row(
        frozenset({"RBRACE"}),
        frozenset({"LBRACK"}),
        "a group has no attribute block",
        "write graph [name=value] inside the group",
    ),
    _Row(_ANY, frozenset({"ARROW"}), "the edge has no source", "write a node id before the arrow"),
    _Row(_ANY, frozenset({"LBRACK"}), "these attributes belong to no node or edge", "write a node id before them"),
    _Row(_ANY, frozenset({"RBRACK"}), 'this "]" closes nothing', "remove it"),
    _Row(_ANY, frozenset({"COMMA"}), "commas separate attributes, not statements", 'write ";" or begin a new line'),
    _Row(
        _ANY,
        frozenset({"DIGRAPH", "STRICT"}),
        "{} is a keyword and cannot be a node id",
        'use another id; if a second graph begins here, a "}" is missing before it',
    ),
    _Row(_ANY, _ANY, "unexpected {}", "remove it"),
)


def structure_mistake(
    source: SourceText, found: tuple[str, int, int], before: tuple[str, int, int], braces: list[int]
) -> DotSyntaxError:
    """The error for a token that fits nowhere.

    Args:
        source: The text.
        found: The token: terminal, start and end.
        before: The token before it; ``START`` where there is none.
        braces: Offsets of the braces that are still open.
    """
    kind, start, end = found
    if before[0] == "RBRACE" and not braces:
        before = ("LAST_RBRACE", before[1], before[2])
    if kind == "$END" and braces:
        return DotSyntaxError(
            '"{" is never closed',
            source.span(braces[-1], braces[-1] + 1),
            hint='add "}" where the graph or group ends',
            is_brace_open=True,
        )
    shown = WORDS[kind] if kind not in {"ID", "NAME", "ATTR"} else _quoted(source.text[start:end])
    row = next(
        row for row in _TABLE if (not row.before or before[0] in row.before) and (not row.found or kind in row.found)
    )
    words = {"{}": shown, "{before}": WORDS.get(before[0], ""), "{bare}": WORDS.get(before[0], "").strip('"')}
    message, hint = row.message, row.hint
    for mark, word in words.items():
        message, hint = message.replace(mark, word), hint.replace(mark, word)
    place = source.span(*before[1:]) if row.is_before_wrong else source.span(start, end)
    return DotSyntaxError(message, place, hint=hint)


def _quoted(text: str) -> str:
    line = text.split("\n", 1)[0].strip()
    shown = line if len(line) <= 40 else f"{line[:39]}…"
    return shown if shown.startswith('"') else f'"{shown}"'


# The expressions and symbol messages that all parts of this module share.

_GAP = r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/|\#[^\n]*+)*)"
STRING: Final = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+(?>(?:\.[A-Za-z_][A-Za-z0-9_]*+)*)")
NAME_AND_EQUALS: Final = re.compile(rf"(?:{NAME.pattern}|{STRING.pattern}){_GAP}=", re.DOTALL)

_BEGINS_A_LINE: Final = re.compile(r"(?:\A|\n)[ \t\r]*\Z")

_ARROW: Final = re.compile(
    "[\N{RIGHTWARDS ARROW}\N{RIGHTWARDS DOUBLE ARROW}\u27f6\u27f9\u2794\u279c-\u279e\u27a1]|[\u2010-\u2015\u2212]>"
)
"""Forms of ``->`` in text from word processors and chats: arrows, and dashes of other kinds before ``>``."""
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
    """The error for the symbol at an offset."""
    if source.text.startswith("--", at) and _BEGINS_A_LINE.search(source.text[:at]):
        return DotSyntaxError(
            'a line cannot begin with "--"',
            source.span(at, at + 2),
            hint='comments begin with "//" or "#"; an edge is written a -> b',
        )
    if arrow := _ARROW.match(source.text, at):
        return DotSyntaxError(
            f'"{arrow[0]}" is not the arrow of an edge', source.span(*arrow.span()), hint='write "->"'
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


# Attributes.

_RUN: Final = re.compile(r"""(?:(?!//|/\*)[^\s,;\[\]{}"=<>])+|[<>]""")
_BLANKS: Final = re.compile(r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/)*)")
_STRING_OR_COMMENT: Final = re.compile(rf"{STRING.pattern}|//[^\n]*+|/\*.*?\*/|\#[^\n]*+", re.DOTALL)
_NEXT_STATEMENT: Final = re.compile(r"[ \t\r\n]*+(?:\[|->)")
_UNQUOTED: Final = re.compile(r"""(?:(?!//|/\*)[^\n\r,;\[\]{}"])+""")
_NEXT_ATTRIBUTE: Final = re.compile(rf"(?<![ \t])[ \t]+{NAME.pattern}[ \t]*=[ \t]*\Z")
_BARE_BEFORE: Final = re.compile(rf"""(?<![A-Za-z0-9_.])({NAME.pattern})[ \t]*=[ \t]*([^\s,;\[\]{{}}"=]+)\Z""")
"""An attribute whose bare value ends here."""
_SHOWN_VALUE: Final = 80
_QUOTE_MARKS: Final = frozenset("'`‘’“”")  # noqa: RUF001 - the very characters that word processors put in
_QUOTE_INSIDE: Final = 'inside a string write \\" for a quote'
_BRACKET_OPEN: Final = '"[" is never closed'


def name_mistake(source: SourceText, attr: Attr) -> DotSyntaxError:
    """The error for an attribute's name that is not allowed."""
    span = source.span(attr.start, attr.name_end)
    if attr.name.lower() in KEYWORDS:
        return DotSyntaxError(
            f'"{attr.name}" is a keyword and cannot name an attribute',
            span,
            hint=f'write "{attr.name.lower()} [name=value]" for defaults, or use another name',
        )
    return DotSyntaxError(
        "an attribute's name is made of letters, digits and _, with dots between its parts",
        span,
        hint="use a name such as human.default_choice",
    )


def value_mistake(source: SourceText, attr: Attr) -> DotSyntaxError:
    """The error for a bare value that is not allowed: it is a keyword or too large a number."""
    span = source.span(attr.value_start, attr.end)
    if attr.literal.lower() in KEYWORDS:
        return DotSyntaxError(
            f'the keyword "{attr.literal}" cannot be a bare value',
            span,
            hint=f'write "{attr.literal}" in double quotes',
        )
    return DotSyntaxError("the number is too large", span, hint="put it into double quotes to keep it as text")


def separator_mistake(source: SourceText, gap: Gap) -> DotSyntaxError:
    """The error for two attributes without a comma between them."""
    before, semicolon, after = gap
    is_touching = semicolon is None and before.end == after.start
    hint = "separate attributes with commas"
    return DotSyntaxError(
        'expected "," between attributes',
        separator_span(source, gap),
        hint=f'{hint}, and inside a string write \\" for a quote' if is_touching else hint,
    )


def separator_span(source: SourceText, gap: Gap) -> Span:
    """The place of a wrong separator: the semicolon, or the name that should follow a comma."""
    _, semicolon, after = gap
    if semicolon is not None:
        return source.span(semicolon, semicolon + 1)
    return source.span(after.start, after.name_end)


def attribute_mistake(source: SourceText, start: int, previous_end: int, bracket: int) -> DotSyntaxError:
    """The error for an attribute block that cannot be parsed further.

    Args:
        source: The text.
        start: The offset at which parsing stopped.
        previous_end: The end of the token before it.
        bracket: The offset of the block's ``[``.
    """
    text = source.text
    if start >= len(text) or text[start] in "{}" or text.startswith("->", start):  # a copy of the text may be longer
        where = f' before "{text[start]}"' if text[start : start + 1] in {"{", "}"} else ""
        return DotSyntaxError(
            _BRACKET_OPEN, source.span(bracket, bracket + 1), hint=f'add "]"{where} where the attributes end'
        )
    if found := NAME_AND_EQUALS.match(text, start):
        return assignment_mistake(source, start, found.end())
    if unquoted := _BARE_BEFORE.search(text, bracket, previous_end):
        name, value_start = unquoted[1], unquoted.start(2)
        if (value := _line_of_value(text, value_start)) and value_start + len(value) > start:
            return _needs_quotes(source, name, value_start, value, read_to=start)
    if start == previous_end and text[start - 1] == '"' and text[start] != "+":
        return _text_after_string(source, start, bracket)
    if text[start] == '"':
        return _bare_string(source, start)
    found = _RUN.match(text, start)
    if text[start] == "[" or (found and _NEXT_STATEMENT.match(text, found.end())):
        return DotSyntaxError(
            _BRACKET_OPEN, source.span(bracket, bracket + 1), hint='add "]" before the next statement'
        )
    if found:
        return _name_without_value(source, start, found.end())
    return symbol_mistake(source, start)


def assignment_mistake(source: SourceText, start: int, after_equals: int) -> DotSyntaxError:
    """The error for a missing value after ``name =``.

    Args:
        source: The text.
        start: The beginning of the name.
        after_equals: The offset after the ``=``.
    """
    text = source.text
    found = _BLANKS.match(text, after_equals)
    at = found.end() if found else after_equals
    char = text[at : at + 1]
    name = text[start : after_equals - 1].split("/*")[0].split("//")[0].strip()
    if not char or char in ",;]}":
        return DotSyntaxError(
            f"a value is missing after {name} =", source.span(start, after_equals), hint=f'write {name}="..."'
        )
    if char in "{[":
        return DotSyntaxError(
            "lists and objects are not supported as values",
            source.span(at, at + 1),
            hint="put the whole value into double quotes",
        )
    if text[after_equals : after_equals + 1] in {"=", ">"}:
        return DotSyntaxError(
            'one "=" is enough', source.span(after_equals - 1, after_equals + 1), hint=f'write {name}="..."'
        )
    if char in _QUOTE_MARKS or char in '"=<' or text.startswith("/*", at):
        return symbol_mistake(source, at)
    return _needs_quotes(source, name, at, _line_of_value(text, at) or text[at : at + 1])


def _needs_quotes(
    source: SourceText, name: str, start: int, value: str, *, read_to: int | None = None
) -> DotSyntaxError:
    """The error for a value of several words, or with signs, that is not in quotes."""
    is_shown = value.isprintable() and len(value) <= _SHOWN_VALUE
    return DotSyntaxError(
        "this value needs double quotes",
        source.span(start, start + len(value)),
        hint=f'write {name}="{value}"' if is_shown else "put the whole value into double quotes",
        read_to=read_to,
    )


def _line_of_value(text: str, start: int) -> str:
    """The text of an unquoted value: on its line, up to a separator, a quote, or the next attribute."""
    found = _UNQUOTED.match(text, start)
    value = found[0] if found else ""
    following = _NEXT_ATTRIBUTE.search(value) if found and text.startswith('"', found.end()) else None
    return value[: following.start()].rstrip() if following else value.rstrip()


_IS_OPENING: Final = re.compile(r"[A-Za-z0-9_][ \t]*=[ \t]*\Z")
"""The text before a quote that opens the value of an attribute."""


def _text_after_string(source: SourceText, start: int, bracket: int) -> DotSyntaxError:
    """Text that touches a closing quote: a quote inside a string, or one missing lines above."""
    found = _RUN.match(source.text, start)
    span = source.span(start, found.end() if found else start + 1)
    strings = _STRING_OR_COMMENT.finditer(source.text, bracket, start)
    began = next((string.start() for string in strings if string.end() == start), start)
    line = source.span(began, start).line
    if line != span.line and _IS_OPENING.search(source.text, began + 1, start - 1):
        return DotSyntaxError(
            "the string is not closed on its line",
            source.span(began, began + 1),
            hint=f"add the closing quote; without it the string ends on line {span.line}; {_QUOTE_INSIDE}",
            read_to=start,
        )
    if line == span.line:
        return DotSyntaxError("text directly after a string", span, hint=_QUOTE_INSIDE)
    return DotSyntaxError(
        f"text directly after the string that began on line {line}",
        span,
        hint=f'add the closing quote that is missing on line {line}, or inside a string write \\"',
    )


def _bare_string(source: SourceText, start: int) -> DotSyntaxError:
    found = STRING.match(source.text, start)
    if found is None:
        return symbol_mistake(source, start)
    return DotSyntaxError(
        "a string alone is not an attribute", source.span(*found.span()), hint=f'write name="value"; {_QUOTE_INSIDE}'
    )


def _name_without_value(source: SourceText, start: int, end: int) -> DotSyntaxError:
    run = source.text[start:end]
    name = NAME.match(run)
    if name is None:
        if run[0].isdigit():
            return DotSyntaxError(
                "an attribute's name cannot begin with a digit",
                source.span(start, end),
                hint="start the name with a letter",
            )
        return symbol_mistake(source, start)
    rest = run[name.end() :]
    if rest.startswith(":"):
        colon = start + name.end()
        return DotSyntaxError(
            'a name and its value are joined by "=", not ":"',
            source.span(colon, colon + 1),
            hint=f'write {name[0]}="value"',
        )
    if rest.startswith("-"):
        return DotSyntaxError(
            'an attribute\'s name cannot contain "-"', source.span(start, end), hint=f"write {run.replace('-', '_')}"
        )
    if rest:
        return symbol_mistake(source, start + name.end())
    return DotSyntaxError(
        f'"=" and a value are missing after "{run}"', source.span(start, end), hint=f'write {run}="..."'
    )
