"""A drawing for programs that know no CSS variables: each style resolved and written on its element.

Browsers take our drawings as they are. Renderers and editors of SVG, as a rule, know neither variables nor
``:not()``; so the few forms of selectors that our own sheet uses are matched here, for one theme.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from attractor_nb.errors import OptionError
from attractor_nb.views.drawings.theme import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SVG: Final = "{http://www.w3.org/2000/svg}"
_DROPPED: Final = frozenset({"animation"})
_COMMENTS_AND_BLOCKS: Final = re.compile(r"@[^{}]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_PART: Final = re.compile(r":not\(\.([\w-]+)\)|\.([\w-]+)|([\w*]+)")
_VARIABLE: Final = re.compile(r"var\((--[\w-]+)\)")
FONTS: Final = "DejaVu Sans, Liberation Sans, Noto Sans, Arial, sans-serif"
MONO_FONTS: Final = "DejaVu Sans Mono, Liberation Mono, Noto Sans Mono, monospace"


@dataclass(frozen=True, slots=True)
class _Simple:
    """One part of a selector: what an element must be."""

    tag: str
    classes: frozenset[str]
    without: frozenset[str]
    follows: str
    weight: tuple[int, int]
    """Number of classes that it names, one that is named twice counting twice, and of tags."""

    def fits(self, tag: str, classes: frozenset[str], before: str) -> bool:
        """True if an element is that; ``before`` is the tag of the one before it."""
        if self.tag not in {"", "*", tag} or (self.follows and self.follows != before):
            return False
        return self.classes <= classes and not self.without & classes


@dataclass(frozen=True, slots=True)
class _Rule:
    """A selector, from the outermost part to the element, and what it sets."""

    parts: tuple[_Simple, ...]
    order: int
    values: tuple[tuple[str, str], ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """The sort key of a rule: of two that match an element the later one counts."""
        weights = [part.weight for part in self.parts]
        return sum(weight for weight, _ in weights), sum(weight for _, weight in weights), self.order


@dataclass(frozen=True, slots=True)
class _Place:
    """An element on the way from the root."""

    tag: str
    classes: frozenset[str]
    before: str


def flat_svg(svg: str, theme: str = "light") -> str:
    """The same drawing with its styles on its elements, for one theme.

    Args:
        svg: Our own drawing writer.
        theme: ``light`` or ``dark``.
    """
    if theme not in {"light", "dark"}:
        raise OptionError(f'a file has one theme, and "{theme}" is none', hint='use "light" or "dark"')
    ET.register_namespace("", _SVG.strip("{}"))
    root = ET.fromstring(svg)  # noqa: S314 - of our own writer: no entities, no doctype
    sheets = list(root.iter(f"{_SVG}style"))
    rules = _rules("\n".join(sheet.text or "" for sheet in sheets), _root_class(root))
    colours = {f"--{name}": value for name, value in (LIGHT if theme == "light" else DARK).items()}
    root.attrib.pop("style", None)
    _set_styles(root, (), "", colours, rules)
    for sheet in sheets:
        root.remove(sheet)
    return ET.tostring(root, encoding="unicode")


def _root_class(root: ET.Element) -> str:
    return next(name for name in root.get("class", "").split() if name.startswith("anb-"))


def _set_styles(
    element: ET.Element, above: tuple[_Place, ...], before: str, variables: Mapping[str, str], rules: tuple[_Rule, ...]
) -> None:
    tag = element.tag.removeprefix(_SVG)
    ancestry = (*above, _Place(tag, frozenset(element.get("class", "").split()), before))
    values: dict[str, str] = {}
    for rule in rules:
        if _matches(rule.parts, ancestry):
            values.update(rule.values)
    own = {name: _resolved(value, variables) for name, value in values.items() if name.startswith("--")}
    variables = {**variables, **own}
    styles = [
        f"{name}:{_resolved(value, variables)}"
        for name, value in values.items()
        if not name.startswith("--") and name not in _DROPPED
    ]
    if styles:
        element.set("style", ";".join(styles))
    last = ""
    for child in element:
        _set_styles(child, ancestry, last, variables, rules)
        last = child.tag.removeprefix(_SVG)
    element.attrib.pop("class", None)


def _matches(parts: tuple[_Simple, ...], ancestry: tuple[_Place, ...]) -> bool:
    """True if the last of the way is meant: its part fits it, the others fit above, in order."""
    own = ancestry[-1]
    if not parts[-1].fits(own.tag, own.classes, own.before):
        return False
    left = len(parts) - 2
    for place in reversed(ancestry[:-1]):
        if left >= 0 and parts[left].fits(place.tag, place.classes, place.before):
            left -= 1
    return left < 0


def _resolved(value: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: variables.get(found[1], "none"), value)


@cache
def _rules(css: str, root_class: str) -> tuple[_Rule, ...]:
    found = [
        _Rule(_parts(selector), order, tuple(_values(body)))
        for order, (selectors, body) in enumerate(_RULE.findall(_COMMENTS_AND_BLOCKS.sub("", css)))
        for selector in selectors.split(",")
        if f".{root_class}" in selector and "[data-jp" not in selector and ".jp-" not in selector
        if not any(f".{root_class}.{theme}" in selector for theme in ("dark", "auto"))
    ]
    return tuple(sorted(found, key=lambda rule: rule.rank))


def _parts(selector: str) -> tuple[_Simple, ...]:
    return tuple(_simple(part) for part in selector.split())


def _simple(part: str) -> _Simple:
    follows, _, own = part.rpartition("+")
    found = _PART.findall(own)
    tag = next((tag for _, _, tag in found if tag), "")
    return _Simple(
        tag,
        frozenset(name for _, name, _ in found if name),
        frozenset(name for name, _, _ in found if name),
        follows,
        (sum(1 for _, _, other in found if not other), int(tag not in {"", "*"})),
    )


def _values(body: str) -> Iterator[tuple[str, str]]:
    for entry in body.split(";"):
        name, _, value = entry.strip().partition(":")
        if name == "font":
            yield from _font(value)
        elif name == "font-family":
            yield name, MONO_FONTS
        elif name and not (name.startswith("--") and value.startswith("#")):
            yield name, value


def _font(value: str) -> Iterator[tuple[str, str]]:
    """``font:12px …`` as its parts: few renderers take it whole."""
    size = value.split(maxsplit=1)[0].partition("/")[0]
    yield from (("font-size", size), ("font-family", FONTS))
