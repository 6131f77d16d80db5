"""Setting and removing one attribute of a graph, node or edge: the text after it (pure).

What the text says elsewhere keeps every character. A value replaces the one that counts, wherever that
stands; a new one joins the attributes of the first statement that has some. Removing takes out all that the
thing itself says of it, so that what it inherits shows again.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.lower import lower
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.respelling import spelled
from attractor_nb.languages.dot.syntax import (
    Attr,
    Block,
    Defaults,
    DotTree,
    EdgeStatement,
    GraphDeclaration,
    NodeStatement,
    Placed,
    Statement,
    SubgraphStatement,
    leading_comments,
)
from attractor_nb.languages.dot.writer import INDENT, is_attribute_name, readings
from attractor_nb.model.diagnostic import TextEdit
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


Holder = NodeStatement | EdgeStatement | Defaults | GraphDeclaration


def set_graph_attribute(tree: DotTree, name: str, value: object) -> str:
    """The text with an attribute of the graph set."""
    _check_name(name)
    if found := _attributes_named(_of_graph(tree), Scope.GRAPH, name):
        return _replaced(tree, Scope.GRAPH, found[-1][1], value)
    return apply_edits(tree.source, [*_new_on_graph(tree, name, spelled(Scope.GRAPH, name, value))])


def remove_graph_attribute(tree: DotTree, name: str) -> str:
    """The text without an attribute of the graph."""
    _check_present(_attributes_named(_of_graph(tree), Scope.GRAPH, name), f"the graph has no attribute {name}")
    while found := _attributes_named(_of_graph(tree), Scope.GRAPH, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def set_node_attribute(tree: DotTree, node_id: str, name: str, value: object) -> str:
    """The text with an attribute of a node set, also where it inherits one or only edges name it."""
    _check_name(name)
    if not node_statements(tree, node_id):
        tree = reread(tree, keeping(tree, lambda tree: declare_node(tree, node_id)))
    statements = node_statements(tree, node_id)
    if found := _attributes_named(statements, Scope.NODE, name):
        return _replaced(tree, Scope.NODE, found[-1][1], value)
    holder = next((part for part in statements if part.block and part.block.attrs), statements[0])
    return _added(tree, holder, Scope.NODE, name, value)


def remove_node_attribute(tree: DotTree, node_id: str, name: str) -> str:
    """The text without an attribute of a node; what it inherits counts again."""
    problem = f"{node_id} itself has no attribute {name}"
    _check_present(_attributes_named(node_statements(tree, node_id), Scope.NODE, name), problem)
    while found := _attributes_named(node_statements(tree, node_id), Scope.NODE, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def set_edge_attribute(tree: DotTree, position: int, name: str, value: object) -> str:
    """The text with an attribute of one edge set; a chain is parted so that its other edges keep theirs."""
    _check_name(name)
    tree = reread(tree, detached(tree, position))
    statement = link_at(tree, position).statement
    if found := _attributes_named([statement], Scope.EDGE, name):
        return _replaced(tree, Scope.EDGE, found[-1][1], value)
    return _added(tree, statement, Scope.EDGE, name, value)


def remove_edge_attribute(tree: DotTree, position: int, name: str) -> str:
    """The text without an attribute of one edge; a chain is parted so that its other edges keep theirs."""
    statement = link_at(tree, position).statement
    problem = f"the edge itself has no attribute {name}"
    _check_present(_attributes_named([statement], Scope.EDGE, name), problem)
    tree = reread(tree, detached(tree, position))
    while found := _attributes_named([link_at(tree, position).statement], Scope.EDGE, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def _of_graph(tree: DotTree) -> list[Holder]:
    """The statements that say attributes of the graph itself."""
    return [
        part
        for part in tree.body
        if isinstance(part, GraphDeclaration) or (isinstance(part, Defaults) and part.scope == Scope.GRAPH)
    ]


def _attributes_named(holders: Iterable[Holder], scope: Scope, name: str) -> list[tuple[Holder, Attr]]:
    """The statements that set an attribute, under any of its names, and where they do; the last one counts."""
    known = readings(scope)

    def canonical(written: str) -> str:
        return known[written][0] if written in known else written

    wanted = canonical(name)
    return [(holder, attr) for holder in holders for attr in _attrs(holder) if canonical(attr.name) == wanted]


def _attrs(holder: Holder) -> Sequence[Attr]:
    if isinstance(holder, GraphDeclaration):
        return (holder.attr,)
    return holder.block.attrs if holder.block is not None else ()


def _replaced(tree: DotTree, scope: Scope, attr: Attr, value: object) -> str:
    literal = spelled(scope, attr.name, value, attr.literal)
    return apply_edits(tree.source, [Page(tree).replace(attr.value_start, attr.end, literal)])


def _added(tree: DotTree, holder: NodeStatement | EdgeStatement, scope: Scope, name: str, value: object) -> str:
    pair = f"{name}={spelled(scope, name, value)}"
    return apply_edits(tree.source, Page(tree).add_attribute(holder.block, holder.end, pair))


def _new_on_graph(tree: DotTree, name: str, literal: str) -> list[TextEdit]:
    """A first mention: in the graph's block, else below its declarations, else in its own block."""
    page, parts = Page(tree), _of_graph(tree)
    block = next((part.block for part in parts if isinstance(part, Defaults)), None)
    if block is not None:
        return page.add_attribute(block, block.end, f"{name}={literal}")
    if parts and isinstance(last := parts[-1], GraphDeclaration):
        sign = tree.source.text[last.attr.name_end : last.attr.value_start]
        return [page.insert_after(last, f"{name}{sign if sign.strip(' ') == '=' else '='}{literal}")]
    text = f"graph [{name}={literal}]"
    return [page.insert_before(tree.body[0], text) if tree.body else page.insert_last(text)]


