"""Commands as users read them before they let them run: whole, and without anything that deceives.

A command from elsewhere may hold characters that move the cursor, reverse the reading direction or
show as nothing. What is asked about must be what is on the screen, so each of them is spelled out.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.planning.executable_surface import COMMAND, OF_A_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.decisions.planning.executable_surface import Command

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that Unicode calls printable and that no font shows."""
_BLANKS: Final = re.compile(" {9,}")
"""More of them could push what follows out of sight."""
_HEADS: Final = ("list of ", "text for ", "setting of ", "choice of ")
"""Kinds whose first word has the plural."""
_LINES_LISTED: Final = 20
_CHARACTERS_LISTED: Final = 100
_CUT: Final = "\N{HORIZONTAL ELLIPSIS}"


def spelled_out(line: str) -> str:
    r"""A line in which every character can be seen.

    >>> spelled_out("echo \u202eabc\x1b[2K" + " " * 400 + "# x")
    'echo \\u202eabc\\x1b[2K[400 blanks]# x'
    """
    shown = "".join(
        char if char.isprintable() and not _INVISIBLE.match(char) else char.encode("unicode_escape").decode("ascii")
        for char in line
    )
    return _BLANKS.sub(lambda found: f"[{len(found[0])} blanks]", shown)


def command_lines(commands: Sequence[Command]) -> list[str]:
    """The commands whole: a line that says whose it is, then each of its lines behind a bar."""
    lines: list[str] = []
    for entry in commands:
        lines.append(f"{_owner(entry)}  {entry.attribute}")
        lines.extend(f"  | {line}" for line in shown_command(entry.text).split("\n"))
    return lines


def shown_command(text: str) -> str:
    """A command whole, with every character of its lines spelled out."""
    return "\n".join(map(spelled_out, _without_empty_runs(text.split("\n"))))


def listed_commands(commands: Sequence[Command]) -> list[str]:
    """The commands in a bounded list: one line each, cut where they are long."""
    lines: list[str] = []
    for entry in commands[:_LINES_LISTED]:
        head = f"  {spelled_out(entry.node_id) or _whole(entry)}  {entry.attribute}  "
        lines.append(head + cut(" \\n ".join(map(spelled_out, entry.text.split("\n")))))
    if len(commands) > _LINES_LISTED:
        lines.append(f"  and {len(commands) - _LINES_LISTED} more")
    return lines


def command_diff(before: Sequence[Command], after: Sequence[Command]) -> list[str]:
    """The change between two lists of commands, as a unified diff."""
    old, new = command_lines(before), command_lines(after)
    return list(difflib.unified_diff(old, new, "trusted before", "now", n=2, lineterm=""))


def command_count(commands: Sequence[Command]) -> str:
    """The number of entries of each kind, commands first: ``1 command``, ``3 commands and 1 server setting``."""
    counts = Counter(entry.kind for entry in sorted(commands, key=lambda entry: entry.kind != COMMAND))
    *most, last = [f"{count} {_plural(kind) if count != 1 else kind}" for kind, count in counts.items()]
    return f"{', '.join(most)} and {last}" if most else last


def are_commands(commands: Iterable[Command]) -> bool:
    """True if all of them are commands, and none is a setting or a text."""
    return all(entry.kind == COMMAND for entry in commands)


def _plural(kind: str) -> str:
    first, *rest = kind.split(" ", 1) if kind.startswith(_HEADS) else (kind,)
    return " ".join([f"{first}s", *rest])


def _owner(entry: Command) -> str:
    return f"node {spelled_out(entry.node_id)}" if entry.node_id else _whole(entry)


def _whole(entry: Command) -> str:
    """The owner of an entry that belongs to no node."""
    return "run directory" if entry.attribute.startswith(OF_A_DIRECTORY) else "graph"


def _without_empty_runs(lines: list[str]) -> Iterator[str]:
    """Lines, with a run of empty ones as one line that counts them."""
    empty = 0
    for line in [*lines, None]:
        if line is not None and not line.strip():
            empty += 1
            continue
        if empty:
            yield "" if empty == 1 else f"[{empty} empty lines]"
        empty = 0
        if line is not None:
            yield line


def cut(text: str) -> str:
    """A line that is only listed: its beginning."""
    return text if len(text) <= _CHARACTERS_LISTED else text[: _CHARACTERS_LISTED - 1] + _CUT
