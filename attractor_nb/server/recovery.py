"""Automatic resume of the runs that a lost server of the same root was working on (docs/server.md, "The end").

A server that starts takes up the abandoned runs that servers of its root had begun, a few at a time and each
as if a user had asked for it: the same lock, the same question of trust, the same bound on runs under way.
A run that was resumed several times without a result may be what ends the server, and is left.
"""

from __future__ import annotations

import threading
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import AttractorError, RunLocked, RunNotFound
from attractor_nb.logs import own_logger
from attractor_nb.model.branch import enclosing, parts_of
from attractor_nb.model.events import (
    DebuggerStopped,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineResumed,
    StageEnd,
    StageStarted,
)
from attractor_nb.model.states import ABANDONED
from attractor_nb.server.event_channel import EventReader, Recorded
from attractor_nb.server.replies import Problem
from attractor_nb.server.run_service import WAITS, RunService
from attractor_nb.storage.log.lock import read_owner

if TYPE_CHECKING:
    from collections.abc import Sequence


LOGGER = own_logger(__name__)
AT_A_TIME: Final = 2
"""Number of runs that are resumed at the same time: requests need the processor, too."""
MAX_TRIES: Final = 3
"""Most resumes of a run without progress."""
ROOM_SECONDS: Final = 1.0
"""Interval at which a full server checks whether a run has ended."""
_PASSING: Final = frozenset({"too-many-runs", "stopping"})
"""Problems of this server now, which say nothing of the run: a server that ends leaves it to the next one."""


class Recovery:
    """The runs that a server resumes after a restart, those with the fewest failed tries first."""

    def __init__(self, service: RunService) -> None:
        self._service = service
        self._queue: deque[str] = deque()
        self._is_ending = threading.Event()

    def start(self) -> None:
        """Find what there is to decide about, and decide in threads; waits for nothing."""
        ids = self._service.started.ids()
        for run_id in ids:
            self._service.words[run_id] = WAITS
        if ids:
            threading.Thread(target=self._begin, args=[ids], name="attractor-recovery", daemon=True).start()

    def stop(self) -> None:
        """Take up nothing more."""
        self._is_ending.set()

    def _begin(self, ids: Sequence[str]) -> None:
        # Those that may have ended the last server come last: the others are then under way already.
        self._queue.extend(sorted(ids, key=self._tries))
        for number in range(1, AT_A_TIME):
            name = f"attractor-recovery-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        self._work()

    def _work(self) -> None:
        while self._queue and not self._is_ending.is_set():
            try:
                run_id = self._queue.popleft()
            except IndexError:  # the other thread was faster
                return
            try:
                while not self._is_decided(run_id):
                    if self._is_ending.wait(ROOM_SECONDS):
                        return
            except Exception:  # one run that cannot continue keeps no other from it
                LOGGER.exception("pipeline %s is not resumed automatically", run_id)
                self._service.words.pop(run_id, None)

    def _tries(self, run_id: str) -> int:
        try:
            found = self._service.started.read(run_id)
        except AttractorError:
            return 0
        return found.tries if found else 0

    def _is_decided(self, run_id: str) -> bool:
        """Take a run up again, or let it be; False when there is no room for it now."""
        words = ""
        try:
            with self._service.started.held(run_id):
                words = self._decide(run_id)
        except RunLocked:
            pass  # its owner shows it
        except (Problem, AttractorError) as refused:
            if isinstance(refused, Problem) and refused.kind in _PASSING:
                return False
            message = refused.detail if isinstance(refused, Problem) else refused.message
            words = f"not resumed automatically: {message}"
        if words:
            self._service.words[run_id] = words
            LOGGER.warning("pipeline %s: %s", run_id, words)
        elif self._service.is_awaited(run_id):  # a person was faster, or it is not ours
            self._service.words.pop(run_id, None)
        return True

    def _decide(self, run_id: str) -> str:
        """Decide about a run: the words about it, or empty."""
        service = self._service
        started = service.started.read(run_id)
        try:
            summary = service.summary(run_id)
        except (RunNotFound, Problem):
            service.started.forget(run_id)
            return ""
        if service.live(run_id) is not None or summary.is_live:
            return ""
        owner = read_owner(summary.logs_root)
        is_ours = started is not None and (owner.get("pid"), owner.get("host")) in started.owners
        if started is None or summary.status != ABANDONED or not is_ours:
            service.started.forget(run_id)
            return ""
        recorded = EventReader(summary.logs_root).read()
        if why := _why_not(recorded):
            return f"not resumed automatically: {why}"
        tries = 0 if has_made_progress(recorded, started.last_id) else started.tries
        if tries >= MAX_TRIES:
            return f"not resumed automatically: {MAX_TRIES} times the server was lost without a result"
        service.take_up(run_id, tries=tries + 1, last_id=recorded[-1].id)
        return f"resumed automatically; the previous server was last seen at {_moment(recorded[-1].event.time)}"


def has_made_progress(recorded: Sequence[Recorded], last_id: str) -> bool:
    """True if a run had results behind an event, or only waits there: nothing but gates was under way.

    Args:
        recorded: All events of the run.
        last_id: The event; with an empty one, or one that is not there, all count.
    """
    begin = next((index for index, one in enumerate(recorded, 1) if one.id == last_id), 0)
    behind = [one.event for one in recorded[begin:]]
    if any(isinstance(event, StageEnd | InterviewCompleted | InterviewTimeout) for event in behind):
        return True
    asked = {(event.branch, event.stage) for event in behind if isinstance(event, InterviewStarted)}
    return bool(asked) and _working(recorded) <= asked


def _working(recorded: Sequence[Recorded]) -> set[tuple[str, str]]:
    """The stages that were under way at the end, by branch and name, without fan-outs around others."""
    found: set[tuple[str, str]] = set()
    for _, event in recorded:
        if isinstance(event, StageStarted):
            found.add((event.branch, event.name))
        elif isinstance(event, StageEnd):
            found.discard((event.branch, event.name))
    around = {(enclosing(branch), parts_of(branch)[-2]) for branch, _ in found if branch}
    return found - around


def _why_not(recorded: Sequence[Recorded]) -> str:
    """The reason a person must decide about a run, or empty."""
    if not recorded:
        return "its log has no events"
    for _, event in reversed(recorded):
        if isinstance(event, DebuggerStopped):
            return f"it is stopped at a breakpoint ({event.node}), and waits for a person"
        if isinstance(event, PipelineResumed):
            break
    return ""


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
