"""What is wrong with a stylesheet, in human words: from where the parser stopped to an error with a remedy.

Knows no lark: it is told the offset at which reading stopped and what could have followed.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import StylesheetSyntaxError

if TYPE_CHECKING:
    from attractor_nb.source import SourceText, Span

_TOKEN = re.compile(r"[A-Za-z0-9_.#-]+|\S")
_LAST_TOKEN = re.compile(r"\s*+([A-Za-z0-9_.-]++#?|\S)")
"""Read backwards."""
_PROPERTIES_HINT = "a rule sets llm_model, llm_provider or reasoning_effort"
_EXAMPLE_RULE = 'write a rule such as `* { llm_model: "…" }`'
_CLOSE_HINT = 'add "}"'
_NOT_CLOSED = "the rule is not closed"


class _State(Enum):
    """What the reader was waiting for, most telling terminal first."""

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
        expected: Terminals that could have stood there.
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
    """The error where nothing particular was found: something is missing, or a sign stands wrong."""
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
