"""How many tokens a text has, without a tokenizer: four characters count as one (spec 5.4).

It is an estimate: English prose has about that many, code and other scripts have more tokens in as many
characters. Budgets and windows that are counted so are counted the same for every model.
"""

from __future__ import annotations

from typing import Final

CHARACTERS_PER_TOKEN: Final = 4


def estimated_tokens(text: str) -> int:
    """The estimate for a text, rounded up.

    >>> estimated_tokens(""), estimated_tokens("four"), estimated_tokens("fives")
    (0, 1, 2)
    """
    return -(-len(text) // CHARACTERS_PER_TOKEN)
