"""The front-end as one module and one style sheet, and one page that is alone with its values.

The files are ES modules (``views/web``). Who shows them can load one text only, and a build tool would be a
second language in the house, so they are put one behind the other: each once, those it imports before it.
That is possible because no name occurs twice at their top level (``tests/views/test_frontend.py``).

Such a page reaches no network and runs nothing but its own script: its policy says so to the browser
(``default-src 'none'``, the script by its hash), whatever texts it holds. Values are data in it, never code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.views.drawings.theme import LOUD_ID
from attractor_nb.views.markup import element

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.resources.abc import Traversable

FOLDER: Final = files("attractor_nb.views.web")
LOUD: Final = f":is(:root, :host, {LOUD_ID})"
_LARGEST: Final = "live_view"
"""The view whose order of sheets is kept: the others need few that it has not."""
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?!default)", re.MULTILINE)
_KEYFRAMES: Final = re.compile(r"^@keyframes [^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}\n?", re.MULTILINE)
_DEFAULT: Final = re.compile(r"^export default .*\n(?:\n*[ )\]}].*\n)*", re.MULTILINE)
"""With the lines of its body: they are indented, or close it."""

_POLICY: Final = (
    "default-src 'none'; script-src '{hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)
_PAGE_CSS: Final = """
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1f2328;font:13px/1.45 system-ui,sans-serif}
@media (prefers-color-scheme:dark){body{background:#111417;color:#e8edf2}}
main{max-width:1400px;margin:0 auto;padding:16px 20px 40px}
h1{font-size:18px;font-weight:600;margin:0 0 2px}
.page-line{margin:0 0 12px;opacity:.75;white-space:pre-wrap;overflow-wrap:anywhere}
.page-static>summary{cursor:pointer;font-weight:600;margin:14px 0 6px}
"""
_BOOT: Final = """
const pageValues = JSON.parse(document.getElementById("values").textContent);
CALL(staticHost(pageValues), document.getElementById("view"));
document.getElementById("static").open = false;
"""
_ROWS_ENTRY: Final = "rows_page"
_ROWS_BOOT: Final = """
makeRowsPage(document.getElementById("view"));
"""
_UNSAFE_JSON: Final = {char: f"\\u{ord(char):04x}" for char in "<>&"}


@cache
def modules_of(entry: str, beside: Traversable | None = None) -> tuple[str, ...]:
    """The modules that an entry needs, in the order in which they can be joined, itself last.

    Args:
        entry: Name of a module, without ``.js``.
        beside: A folder of further modules, which may import ours as if they were in one.
    """
    order: dict[str, None] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules of the front-end import one another: {' -> '.join((*above, name))}")
        for imported in _IMPORT.findall(_text(f"{name}.js", beside)):
            visit(imported, (*above, name))
        order.setdefault(name)

    visit(entry, ())
    return tuple(order)


@cache
def script(entry: str, *, is_widget: bool = True, beside: Traversable | None = None) -> str:
    """One ES module with everything that an entry needs.

    Args:
        entry: Name of the module.
        is_widget: Whether its default export, which anywidget reads, is kept. Without it the text can be used
            in a page, with more code behind it.
        beside: A folder of further modules.
    """
    parts: list[str] = []
    for name in modules_of(entry, beside):
        text = _EXPORT.sub("", _IMPORT.sub("", _text(f"{name}.js", beside)))
        parts.append(text if is_widget and name == entry else _DEFAULT.sub("", text))
    return "\n".join(parts)


@cache
def styles(entry: str, beside: Traversable | None = None) -> str:
    """The style sheets of an entry and of all that it needs, that of the theme first.

    They are nested in ``LOUD``, so that each rule counts for more than any of a page that hosts the view.
    """
    return _sheet(("theme", *modules_of(entry, beside)), beside)


@cache
def widget_styles() -> str:
    """The style sheet of every widget: that of all views, so that it is the same text for all.

    The sheets of all widgets of a notebook are in one page, and where two rules count the same the later
    one is taken. Were they different, the theme of a second view would take the rules of the first away.
    """
    names = dict.fromkeys(("theme", *modules_of(_LARGEST)))
    for file in sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".js")):
        names.update(dict.fromkeys(modules_of(file.removesuffix(".js"))))
    return _sheet(tuple(names))


def _sheet(names: tuple[str, ...], beside: Traversable | None = None) -> str:
    sheet = "\n".join(_text(sheet, beside) for name in names if _place(sheet := f"{name}.css", beside).is_file())
    motions = "".join(_KEYFRAMES.findall(sheet))  # which cannot be nested
    return f"{LOUD} {{\n{_KEYFRAMES.sub('', sheet)}\n}}\n{motions}"


def _text(name: str, beside: Traversable | None) -> str:
    return _place(name, beside).read_text(encoding="utf-8")


def _place(name: str, beside: Traversable | None) -> Traversable:
    own = FOLDER / name
    return own if beside is None or own.is_file() else beside / name


def page(title: str, line: str, entry: str, call: str, values: Mapping[str, Any], static: Markup) -> str:
    """A separate page.

    Args:
        line: A line below.
        entry: The module of the front-end that shows the values.
        call: Its function.
        values: JSON values for it.
        static: What is there without script; with it, it is folded.
    """
    code = _code(entry, _BOOT.replace("CALL", call))
    # A script of data is no script: only the module is, and its text is our own.
    data = Markup('<script type="application/json" id="values">') + Markup(json_text(values))  # noqa: S704 - no < in it
    parts = (
        Markup('<div id="view"></div>'),
        Markup('<details id="static" class="page-static" open><summary>As picture and table</summary>'),
        static,
        Markup("</details></main>"),
        data + Markup("</script>"),
    )
    return _page(title, line, entry, code, parts)


def table_page(title: str, line: str, body: Markup) -> str:
    """A separate page whose content is in it, and whose rows a script shows.

    Args:
        title: Its heading.
        line: Lines below.
        body: The content, in the classes of the front-end.
    """
    content = (element("div", {"class": "attractor-ui", "id": "view"}, body), Markup("</main>"))
    return _page(title, line, _ROWS_ENTRY, _code(_ROWS_ENTRY, _ROWS_BOOT), content)


def _page(title: str, line: str, entry: str, code: str, content: Iterable[Markup]) -> str:
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    policy = _POLICY.format(hash=f"sha256-{digest}")
    module = Markup('<script type="module">') + Markup(code)  # noqa: S704 - our own module
    parts = (
        Markup("<!doctype html>"),
        Markup('<html lang="en"><head><meta charset="utf-8">'),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        Markup('<meta name="referrer" content="no-referrer">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", None, title),
        _styled(styles(entry) + _PAGE_CSS),
        Markup("</head><body><main>"),
        element("h1", None, title),
        element("p", {"class": "page-line"}, line),
        *content,
        module + Markup("</script></body></html>"),
    )
    return "\n".join(map(str, parts)) + "\n"


def json_text(values: Any) -> str:
    """JSON that can be in a page: in plain ASCII, without a character that could end its element."""
    text = json.dumps(values, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for char, escaped in _UNSAFE_JSON.items():  # str.translate takes fifty times as long
        text = text.replace(char, escaped)
    return text


@cache
def _code(entry: str, boot: str) -> str:
    code = "\n" + script(entry, is_widget=False) + boot
    assert "</script" not in code.lower(), "the module would end its own element"
    return code


def _styled(css: str) -> Markup:
    """A style element of the front-end's own sheets, whose selectors may hold ``>``."""
    assert "</" not in css, "the sheet would end its own element"
    return Markup("<style>") + Markup(css) + Markup("</style>")  # noqa: S704 - our own sheets
