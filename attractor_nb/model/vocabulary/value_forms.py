"""Forms of attribute values: durations, lists with commas, paths into values, labels, repetition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import msgspec

from attractor_nb.model.vocabulary.shapes import HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.errors import AttractorError
    from attractor_nb.source import SourceText, Span

    Unexpected = Callable[[str, Span], AttractorError]

    """Makes the error of something misplaced: its message, and the place."""

    Get = Callable[[str, Any], Any]

    """Gives the value that is stored under a key, or the default that it is given."""


# Durations: a number and a unit (spec 2.4); fractions are read, and written in a smaller unit.

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_SCALE = dict(_UNITS)
_DURATION = re.compile(r"(-?[0-9]++)(ms|s|m|h|d)\Z")
_FRACTION = re.compile(r"(-?(?:[0-9]++\.[0-9]+|\.[0-9]+))(ms|s|m|h|d)?\Z")
_MAX_DIGITS = 18
_MAX_MILLISECONDS = 10**15
"""Some 30,000 years: beyond it a number is a slip, and its digits would not survive writing."""
_NUMBER = re.compile(r"-?[0-9]++\Z")


class Duration(msgspec.Struct, frozen=True, order=True):
    """A length of time in whole milliseconds. ``str()`` gives the shortest exact DOT spelling.

    >>> str(Duration(900_000)), Duration(250).seconds
    ('15m', 0.25)
    """

    milliseconds: int

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.milliseconds / 1000

    def __str__(self) -> str:
        for unit, scale in _UNITS:
            if self.milliseconds % scale == 0 and self.milliseconds:
                return f"{self.milliseconds // scale}{unit}"
        return "0s"


def parse_duration(text: str) -> Duration | None:
    """Read ``900s``, ``15m``, ``0.5h``, ``250ms``; a number without a unit means seconds (ruling 2).

    Returns None when the text is no duration, or one of more than some 30,000 years.

    >>> [str(parse_duration(text)) for text in ("2h", "1.5", "0.5s", "1.5h", "soon")]
    ['2h', '1500ms', '500ms', '90m', 'None']
    """
    if found := _DURATION.match(text):
        milliseconds = int(found[1]) * _SCALE[found[2]] if len(found[1]) <= _MAX_DIGITS else _MAX_MILLISECONDS
    elif _NUMBER.match(text) and len(text) <= _MAX_DIGITS:
        milliseconds = int(text) * 1000
    elif (found := _FRACTION.match(text)) and len(text) <= _MAX_DIGITS:
        from decimal import Decimal  # noqa: PLC0415 - hardly ever needed, and %load_ext stays light

        milliseconds = round(Decimal(found[1]) * _SCALE[found[2] or "s"])
    else:
        return None
    return Duration(milliseconds) if abs(milliseconds) < _MAX_MILLISECONDS else None


# Lists with commas: of plain words, and of entries with their own form (pure).

EntryT = TypeVar("EntryT")
QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
"""A text in single or double quotes, which holds commas and has no escapes."""
_SPACE: Final = re.compile(r"\s*")


def comma_list(text: str) -> tuple[str, ...]:
    """The entries of a list with commas, without blanks around them and without empty ones.

    >>> comma_list("a.txt, src/**/*.py,")
    ('a.txt', 'src/**/*.py')
    """
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


class EntryReader(NamedTuple):
    """A text whose entries are read one after the other."""

    source: SourceText  #: The text.
    error: Unexpected  #: Makes the error of something misplaced.

    def entries(self, read: Callable[[int], tuple[EntryT, int]]) -> Iterator[tuple[EntryT, int]]:
        """Each entry with the offset where it begins; a comma at the end is allowed.

        Args:
            read: Reads the entry at an offset; gives it and the offset behind it.
        """
        text = self.source.text
        position = self.after_space(0)
        while position < len(text):
            entry, end = read(position)
            yield entry, position
            position = self.after_space(end)
            if position < len(text):
                if text[position] != ",":
                    raise self.unexpected(position, 'a ","')
                position = self.after_space(position + 1)

    def unexpected(self, position: int, wanted: str) -> AttractorError:
        """The error at an offset where something else is expected."""
        end = min(position + 1, len(self.source.text))
        return self.error(f"expected {wanted}", self.source.span(min(position, end), end))

    def after_space(self, position: int) -> int:
        """The offset behind the blanks at an offset."""
        match = _SPACE.match(self.source.text, position)
        return match.end() if match else position


# Keys that continue into a structured value: ``rate.verdict.level``, ``plan.verdict.files.0`` (ruling 50).
#
# The longest stored key wins: what remains of a key names fields of objects, and items of lists by their index.

CONTEXT_PREFIX: Final = "context."
_ABSENT: Final = object()


def named_value(get: Get, key: str, default: Any = None) -> Any:
    """The value of a key as conditions and variables write it: unchanged, else as a path without ``context.``.

    >>> stored = {"context.x": 1, "rate.verdict": {"level": "high"}}
    >>> [named_value(stored.get, key) for key in ("context.x", "x", "context.rate.verdict.level")]
    [1, None, 'high']

    Args:
        get: Gives the value that is stored under a key, or the default that it is given.
        key: Names joined by dots, with or without ``context.``.
        default: What is returned where the key names nothing.
    """
    value = get(key, _ABSENT)
    return value_at(get, key.removeprefix(CONTEXT_PREFIX), default) if value is _ABSENT else value


WHOLE_RESPONSE = "last_stage.response"
"""Output of a row: the whole response of its last stage; ``last_response`` is only the beginning."""


def row_output(get: Get, key: str, default: Any = None) -> Any:
    """The value of an output of a row: a named value, or the whole response of its last stage.

    Args:
        get: Gives the value that is stored under a key, or the default that it is given.
        key: The output.
        default: What is returned where the row has none.
    """
    value = named_value(get, key, _ABSENT)
    if value is _ABSENT and key == WHOLE_RESPONSE:
        value = get(f"{get('last_stage', '')}.response", _ABSENT)
        value = get("tool.output", _ABSENT) if value is _ABSENT else value
    return default if value is _ABSENT else value


def value_at(get: Get, key: str, default: Any = None) -> Any:
    """The value that a key names: one that is stored, or a part of one.

    >>> stored = {"rate.verdict": {"level": "high", "files": ["a.py", "b.py"]}}
    >>> [value_at(stored.get, key) for key in ("rate.verdict.level", "rate.verdict.files.1", "rate.verdict.score")]
    ['high', 'b.py', None]

    Args:
        get: Gives the value that is stored under a key, or the default that it is given.
        key: Names joined by dots.
        default: What is returned where the key names nothing.
    """
    names = key.split(".")
    for count in range(len(names), 0, -1):
        value = get(".".join(names[:count]), _ABSENT)
        if value is not _ABSENT:
            return part_of(value, names[count:], default)
    return default


def part_of(value: Any, names: Sequence[str], default: Any = None) -> Any:
    """A part of a structured value; the value itself where there are no names.

    >>> part_of([{"name": "a"}], ["0", "name"]), part_of({"a": 1}, ["b"], "none")
    ('a', 'none')
    """
    for name in names:
        if isinstance(value, dict):
            value = cast("Mapping[str, Any]", value).get(name, _ABSENT)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 10:
            items = cast("Sequence[Any]", value)
            value = items[int(name)] if int(name) < len(items) else _ABSENT
        else:
            return default
        if value is _ABSENT:
            return default
    return value


# Edge labels as routing keys: accelerator prefixes and normalisation (spec 3.3, 4.6).
#
# Shared by edge selection, conditions and human gates, which must agree on the meaning of a label.

_ACCELERATOR = re.compile(r"\s*(?:\[\s*(?P<bracketed>\w+)\s*\]|(?P<closed>\w)\)|(?P<dashed>\w)\s+-(?=\s))\s*(?=\S)")


def normalize_label(label: str) -> str:
    """The form in which labels are compared: no accelerator prefix, trimmed, lower case (spec 3.3).

    A label that is nothing but an accelerator keeps it, so that it never equals an empty label.

    >>> normalize_label("[Y] Yes, deploy"), normalize_label("y) yes, deploy "), normalize_label("[Y]")
    ('yes, deploy', 'yes, deploy', '[y]')
    """
    return label_text(label).lower()


def accelerator_key(label: str) -> str:
    """The shortcut key that a label offers, in upper case; empty for an empty label (spec 4.6).

    >>> [accelerator_key(label) for label in ("[Y] Yes", "n) No", "R - Retry", "skip it", "")]
    ['Y', 'N', 'R', 'S', '']
    """
    if found := _ACCELERATOR.match(label):
        return (found["bracketed"] or found["closed"] or found["dashed"]).upper()
    return next((char.upper() for char in label if char.isalnum()), label.strip()[:1])


def label_text(label: str) -> str:
    """A label without its accelerator prefix, otherwise as written.

    >>> label_text("[Y] Yes, deploy"), label_text("Yes")
    ('Yes, deploy', 'Yes')
    """
    found = _ACCELERATOR.match(label)
    return (label[found.end() :] if found else label).strip()


# Stages that run once for each item of a list: `for_each="item in plan.verdict.files"`.
#
# The attributes of such a node, the name of its list, and the names of its items.

FOR_EACH: Final = "for_each"
MAX_ITEMS: Final = "max_items"
DEFAULT_MAX_ITEMS: Final = 100
ITEM: Final = "item"
ITEM_INDEX: Final = "item_index"
ITEM_KEYS: Final = (ITEM, ITEM_INDEX)
"""Context keys that the run of an item begins with beside those of the run around it."""
OUTPUTS: Final = "outputs"
RESULTS: Final = "results"
LIST_KEYS: Final = (OUTPUTS, RESULTS)
"""Values that such a stage sets under its own id: ``<node>.outputs``, ``<node>.results``."""
FOR_EACH_TYPE: Final = "for_each"
"""Handler type of such a node, for any type of its own. It is not a built-in type: the attribute selects it."""
UNREPEATABLE: Final = frozenset({"start", "exit", "conditional", "parallel", "parallel.fan_in", HUMAN_TYPE})
"""The handler types whose nodes cannot be run once for each item."""
_KEY: Final = r"[A-Za-z_]\w*(?:\.[\w-]+)*"
_FORM: Final = re.compile(rf"\s*{ITEM}\s+in\s+({_KEY})\s*", re.ASCII)
_NAMED: Final = re.compile(rf"\s*(?:[A-Za-z_]\w*\s+in\s+)?(?:\$\{{({_KEY})\}}|\$?({_KEY}))\s*", re.ASCII)


def is_repeated(attrs: Mapping[str, object], handler_type: str) -> bool:
    """True if a node of these attributes and this own type is run once for each item."""
    return FOR_EACH in attrs and handler_type not in UNREPEATABLE


def list_key(text: str) -> str:
    """The context key of the list, without ``context.``; empty for a text of another form.

    >>> list_key("item in plan.verdict.files"), list_key("item in context.files"), list_key("plan.verdict.files")
    ('plan.verdict.files', 'files', '')
    """
    found = _FORM.fullmatch(text)
    return found.group(1).removeprefix(CONTEXT_PREFIX) if found else ""


def meant_form(text: str) -> str:
    """The text that the author of a list in another form meant; empty where that is unclear.

    >>> meant_form("${plan.verdict.files}"), meant_form("file in files"), meant_form("1 to 3")
    ('item in plan.verdict.files', 'item in files', '')
    """
    found = _NAMED.fullmatch(text)
    return f"{ITEM} in {found.group(1) or found.group(2)}" if found else ""
