"""A syntax tree as tidy text: same statements, same order, same comments, same values as written.

What the subset reads with a warning is written as it should be: commas, bare ids, ``//``, ``subgraph``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.dot.comments import attach
from attractor_nb.languages.dot.literals import is_identifier, quote
from attractor_nb.languages.dot.syntax import Defaults, EdgeStatement, GraphDeclaration, SubgraphStatement
from attractor_nb.languages.dot.writer import INDENT, statement_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.languages.dot.syntax import Attr, Block, Comment, DotTree, Statement

_SCOPES: Final = frozenset({"graph", "node", "edge"})
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")


def write_tree(tree: DotTree) -> str:
    """The text of a tree, formatted; blank lines between statements are kept, at most one at a time."""
    return _Formatter(tree).text()


class _Formatter:
    """Formats one tree."""

    def __init__(self, tree: DotTree) -> None:
        self._tree = tree
        self._source = tree.source.text
        self._attached = attach(tree)
        self._lines: list[str] = []

    def text(self) -> str:
        """The whole text."""
        tree, attached = self._tree, self._attached
        self._lines.extend(_comment(comment) for comment in attached.before_graph)
        name = ""
        if tree.name is not None:
            name = f"{tree.name.text if is_identifier(tree.name.text) else quote(tree.name.text)} "
        self._lines.append(f"digraph {name}{{{self._trailing(tree.body_start + 1)}")
        self._write_body(tree.body, tree.body_start + 1, tree.end - 1, INDENT)
        self._lines.append("}")
        self._lines.extend(_comment(comment) for comment in attached.after_graph)
        return "\n".join(self._lines) + "\n"

    def _write_body(self, body: Sequence[Statement], after: int, close: int, indent: str) -> None:
        """Write statements from offset ``after`` up to the closing brace at ``close``."""
        opening = after
        after = self._end_with_trailing(after)
        for statement in body:
            self._write_leading(statement.start, after, indent, is_first=after <= opening)
            self._write_statement(statement, indent)
            after = self._end_with_trailing(statement.end)
        self._write_leading(close, after, indent, is_first=not body, is_close=True)

    def _write_leading(self, start: int, after: int, indent: str, *, is_first: bool, is_close: bool = False) -> None:
        """Write the comments before an offset, and a blank line wherever the source had one."""
        for comment in self._leading(start):
            self._write_blank(after, comment.start, is_wanted=not is_first)
            self._lines.append(f"{indent}{_comment(comment)}")
            after, is_first = comment.end, False
        if not is_close:
            self._write_blank(after, start, is_wanted=not is_first)

    def _write_blank(self, after: int, start: int, *, is_wanted: bool) -> None:
        if is_wanted and _BLANK_LINE.search(self._source, after, max(after, start)):
            self._lines.append("")

    def _write_statement(self, statement: Statement, indent: str) -> None:
        if isinstance(statement, SubgraphStatement):
            name = f"{statement.id.text} " if statement.id else ""
            opening = statement.body_start + 1
            self._lines.append(f"{indent}subgraph {name}{{{self._trailing(opening)}")
            self._write_body(statement.body, opening, statement.end - 1, indent + INDENT)
            self._lines.append(f"{indent}}}{self._trailing(statement.end)}")
            return
        if isinstance(statement, GraphDeclaration):
            text = _attr(statement.attr)
        elif isinstance(statement, Defaults):
            text = self._with_block(statement.scope, statement.block, indent)
        elif isinstance(statement, EdgeStatement):
            text = self._with_block(" -> ".join(name.text for name in statement.ids), statement.block, indent)
        else:
            text = self._with_block(statement.id.text, statement.block, indent)
        self._lines.append(f"{indent}{text}{self._trailing(statement.end)}")

    def _with_block(self, head: str, block: Block | None, indent: str) -> str:
        if block is None:
            return head
        if not self._has_comments(block):
            if not block.attrs:
                return f"{head} []" if head in _SCOPES else head
            return statement_text(head, [_attr(attr) for attr in block.attrs], indent)
        inner = indent + INDENT
        lines = [f"{head} [{self._trailing(block.start + 1)}"]
        for attr in block.attrs:
            lines.extend(f"{inner}{_comment(comment)}" for comment in self._leading(attr.start))
            comma = "" if attr is block.attrs[-1] else ","
            lines.append(f"{inner}{_attr(attr)}{comma}{self._trailing(attr.end)}")
        lines.extend(f"{inner}{_comment(comment)}" for comment in self._leading(block.end - 1))
        lines.append(f"{indent}]")
        return "\n".join(lines)

    def _has_comments(self, block: Block) -> bool:
        places = [attr.start for attr in block.attrs] + [block.end - 1]
        ends = [attr.end for attr in block.attrs] + [block.start + 1]
        return any(self._leading(place) for place in places) or any(end in self._attached.trailing for end in ends)

    def _leading(self, start: int) -> Sequence[Comment]:
        return self._attached.leading.get(start, ())

    def _trailing(self, end: int) -> str:
        return "".join(f" {_comment(comment)}" for comment in self._attached.trailing.get(end, ()))

    def _end_with_trailing(self, end: int) -> int:
        return max([end, *(comment.end for comment in self._attached.trailing.get(end, ()))])


def _attr(attr: Attr) -> str:
    name = attr.name if is_identifier(attr.name) else quote(attr.name)
    return f"{name}={attr.literal}"


def _comment(comment: Comment) -> str:
    return f"//{comment.text[1:]}" if comment.text.startswith("#") else comment.text
