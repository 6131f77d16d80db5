"""Texts as people read them: Markdown, code, JSON and diffs as a small tree that all views draw alike.

A node is a text, or a list: ``"tag"`` or ``"tag.class"`` (``".class"`` is a span), attributes if there are,
and its nodes. What tags and attributes there are stands in ``TAGS`` and ``ATTRIBUTES``; whoever draws
(``prose_html.py``, ``web/prose.js``) takes no others. Whatever a text holds, a tree is bounded in characters,
nodes and depth, links lead to http, https and mailto alone, and images are named and never loaded. The text
itself is always kept beside its tree: a tree is one way to read it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.views.markup import clean
from attractor_nb.views.texts.prose_code import code_node, diff_node, json_node, traceback_node
from attractor_nb.views.texts.prose_markdown import markdown_nodes
from attractor_nb.views.texts.text_diff import word_sides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.views.texts.prose_code import ProseNode

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
    "carried": "carried.md",
    "response": "response.md",
    "changes": "changes.diff",
    "traceback": "traceback.txt",
    "stdout": "stdout.txt",
    "stderr": "stderr.txt",
}
"""Texts of an inspection, and the files that they stand in."""


def prose_of(text: str | None, name: str = "") -> list[ProseNode] | None:
    """The tree of a text; None for one that is shown as it is.

    Args:
        name: The file that it stands in: by its end, and by how the text begins, it is known what it is.

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
