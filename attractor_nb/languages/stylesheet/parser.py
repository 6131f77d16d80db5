"""Stylesheet text to syntax tree, or one of our errors with a caret (spec 8.2, ruling 10).

What is right but deserves a word, unknown properties and values, gives notices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, parse_tree
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.texts import did_you_mean, nearest
from attractor_nb.model.vocabulary.attribute_table import REASONING_EFFORTS, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce
from attractor_nb.source import SourceText, Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Node


MAX_CHARACTERS: Final = 50_000
"""Longest stylesheet: room for a thousand rules, each of which is compared with each node."""
_ESCAPE = re.compile(r"\\([\"'\\])")


def parse_stylesheet(text: str | SourceText) -> Stylesheet:
    """Read a stylesheet; a blank one has no rules.

    >>> sheet = parse_stylesheet("* { model: small } #review { llm_model = 'large'; }")
    >>> [(str(rule.selector), rule.declarations[0].value) for rule in sheet.rules]
    [('*', 'small'), ('#review', 'large')]
    """
    source = SourceText(text, "<stylesheet>") if isinstance(text, str) else text
    if len(source.text) > MAX_CHARACTERS:
        raise StylesheetSyntaxError(
            f"the stylesheet is longer than {MAX_CHARACTERS:,} characters",
            source.span(MAX_CHARACTERS, MAX_CHARACTERS + 1),
            hint="give the nodes a class and write one rule for the class",
        )
    try:
        tree = parse_tree("stylesheet", source.text)
    except ReadingStoppedError as stopped:
        raise diagnose(source, stopped.offset, stopped.expected) from None
    rules: list[StyleRule] = []
    notices: list[Diagnostic] = []
    for part in tree.branches:
        selector, *declarations = part.branches
        read = [_declaration(source, each, notices) for each in declarations]
        rules.append(StyleRule(_selector(source, selector), tuple(read)))
    return Stylesheet(tuple(rules), tuple(notices))


def _selector(source: SourceText, branch: Branch) -> Selector:
    (token,) = branch.tokens
    kind = SelectorKind[token.kind]
    has_sign = kind in (SelectorKind.CLASS, SelectorKind.ID)
    name = "" if kind is SelectorKind.EVERY else token.text[1 if has_sign else 0 :]
    return Selector(kind, name, source.span(token.start, token.end))


def _declaration(source: SourceText, branch: Branch, notices: list[Diagnostic]) -> Declaration:
    name, _ = branch.tokens
    (value,) = branch.branches[0].tokens
    text = value.text
    if value.kind == "QUOTED":
        text = _ESCAPE.sub(r"\1", text[1:-1])
    canonical = PROPERTY_ALIASES.get(name.text, name.text)
    name_span, value_span = source.span(name.start, name.end), source.span(value.start, value.end)
    notices.extend(declaration_notices(canonical, text, name_span, value_span))
    return Declaration(canonical, text, source.span(name.start, value.end))


NOTICE_RULES: Final = ("unknown_property", "style_value")
"""Rules that reading a stylesheet can give notice of."""


def declaration_notices(name: str, value: str, name_span: Span, value_span: Span) -> list[Diagnostic]:
    """Notices about one declaration, whose name is canonical already."""
    if name not in PROPERTIES:
        known = (*PROPERTIES, *PROPERTY_ALIASES)
        message = f'the stylesheet property "{name}" is unknown and has no effect'
        return [_notice("unknown_property", message, name, name_span, known)]
    if name == "reasoning_effort" and value not in REASONING_EFFORTS:
        message = f'reasoning_effort "{value}" is not one of {", ".join(REASONING_EFFORTS)}'
        return [_notice("style_value", message, value, value_span, REASONING_EFFORTS)]
    row = attribute(Scope.NODE, name)
    if row is not None and coerce(row, value) is None:
        message = f'{name} "{value}" must have the type {row.type}'
        fix = Fix(f"write it as on a node, for example {name}=…")
        return [Diagnostic("style_value", Severity.WARNING, message, fix=fix, span=value_span)]
    return []


def _notice(rule: str, message: str, word: str, span: Span, known: Sequence[str]) -> Diagnostic:
    message += did_you_mean(word, known)
    if near := nearest(word, known):
        fix = Fix(f'write "{near}"', (TextEdit(span, near),))
    else:
        fix = Fix(f"use one of {', '.join(known)}")
    return Diagnostic(rule, Severity.WARNING, message, fix=fix, span=span)


# The syntax tree of a model stylesheet (spec 8.2).

PROPERTIES: Final = (
    "llm_model",
    "llm_provider",
    "reasoning_effort",
    "llm.temperature",
    "llm.max_tokens",
    "llm.base_url",
)
"""Properties of a stylesheet: spec 8.4, and the options and address of a model."""

PROPERTY_ALIASES: Final = {
    "model": "llm_model",
    "provider": "llm_provider",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "base_url": "llm.base_url",
}
"""Second names of properties (ruling 10)."""


class SelectorKind(IntEnum):
    """The property of a node that a selector matches; the number is its specificity (ruling 10)."""

    EVERY = 0
    SHAPE = 1
    CLASS = 2
    ID = 3


@dataclass(frozen=True, slots=True)
class Selector:
    """The nodes that a rule applies to."""

    kind: SelectorKind  #: The property of a node that it matches.
    name: str = ""  #: The shape, class or id, without its sign; empty for ``*``.
    span: Span | None = field(default=None, compare=False, repr=False)  #: Its place in the text.

    def __str__(self) -> str:
        return ("*", "", ".", "#")[self.kind] + self.name


@dataclass(frozen=True, slots=True)
class Declaration:
    """One property and its value."""

    name: str  #: The property's canonical name, or an unknown name as written.
    value: str  #: Its value, quotes and escapes resolved.
    span: Span | None = field(default=None, compare=False, repr=False)  #: From the name to the end of the value.


class StyleRule(msgspec.Struct, frozen=True):
    """A selector and what it declares."""

    selector: Selector
    declarations: tuple[Declaration, ...]


@dataclass(frozen=True)
class Stylesheet:
    """Rules in source order."""

    rules: tuple[StyleRule, ...] = ()  #: In source order; later ones win at equal specificity.
    #: Notices about valid parts, in the coordinates of the stylesheet's own text.
    notices: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    @cached_property
    def positions(self) -> Mapping[tuple[SelectorKind, str], Sequence[int]]:
        """The positions in ``rules`` of rules with the same selector, by its kind and name."""
        found: dict[tuple[SelectorKind, str], list[int]] = {}
        for position, rule in enumerate(self.rules):
            found.setdefault((rule.selector.kind, rule.selector.name), []).append(position)
        return found


# The declarations of a stylesheet that win for a node (spec 8.3, ruling 10).


def resolve_properties(stylesheet: Stylesheet, node: Node) -> dict[str, str]:
    """The properties that the stylesheet gives a node, whatever the node says itself.

    ``*`` ranks below a shape, a shape below a class, a class below an id; at equal rank the later
    rule wins. Unknown properties are left out.
    """
    return {name: won.value for name, (_, won) in winning_declarations(stylesheet, node).items()}


def winning_declarations(stylesheet: Stylesheet, node: Node) -> dict[str, tuple[Selector, Declaration]]:
    """By property: the declaration that gives it to a node, and the selector that brought it."""
    positions = stylesheet.positions
    matching = (
        *positions.get((SelectorKind.EVERY, ""), ()),
        *positions.get((SelectorKind.SHAPE, node.shape), ()),
        *sorted(place for name in node.classes for place in positions.get((SelectorKind.CLASS, name), ())),
        *positions.get((SelectorKind.ID, node.id), ()),
    )
    rules = [stylesheet.rules[position] for position in matching]
    return {
        declaration.name: (rule.selector, declaration)
        for rule in rules
        for declaration in rule.declarations
        if declaration.name in PROPERTIES
    }


# Error messages for stylesheets: from the offset where the parser stopped to an error with a remedy.

_TOKEN = re.compile(r"[A-Za-z0-9_.#-]+|\S")
_LAST_TOKEN = re.compile(r"\s*+([A-Za-z0-9_.-]++#?|\S)")
"""Read backwards."""
_PROPERTIES_HINT = "a rule sets llm_model, llm_provider or reasoning_effort"
_EXAMPLE_RULE = 'write a rule such as `* { llm_model: "…" }`'
_CLOSE_HINT = 'add "}"'
_NOT_CLOSED = "the rule is not closed"


class _State(Enum):
    """The part of a rule that the parser expected, most telling terminal first."""

    SELECTOR = "EVERY"
    OPEN = "OPEN"
    PROPERTY = "PROPERTY"
    SEPARATOR = "COLON"
    VALUE = "BARE"
    END = "SEMICOLON"


class _Mistake(NamedTuple):
    states: tuple[_State, ...]
    pattern: re.Pattern[str]
    message: str
    hint: str


_ANYWHERE = tuple(_State)
_IN_RULE = (_State.PROPERTY, _State.SEPARATOR, _State.VALUE, _State.END)
_MISTAKES: Final = tuple(
    _Mistake(states, re.compile(pattern), message, hint)
    for states, pattern, message, hint in (
        (_ANYWHERE, r"/\*", "a comment is not closed", 'add "*/"'),
        (
            (_State.SELECTOR, _State.PROPERTY, _State.SEPARATOR, _State.END),
            r"//[^\n]*",
            'comments are written "/* … */" in a stylesheet',
            'enclose the comment in "/*" and "*/"',
        ),
        ((_State.SELECTOR,), r"@[\w-]*", '"{found}" is not a selector: there are no at-rules', _EXAMPLE_RULE),
        (
            (_State.SELECTOR,),
            r"""["'][^"'{]*["']?""",
            "selectors must not be quoted",
            "write `*`, a shape, `.class` or `#id`",
        ),
        ((_State.SELECTOR,), r"\}", 'this "}" closes no rule', 'remove the "}"'),
        ((_State.SELECTOR,), r"\{", 'expected a selector before "{"', 'write "*" for all nodes'),
        ((_State.SELECTOR,), r"#[\w-]*", '"{found}" is not a node id', "write `#` and the id of a node"),
        ((_State.SELECTOR,), r"\.", '"." is not a class', "write `.` and the name of a class"),
        ((_State.SELECTOR,), r"[;,]", 'expected a selector, found "{found}"', 'remove the "{found}"'),
        (
            (_State.OPEN,),
            r":[\w-]+(?=\s*\{)",
            'selectors do not support "{found}"',
            "give the nodes a class and select that",
        ),
        ((_State.OPEN,), r"(?<=\s)[\w-]+(?=\s*[:=])", 'expected "{" before "{found}"', _EXAMPLE_RULE),
        ((_State.OPEN,), r",", "a rule has only one selector", "write a rule for each selector"),
        (
            (_State.OPEN,),
            r"(?<=\s)[.#*>+~\w][\w-]*",
            "selectors cannot be combined",
            "give the nodes a class and select that",
        ),
        ((_State.PROPERTY,), r"\}", 'expected a declaration before "}"', _PROPERTIES_HINT),
        ((_State.PROPERTY,), r";", 'expected a declaration before ";"', 'remove the ";"'),
        (_IN_RULE, r"\{", "rules cannot be nested", 'close the rule with "}" before the next one'),
        ((_State.PROPERTY,), r"""["'][^"']*["']?""", "property names must not be quoted", _PROPERTIES_HINT),
        (
            (_State.PROPERTY,),
            r"[.#*][\w-]*(?=\s*\{)",
            "rules cannot be nested",
            'close the rule with "}" before the next one',
        ),
        (
            (_State.VALUE,),
            r"""("[^"]*|'[^']*)\Z""",
            "a quoted value is not closed",
            'add the closing quote, a double one written \\" inside a DOT string',
        ),
        (
            (_State.END,),
            r"[\w.-]+(?=\s*[:=])",
            'expected ";" before "{found}"',
            "end each declaration with a semicolon",
        ),
        ((_State.END,), r"!\s*\w*", '"{found}" has no meaning here', "a more specific selector wins: `#id`"),
        ((_State.END,), r",", "a property has only one value", 'end the declaration with ";"'),
        (
            (_State.END,),
            r"\*",
            'a value is no pattern: it cannot contain "{found}"',
            "write one value, such as the name of one model; selectors choose the nodes",
        ),
        ((_State.END,), r"[=:]", 'a value cannot contain "{found}" without quotes', "quote the value"),
        (
            (_State.END,),
            r"""[^\s;{}"']+""",
            'expected ";" after the value, found "{found}"',
            "quote a value of several words, or end the declaration with a semicolon",
        ),
        (
            (_State.END,),
            r"""["'].*?(?:["']|\Z)""",
            "a value must be entirely quoted or entirely bare",
            "put the whole value in one pair of quotes",
        ),
    )
)