def _removal(tree: DotTree, holder: Holder, attr: Attr) -> list[TextEdit]:
    page = Page(tree)
    if isinstance(holder, GraphDeclaration):
        return [page.remove(holder)]
    assert holder.block is not None, "it says an attribute"
    if isinstance(holder, Defaults) and len(holder.block.attrs) == 1:
        return [page.remove(holder)]
    return page.remove_attribute(holder, holder.block, attr)


def _check_present(found: Sequence[object], problem: str) -> None:
    if not found:
        raise OptionError(problem, hint="an inherited attribute can only be overridden: set it")


def _check_name(name: str) -> None:
    if not is_attribute_name(name):
        raise OptionError(
            f'"{name}" cannot name an attribute', hint="use letters, digits and underscores, with dots between"
        )


# Statements of nodes and edges: finding one, and making one for what only a chain has (ruling 4).


def node_statements(tree: DotTree, node_id: str) -> list[NodeStatement]:
    """The statements that declare a node, in source order."""
    return [part for part, _ in placed_statements(tree) if isinstance(part, NodeStatement) and part.id.text == node_id]


def declare_node(tree: DotTree, node_id: str) -> str:
    """The text in which a node that only edges name has its own statement, and all else that it had.

    It is where the node is first named. Of a group with a name or attributes it would become a member: it
    is before that, unless it inherits what only the group has.
    """
    page, before = Page(tree), lower(tree).nodes.get(node_id)
    for statement, groups in placed_statements(tree):
        if isinstance(statement, EdgeStatement) and node_id in {name.text for name in statement.ids}:
            outer = next((group for group in groups if _is_remembered(group)), statement)
            text = apply_edits(tree.source, [page.insert_before(outer, node_id)])
            if before is None or lower(reread(tree, text)).nodes[node_id].attrs == before.attrs:
                return text
            return apply_edits(tree.source, [page.insert_before(statement, node_id)])
    raise OptionError(f'there is no node "{node_id}"', hint="add it first")


