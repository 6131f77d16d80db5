r"""Variables in the texts of stages: `$name`, `${name}`, `${tool.output:tail 4000}`, `${name:default …}` (ruling 34).

One pass, no template language: the value of a variable is put in its place and is never expanded again.
`$$` is a dollar sign. What names nothing stays as it is written.

- `$name`: an identifier, without dots, so that `$goal.` ends a sentence.
- `${name}`: any key of the context, such as `${plan.response}`; `${context.name}` is the same key, as in
  conditions. A key may continue into a structured value: `${rate.verdict.level}` (ruling 50).
- `${name:tail 4000}`, `${name:head 4000}`: no more than that many characters of its text, whole lines where
  that leaves at least half of them.
- `${name:default none yet}`: the words after `default` where the name names nothing, or an empty text.

Text is put in as it is, any other value as JSON. `goal` is the goal of the graph (spec 4.5, 9.2).
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.errors import MappingSyntaxError
from attractor_nb.model.calls.messages import ATTACH, described, is_attachment, without_bytes
from attractor_nb.model.texts import first_lines, last_lines
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX, QUOTED, EntryReader, named_value
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Lookup = Callable[[str], Any]


GOAL: Final = "goal"
FILTERS: Final = ("head", "tail")
MISSING: Final[Any] = object()
"""Stands for the value of a name that names nothing."""
NODE_KEYS: Final = ("response", "run_id")
"""Values that a stage sets under its own id: ``<node>.response``, ``<node>.run_id``."""
RENDERED_ATTRIBUTES: Final = ("prompt", "label", "llm.system_prompt", "human.prompt", "manager.instructions")
"""Node attributes that models and users read. Commands are never among them (ruling 25)."""
NAMING_ATTRIBUTES: Final = (*RENDERED_ATTRIBUTES, ATTACH)
"""Node attributes that may contain variables."""
_TOKEN: Final = re.compile(r"\$(?:\$|\{([^${}\n]+)\}|([A-Za-z_][A-Za-z0-9_]*))")
_FILTERED: Final = re.compile(rf"(.+):[ \t]*({'|'.join(FILTERS)})[ \t]+([0-9]{{1,9}})[ \t]*\Z", re.DOTALL)
_DEFAULTED: Final = re.compile(r"(.+?):[ \t]*default(?:[ \t]+(.*))?\Z", re.DOTALL)
_READ_AS_MORE: Final = re.compile(r"\$(?=[${A-Za-z_]|\Z)")
"""A dollar sign that could begin a variable, here or with what comes after the text."""


class Variable(msgspec.Struct, frozen=True):
    """A variable as it is written."""

    name: str  #: The name.
    start: int  #: Position at which it begins in the text.
    end: int  #: Position at which it ends.
    is_braced: bool = False  #: It is written with braces.
    filter: str = ""  #: ``head``, ``tail``, or empty.
    size: int = 0  #: Number of characters that the filter keeps.
    default: str | None = None  #: Text for a missing or empty value; None when there is none.

    def apply(self, value: Any) -> str:
        """The text that replaces the variable."""
        if is_attachment(value):
            text = described(value)
        else:
            text = value if isinstance(value, str) else json.dumps(without_bytes(value), ensure_ascii=False)
        if not self.filter:
            return text
        return first_lines(text, self.size) if self.filter == "head" else last_lines(text, self.size)


def variables(text: str) -> Iterator[Variable]:
    """The variables of a text, in its order.

    >>> [each.name for each in variables("Read $ticket for ${plan.response:tail 200}; it costs $5 and $$x.")]
    ['ticket', 'plan.response']
    """
    return (found for match in _TOKEN.finditer(text) if (found := _variable(match)))


def whole_variable(text: str) -> str:
    """The name of the variable that a text is, and nothing besides; empty for another text.

    >>> whole_variable("${photo}"), whole_variable("$photo"), whole_variable("$photo.png")
    ('photo', 'photo', '')
    """
    found = next(variables(text), None)
    if found is None or (found.start, found.end) != (0, len(text)) or found.filter or found.default is not None:
        return ""
    return found.name


def rendered(text: str, lookup: Lookup) -> str:
    """A text with the values of its variables.

    >>> known = {"ticket": "$ticket is broken", "tags": ["a", "b"]}
    >>> rendered("$ticket ${tags} $other costs $5, $$ticket", lambda name: known.get(name, MISSING))
    '$ticket is broken ["a", "b"] $other costs $5, $ticket'
    """

    def replaced(match: re.Match[str]) -> str:
        variable = _variable(match)
        if variable is None:
            return "$"
        value = lookup(variable.name)
        if variable.default is not None and (value is MISSING or value in ("", None)):
            return variable.default
        return match.group() if value is MISSING else variable.apply(value)

    return _TOKEN.sub(replaced, text) if "$" in text else text


def settled(text: str, name: str, value: str) -> str:
    """A text in which one variable has its value, for good, and all others are as before.

    Dollar signs of the value are doubled where they would be read, so that rendering the text gives
    what it would have got with this value among the others.

    >>> settled("$goal for $ticket", "goal", "save $money"), settled("$goals", "goal", "x")
    ('save $$money for $ticket', '$goals')
    """
    parts: list[str] = []
    end, is_changed = 0, False
    for match in _TOKEN.finditer(text):
        variable = _variable(match)
        parts.append(text[end : match.start()].replace("${", "$${"))  # it may not embrace the value
        end = match.end()
        if variable is not None and variable.name == name:
            is_changed = True
            parts.append(_READ_AS_MORE.sub("$$", variable.apply(value)))
        else:
            parts.append(match.group())
    return "".join([*parts, text[end:]]) if is_changed else text


def stages_named(text: str) -> Iterator[tuple[int, int]]:
    """The positions of the ids of stages whose responses or child runs a text names.

    >>> text = "${plan.response:tail 9} ${plan.depth}"
    >>> [text[start:end] for start, end in stages_named(text)]
    ['plan']
    """
    for variable in variables(text):
        node_id, _, key = variable.name.removeprefix(CONTEXT_PREFIX).partition(".")
        if variable.is_braced and key in NODE_KEYS:
            start = text.index(f"{node_id}.{key}", variable.start)
            yield start, start + len(node_id)


def with_renamed_nodes(text: str, names: Mapping[str, str]) -> str:
    """A text that names stages by their new ids.

    >>> with_renamed_nodes("${plan.response} $plan ${plan.depth}", {"plan": "first_plan"})
    '${first_plan.response} $plan ${plan.depth}'
    """
    parts: list[str] = []
    end = 0
    for start, stop in stages_named(text):
        node_id = text[start:stop]
        parts += [text[end:start], names.get(node_id, node_id)]
        end = stop
    return "".join([*parts, text[end:]])


def lookup_in(goal: str, get: Callable[[str, Any], Any]) -> Lookup:
    """Gives values for variables.

    Args:
        goal: The goal of the graph, which ``goal`` names; where there is none the context's ``goal`` does.
        get: Gives a value of the context by its key, or what it is given as a default.

    >>> lookup = lookup_in("ship it", {"ticket": "41"}.get)
    >>> lookup("goal"), lookup("context.ticket"), lookup("tikcet") is MISSING
    ('ship it', '41', True)
    >>> lookup_in("", {"rate.verdict": {"level": "high"}}.get)("rate.verdict.level")
    'high'
    """

    def lookup(name: str) -> Any:
        if name == GOAL:
            return goal or get(GOAL, "")
        return named_value(get, name, MISSING)

    return lookup


def _variable(match: re.Match[str]) -> Variable | None:
    """The variable of a match; None for ``$$``."""
    inside, name = match.groups()
    if name is not None:
        return Variable(name, match.start(), match.end())
    if inside is None:
        return None
    if filtered := _FILTERED.match(inside):
        name, kind, size = filtered.groups()
        return Variable(name.strip(), match.start(), match.end(), is_braced=True, filter=kind, size=int(size))
    if defaulted := _DEFAULTED.match(inside):
        name, default = defaulted.groups()
        return Variable(name.strip(), match.start(), match.end(), is_braced=True, default=(default or "").strip())
    return Variable(inside.strip(), match.start(), match.end(), is_braced=True)


# Values passed between a pipeline and its child: ``topic=context.topic, depth=3, tone='dry'`` (spec 9.4).
#
# A comma-separated list of ``name=value``. A value is ``context.<key>``, a text in single or double quotes,
# a number, ``true``, ``false`` or ``null``. Values are data: the value of a key is never parsed as part of a list.

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_WORD: Final = re.compile(r"[^\s,]+")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?\Z")
_WORDS: Final = {"true": True, "false": False, "null": None}
_FORM: Final = "write name=context.key, name='text', name=3 or name=true, with commas between"


class Assignment(msgspec.Struct, frozen=True):
    """One ``name=value``."""

    name: str  #: The key that gets the value.
    key: str = ""  #: The context key that gives it; empty for a constant.
    value: Any = None  #: The constant.


def parse_mapping(text: str | SourceText) -> tuple[Assignment, ...]:
    """Read a list of assignments.

    >>> parse_mapping("topic=context.topic, n=3")
    (Assignment(name='topic', key='topic', value=None), Assignment(name='n', key='', value=3))
    """
    source = text if isinstance(text, SourceText) else SourceText(text)
    reader = EntryReader(source, partial(MappingSyntaxError, hint=_FORM))
    found: dict[str, Assignment] = {}
    for assignment, position in reader.entries(partial(_assignment, reader)):
        if assignment.name in found:
            span = source.span(position, position + len(assignment.name))
            raise MappingSyntaxError(f'"{assignment.name}" is assigned twice', span, hint="leave one of them out")
        found[assignment.name] = assignment
    return tuple(found.values())


def _assignment(reader: EntryReader, position: int) -> tuple[Assignment, int]:
    source, text = reader.source, reader.source.text
    name = _NAME.match(text, position)
    if name is None:
        raise reader.unexpected(position, "a name")
    equals = reader.after_space(name.end())
    if text[equals : equals + 1] != "=":
        raise reader.unexpected(equals, f'"=" after {name.group()}')
    start = reader.after_space(equals + 1)
    if quoted := QUOTED.match(text, start):
        return Assignment(name.group(), value=quoted.group()[1:-1]), quoted.end()
    word = _WORD.match(text, start)
    if word is None:
        raise reader.unexpected(start, "a value")
    if (key := word.group()).startswith(CONTEXT_PREFIX) and _NAME.fullmatch(key):
        return Assignment(name.group(), key=key.removeprefix(CONTEXT_PREFIX)), word.end()
    if key in _WORDS:
        return Assignment(name.group(), value=_WORDS[key]), word.end()
    if _NUMBER.match(key):
        return Assignment(name.group(), value=float(key) if "." in key else int(key)), word.end()
    hint = f"write context.{key} for a value of the context, or '{key}' for the text" if _NAME.fullmatch(key) else _FORM
    raise MappingSyntaxError(f'"{key}" is not a value', source.span(start, word.end()), hint=hint)


if TYPE_CHECKING:
    """Gives the value of a name, or ``MISSING``."""