def diagnose(source: SourceText, offset: int, expected: frozenset[str]) -> StylesheetSyntaxError:
    """The error for a text that could not be read beyond ``offset``.

    Args:
        source: The stylesheet.
        offset: Where reading stopped; the length of the text when it ended too early.
        expected: Terminals that were expected there.
    """
    state = next(state for state in _State if state.value in expected)
    for mistake in _MISTAKES:
        if state in mistake.states and (found := mistake.pattern.match(source.text, offset)):
            return StylesheetSyntaxError(
                mistake.message.replace("{found}", found[0]),
                source.span(*found.span()),
                hint=mistake.hint.replace("{found}", found[0]),
            )
    return _unfinished(source, offset, state)


def _unfinished(source: SourceText, offset: int, state: _State) -> StylesheetSyntaxError:
    """The error where nothing particular was found: something is missing, or a sign is misplaced."""
    text = source.text
    token = _TOKEN.match(text, offset)
    here = source.span(*token.span()) if token else None
    match state:
        case _State.OPEN:
            return _after_selector(source, offset, here, _last_token(source, offset))
        case _State.VALUE:
            return _missing_value(source, here, _last_token(source, offset))
        case _ if here is None:
            opening = text.rfind("{", 0, offset)
            return StylesheetSyntaxError(_NOT_CLOSED, source.span(opening, opening + 1), hint=_CLOSE_HINT)
        case _State.SEPARATOR:
            before = _last_token(source, offset)
            message = f'expected ":" after "{before.text}", found "{here.text}"'
            return StylesheetSyntaxError(message, here, hint=f"write `{before.text}: value`")
        case _State.PROPERTY:
            return StylesheetSyntaxError(f'"{here.text}" is not a property', here, hint=_PROPERTIES_HINT)
        case _:
            return StylesheetSyntaxError(f'"{here.text}" is not a selector', here, hint=_EXAMPLE_RULE)


