"""What is wrong with attributes: messages, places and hints.

Used only once reading has failed, so it may look around at leisure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.expression_words import NAME, NAME_AND_EQUALS, STRING, symbol_mistake
from attractor_nb.languages.dot.literals import KEYWORDS

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import Attr, Gap
    from attractor_nb.source import SourceText, Span

_RUN: Final = re.compile(r"""(?:(?!//|/\*)[^\s,;\[\]{}"=<>])+|[<>]""")
_BLANKS: Final = re.compile(r"(?>(?:[ \t\r\n]++|//[^\n]*+|/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/)*)")
_STRING_OR_COMMENT: Final = re.compile(rf"{STRING.pattern}|//[^\n]*+|/\*.*?\*/|\#[^\n]*+", re.DOTALL)
_NEXT_STATEMENT: Final = re.compile(r"[ \t\r\n]*+(?:\[|->)")
_QUOTE_MARKS: Final = frozenset("'`‘’“”")  # noqa: RUF001 - the very characters that word processors put in
_QUOTE_INSIDE: Final = 'inside a string write \\" for a quote'
_BRACKET_OPEN: Final = '"[" is never closed'


def name_mistake(source: SourceText, attr: Attr) -> DotSyntaxError:
    """Why an attribute's name is not allowed."""
    span = source.span(attr.start, attr.name_end)
    if attr.name.lower() in KEYWORDS:
        return DotSyntaxError(
            f'"{attr.name}" is a keyword and cannot name an attribute',
            span,
            hint=f'write "{attr.name.lower()} [name=value]" for defaults, or use another name',
        )
    return DotSyntaxError(
        "an attribute's name is made of letters, digits and _, with dots between its parts",
        span,
        hint="use a name such as human.default_choice",
    )


def value_mistake(source: SourceText, attr: Attr) -> DotSyntaxError:
    """Why a bare value is not allowed: it is a keyword or too large a number."""
    span = source.span(attr.value_start, attr.end)
    if attr.literal.lower() in KEYWORDS:
        return DotSyntaxError(
            f'the keyword "{attr.literal}" cannot be a bare value',
            span,
            hint=f'write "{attr.literal}" in double quotes',
        )
    return DotSyntaxError("the number is too large", span, hint="put it into double quotes to keep it as text")


def separator_mistake(source: SourceText, gap: Gap) -> DotSyntaxError:
    """Why two attributes need a comma between them."""
    before, semicolon, after = gap
    is_touching = semicolon is None and before.end == after.start
    hint = "separate attributes with commas"
    return DotSyntaxError(
        'expected "," between attributes',
        separator_span(source, gap),
        hint=f'{hint}, and inside a string write \\" for a quote' if is_touching else hint,
    )


def separator_span(source: SourceText, gap: Gap) -> Span:
    """Where a separator is wrong: the semicolon, or the name that should follow a comma."""
    _, semicolon, after = gap
    if semicolon is not None:
        return source.span(semicolon, semicolon + 1)
    return source.span(after.start, after.name_end)


def attribute_mistake(source: SourceText, start: int, previous_end: int, bracket: int) -> DotSyntaxError:
    """Why the inside of an attribute block cannot be read on.

    Args:
        source: The text.
        start: Where reading stopped.
        previous_end: Where the token before it ends.
        bracket: Where the block's ``[`` stands.
    """
    text = source.text
    if start == len(text) or text[start] in "{}" or text.startswith("->", start):
        where = f' before "{text[start]}"' if text[start : start + 1] in {"{", "}"} else ""
        return DotSyntaxError(
            _BRACKET_OPEN, source.span(bracket, bracket + 1), hint=f'add "]"{where} where the attributes end'
        )
    if found := NAME_AND_EQUALS.match(text, start):
        return assignment_mistake(source, start, found.end())
    if start == previous_end and text[start - 1] == '"' and text[start] != "+":
        return _text_after_string(source, start, bracket)
    if text[start] == '"':
        return _bare_string(source, start)
    found = _RUN.match(text, start)
    if text[start] == "[" or (found and _NEXT_STATEMENT.match(text, found.end())):
        return DotSyntaxError(
            _BRACKET_OPEN, source.span(bracket, bracket + 1), hint='add "]" before the next statement'
        )
    if found:
        return _name_without_value(source, start, found.end())
    return symbol_mistake(source, start)


def assignment_mistake(source: SourceText, start: int, after_equals: int) -> DotSyntaxError:
    """Why no value can be read after ``name =``.

    Args:
        source: The text.
        start: Where the name begins.
        after_equals: The offset after the ``=``.
    """
    text = source.text
    found = _BLANKS.match(text, after_equals)
    at = found.end() if found else after_equals
    char = text[at : at + 1]
    name = text[start : after_equals - 1].split("/*")[0].split("//")[0].strip()
    if not char or char in ",;]}":
        return DotSyntaxError(
            f"a value is missing after {name} =", source.span(start, after_equals), hint=f'write {name}="..."'
        )
    if char in "{[":
        return DotSyntaxError(
            "lists and objects are not supported as values",
            source.span(at, at + 1),
            hint="put the whole value into double quotes",
        )
    if text[after_equals : after_equals + 1] in {"=", ">"}:
        return DotSyntaxError(
            'one "=" is enough', source.span(after_equals - 1, after_equals + 1), hint=f'write {name}="..."'
        )
    if char in _QUOTE_MARKS or char in '"=<' or text.startswith("/*", at):
        return symbol_mistake(source, at)
    run = _RUN.match(text, at)
    end = run.end() if run else at + 1
    return DotSyntaxError(
        "this value needs double quotes",
        source.span(at, end),
        hint=f'write {name}="{text[at:end]}"' if text[at:end].isprintable() else "put the value into double quotes",
    )


def _text_after_string(source: SourceText, start: int, bracket: int) -> DotSyntaxError:
    """Text that touches a closing quote: a quote inside a string, or one missing lines above."""
    found = _RUN.match(source.text, start)
    span = source.span(start, found.end() if found else start + 1)
    strings = _STRING_OR_COMMENT.finditer(source.text, bracket, start)
    began = next((string.start() for string in strings if string.end() == start), start)
    line = source.span(began, start).line
    if line == span.line:
        return DotSyntaxError("text directly after a string", span, hint=_QUOTE_INSIDE)
    return DotSyntaxError(
        f"text directly after the string that began on line {line}",
        span,
        hint=f'add the closing quote that is missing on line {line}, or inside a string write \\"',
    )


def _bare_string(source: SourceText, start: int) -> DotSyntaxError:
    found = STRING.match(source.text, start)
    if found is None:
        return symbol_mistake(source, start)
    return DotSyntaxError(
        "a string alone is not an attribute", source.span(*found.span()), hint=f'write name="value"; {_QUOTE_INSIDE}'
    )


def _name_without_value(source: SourceText, start: int, end: int) -> DotSyntaxError:
    run = source.text[start:end]
    name = NAME.match(run)
    if name is None:
        if run[0].isdigit():
            return DotSyntaxError(
                "an attribute's name cannot begin with a digit",
                source.span(start, end),
                hint="start the name with a letter",
            )
        return symbol_mistake(source, start)
    rest = run[name.end() :]
    if rest.startswith(":"):
        colon = start + name.end()
        return DotSyntaxError(
            'a name and its value are joined by "=", not ":"',
            source.span(colon, colon + 1),
            hint=f'write {name[0]}="value"',
        )
    if rest.startswith("-"):
        return DotSyntaxError(
            'an attribute\'s name cannot contain "-"', source.span(start, end), hint=f"write {run.replace('-', '_')}"
        )
    if rest:
        return symbol_mistake(source, start + name.end())
    return DotSyntaxError(
        f'"=" and a value are missing after "{run}"', source.span(start, end), hint=f'write {run}="..."'
    )
