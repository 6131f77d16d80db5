"""The pages of maps and evaluations, kept for a while: a reader asks for their rows one part after the other."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import RunNotFound
from attractor_nb.model.states import run_word
from attractor_nb.server.request_words import reason_in_requests
from attractor_nb.server.server_runs import row_id
from attractor_nb.storage.map_directory import EVALUATION_NAME, MAP_NAME, is_evaluation, is_map
from attractor_nb.storage.score_log import SCORES_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.maps.stored_map import MapRecord
    from attractor_nb.server.run_service import RunService
    from attractor_nb.views.rows_page import RowsPage

MOST_PAGES: Final = 8
LIVE_SECONDS: Final = 1.0
"""A page whose rows change is not read again sooner."""
LOOK_FACTOR: Final = 10
"""Seconds until a page whose rows change is read again, for each second that reading it takes."""
STILL_SECONDS: Final = 30.0
"""A page whose files are the same is read again then: a directory of a row may have been damaged."""


@dataclass(frozen=True, slots=True)
class MapPage:
    """A map with its page."""

    page: RowsPage
    record: MapRecord
    evaluation: Evaluation | None  #: None for a map whose rows are not scored.


@dataclass(frozen=True, slots=True)
class _Kept:
    page: MapPage
    files: tuple[tuple[int, int], ...]
    until: float


@dataclass(slots=True)
class MapPages:
    """The pages that were read last. Its methods block; any thread may call them."""

    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict[str, _Kept])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, service: RunService, map_id: str) -> MapPage:
        """The page of a map or an evaluation, with reasons as requests say them.

        Raises:
            RunNotFound: There is none of that id.
        """
        place = service.place(map_id)
        if not is_map(place):
            raise RunNotFound(f"{map_id} is not a map", hint=f"GET /pipelines/{map_id} shows a run")
        files, begun = _files(place), time.monotonic()
        with self._lock:
            kept = self._kept.get(map_id)
        if kept is not None and kept.files == files and begun < kept.until:
            return kept.page
        page = _read(map_id, place)
        took = time.monotonic() - begun
        fresh = STILL_SECONDS if page.record.view.is_ended else max(LIVE_SECONDS, LOOK_FACTOR * took)
        with self._lock:
            self._kept[map_id] = _Kept(page, files, begun + took + fresh)
            self._kept.move_to_end(map_id)
            while len(self._kept) > MOST_PAGES:
                self._kept.popitem(last=False)
        return page


def _files(place: Path) -> tuple[tuple[int, int], ...]:
    """The state of the files that change whenever a row of an inactive map does."""
    found: list[tuple[int, int]] = []
    for name in ("", MAP_NAME, SCORES_NAME, EVALUATION_NAME):
        try:
            facts = os.stat(place / name, follow_symlinks=False)  # noqa: PTH116 - of the directory, too
        except OSError:
            found.append((0, 0))
        else:
            found.append((facts.st_mtime_ns, facts.st_size))
    return tuple(found)


def _read(map_id: str, place: Path) -> MapPage:
    from attractor_nb.maps.map_page import map_page  # noqa: PLC0415 - see serving.py
    from attractor_nb.maps.stored_map import read_map_record, read_stored_map  # noqa: PLC0415 - as above

    stored = read_stored_map(place)
    record = read_map_record(place, stored)
    record.view.reason = reason_in_requests(record.view.reason)
    record = replace(record, rows=tuple(replace(row, reason=reason_in_requests(row.reason)) for row in record.rows))

    def key_of(row: Any) -> str:
        return row_id(map_id, row.directory) if row.directory else ""

    if not is_evaluation(place):
        return MapPage(map_page(record, key_of=key_of), record, None)
    from attractor_nb.evaluation.stored_evaluation import read_evaluation  # noqa: PLC0415 - see serving.py

    evaluation = read_evaluation(place, stored)
    page = evaluation.page(key_of=key_of)
    view = record.view
    if not view.is_ended or evaluation.map.unfinished:
        word = run_word("interrupted" if view.is_ended else view.status)
        status = f"{word}   {view.ended_count:,} of {view.row_count:,} runs"
        page = replace(page, line="\n".join(filter(None, (page.line, "   ".join(filter(None, (status, view.reason)))))))
    return MapPage(page, record, evaluation)
