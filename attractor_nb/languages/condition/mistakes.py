"""Error messages for conditions: from the offset where the parser stopped to an error with a remedy.

Spec 10.7's operators are known here only to be refused well (ruling 11). The module knows no lark: it receives
the offset at which the parser stopped and the names of the terminals that could have followed.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import ConditionSyntaxError

if TYPE_CHECKING:
    from attractor_nb.source import SourceText, Span

_OPERATORS = "=!<>~"
_WORD = re.compile(r"[^\s\"&|=!<>]+")
_LAST_KEY = re.compile(r"\s*+([A-Za-z0-9_.]*[A-Za-z_])")
"""Read backwards."""
_RESERVED = re.compile(r"(?<!\S)(and|or|not|contains|matches)(?!\S)", re.IGNORECASE)
_EXAMPLE_KEYS = "a key is `outcome`, `preferred_label`, or names joined by dots like `context.tests_passed`"
_ONE_EDGE_EACH = "write one edge for each alternative"


class _State(Enum):
    """The part of a condition that the parser expected."""

    KEY = "KEY"
    OPERATOR = "EQUALS"
    LITERAL = "QUOTED"
    JOIN = "AND"


class _Mistake(NamedTuple):
    states: tuple[_State, ...]
    pattern: re.Pattern[str]
    message: str
    hint: str


_ANYWHERE = tuple(_State)
_MISTAKES: Final = tuple(
    _Mistake(states, re.compile(pattern, re.IGNORECASE), message, hint)
    for states, pattern, message, hint in (
        (_ANYWHERE, r"\|\|?", 'conditions do not support "or"', _ONE_EDGE_EACH),
        (_ANYWHERE, r"&(?!&)", 'expected "&&", found "&"', 'join clauses with "&&"'),
        (
            _ANYWHERE,
            r'"(?:\\[\s\S]|[^"\\])*\\?\Z',
            "a quoted literal is not closed",
            'add the closing double quote, written \\" inside a DOT string',
        ),
        (
            (_State.LITERAL,),
            r"'[^']*'?",
            "literals use double quotes",
            'use double quotes, written \\" inside a DOT string, or none',
        ),
        ((_State.KEY,), r"&&", 'expected a clause before "&&"', 'remove the "&&" or write the clause'),
        (
            (_State.KEY, _State.OPERATOR),
            r"[()]",
            "conditions do not support parentheses",
            f"all clauses must hold; for alternatives {_ONE_EDGE_EACH}",
        ),
        ((_State.KEY,), r'"(?:\\[\s\S]|[^"\\])*"', "keys must not be quoted", _EXAMPLE_KEYS),
        ((_State.KEY,), r"!=|=", 'expected a key before "{found}"', _EXAMPLE_KEYS),
        ((_State.OPERATOR,), r"(and|&)(?!\S)", 'expected "&&", found "{found}"', 'join clauses with "&&"'),
        ((_State.OPERATOR,), r"or(?!\S)", 'conditions do not support "or"', _ONE_EDGE_EACH),
        (
            (_State.OPERATOR,),
            r"(contains|matches|in)(?!\S)",
            '"{found}" is not an operator',
            'compare with "=" or "!="; let a stage put the answer in the context',
        ),
        ((_State.OPERATOR,), r"(is|equals|eq|:=?)(?!=)", 'expected "=" or "!=", found "{found}"', 'write "="'),
        (
            (_State.JOIN,),
            r"!=|=",
            "a clause has only one operator",
            'join clauses with "&&", or quote a value that contains "{found}"',
        ),
        (
            (_State.JOIN,),
            r'"(?:\\[\s\S]|[^"\\])*"',
            "a literal must be entirely quoted or entirely bare",
            "put the whole literal in one pair of quotes",
        ),
    )
)

_OPERATOR_HINTS: Final = {
    "==": 'write one "="',
    "===": 'write one "="',
    "!==": 'write "!="',
    "=!": 'write "!="',
    "<>": 'write "!="',
    "~=": 'write "="',
}


def diagnose(source: SourceText, offset: int, expected: frozenset[str]) -> ConditionSyntaxError:
    """The error for a text that could not be read beyond ``offset``.

    Args:
        source: The condition.
        offset: Where reading stopped; the length of the text when it ended too early.
        expected: Terminals that were expected there.
    """
    state = next(
        state for state in (_State.KEY, _State.OPERATOR, _State.LITERAL, _State.JOIN) if state.value in expected
    )
    if error := _operator_error(source, offset):
        return error
    for mistake in _MISTAKES:
        if state in mistake.states and (found := mistake.pattern.match(source.text, offset)):
            reserved = state is _State.JOIN and reserved_word_error(_literal_before(source, offset))
            return reserved or ConditionSyntaxError(
                mistake.message.replace("{found}", found[0]),
                source.span(*found.span()),
                hint=mistake.hint.replace("{found}", found[0]),
            )
    return _unfinished(source, offset, state)


def reserved_word_error(literal: Span) -> ConditionSyntaxError | None:
    """The error for a bare literal of several words that reads like an expression, or None."""
    found = _RESERVED.search(literal.text)
    if not found:
        return None
    span = literal.source.span(literal.start + found.start(), literal.start + found.end())
    match found[0].lower():
        case "and":
            return ConditionSyntaxError(f'expected "&&", found "{found[0]}"', span, hint='join clauses with "&&"')
        case "or":
            return ConditionSyntaxError('conditions do not support "or"', span, hint=_ONE_EDGE_EACH)
        case _:
            return ConditionSyntaxError(
                f'"{found[0]}" is not an operator', span, hint="quote a literal of several words"
            )


def _operator_error(source: SourceText, offset: int) -> ConditionSyntaxError | None:
    """The error for a run of operator signs that is no operator: ``==``, ``>=``, a lone ``!``."""
    text, start, end = source.text, offset, offset
    while start > 0 and text[start - 1] in _OPERATORS:
        start -= 1
    while end < len(text) and text[end] in _OPERATORS:
        end += 1
    signs = text[start:end]
    if end == offset or signs in ("=", "!="):
        return None
    if signs == "!":
        return ConditionSyntaxError(
            'conditions do not support "not"', source.span(start, end), hint="write `key!=value`"
        )
    hint = _OPERATOR_HINTS.get(signs, "conditions compare text; let a stage put the answer in the context")
    return ConditionSyntaxError(f'"{signs}" is not an operator', source.span(start, end), hint=hint)


def _unfinished(source: SourceText, offset: int, state: _State) -> ConditionSyntaxError:
    """The error where nothing particular was found: something is missing, or a word is misplaced."""
    text = source.text
    before = text[:offset].rstrip()
    word = _WORD.match(text, offset)
    here = source.span(*word.span()) if word else source.span(offset, min(offset + 1, len(text)))
    match state:
        case _State.LITERAL:
            size = 2 if before.endswith("!=") else 1
            operator = source.span(len(before) - size, len(before))
            hint = 'write `""` to compare with the empty text'
            return ConditionSyntaxError(f'expected a value after "{operator.text}"', operator, hint=hint)
        case _State.KEY if not word:
            join = source.span(len(before) - 2, len(before))
            return ConditionSyntaxError(
                'expected a clause after "&&"', join, hint='remove the "&&" or write the clause'
            )
        case _State.KEY:
            return ConditionSyntaxError(f'"{here.text}" is not a key', here, hint=_EXAMPLE_KEYS)
        case _State.OPERATOR:
            return _after_key(source, offset, here)
        case _:
            return ConditionSyntaxError(
                f'expected "&&" after the literal, found "{here.text}"', here, hint='join clauses with "&&"'
            )


def _after_key(source: SourceText, offset: int, here: Span) -> ConditionSyntaxError:
    """The error for a key that continues in a way no key does, or is followed by a stray word."""
    found = source.span_before(offset, _LAST_KEY)
    assert found is not None, "an operator is only expected after a key"
    key = found.text
    if key.lower() == "not":
        return ConditionSyntaxError('conditions do not support "not"', found, hint="write `key!=value`")
    if found.end == offset:
        whole = source.span(found.start, here.end)
        return ConditionSyntaxError(f'"{whole.text}" is not a key', whole, hint=_EXAMPLE_KEYS)
    return ConditionSyntaxError(f'expected "=", "!=" or "&&" after "{key}"', here, hint=f"write `{key}={here.text}`")


def _literal_before(source: SourceText, offset: int) -> Span:
    """The text of the clause that ends at ``offset``."""
    start = max(source.text.rfind("&&", 0, offset) + 2, 0)
    return source.span(start if start > 1 else 0, offset)
