"""stderr as lines, and, at a terminal, a short block beneath them that moves.

A progress line must never stop a run: when the reader of stderr has gone, nothing more is written.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from attractor_nb.cli.reporting import stream_behind
from attractor_nb.cli.tones import Tone
from attractor_nb.model.texts import shown
from attractor_nb.views.table import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import ConsoleOptions

PIPED_COLUMNS: Final = 80
MOST_COLUMNS: Final = 96
"""Durations further to the right are hard to match with their line."""
DURATION_COLUMNS: Final = 9
REFRESHES_PER_SECOND: Final = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One line of progress: a mark, a name in its own column, words, and a time at the right."""

    mark: str  #: The sign of what happened.
    name: str  #: The node, or empty.
    words: str = ""  #: The words to show.
    time: str = ""  #: Its duration, in words.
    tone: Tone = Tone.PLAIN  #: Tone of the mark, and of the words when it is ``BAD``.


class _Console(Console):
    """A console that falls silent when its reader has gone; rich itself would end the program.

    It writes control sequences of its own to the stream itself, so it shows those of texts (ruling 38).
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces to write; those that are text steer nothing."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text), style, control)

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Terminal:
    """Writes progress to stderr.

    Args:
        stream: In place of stderr.
        name_columns: Width of the column of names.
    """

    def __init__(self, stream: TextIO | None = None, *, name_columns: int = 0) -> None:
        self._console = _Console(
            file=stream_behind(stream or sys.stderr), highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self._name_columns = name_columns
        self._live: Live | None = None

    @property
    def is_live(self) -> bool:
        """True if a block can move here."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    @property
    def columns(self) -> int:
        """Width to fill."""
        return min(self._console.width, MOST_COLUMNS) if self.is_live else PIPED_COLUMNS

    @property
    def is_unread(self) -> bool:
        """True if the reader has gone."""
        return self._console.quiet

    @property
    def lines(self) -> int:
        """Height that a block may fill."""
        return self._console.height

    def write(self, line: Line) -> None:
        """Write a line of progress."""
        self._print(self.laid_out(line))

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text unchanged."""
        self._print(Text(shown(text), style=tone.value))

    def show(self, text: Text) -> None:
        """Write text that has its colours already."""
        self._print(text)

    def laid_out(self, line: Line) -> Text:
        """A line in its columns. At a terminal its words are cut to fit; elsewhere nothing is lost."""
        line = replace(line, name=shown(line.name), words=shown(line.words))
        name = line.name + " " * (self._name_columns - cells(line.name))
        head = f"{line.mark} {name}"
        room = self.columns - cells(head) - 2 - DURATION_COLUMNS
        words = fitted(line.words, room) if self.is_live else line.words
        text = Text(no_wrap=True, overflow="crop")
        text.append(line.mark, style=line.tone.value)
        text.append(head[len(line.mark) :])
        if words or line.time:
            text.append(f"  {words}", style=(line.tone if line.tone is Tone.BAD else Tone.PLAIN).value)
        if line.time:
            gap = max(1, room - cells(words) + DURATION_COLUMNS - cells(line.time))
            text.append(" " * gap + line.time, style=Tone.QUIET.value)
        text.rstrip()
        return text

    def begin(self, block: Callable[[], RenderableType]) -> None:
        """Show a block beneath the lines, drawn again and again until ``end``."""
        self.end()
        if self.is_live and not self._console.quiet:
            self._live = Live(
                console=self._console,
                get_renderable=block,
                transient=True,
                refresh_per_second=REFRESHES_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def end(self) -> None:
        """Take the block away."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _print(self, text: Text) -> None:
        try:
            self._console.print(text)
        except OSError:
            self._console.quiet = True


def fitted(text: str, columns: int) -> str:
    """The text, cut with an ellipsis where it has more columns than there are.

    >>> fitted("Plan the point to make", 12)
    'Plan the po…'
    """
    if cells(text) <= columns:
        return text
    kept, width = "", 0
    for char in text:
        width += cells(char)
        if width > columns - 1:
            break
        kept += char
    return kept + "\N{HORIZONTAL ELLIPSIS}"
