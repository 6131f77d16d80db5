"""Texts as users read them: Markdown, code, JSON and diffs as a small tree that all views draw alike.

A node is a text, or a list: ``"tag"`` or ``"tag.class"`` (``".class"`` is a span), attributes if there are,
and its nodes. ``TAGS`` and ``ATTRIBUTES`` list all tags and attributes;
``prose_html`` and ``web/prose.js`` accept no others. Whatever a text holds, a tree is bounded in characters,
nodes and depth, links lead to http, https and mailto alone, and images are named and never loaded. The text
itself is always kept beside its tree: a tree is one way to read it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from attractor_nb.views.drawings.theme import LOUD_ID, root_class
from attractor_nb.views.frontend import FOLDER
from attractor_nb.views.markup import clean, element
from attractor_nb.views.texts.prose_code import ProseNode, code_node, diff_node, json_node, traceback_node
from attractor_nb.views.texts.text_diff import word_sides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup


TAGS: Final = frozenset(
    {
        *("p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "hr", "br", "div", "span", "a"),
        *("table", "thead", "tbody", "tr", "th", "td", "pre", "code", "em", "strong", "s", "del", "ins"),
        *("details", "summary"),
    }
)
ATTRIBUTES: Final = frozenset({"href", "start", "open"})
MAX_CHARACTERS: Final = 20_000
"""Of a text that is rendered; the rest is there as it is."""
_LANGUAGES: Final = {
    "py": "python",
    "js": "javascript",
    "mjs": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "sh": "bash",
    "html": "html",
    "css": "css",
    "sql": "sql",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "rs": "rust",
    "go": "go",
    "c": "c",
    "h": "c",
    "cpp": "cpp",
    "xml": "xml",
    "ini": "ini",
    "rb": "ruby",
    "dot": "dot",
}
"""By the end of a file's name."""
_MARKDOWN: Final = frozenset({"", "md", "markdown"})
_DIFF: Final = re.compile(r"(diff --git |Index: |--- [^\n]*\n\+\+\+ |@@ -\d)")
_BEGINS_JSON: Final = re.compile(r'\s*(\{\s*"|\[\s*["{])')
_CODE: Final = {"tool": "command.sh", "function": "function.py"}
"""By handler type: the name by which its code is highlighted, where a prompt would be."""
_PARTS: Final = {
    "prompt": "prompt.md",
    "task": "prompt.md",
    "carried": "carried.md",
    "response": "response.md",
    "changes": "changes.diff",
    "traceback": "traceback.txt",
    "stdout": "stdout.txt",
    "stderr": "stderr.txt",
}
"""Texts of an inspection, and the files that they are in."""


def prose_of(text: str | None, name: str = "") -> list[ProseNode] | None:
    """The tree of a text; None for one that is shown as it is.

    Args:
        name: The file that it is in: by its end, and by how the text begins, it is known what it is.

    >>> prose_of("# Plan")
    [['h3.level-1', 'Plan']]
    >>> prose_of("one line", "stdout.txt") is None
    True
    """
    if not text or not text.strip():
        return None
    text = clean(text).replace("\r\n", "\n").replace("\r", "\n")
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    part = _beginning(text)
    more = len(text) - len(part)
    nodes = [traceback_node(part)] if name == _PARTS["traceback"] else _nodes(part, suffix)
    if nodes is not None and more > 0:
        words = f"Rendered are the first {len(part):,} of {len(text):,} characters."
        nodes.append(["p.note", words])
    return nodes


def shown_stage(plain: dict[str, Any]) -> dict[str, Any]:
    """The plain form of a stage with the trees of its texts, for a front-end."""
    if "status" not in plain or "prompt" not in plain:
        return plain
    texts = {**plain, **plain["output"]}
    shown = {name: prose_of(texts.get(name), file) for name, file in _PARTS.items() if name != "prompt"}
    shown["prompt"] = prose_of(texts["prompt"], _CODE.get(plain["handler"], "prompt.md"))
    context = [_with_sides(change) for change in plain["context"]]
    files = [{**file, "shown": prose_of(file.get("text"), file["name"])} for file in plain["files"]]
    kept = {name: tree for name, tree in shown.items() if tree is not None}
    return {**plain, "shown": kept, "context": context, "files": files}


def shown_parts(plain: Mapping[str, Any]) -> Mapping[str, list[ProseNode]]:
    """The trees of the texts of a stage, by name."""
    return shown_stage({**plain, "context": [], "files": []}).get("shown", {})


