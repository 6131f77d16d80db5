"""A map as progress: at a terminal a bar that moves and a line for each failure, else a line for each row.

Lines are written by a thread of their own: a reader that is slow holds up no row.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.text import Text

from attractor_nb.cli.terminal import Line, Terminal, Tone, fitted
from attractor_nb.maps.map_table import ROW_MARKS, map_headline
from attractor_nb.views.columns import one_line
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attractor_nb.maps.map_view import MapView
    from attractor_nb.model.row_result import RowResult

BAR_COLUMNS: Final = 40
REASON_CHARS: Final = 100
PATIENCE_SECONDS: Final = 5.0
_TONES: Final = {"success": Tone.GOOD, "fail": Tone.BAD, "interrupted": Tone.WAITING}


class MapProgress:
    """Shows how a map stands.

    Args:
        view: The map.
        is_quiet: Show nothing.
        terminal: Where to; stderr by default.
    """

    def __init__(self, view: MapView, *, is_quiet: bool = False, terminal: Terminal | None = None) -> None:
        self._view = view
        self._is_quiet = is_quiet
        self._terminal = terminal or Terminal(name_columns=len(str(view.row_count)))
        self._told: set[int] = set()
        self._ended: SimpleQueue[RowResult | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._follow, name="attractor-progress", daemon=True)

    def begin(self) -> None:
        """Show the bar, where one can move, and the rows that end."""
        if not self._is_quiet:
            self._terminal.begin(self._block)
            self._thread.start()

    def take(self, result: RowResult) -> None:
        """Take a row that has ended; never waits."""
        self._ended.put(result)

    def _follow(self) -> None:
        while (result := self._ended.get()) is not None:
            if result.row not in self._told:
                self._told.add(result.row)
                self._show(result)

    def _show(self, result: RowResult) -> None:
        """Write a row's line; at a terminal the bar says what succeeds."""
        if self._terminal.is_live and result.is_success:
            return
        words = "read, had ended before" if result.was_finished else ""
        if result.reason:
            words = first_words(one_line(result.reason), REASON_CHARS)
        time = duration_text(result.duration)
        tone = _TONES.get(result.status, Tone.QUIET)
        self._terminal.write(Line(ROW_MARKS[result.status], str(result.row), words, time, tone))

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text, unless quiet."""
        if not self._is_quiet:
            self._terminal.say(text, tone)

    def close(self) -> None:
        """Take the bar away, when all lines are written, or nobody has read them for a while."""
        if self._thread.is_alive():
            self._ended.put(None)
            self._thread.join(PATIENCE_SECONDS)
        self._terminal.end()

    def _block(self) -> RenderableType:
        view = self._view
        bar = ProgressBar(total=view.row_count, completed=view.ended_count, width=BAR_COLUMNS)
        return Group(bar, Text(fitted(map_headline(view), self._terminal.columns - 1), no_wrap=True))