def _after_selector(source: SourceText, offset: int, here: Span | None, before: Span) -> StylesheetSyntaxError:
    """The error for a selector without its ``{``."""
    if here is None:
        return StylesheetSyntaxError(f'expected "{{" after "{before.text}"', before, hint=_EXAMPLE_RULE)
    if here.text[0] in ":=":
        hint = f"enclose declarations in a rule: `* {{ {before.text}: … }}`"
        return StylesheetSyntaxError(f'expected a selector before "{before.text}"', before, hint=hint)
    if before.end == offset and here.text[0] not in "};":
        whole = source.span(before.start, here.end)
        return StylesheetSyntaxError(f'"{whole.text}" is not a selector', whole, hint=_EXAMPLE_RULE)
    message = f'expected "{{" after "{before.text}", found "{here.text}"'
    return StylesheetSyntaxError(message, here, hint=_EXAMPLE_RULE)


def _missing_value(source: SourceText, here: Span | None, before: Span) -> StylesheetSyntaxError:
    """The error for a property whose value is missing or begins with a sign that no value has."""
    name = _last_token(source, before.start)
    if here and here.text[0] in "=:*,":
        return StylesheetSyntaxError(f'a value cannot begin with "{here.text[0]}"', here, hint="quote the value")
    span = source.span(name.start, before.end)
    hint = f'write a value, or remove "{name.text}"'
    return StylesheetSyntaxError(f'"{name.text}" has no value', span, hint=hint)


def _last_token(source: SourceText, offset: int) -> Span:
    """The token that ends before ``offset``; there is one wherever this is asked."""
    found = source.span_before(offset, _LAST_TOKEN)
    assert found is not None, "only a selector can begin a stylesheet"
    return found
