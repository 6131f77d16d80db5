"""A graph as canonical DOT text, which reads back as the same graph and which plain Graphviz takes.

What a node says itself and what it inherits stay apart (the stylesheet overrides only the latter, spec
8.5): inherited attributes are written as the defaults of a scope. Durations and dotted names are quoted
for Graphviz's sake. Knows values only.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import islice
from math import isinf
from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.attribute_table import TABLE, AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attributes_of, coerce
from attractor_nb.model.vocabulary.value_forms import Duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.source import SourceText, Span


_ORDER: Final = {row.name: number for number, row in reversed(list(enumerate(TABLE)))}

_Spelled = dict[str, str]
"""Attribute names as written to values as written."""

INDENT: Final = "    "
LINE_WIDTH: Final = 100


def write_dot(graph: Graph) -> str:
    r"""The graph as DOT text.

    >>> from attractor_nb.languages.dot import parse_dot
    >>> print(write_dot(parse_dot("digraph G { a [max_retries=2]; a -> b -> a }")), end="")
    digraph G {
        a [max_retries=2]
    <BLANKLINE>
        a -> b
        b -> a
    }

    Args:
        graph: A graph as it was read or built, before its transforms.
    """
    return _Writer(graph).text()


class _Writer:
    """Writes one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._children: dict[int | None, list[int]] = {}
        for number, group in enumerate(graph.subgraphs):
            self._children.setdefault(group.parent, []).append(number)
        self._own = {node.id: _spelled(node.attrs, node.explicit) for node in graph.nodes.values()}
        self._inherited = {
            node.id: _spelled(node.attrs, node.attrs.keys() - node.explicit) for node in graph.nodes.values()
        }
        self._written: set[str] = set()
        self._lines: list[str] = []

    def text(self) -> str:
        """The whole text."""
        graph = self._graph
        name = f"{_id(graph.name)} " if graph.name else ""
        self._lines.append(f"digraph {name}{{")
        if graph.attrs:
            self._add(1, statement_text("graph", _pairs(_spelled(graph.attrs, graph.attrs)), INDENT))
        declared = [node.id for node in graph.nodes.values() if not _is_mentioned_only(node)]
        defaults = self._write_defaults(graph.nodes, {}, 1)
        self._write_scope(None, declared, defaults, 1)
        if declared and graph.edges:
            self._lines.append("")
        self._write_edges(defaults)
        self._lines.append("}")
        return "\n".join(self._lines) + "\n"

    def _add(self, depth: int, text: str) -> None:
        self._lines.append(f"{INDENT * depth}{text}")

    def _write_defaults(self, nodes: Iterable[str], outer: _Spelled, depth: int) -> _Spelled:
        """Write what the nodes of a scope have in common as its defaults; return those in force."""
        new = _common(nodes, self._own, self._inherited, outer)
        if not new:
            return outer
        self._add(depth, statement_text("node", _pairs(new), INDENT * depth))
        return {**outer, **new}

    def _write_scope(self, group: int | None, members: Sequence[str], defaults: _Spelled, depth: int) -> None:
        """Write nodes and inner groups so that members come in their order, and groups in theirs."""
        waiting = list(self._children.get(group, ()))
        here: set[str] = set()
        run: list[str] = []
        for number, member in enumerate(members):
            while waiting and member not in here and self._is_next(waiting[0], members, number, here):
                self._write_run(run, defaults, depth)
                run = []
                here.update(self._write_group(waiting.pop(0), defaults, depth))
            if member not in here:
                here.add(member)
                run.append(member)
        self._write_run(run, defaults, depth)
        for child in waiting:
            self._write_group(child, defaults, depth)

    def _is_next(self, child: int, members: Sequence[str], number: int, here: set[str]) -> bool:
        """True if the members that an inner group adds are the very ones whose turn it is."""
        inner = self._graph.subgraphs[child].members
        first = next((member for member in inner if member not in here), None)
        if first is None or first != members[number]:
            return first is None
        added = [member for member in inner if member not in here]
        left = (member for member in islice(members, number, None) if member not in here)
        return list(islice(left, len(added))) == added

    def _write_group(self, number: int, defaults: _Spelled, depth: int) -> tuple[str, ...]:
        group = self._graph.subgraphs[number]
        self._add(depth, f"subgraph {_id(group.id)} {{" if group.id else "subgraph {")
        if group.attrs:
            pairs = _pairs(_spelled(group.attrs, group.attrs))
            self._add(depth + 1, statement_text("graph", pairs, INDENT * (depth + 1)))
        added = [member for member in group.members if member not in self._written]
        inner = self._write_defaults(added, defaults, depth + 1)
        self._write_scope(number, group.members, inner, depth + 1)
        self._add(depth, "}")
        return group.members

    def _write_run(self, members: Iterable[str], defaults: _Spelled, depth: int) -> None:
        """Write nodes one after the other; those that inherit something else share a scope for it."""
        extra: _Spelled = {}
        for member in members:
            lacks = {} if member in self._written else self._lacking(member, defaults)
            if lacks != extra:
                if extra:
                    self._add(depth, "}")
                if lacks:
                    self._add(depth, "subgraph {")
                    self._add(depth + 1, statement_text("node", _pairs(lacks), INDENT * (depth + 1)))
                extra = lacks
            self._write_node(member, depth + 1 if extra else depth)
        if extra:
            self._add(depth, "}")

    def _lacking(self, member: str, defaults: _Spelled) -> _Spelled:
        """The attributes that a node inherits beyond the defaults in force."""
        inherited = self._inherited.get(member, {})
        return {name: value for name, value in inherited.items() if defaults.get(name) != value}

    def _write_node(self, node_id: str, depth: int) -> None:
        own = {} if node_id in self._written else self._own.get(node_id, {})
        self._written.add(node_id)
        self._add(depth, statement_text(_id(node_id), _pairs(own), INDENT * depth) if own else _id(node_id))

    def _write_edges(self, defaults: _Spelled) -> None:
        mentioned = set(self._written)
        for edge in self._graph.edges:
            extra: _Spelled = {}
            for node_id in (edge.source, edge.target):
                if node_id not in mentioned:
                    mentioned.add(node_id)
                    extra = extra or self._lacking(node_id, defaults)
            if extra:
                self._add(1, "subgraph {")
                self._add(2, statement_text("node", _pairs(extra), INDENT * 2))
                self._add(2, _edge_text(edge, INDENT * 2))
                self._add(1, "}")
            else:
                self._add(1, _edge_text(edge, INDENT))


