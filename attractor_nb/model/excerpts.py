"""Texts within texts: the part of a long one that is shown, and a fence that none can end."""

from __future__ import annotations

import re


def excerpt(text: str, limit: int) -> str:
    r"""A text, or its beginning and its end with a word on what lies between.

    >>> excerpt("abcdefghij", 4)
    'ab\n[… 6 characters left out …]\nij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def fenced(text: str) -> str:
    r"""A text between fences that are longer than any within it.

    >>> fenced("a\n```\nb")
    '````\na\n```\nb\n````'
    """
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"
