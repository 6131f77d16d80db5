"""How statements are laid out in lines; what both writers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

INDENT: Final = "    "
LINE_WIDTH: Final = 100


def statement_text(head: str, pairs: Sequence[str], indent: str) -> str:
    """``head [a=1, b=2]`` in one line where it fits, else one attribute a line.

    Args:
        head: What stands before the attributes.
        pairs: ``name=value`` texts.
        indent: What will be put before the first line.
    """
    line = f"{head} [{', '.join(pairs)}]"
    if len(indent) + len(line) <= LINE_WIDTH and "\n" not in line:
        return line
    inner = f",\n{indent}{INDENT}".join(pairs)
    return f"{head} [\n{indent}{INDENT}{inner}\n{indent}]"