def keeping(tree: DotTree, change: Callable[[DotTree], str], *, gone: tuple[str, ...] = ()) -> str:
    """The text after a change, with every node that it was not to take.

    A node that edges alone name is taken for a slip of one that is declared under nearly its name (ruling 4):
    it is declared first.

    Args:
        tree: The tree.
        change: Gives the text after the change, of any tree.
        gone: The nodes that it is to take.
    """
    before = lower(tree).nodes
    while True:
        text = change(tree)
        after = lower(reread(tree, text)).nodes
        lost = next((node_id for node_id in before if node_id not in after and node_id not in gone), None)
        if lost is None or node_statements(tree, lost):
            return text
        tree = reread(tree, declare_node(tree, lost))


def reread(tree: DotTree, text: str) -> DotTree:
    """The tree of the text that a first edit left, for the next one."""
    if text == tree.source.text:
        return tree
    return parse_syntax(SourceText(text, tree.source.name, tree.source.first_line))


def _is_remembered(group: SubgraphStatement) -> bool:
    """True if the graph has the group as one, and not only as a scope of defaults."""
    return group.id is not None or any(
        isinstance(part, GraphDeclaration) or (isinstance(part, Defaults) and part.scope == Scope.GRAPH)
        for part in group.body
    )


class ChainLink(NamedTuple):
    """The arrow behind ``statement.ids[at]``."""

    statement: EdgeStatement
    at: int

    @property
    def is_alone(self) -> bool:
        """True if it is all that its statement says."""
        return len(self.statement.ids) == 2


def link_at(tree: DotTree, position: int) -> ChainLink:
    """The link that is the edge at a position of ``Graph.edges``."""
    left = position
    for statement, _ in placed_statements(tree):
        if isinstance(statement, EdgeStatement):
            links = len(statement.ids) - 1
            if 0 <= left < links:
                return ChainLink(statement, left)
            left -= links
    raise OptionError(f"the graph has no edge number {position}", hint="edges count from 0, in source order")


def detached(tree: DotTree, position: int) -> str:
    """The text in which an edge is a separate statement; the rest of its chain is around it."""
    link = link_at(tree, position)
    return tree.source.text if link.is_alone else _split(tree, link, is_kept=True)


def without_edge(tree: DotTree, position: int) -> str:
    """The text without an edge; a chain is parted there. Attributes of the chain stay on both parts."""
    link = link_at(tree, position)
    page = Page(tree)
    statement, at = link
    if link.is_alone:
        return apply_edits(tree.source, [page.remove(statement)])
    ids = statement.ids
    if at == 0:
        return apply_edits(tree.source, [page.replace(ids[0].start, ids[1].start, "")])
    if at == len(ids) - 2:
        return apply_edits(tree.source, [page.replace(ids[-2].end, ids[-1].end, "")])
    return _split(tree, link, is_kept=False)


def _split(tree: DotTree, link: ChainLink, *, is_kept: bool) -> str:
    """Part a chain at a link; every comment in it stays on the part that it is in."""
    page = Page(tree)
    statement, at = link
    ids, text = statement.ids, page.text
    last = len(ids) - 1
    block = "" if statement.block is None else text[ids[-1].end : statement.block.end]
    bounds = [(0, at), *([(at, at + 1)] if is_kept else []), (at + 1, last)]
    parts = [text[ids[first].start : ids[end].end] for first, end in bounds if first < end]
    joint = f"{block}{page.separator_before(statement)}"
    return apply_edits(tree.source, [page.replace(statement.start, ids[-1].end, joint.join(parts))])


# Placement of new text and removal of old text, so that a change touches as few lines as it can.
#
# Comments outside of removed text stay, as do order, indentation and line ends. This part knows statements and
# lines, not their meaning.

_BLANKS: Final = re.compile(r"[ \t\r]*+")
_SPACE: Final = re.compile(r"[ \t\r\n]*+")


class PlacedStatement(NamedTuple):
    """A statement and the groups around it, outermost first."""

    statement: Statement
    groups: tuple[SubgraphStatement, ...]


