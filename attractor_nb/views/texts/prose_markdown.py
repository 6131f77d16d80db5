"""Markdown as a tree of ``prose.py``: CommonMark with tables, parsed by markdown-it-py, without its HTML.

A line break stays one: prompts are written in lines. HTML in a text is text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from attractor_nb.views.texts.prose_code import code_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from attractor_nb.views.texts.prose_code import ProseNode

MAX_NODES: Final = 6_000
MAX_COLOURED_TOTAL: Final = 24_000
"""Characters of all code of a text that are coloured."""
MAX_ADDRESS: Final = 300
SCHEMES: Final = frozenset({"http", "https", "mailto"})
_BLOCKS: Final = {
    "paragraph_open": "p",
    "bullet_list_open": "ul",
    "ordered_list_open": "ol",
    "list_item_open": "li",
    "blockquote_open": "blockquote",
    "thead_open": "thead",
    "tbody_open": "tbody",
    "tr_open": "tr",
    "th_open": "th",
    "td_open": "td",
    "em_open": "em",
    "strong_open": "strong",
    "s_open": "s",
}
_ALIGNED: Final = {"text-align:right": ".right", "text-align:center": ".center"}


def markdown_nodes(text: str) -> list[ProseNode]:
    """The tree of a Markdown text.

    >>> markdown_nodes("[this](javascript:x)")
    [['p', ['span', 'this', ['.address', ' (javascript:x)']]]]
    """
    writer = _Writer()
    writer.write(_parser().parse(text))
    return writer.nodes


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - loaded when somebody looks

    made = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    made.validateLink = lambda url: True  # ours is stricter, and an address that is refused is still shown  # noqa: ARG005
    return made


class _Writer:
    """Writes tokens as nodes, until there are too many.

    Attributes:
        nodes: What was written.
    """

    def __init__(self) -> None:
        self.nodes: list[ProseNode] = []
        self._open: list[list[Any]] = [self.nodes]
        self._behind: list[ProseNode] = []
        """Of each open link that leads nowhere, its address; of another, nothing."""
        self._count = 0
        self._coloured = 0

    def write(self, tokens: Iterable[Token]) -> None:
        """Write the tokens of a text."""
        for token in tokens:
            if self._count >= MAX_NODES:
                self.nodes.append(["p.note", "There is more than can be rendered; Raw has all of it."])
                return
            self._count += 1
            if token.type == "inline":
                self.write_inline(token.children or ())
            elif token.type in {"fence", "code_block"}:
                self._put(self._code(token.content, token.info.split(maxsplit=1)))
            elif token.type == "hr":
                self._put(["hr"])
            elif token.nesting == 1:
                self._begin(token)
            elif token.nesting == -1:
                self._open.pop()

    def write_inline(self, tokens: Sequence[Token]) -> None:
        """Write what stands in a line."""
        for token in tokens:
            self._count += 1
            if token.type == "link_open":
                self._begin_link(str(token.attrGet("href") or ""))
            elif token.nesting == 1:
                self._begin(token)
            elif token.nesting == -1:
                if token.type == "link_close" and (address := self._behind.pop()):
                    self._put(address)
                self._open.pop()
            elif (node := _leaf(token)) != "":
                self._put(node)

    def _put(self, node: ProseNode) -> None:
        self._open[-1].append(node)

    def _begin(self, token: Token) -> None:
        if token.hidden:  # the paragraph of a tight list's item
            self._open.append(self._open[-1])
            return
        node: list[Any]
        if token.type == "heading_open":
            level = int(token.tag[1:])
            node = [f"h{min(6, level + 2)}.level-{level}"]
        elif token.type == "table_open":
            node = ["table"]
            self._put(["div.wide", node])
            self._open.append(node)
            return
        else:
            node = [_BLOCKS.get(token.type, "span") + _ALIGNED.get(str(token.attrGet("style") or ""), "")]
            start = token.attrGet("start")
            if token.type == "ordered_list_open" and start is not None:
                node.append({"start": str(start)})
        self._put(node)
        self._open.append(node)

    def _begin_link(self, href: str) -> None:
        is_let_through = _is_let_through(href)
        node: list[Any] = ["a", {"href": href}] if is_let_through else ["span"]
        self._behind.append("" if is_let_through else _address(href))
        self._put(node)
        self._open.append(node)

    def _code(self, text: str, info: list[str]) -> ProseNode:
        self._coloured += len(text)
        language = info[0] if info and self._coloured <= MAX_COLOURED_TOTAL else ""
        return code_node(text, language)


def _leaf(token: Token) -> ProseNode:
    """What stands in a line and has nothing within it; what no rule of ours makes, as it was written."""
    if token.type in {"softbreak", "hardbreak"}:
        return ["br"]
    if token.type == "code_inline":
        return ["code", token.content]
    if token.type == "image":
        words = f"image: {token.content}" if token.content else "image"
        return [".image", words, _address(token.attrGet("src"))]
    return token.content


def _is_let_through(address: str) -> bool:
    """Whether a link may lead there."""
    try:
        return urlsplit(address).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _address(address: Any) -> ProseNode:
    words = str(address or "")
    return [".address", f" ({words if len(words) <= MAX_ADDRESS else f'{words[:MAX_ADDRESS]}…'})"]
