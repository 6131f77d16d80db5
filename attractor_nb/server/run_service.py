"""The runs of a root: those whose engine works here, and all that are on the disk.

The disk is the truth. What is kept in memory are the handles of runs that are under way in this process, and
a few that were read, for the next view.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.engine.time_limits import SystemClock, SystemRandomness
from attractor_nb.errors import AttractorError, RunError
from attractor_nb.model.states import ABANDONED, run_word
from attractor_nb.model.vocabulary.isolation import WORKSPACE
from attractor_nb.pipeline.run import Run
from attractor_nb.runtime.workspace.worktree import place_facts
from attractor_nb.server.replies import Problem, stopping
from attractor_nb.server.requests import Fork, Resumption, Submission
from attractor_nb.server.server_runs import StartedRuns, is_row, locked_elsewhere, run_place, way_to_resume
from attractor_nb.source import SourceText
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.run_directory import new_run_directory, run_directory_name
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import RunSummary, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.server.response_models import WaitingQuestion

POSTED: Final = "a posted source"
"""The origin of what comes by a request."""
WAITS: Final = "its server was lost; it is about to be resumed"
KEPT_RUNS: Final = 32
STOP_SECONDS: Final = 10.0
_HOW: Final[dict[str, Any]] = {"interviewer": "deferred", "is_shown": False}
"""Gates wait for an answer that comes by a request; no view shows the run in this process."""
_OF_ITS_OWN: Final[dict[str, Any]] = {"isolation": WORKSPACE}
"""Runs of requests work in their own workspace, never where the server was started (ruling 41)."""


class RunService:
    """Starts, finds and resumes runs. Its methods block; any thread may call them.

    Attributes:
        root: The runs base.
        started: The runs that servers of this root have started or resumed.
        words: What is said of a run that a lost server left, by its id.
        left_open: The questions that runs left open that no process works on here, by their ids. They hold for
            the line beside them: the same one is listed until a file of its run changes.
    """

    def __init__(self, root: Path, max_runs: int) -> None:
        self.root = root
        self.started = StartedRuns(root)
        self.words: dict[str, str] = {}
        self.left_open: dict[str, tuple[RunSummary, list[WaitingQuestion]]] = {}
        self._max_runs = max_runs
        self._lock = threading.Lock()
        self._listing = threading.Lock()
        self._live: dict[str, Run] = {}
        self._beginning = 0
        self._is_closing = False
        self._read: OrderedDict[str, tuple[tuple[int, ...], Run]] = OrderedDict()

    # -- finding --------------------------------------------------------------------------------------

    def live(self, run_id: str) -> Run | None:
        """The run, while its engine works in this process."""
        with self._lock:
            run = self._live.get(run_id)
            if run is not None and run.is_done:
                del self._live[run_id]
                return None
            return run

    def live_runs(self) -> dict[str, Run]:
        """All runs whose engine works in this process, oldest first."""
        with self._lock:
            self._live = {run_id: run for run_id, run in self._live.items() if not run.is_done}
            return dict(self._live)

    def run(self, run_id: str) -> Run:
        """A run: live, or as it is stored now."""
        if run := self.live(run_id):
            return run
        place = run_place(self.root, run_id)
        stamp = _stamp(place)
        with self._lock:
            kept = self._read.get(run_id)
            if kept is not None and kept[0] == stamp:
                self._read.move_to_end(run_id)
                return kept[1]
        run = Run.load(place)
        if run.is_done and run.logs_root == place.absolute():  # of a restart the stamp is another file's
            with self._lock:
                self._read[run_id] = stamp, run
                while len(self._read) > KEPT_RUNS:
                    self._read.popitem(last=False)
        return run

    def place(self, run_id: str) -> Path:
        """The directory of a run."""
        return run_place(self.root, run_id)

    def summary(self, run_id: str) -> RunSummary:
        """The line of a run."""
        place = self.place(run_id)
        found = summarize(place)
        if found is None:
            raise Problem(404, "no-such-pipeline", "There is no such pipeline", f"{run_id} contains no run")
        return self._spoken(found)

    def summaries(self) -> list[RunSummary]:
        """All runs and maps on the disk, newest first."""
        with self._listing:  # who asks meanwhile profits by what the first one read
            found = list_runs(self.root)
        return [self._spoken(entry) for entry in found] if self.words else found

    def _spoken(self, found: RunSummary) -> RunSummary:
        """The line of a run with what is said of it here, until it has ended."""
        words = self.words.get(found.logs_root.name)
        if not words or not (found.is_live or found.status == ABANDONED):
            return found
        return replace(found, note=", ".join(filter(None, (found.note, words))))

    # -- acting ---------------------------------------------------------------------------------------

    def submit(self, request: Submission, note: Callable[[str], None]) -> tuple[str, Run]:
        """Start a posted source; its id and handle.

        Args:
            request: The source, and how it shall run.
            note: Told the id before anything of the run is done.
        """
        pipeline = posted_pipeline(request.source, name=request.name)
        pipeline.refuse_errors()
        with self._room():
            place, _ = new_run_directory(self.root, clock=SystemClock(), randomness=SystemRandomness())
            try:
                note(place.name)
                with self.started.noted(place.name):
                    run: Run = pipeline.run(
                        wait=False,
                        logs_root=place,
                        params=request.params,
                        durability=request.durability,
                        session=place if request.session else False,
                        **request.given("backend", "trust"),
                        **_OF_ITS_OWN,
                        **_HOW,
                    )
            except BaseException:  # an interrupt, too: an empty folder would look like a run
                with contextlib.suppress(OSError):
                    place.rmdir()  # only as long as nothing of a run is in it
                raise
            return self._keep(place.name, run)

    def resume(self, run_id: str, request: Resumption) -> tuple[str, Run]:
        """Resume a run that is not under way."""
        self.place(run_id)  # refused if there is none
        if is_row(run_id):
            hint = f"resume the map: {way_to_resume(self.root, run_id)}"
            raise RunError(f"{run_id} is a row of a map, which is resumed as a whole", hint=hint)
        with self.started.held(run_id):
            words = self.words.pop(run_id, "")  # a person has decided in spite of any obstacle
            if words and (run := self.live(run_id)) and request == Resumption():
                return run_id, run  # it was resumed while the person asked for just that
            return self._go_on(run_id, request)

    def take_up(self, run_id: str, *, tries: int, last_id: str) -> None:
        """Resume a run that a lost server left; ``started.held`` is the caller's, the rest as ``resume``.

        Args:
            tries: How often that has been tried, with this time.
            last_id: Its last event.
        """
        self._go_on(run_id, Resumption(), tries=tries, last_id=last_id)

    def _go_on(self, run_id: str, request: Resumption, **tried: Any) -> tuple[str, Run]:
        self._refuse_live(run_id)
        place, summary = self.place(run_id), self.summary(run_id)
        if summary.is_live:
            raise locked_elsewhere(run_id, summary.owner)
        names = ("backend", "trust", "on_interrupted", "rewind_to", "visit", "context", "prompt")
        with self._room(), self.started.noted(run_id, **tried):
            run = Run.load(place).resume(
                on_graph_change=request.on_graph_change,
                session=place if (place / ".founder-mode").is_dir() else False,
                wait=False,
                **request.given(*names),
                **_own_place(place),
                **_HOW,
            )
            return self._keep(run_id, run)

    def fork(self, run_id: str, request: Fork, note: Callable[[str], None]) -> tuple[str, Run]:
        """Begin a run that goes another way from just before a visit; its id and handle.

        Args:
            run_id: Of the run that goes the one way.
            request: Where the other one begins.
            note: Told the id before anything of the fork is done.
        """
        parent = self.run(run_id)
        with self._room():
            given = request.given("backend", "trust", "context", "prompt")
            # A fork has its name when it is complete, so the name is free until then.
            name = run_directory_name(SystemClock().time(), SystemRandomness().new_id())
            note(name)
            with self.started.noted(name):
                given |= _own_place(parent.logs_root)
            run = parent.fork(request.node, request.visit, logs_root=self.root / name, wait=False, **given, **_HOW)
            return self._keep(name, run)

    def cancel(self, run_id: str) -> None:
        """Stop a run: the stage under way is cancelled, all that is committed stays."""
        run = self.live(run_id)
        if run is not None:
            run.cancel()
            return
        summary = self.summary(run_id)
        if summary.is_live:
            raise locked_elsewhere(run_id, summary.owner)
        raise RunError(f"pipeline {run_id} is {run_word(summary.status)}", hint="only an active run can be stopped")

    def close(self) -> None:
        """Stop all runs of this process, in order: each can be resumed."""
        with self._lock:
            self._is_closing = True
        runs = list(self.live_runs().values())
        for run in runs:
            run.cancel()
        give_up = time.monotonic() + STOP_SECONDS
        for run in runs:
            with contextlib.suppress(AttractorError, TimeoutError):
                run.result(max(0.0, give_up - time.monotonic()))

    # -- inside ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _room(self) -> Generator[None]:
        """Room for one more run, while it begins."""
        live = len(self.live_runs())
        with self._lock:
            if self._is_closing:
                raise stopping()
            if live + self._beginning >= self._max_runs:
                raise Problem(
                    429,
                    "too-many-runs",
                    "Too many runs are active",
                    f"{live} runs are active, and this server allows {self._max_runs}",
                    headers={"Retry-After": "10"},
                )
            self._beginning += 1
        try:
            yield
        finally:
            with self._lock:
                self._beginning -= 1

    def is_awaited(self, run_id: str) -> bool:
        """True if a run that a lost server left is about to be resumed."""
        return self.words.get(run_id) == WAITS

    def _refuse_live(self, run_id: str) -> None:
        if self.live(run_id) is not None:
            raise RunError(f"pipeline {run_id} is active", hint="wait for its end, or cancel it first")

    def _keep(self, run_id: str, run: Run) -> tuple[str, Run]:
        with self._lock:
            self._live[run_id] = run
            is_late = self._is_closing
        if is_late:  # it began while the others were being stopped
            run.cancel()
        return run_id, run


def posted_pipeline(source: str, **options: Any) -> Pipeline:
    """The pipeline of a posted source: its commands are not trusted."""
    # A third of what the server loads: it begins to listen first (``serving.py``).
    from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415

    return Pipeline(SourceText(source, POSTED), origin=POSTED, **options)


def _own_place(logs_root: Path) -> dict[str, Any]:
    """The place for a run that another process may have begun: its own, if it has one already."""
    return {} if place_facts(logs_root).get("isolation") else dict(_OF_ITS_OWN)


def _stamp(place: Path) -> tuple[int, ...]:
    try:
        facts = (place / EVENT_LOG_NAME).stat()
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