def _with_sides(change: dict[str, Any]) -> dict[str, Any]:
    """A change of the context with its two values as trees, where there is something to be seen in them."""
    before, after = change["before"], change["after"]
    if change["change"] == "changed" and before is not None and after is not None:
        sides = word_sides(before, after)
        return {**change, "shown": {"before": sides[0], "after": sides[1]}} if sides else change
    trees = {name: json_node(clean(text)) for name, text in (("before", before), ("after", after)) if text}
    shown = {name: [tree] for name, tree in trees.items() if tree is not None}
    return {**change, "shown": shown} if shown else change


def _beginning(text: str) -> str:
    """As much of a text as is rendered, whole lines where there are some."""
    if len(text) <= MAX_CHARACTERS:
        return text
    end = text.rfind("\n", MAX_CHARACTERS // 2, MAX_CHARACTERS)
    return text[: end if end > 0 else MAX_CHARACTERS]


def _nodes(text: str, suffix: str) -> list[ProseNode] | None:
    if suffix in {"diff", "patch"} or _DIFF.match(text):
        return [diff_node(text)]
    if (tree := json_node(text)) is not None:
        return [tree]
    if suffix in {"json", "jsonl"} or _BEGINS_JSON.match(text):
        return [code_node(text, "json")]
    if suffix in _MARKDOWN:
        return markdown_nodes(text)
    language = _LANGUAGES.get(suffix)
    return [code_node(text, language)] if language else None


# The trees of ``prose.py`` as HTML that needs no script: what a cell and a page without script show.

_EMPTY = frozenset({"br", "hr"})
_LINK = {"rel": "noopener noreferrer", "target": "_blank"}


def prose_html(text: str, nodes: list[ProseNode]) -> Markup:
    """A text rendered; a click on "Raw" shows it as it is instead.

    The text as it is is before the tree: while it is open a rule of the style sheet hides the tree.
    """
    words = (element("span", {"class": "pr-closed"}, "Raw"), element("span", {"class": "pr-opened"}, "Rendered"))
    raw = element("details", {"class": "pr-raw"}, element("summary", None, *words), element("pre", None, text))
    return element("div", {"class": "attractor-prose"}, raw, shown_html(nodes))


def shown_html(nodes: list[ProseNode]) -> Markup:
    """The tree alone."""
    return element("div", {"class": "pr-shown attractor-prose", "tabindex": "0"}, *map(_markup, nodes))


def _markup(node: ProseNode) -> str:
    if isinstance(node, str):
        return node
    head, *inside = node
    tag, _, name = head.partition(".")
    tag = tag or "span"
    assert tag in TAGS, f"{tag} is not a tag of a text"
    attributes: dict[str, Any] = {"class": f"pr-{name}"} if name else {}
    if inside and isinstance(inside[0], dict):
        given: dict[str, str] = inside.pop(0)
        assert given.keys() <= ATTRIBUTES
        attributes |= given
    if tag == "a":
        attributes |= {**_LINK, "title": attributes["href"]}
    if tag in _EMPTY:
        return element(tag, attributes)
    return element(tag, attributes, "", *map(_markup, inside))  # never closed within its own tag


@cache
def prose_css() -> str:
    """The style sheet, the same that the front-end has, nested so that it counts for more than a host's."""
    sheet = (FOLDER / "prose.css").read_text("utf-8")
    return f"\n:is(.{root_class()},{LOUD_ID}) {{\n{sheet}\n}}\n"


# Markdown as a tree of ``prose.py``: CommonMark with tables, parsed by markdown-it-py, without its HTML.
#
# A line break stays one: prompts are written in lines. HTML in a text is text.

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
    from markdown_it import MarkdownIt  # noqa: PLC0415 - loaded for a view

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
        """Write what is in a line."""
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
    """The node of an inline token without children; a token that no rule covers stays as written."""
    if token.type in {"softbreak", "hardbreak"}:
        return ["br"]
    if token.type == "code_inline":
        return ["code", token.content]
    if token.type == "image":
        words = f"image: {token.content}" if token.content else "image"
        return [".image", words, _address(token.attrGet("src"))]
    return token.content


def _is_let_through(address: str) -> bool:
    """True if a link may lead there."""
    try:
        return urlsplit(address).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _address(address: Any) -> ProseNode:
    words = str(address or "")
    return [".address", f" ({words if len(words) <= MAX_ADDRESS else f'{words[:MAX_ADDRESS]}…'})"]
