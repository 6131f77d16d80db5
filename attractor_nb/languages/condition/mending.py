"""Repair of conditions written in a neighbouring language's habit.

Only spellings with one possible meaning are repaired: `or` has none in this language.
"""

from __future__ import annotations

import re

from attractor_nb.errors import ConditionSyntaxError
from attractor_nb.languages.condition.parser import MAX_CHARACTERS, parse_condition

_REPAIRS = (
    (re.compile(r"(!?)={2,3}"), r"\1="),
    (re.compile(r"(?<![!=])=!(?!=)|<>"), "!="),
    (re.compile(r"(?<!\s)\s*+(?<!&)&(?!&)\s*+"), " && "),
    (re.compile(r"(?<!\s)\s++and\s++", re.IGNORECASE), " && "),
    (re.compile(r"(?<==)(\s*+)'([^'\"\\]*+)'"), r'\1"\2"'),
    (re.compile(r"\A\s*+&&|&&(?=\s*+\Z)"), ""),
)
_QUOTED_SIGN = re.compile(r"\"[^\"]*(?:[&=<!']|\band\b)[^\"]*\"", re.IGNORECASE)


def mend_condition(text: str) -> str | None:
    """The condition that was most likely meant, or None when no one reading is safe.

    >>> mend_condition("outcome == 'success' and context.ok=true")
    'outcome = "success" && context.ok=true'
    """
    if len(text) > MAX_CHARACTERS:
        return None
    if _QUOTED_SIGN.search(text):
        return None  # a repair could change quoted data
    mended = text
    for pattern, replacement in _REPAIRS:
        mended = pattern.sub(replacement, mended)
    mended = mended.strip()
    if mended == text or not mended:
        return None
    try:
        parse_condition(mended)
    except ConditionSyntaxError:
        return None
    return mended
