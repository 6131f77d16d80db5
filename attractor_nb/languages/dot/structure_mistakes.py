"""What is wrong with a token that fits nowhere: a table from (token before, token found) to advice.

Used only once parsing has failed. The first row that fits speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import DotSyntaxError

if TYPE_CHECKING:
    from attractor_nb.source import SourceText

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
"""What a reader calls each terminal."""


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
    """Why a token fits nowhere.

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
            '"{" is never closed', source.span(braces[-1], braces[-1] + 1), hint='add "}" where the graph or group ends'
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
