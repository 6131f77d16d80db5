"""Code, diffs and JSON as trees of ``prose.py``: tokens with a class, lines that changed, what opens.

Pygments' expressions take time that grows with the square of hostile text, so only languages that were
measured with such texts are coloured, only so much of a text, and none with a very long line.

It is what the text says: doubled keys, the order of keys and the digits of numbers stay as they were written.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.views.texts.text_diff import marked_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.views.texts.text_diff import Row

MAX_ROWS: Final = 1_500
"""Lines of all objects and arrays; what comes behind is counted."""
MAX_DEPTH: Final = 24
OPEN_ROWS: Final = 10
"""An object or array with more lines than that is folded at first; the outermost is open."""
ProseNode = str | list[Any]
"""A text, or ``[tag.class, attributes if any, *nodes]``; see ``prose.py``."""


_Entry = tuple[list[ProseNode], Any]
"""Text before a value, and the value."""

MAX_COLOURED: Final = 12_000
"""Characters of a text that is coloured."""
MAX_COLOURED_LINE: Final = 400
MAX_SECONDS: Final = 0.3
"""Processor time for colouring one text; the rest stays plain. A text of a few screens takes a tenth of it."""
LANGUAGES: Final = {
    **dict.fromkeys(("python", "py", "python3", "ipython"), "python"),
    **dict.fromkeys(("javascript", "js", "jsx"), "javascript"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "typescript"),
    **dict.fromkeys(("bash", "sh", "shell", "console", "zsh"), "bash"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **dict.fromkeys(("cpp", "c++", "cxx"), "cpp"),
    **dict.fromkeys(("dot", "graphviz"), "dot"),
    **dict.fromkeys(("ruby", "rb"), "ruby"),
    **{name: name for name in ("json", "html", "css", "sql", "toml", "go", "c", "ini", "xml")},
}
"""Lexer for each name of a fence; with hostile texts those of java and make take too long."""
_KINDS: Final = (
    ("Comment", "comment"),
    ("Keyword", "keyword"),
    ("Operator.Word", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Name.Function", "name"),
    ("Name.Class", "name"),
    ("Name.Decorator", "name"),
    ("Name.Builtin", "name"),
    ("Name.Tag", "key"),
    ("Name.Attribute", "key"),
    ("Generic.Error", "error"),
    ("Name.Exception", "error"),
)
_ROWS: Final = {"-": "span.gone", "+": "span.new", "@": "span.place", "=": "span.head"}


class _Number(NamedTuple):
    digits: str


class _Object(NamedTuple):
    entries: list[tuple[str, Any]]


def json_node(text: str) -> ProseNode | None:
    """The tree of a text that is a JSON object or array and nothing else; None for any other.

    >>> json_node('{"n": 1.50}')[1][3]
    ['div.row', ['.key', '"n"'], ': ', ['.number', '1.50']]
    """
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = json.loads(
            text, object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number, parse_constant=_Number
        )
    except (ValueError, RecursionError):
        return None
    writer = _Writer()
    return ["div.json", writer.value(value, [], 0)]


class _Writer:
    """Writes values as nodes, within its bounds."""

    def __init__(self) -> None:
        self._rows = 0

    def value(self, value: Any, before: list[ProseNode], depth: int) -> ProseNode:
        """A value behind its key: a line, or something to fold."""
        if isinstance(value, _Object) and value.entries:
            inside = [([[".key", _quoted(key)], ": "], entry) for key, entry in value.entries]
            return self._fold(before, "{}", inside, depth)
        if isinstance(value, list) and value:
            return self._fold(before, "[]", [([], entry) for entry in value], depth)  # pyright: ignore[reportUnknownVariableType] - of JSON
        return ["div.row", *before, _scalar(value)]

    def _fold(self, before: list[ProseNode], brackets: str, inside: list[_Entry], depth: int) -> ProseNode:
        one, many = ("key", "keys") if brackets == "{}" else ("entry", "entries")
        count = f" {len(inside):,} {one if len(inside) == 1 else many} "
        if depth == MAX_DEPTH:
            words = f"{count}in it, too deep to be shown "
            return ["div.row", *before, brackets[0], [".count", words], brackets[1]]
        began = self._rows
        nodes: list[ProseNode] = []
        for name, entry in inside:
            if self._rows >= MAX_ROWS:
                nodes.append(["div.row.note", f"… {len(inside) - len(nodes):,} more"])
                break
            self._rows += 1
            nodes.append(self.value(entry, name, depth + 1))
        is_open = depth == 0 or self._rows - began <= OPEN_ROWS
        head = ["summary", *before, brackets[0], [".count", count], [".shut", brackets[1]]]
        opened: list[ProseNode] = [{"open": ""}] if is_open else []  # pyright: ignore[reportAssignmentType] - attributes stand there
        return ["details.fold", *opened, head, *nodes, ["div.end", brackets[1]]]


def _scalar(value: Any) -> ProseNode:
    if isinstance(value, str):
        return [".string", _quoted(value)]
    if isinstance(value, _Number):
        return [".number", value.digits]
    if isinstance(value, _Object):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return [".literal", {None: "null", True: "true", False: "false"}[value]]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def code_node(text: str, language: str) -> ProseNode:
    """A piece of code: coloured where its language is known, JSON to be folded, a diff by its words."""
    language = language.lower()
    if language == "json" and (tree := json_node(text)) is not None:
        return tree
    if language in {"diff", "patch"}:
        return diff_node(text)
    lexer = LANGUAGES.get(language)
    is_long = len(text) > MAX_COLOURED or any(len(line) > MAX_COLOURED_LINE for line in text.splitlines())
    if lexer is None or is_long:
        return ["pre.code", text]
    return ["pre.code", *_tokens(text, lexer)]


def _tokens(text: str, lexer: str) -> list[ProseNode]:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 # pyright: ignore[reportUnknownVariableType] - loaded when somebody looks

    found: list[ProseNode] = []
    kind, words = "", ""
    read = get_lexer_by_name(lexer, stripnl=False, ensurenl=False)  # its first use compiles its expressions
    until = time.thread_time() + MAX_SECONDS
    at = 0
    for token, value in read.get_tokens(text):
        if time.thread_time() > until:
            return [*found, *_piece(kind, words), text[at:]]
        at += len(value)
        its_kind = _kind_of(str(token).removeprefix("Token."))
        if its_kind != kind and not (value.isspace() and words):
            found += _piece(kind, words)
            kind, words = its_kind, ""
        words += value
    return [*found, *_piece(kind, words)]


def _piece(kind: str, words: str) -> list[ProseNode]:
    if not words:
        return []
    return [[f".{kind}", words]] if kind else [words]


def _kind_of(token: str) -> str:
    return next((kind for start, kind in _KINDS if token.startswith(start)), "")


def traceback_node(text: str) -> ProseNode:
    """A traceback as Python prints it: places quiet, the line that failed marked, the exception coloured."""
    lines = text.splitlines()
    failed = [at for at, line in enumerate(lines) if _is_source(line) and not _is_source(_next(lines, at))]
    ends = {at for at, line in enumerate(lines) if line and not line.startswith(" ") and not _is_head(line)}
    marked = {max((at for at in failed if at < end), default=-1) for end in ends}
    rows: list[ProseNode] = []
    for at, line in enumerate(lines):
        kind = "error" if at in ends else "marked" if at in marked else "same" if _is_source(line) else "place"
        rows.append([f"span.{kind}", line, "\n"])
    return ["pre.diff", *rows]


def _next(lines: list[str], at: int) -> str:
    """The line behind one, but for carets under it."""
    behind = [line for line in lines[at + 1 : at + 3] if line.strip(" ~^")]
    return behind[0] if behind else ""


def _is_source(line: str) -> bool:
    return line.startswith("    ") and bool(line.strip(" ~^"))


def _is_head(line: str) -> bool:
    return line.startswith(("Traceback (most", "The above exception", "During handling"))


def diff_node(text: str) -> ProseNode:
    """A unified diff: its lines by what they are, the words that changed marked within them."""
    return rows_node(marked_rows(text.splitlines()))


def rows_node(rows: Iterable[Row]) -> ProseNode:
    """Lines of a diff whose words are marked."""
    nodes: list[ProseNode] = []
    for sign, pieces in rows:
        mark = "del.word" if sign == "-" else "ins.word"
        words = [[mark, words] if is_changed else words for words, is_changed in pieces]
        nodes.append([_ROWS.get(sign, "span.same"), *words, "\n"])
    return ["pre.diff", *nodes]