def placed_statements(tree: DotTree) -> Iterator[PlacedStatement]:
    """All statements but groups, in source order; groups nest no deeper than the lexer allows."""

    def walk(body: Sequence[Statement], groups: tuple[SubgraphStatement, ...]) -> Iterator[PlacedStatement]:
        for statement in body:
            if isinstance(statement, SubgraphStatement):
                yield from walk(statement.body, (*groups, statement))
            else:
                yield PlacedStatement(statement, groups)

    return walk(tree.body, ())


class Page:
    """The text of a tree as lines, for placing changes in it."""

    def __init__(self, tree: DotTree) -> None:
        self.tree = tree
        self.text = tree.source.text
        first_end = self.text.find("\n")
        self.newline = "\r\n" if first_end > 0 and self.text[first_end - 1] == "\r" else "\n"
        self._starts = [comment.start for comment in tree.comments]

    def replace(self, start: int, end: int, text: str) -> TextEdit:
        """The edit that puts a text in place of what is between two offsets."""
        return TextEdit(self.tree.source.span(start, end), text)

    # -- statements ------------------------------------------------------------------------------------

    def insert_after(self, statement: Placed, text: str) -> TextEdit:
        """A statement behind another one: on its own line if that one ends its line."""
        end = self._end_of_line(statement.end)
        if end is None:
            return self.replace(statement.end, statement.end, f"; {text}")
        return self.replace(end, end, f"{self.newline}{self.indent(statement.start)}{text}")

    def insert_before(self, statement: Placed, text: str) -> TextEdit:
        """A statement before another one and the comments that lead to it."""
        comments = leading_comments(self.tree).get(statement.start, ())
        start = min([statement.start, *(comment.start for comment in comments)])
        line = self._line_start(start)
        if self.text[line:start].strip():
            return self.replace(start, start, f"{text}; ")
        return self.replace(line, line, f"{self.indent(start)}{text}{self.newline}")

    def insert_last(self, text: str) -> TextEdit:
        """A statement at the end of the graph's body."""
        if self.tree.body:
            return self.insert_after(self.tree.body[-1], text)
        close = self.tree.end - 1
        line, outer = self._line_start(close), self.indent(self.tree.body_start)
        if line > self.tree.body_start and not self.text[line:close].strip():
            return self.replace(line, line, f"{outer}{INDENT}{text}{self.newline}")
        return self.replace(close, close, f"{self.newline}{outer}{INDENT}{text}{self.newline}{outer}")

    def separator_before(self, statement: Placed) -> str:
        """The text between a statement and another one that takes a part of it."""
        line = self._line_start(statement.start)
        if self.text[line : statement.start].strip():
            return "; "
        return f"{self.newline}{self.indent(statement.start)}"

    def remove(self, statement: Placed) -> TextEdit:
        """Take a statement out, with its line if nothing else is there."""
        start, end = statement.start, self._past(statement.end, ";")
        line = self._line_start(start)
        after = self._skip(_BLANKS, end)
        is_last_on_line = self.text.startswith("\n", after)
        if is_last_on_line and not self.text[line:start].strip():
            return self.replace(line, after + 1, "")
        end = end if is_last_on_line else after
        is_glue = (self.text[start - 1] + self.text[end]).replace("_", "a").isalnum()
        return self.replace(start, end, " " if is_glue else "")

    # -- attributes ------------------------------------------------------------------------------------

    def add_attribute(self, block: Block | None, end: int, pair: str) -> list[TextEdit]:
        """Add ``name=value`` to a block; without one, make it at ``end`` of the statement."""
        if block is None:
            return [self.replace(end, end, f" [{pair}]")]
        if not block.attrs:
            return [self.replace(block.start + 1, block.start + 1, pair)]
        last = block.attrs[-1]
        if self.text[self._line_start(last.start) : last.start].strip():
            return [self.replace(last.end, last.end, f", {pair}")]
        new_line = f"{self.newline}{self.indent(last.start)}{pair}"
        line_end = self._end_of_line(last.end)
        separator = self._separator(last.end)
        if line_end is None or not self._has_comment(last.end, line_end):
            return [self.replace(last.end, last.end, f",{new_line}")]
        # A comment is behind the last one: it stays there.
        comma = [] if separator else [self.replace(last.end, last.end, ",")]
        return [*comma, self.replace(line_end, line_end, new_line + separator)]

    def remove_attribute(self, statement: Placed, block: Block, gone: Attr) -> list[TextEdit]:
        """Take one attribute out of a block; the last one takes the block with it, if no comment is in it."""
        if len(block.attrs) == 1 and not self._has_comment(block.start, block.end):
            start = block.start
            if not self._has_comment(statement.start, start):
                start = statement.start + len(self.text[statement.start : start].rstrip())
            return [self.replace(start, block.end, "")]
        end = self._past(gone.end, ",;")
        line, after = self._line_start(gone.start), self._skip(_BLANKS, end)
        at = block.attrs.index(gone)
        if at and at == len(block.attrs) - 1 and end == gone.end:
            before = block.attrs[at - 1].end
            if not self._has_comment(before, gone.start):
                return [self.replace(before, gone.end, "")]
        is_last_on_line = self.text.startswith("\n", after)
        if is_last_on_line and not self.text[line : gone.start].strip():
            return [self.replace(line, after + 1, "")]
        if end == gone.end:  # no separator, or a comment before it
            found = self._separator_place(gone.end)
            comma = [] if found is None else [self.replace(found, found + 1, "")]
            stop = after if found is None and not is_last_on_line else gone.end
            return [self.replace(gone.start, stop, ""), *comma]
        return [self.replace(gone.start, end if is_last_on_line else after, "")]

    # -- lines -----------------------------------------------------------------------------------------

    def indent(self, offset: int) -> str:
        """The indentation of a line."""
        line = self._line_start(offset)
        return self.text[line : self._skip(_BLANKS, line)].replace("\r", "")

    def column_gap(self, statement: Statement) -> int:
        """The width of a node's id with the blanks before its block; 0 where there is at most one blank."""
        if not isinstance(statement, NodeStatement) or statement.block is None:
            return 0
        between = self.text[statement.id.end : statement.block.start]
        return statement.block.start - statement.start if len(between) > 1 and between.isspace() else 0

    def _line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def _skip(self, what: re.Pattern[str], offset: int) -> int:
        found = what.match(self.text, offset)
        return found.end() if found else offset

    def _past(self, offset: int, separators: str) -> int:
        """Past a separator that is there, blanks before it included; the offset itself without one."""
        place = self._skip(_BLANKS, offset)
        return place + 1 if self.text[place : place + 1] in tuple(separators) else offset

    def _end_of_line(self, offset: int) -> int | None:
        """The end of an offset's line, with its separator and comments passed; None if the line has more."""
        while True:
            offset = self._past(offset, ",;")
            after = self._skip(_BLANKS, offset)
            if after == len(self.text) or self.text[after] == "\n":
                return after - 1 if after > offset and self.text[after - 1] == "\r" else after
            comment = self._comment_at(after)
            if comment is None:
                return None
            offset = comment

    def _comment_at(self, offset: int) -> int | None:
        """The end of the comment that begins at an offset."""
        at = bisect_left(self._starts, offset)
        if at < len(self._starts) and self._starts[at] == offset:
            comment = self.tree.comments[at]
            return comment.end - 1 if comment.text.endswith("\r") else comment.end
        return None

    def _has_comment(self, start: int, end: int) -> bool:
        at = bisect_left(self._starts, start)
        return at < len(self._starts) and self._starts[at] < end

    def _separator(self, offset: int) -> str:
        place = self._separator_place(offset)
        return "" if place is None else self.text[place]

    def _separator_place(self, offset: int) -> int | None:
        """The offset of the separator behind an attribute, comments passed; None without one."""
        while True:
            offset = self._skip(_SPACE, offset)
            comment = self._comment_at(offset)
            if comment is None:
                return offset if self.text[offset : offset + 1] in {",", ";"} else None
            offset = comment
