"""The front-end as one module and one style sheet: what a widget, an exported and a served page are given.

The files are ES modules (``views/web``). Who shows them can load one text only, and a build tool would be a
second language in the house, so they are put one behind the other: each once, those it imports before it.
That is possible because no name stands twice at their top level (``tests/views/test_frontend.py``).
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from attractor_nb.views.drawings.theme import LOUD_ID

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

FOLDER: Final = files("attractor_nb.views.web")
LOUD: Final = f":is(:root, {LOUD_ID})"
_LARGEST: Final = "live_view"
"""The view whose order of sheets is kept: the others need few that it has not."""
_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?!default)", re.MULTILINE)
_KEYFRAMES: Final = re.compile(r"^@keyframes [^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}\n?", re.MULTILINE)
_DEFAULT: Final = re.compile(r"^export default [^;]*;\n", re.MULTILINE)


@cache
def modules_of(entry: str, beside: Traversable | None = None) -> tuple[str, ...]:
    """The modules that an entry needs, in the order in which they can stand, itself last.

    Args:
        entry: Name of a module, without ``.js``.
        beside: A folder of further modules, which may import ours as if they stood in one.
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
        is_widget: Whether its default export, which anywidget reads, is kept. Without it the text can stand
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

    The sheets of all widgets of a notebook stand in one page, and where two rules count the same the later
    one is taken. Were they different, the theme of a second view would take the rules of the first away.
    """
    names = dict.fromkeys(("theme", *modules_of(_LARGEST)))
    for file in sorted(file.name for file in FOLDER.iterdir() if file.name.endswith(".js")):
        names.update(dict.fromkeys(modules_of(file.removesuffix(".js"))))
    return _sheet(tuple(names))


def _sheet(names: tuple[str, ...], beside: Traversable | None = None) -> str:
    sheet = "\n".join(
        _text(sheet, beside) for name in names if _place(sheet := f"{name}.css", beside).is_file()
    )
    motions = "".join(_KEYFRAMES.findall(sheet))  # which cannot be nested
    return f"{LOUD} {{\n{_KEYFRAMES.sub('', sheet)}\n}}\n{motions}"


def _text(name: str, beside: Traversable | None) -> str:
    return _place(name, beside).read_text(encoding="utf-8")


def _place(name: str, beside: Traversable | None) -> Traversable:
    own = FOLDER / name
    return own if beside is None or own.is_file() else beside / name