def _is_mentioned_only(node: Node) -> bool:
    """True if the edges alone say that there is this node (ruling 4)."""
    return node.is_implicit and not node.explicit


def _common(
    nodes: Iterable[str], own: Mapping[str, _Spelled], inherited: Mapping[str, _Spelled], outer: _Spelled
) -> _Spelled:
    """Attributes that every node has, inherited by some: for each, the value inherited most often."""
    counts: dict[str, Counter[str]] = {}
    holders: Counter[str] = Counter()
    total = 0
    for node_id in nodes:
        total += 1
        passed = inherited.get(node_id, {})
        holders.update(passed.keys() | own.get(node_id, {}).keys())
        for name, value in passed.items():
            counts.setdefault(name, Counter())[value] += 1
    most = {name: values.most_common(1)[0][0] for name, values in counts.items() if holders[name] == total}
    return _in_order({name: value for name, value in most.items() if outer.get(name) != value})


def _edge_text(edge: Edge, indent: str) -> str:
    head = f"{_id(edge.source)} -> {_id(edge.target)}"
    return statement_text(head, _pairs(_spelled(edge.attrs, edge.attrs)), indent) if edge.attrs else head


def _spelled(attrs: Mapping[str, AttrValue], names: Iterable[str]) -> _Spelled:
    """Attributes as written, in the order of the table; those it does not know follow by name."""
    ordered = sorted(names, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return {_id(name): spell(attrs[name]) for name in ordered if name in attrs}


def _in_order(spelled: _Spelled) -> _Spelled:
    values = {text_of(name): name for name in spelled}
    ordered = sorted(values, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return {values[name]: spelled[values[name]] for name in ordered}


def _pairs(spelled: _Spelled) -> list[str]:
    return [f"{name}={value}" for name, value in spelled.items()]


def _id(text: str) -> str:
    return text if is_identifier(text) else quote(text)


def statement_text(head: str, pairs: Sequence[str], indent: str) -> str:
    """``head [a=1, b=2]`` in one line where it fits, else one attribute a line.

    Args:
        head: What is before the attributes.
        pairs: ``name=value`` texts.
        indent: What will be put before the first line.
    """
    line = f"{head} [{', '.join(pairs)}]"
    if len(indent) + len(line) <= LINE_WIDTH and "\n" not in line:
        return line
    inner = f",\n{indent}{INDENT}".join(pairs)
    return f"{head} [\n{indent}{INDENT}{inner}\n{indent}]"


# Values as written: the escapes of a string, the form of a bare value, the offsets of its characters.
#
# Spec 2.2 and 2.4, ruling 2. An unknown escape such as ``\l`` is kept as written; a line end inside a
# string is ``\n`` however the file ends its lines. Knows nothing of attributes and their types.

KEYWORDS: Final = frozenset({"strict", "digraph", "graph", "node", "edge", "subgraph"})
"""Graphviz reads these in any letter case, so no id or bare value may be one of them."""

MAX_INTEGER_DIGITS: Final = 18
MAX_NUMBER_LENGTH: Final = 400

BARE_VALUE: Final = (
    # "//" inside a bare value is text only after ":" (a URL), "->" never is.
    r"(?>(?:[A-Za-z0-9_.:]|-(?!>)|/(?![/*])|(?<=:)//)+)(?=[ \t\r\n,;\]}/\#]|->|\Z)"
)
"""The expression of a value without quotes (ruling 2)."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUALIFIED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_FLOAT = re.compile(r"-?[0-9]*\.[0-9]+\Z")
_DURATION = re.compile(r"-?[0-9]+(?:ms|s|m|h|d)\Z")
_ESCAPE = re.compile(r'\\["nt\\]|\r\n')
_MEANING = {'\\"': '"', "\\n": "\n", "\\t": "\t", "\\\\": "\\", "\r\n": "\n"}
_BOOLEANS: Final[dict[str, AttrValue]] = {"true": True, "false": False}
_NEEDS_ESCAPE = re.compile(r'["\n\t]|\\(?=["nt\\\n\t]|\Z)')
_SPELLING = {'"': '\\"', "\n": "\\n", "\t": "\\t", "\\": "\\\\"}


def is_identifier(text: str) -> bool:
    """True if a text can be a bare id (spec 2.2) and is no keyword."""
    return _IDENTIFIER.match(text) is not None and text.lower() not in KEYWORDS


def is_attribute_name(text: str) -> bool:
    """True if a text can name an attribute: identifiers joined by dots, no keyword."""
    return _QUALIFIED.match(text) is not None and text.lower() not in KEYWORDS


def is_too_large(literal: str) -> bool:
    """True if a bare number is beyond what every program can hold."""
    if len(literal) <= MAX_INTEGER_DIGITS:
        return False
    if _INTEGER.match(literal):
        return len(literal.lstrip("-")) > MAX_INTEGER_DIGITS
    if _DURATION.match(literal):
        return len(literal) > MAX_INTEGER_DIGITS
    return bool(_FLOAT.match(literal)) and (len(literal) > MAX_NUMBER_LENGTH or isinf(float(literal)))


def is_quoted(literal: str) -> bool:
    """True if a value is written as a string."""
    return literal.startswith('"')


def text_of(literal: str) -> str:
    r"""The characters that a literal stands for; a bare one stands for itself.

    >>> text_of(r'"say \"hi\" \l"'), text_of("gpt-5.2")
    ('say "hi" \\l', 'gpt-5.2')
    """
    if not is_quoted(literal):
        return literal
    inner = literal[1:-1]
    if "\\" in inner or "\r" in inner:
        return _ESCAPE.sub(lambda found: _MEANING[found[0]], inner)
    return inner


def value_of(literal: str) -> AttrValue:
    """The value of a literal as its own spelling types it (spec 2.4).

    >>> value_of("3"), value_of("0.5"), value_of("true"), value_of("15m"), value_of('"3"')
    (3, 0.5, True, Duration(milliseconds=900000), '3')
    """
    first = literal[:1]
    if first == '"':
        return text_of(literal)
    if first.isdigit() or first in "-.":
        if _INTEGER.match(literal):
            return int(literal)
        if _FLOAT.match(literal):
            return float(literal)
        duration = parse_duration(literal)
        return literal if duration is None else duration
    return _BOOLEANS.get(literal, literal)


def quote(text: str) -> str:
    r"""A text as a string literal that reads back as itself.

    >>> print(quote('a "b"\n\\l'))
    "a \"b\"\n\l"
    """
    return f'"{_NEEDS_ESCAPE.sub(lambda found: _SPELLING[found[0]], text)}"'


def spell(value: AttrValue) -> str:
    """A value as DOT writes it, so that it reads back as itself; plain Graphviz reads it too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        digits = format(Decimal(repr(value)), "f")
        return digits if "." in digits else f"{digits}.0"
    text = str(value)
    if is_identifier(text) and text not in {"true", "false"}:
        return text
    return quote(text)


def embed_value(span: Span) -> SourceText:
    """The value under a literal's span, as its own text whose spans point into the outer one.

    A condition or stylesheet error then has its caret in the DOT file, through the escapes.

    Args:
        span: A whole literal, quotes included, as ``AttrSpan.value`` has it.
    """
    literal = span.text
    return span.source.embedded(span, text_of(literal), lambda: string_offsets(literal, span.start))


def string_offsets(literal: str, start: int = 0) -> list[int]:
    """For each character of a literal's value, and one past its end, where it is in the outer text."""
    if not is_quoted(literal):
        return list(range(start, start + len(literal) + 1))
    offsets: list[int] = []
    position, last = 1, len(literal) - 1
    for found in _ESCAPE.finditer(literal, 1, last):
        offsets.extend(range(start + position, start + found.start() + 1))
        position = found.end()
    offsets.extend(range(start + position, start + last + 1))
    return offsets


# The value of a literal, once its attribute is known (ruling 2).
#
# A string attribute keeps the text as written (``label=007``), a typed one reads quoted and bare values alike, a
# foreign attribute has the type of its spelling. Nothing fails here: a literal that does not fit stays as it is,
# for lint to report.

Reading = tuple[str, "Callable[[str], AttrValue]"]
"""The canonical name of an attribute, and what makes a value of its literal."""

_TEXTUAL: Final = frozenset({AttrType.STRING, AttrType.CHOICE, AttrType.NODE_ID, AttrType.COMMAND})


@cache
def readings(scope: Scope) -> Mapping[str, Reading]:
    """The readers of the attributes that the table knows in a scope, by each of their names."""
    return {
        row.name: (row.alias_of or row.name, text_of if row.type in _TEXTUAL else _typed_reader(row))
        for row in attributes_of(scope)
    }


def read_unknown(literal: str) -> AttrValue:
    """The value of an attribute that is not in the table; a duration is text there (ruling 5)."""
    value = value_of(literal)
    return literal if isinstance(value, Duration) else value


def _typed_reader(row: AttributeSpec) -> Callable[[str], AttrValue]:
    """The function that reads literals as the row's type, where they have it."""
    longest = MAX_NUMBER_LENGTH if row.type is AttrType.FLOAT else MAX_INTEGER_DIGITS

    def read(literal: str) -> AttrValue:
        if len(literal) <= longest:
            typed = coerce(row, value_of(literal))
            if typed is not None and not (isinstance(typed, float) and isinf(typed)):
                return typed
        return read_unknown(literal)

    return read
