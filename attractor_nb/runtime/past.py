"""The whole past of a run, from all its directories, for inspecting its stages and explaining its path.

A run that a ``loop_restart`` took on has several directories; a rewind has set visits aside. Here each visit
is found with the events around it and the directory of its files, whichever it is.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from attractor_nb.decisions.history.journal import Journal, VisitRecord
from attractor_nb.decisions.history.route_explanation import (
    RouteReasons,
    all_route_reasons,
    route_reasons_of,
    views_at_commits,
)
from attractor_nb.decisions.planning.plan import Plan, compile_plan
from attractor_nb.decisions.run_state import RunState
from attractor_nb.errors import RunNotFound
from attractor_nb.model.events import Event, PipelineRestarted, PipelineResumed, PipelineRewound, StageEnd, StageStarted
from attractor_nb.runtime.execution import continuations, own_events
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    StoredValues,
    directory_before,
    restart_directory,
)
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.run_directory import VISITS_NAME
from attractor_nb.storage.stages.branch_directories import BranchNames, places_of
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attractor_nb.decisions.history.route_explanation import CommitView
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.execution import Execution


class RecordedVisit:
    """A visit, and where to look for what it was.

    Attributes:
        record: Its events.
        journal: The past in which it counts.
        place: The directory that it is in.
        is_set_aside: A rewind went behind it.
    """

    def __init__(
        self, record: VisitRecord, journal: Journal, place: RecordedDirectory, *, is_set_aside: bool = False
    ) -> None:
        self.record = record
        self.journal = journal
        self.place = place
        self.is_set_aside = is_set_aside


class RecordedDirectory:
    """One directory of a run.

    Attributes:
        root: The directory.
        stored: What it holds.
        events: All of its log; for a handle that a rewind passed over, those until the rewind.
        later: The record with which another handle continued after the end of this one, or None.
    """

    def __init__(self, stored: StoredRun, graph: Graph, stamp: tuple[int, ...]) -> None:
        """Take what was read; the stamp of its log is from before that (``stamp_of``)."""
        self.stored = stored
        self.root = stored.logs_root
        self.events: Sequence[Event] = self.stored.events
        self.later: PipelineResumed | PipelineRewound | None = None
        self._base = graph.mirrored()
        self._values = StoredValues(self.root)
        self._stamp = stamp

    @classmethod
    def read(cls, root: Path, graph: Graph) -> RecordedDirectory:
        """Read one."""
        stamp = stamp_of(root)
        return cls(read_run(root), graph, stamp)

    @cached_property
    def journal(self) -> Journal:
        """The events of its log that count."""
        return Journal(self.events, self._base)

    @property
    def is_current(self) -> bool:
        """True if its log has not grown since it was read."""
        return self._stamp == stamp_of(self.root)

    @property
    def before(self) -> Path | None:
        """The directory that a ``loop_restart`` came from."""
        return directory_before(self.stored)

    @property
    def after(self) -> Path | None:
        """The directory that a ``loop_restart`` led to."""
        restarts = (event for event in reversed(self.events) if isinstance(event, PipelineRestarted))
        root = next((event.logs_root for event in restarts), "")
        return restart_directory(self.stored, RunState("", restart_logs_root=root))

    @cached_property
    def visits(self) -> list[RecordedVisit]:
        """All visits, also those that a rewind has set aside, in the order in which they began."""
        found = [RecordedVisit(record, self.journal, self) for record in self.journal.visits]
        for position, event in enumerate(self.events):
            if isinstance(event, PipelineRewound):
                before = Journal(self.events[:position], self._base)
                found += [
                    RecordedVisit(record, before, self, is_set_aside=True)
                    for record in before.visits
                    if record.sequence > event.to_sequence
                ]
        return sorted(found, key=lambda visit: visit.record.sequence)

    @cached_property
    def _latest(self) -> dict[tuple[str, str], tuple[int, int]]:
        started = (event for event in self.stored.events if isinstance(event, StageStarted))
        return {(event.branch, event.name): (event.visit, event.attempt) for event in started}

    @cached_property
    def _branch_names(self) -> BranchNames:
        return BranchNames(places_of(self.stored.events))

    def files_of(self, record: VisitRecord, attempt: int) -> Path:
        """The directory of an attempt's files: the stage's own for its latest attempt, else one beneath."""
        if record.branch:
            directory = self.root.joinpath(*self._branch_names.names_of(record.branch, record.node_id))
        else:
            directory = self.stored.stage_directory(record.node_id)
        if self._latest.get((record.branch, record.node_id)) == (record.number, attempt):
            return directory
        return directory / VISITS_NAME / f"{record.number}.{attempt}"

    def resolve(self, value: Any) -> Any:
        """The value that a recorded reference means."""
        return self._values.whole(value)


class RunHistory:
    """The past of a run.

    Attributes:
        directories: Its directories, oldest first; nearly always one.
    """

    def __init__(self, run: Execution) -> None:
        """Read the logs."""
        self.directories = _read_all(run)
        self._graph = run.graph
        self._views: dict[Journal, dict[int, CommitView]] = {}

    @property
    def later(self) -> PipelineResumed | PipelineRewound | None:
        """The record with which another handle continued the run after the end of this one; None without one."""
        return next((one.later for one in self.directories if one.later is not None), None)

    @cached_property
    def plan(self) -> Plan:
        """The compiled plan of its graph, as the graph is now."""
        return compile_plan(self._graph)

    @cached_property
    def visits(self) -> list[RecordedVisit]:
        """All visits of all directories, in order."""
        return [visit for directory in self.directories for visit in directory.visits]

    def visits_of(self, node_id: str) -> list[RecordedVisit]:
        """The visits of a node, oldest first."""
        return self._visits_by_node.get(node_id, [])

    @cached_property
    def _visits_by_node(self) -> dict[str, list[RecordedVisit]]:
        found: dict[str, list[RecordedVisit]] = {}
        for visit in self.visits:
            found.setdefault(visit.record.node_id, []).append(visit)
        return found

    @cached_property
    def counted(self) -> list[Event]:
        """The events that count, of all directories."""
        return [event for directory in self.directories for event in directory.journal.counted]

    @cached_property
    def reasons_by_commit(self) -> dict[int, RouteReasons]:
        """The reasons for the route of each commit that counts, by ``id`` of the event."""
        return {id(commit): reasons for _, commit, reasons in self.explained()}

    def reasons_of(self, visit: RecordedVisit) -> RouteReasons | None:
        """The reasons for the route taken after a visit; None while it has not ended."""
        commit = visit.record.commit
        if commit is None:
            return None
        views = self._views.get(visit.journal)
        if views is None:
            views = self._views[visit.journal] = views_at_commits(self.plan, visit.journal)
        return route_reasons_of(self.plan, visit.journal, commit, views[commit.sequence], visit.place.resolve)

    def explained(self) -> Iterator[tuple[RecordedDirectory, StageEnd, RouteReasons]]:
        """Each commit that counts, with why the stage was left as it was."""
        for directory in self.directories:
            for commit, reasons in all_route_reasons(self.plan, directory.journal, directory.resolve):
                yield directory, commit, reasons


_KEPT: WeakKeyDictionary[Execution, RunHistory] = WeakKeyDictionary()
_LOADED: WeakKeyDictionary[Execution, RecordedDirectory] = WeakKeyDictionary()


def keep_loaded(run: Execution, directory: RecordedDirectory) -> None:
    """Keep what a run was loaded from: reading its history does not read the log again."""
    _LOADED[run] = directory


def read_history(run: Execution) -> RunHistory:
    """The past of a run as its logs have it now; read again only when they have grown."""
    if not has_event_log(run.logs_root):
        if run.logs_root.is_dir():
            raise RunNotFound(
                f"{run.logs_root} has no {EVENT_LOG_NAME}: another engine wrote it, or the log is gone",
                hint="its files can be read, its events cannot",
            )
        raise RunNotFound(
            f"nothing of run {run.id} is stored, so its history cannot be read",
            hint='run it with durability="fast" or "full"',
        )
    kept = _KEPT.get(run)
    if kept is None or not kept.directories[-1].is_current:
        kept = _KEPT[run] = RunHistory(run)
    return kept


def stamp_of(root: Path) -> tuple[int, ...]:
    """A stamp of a directory's log, which changes when the log grows."""
    try:
        facts = (root / EVENT_LOG_NAME).stat()
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _read_all(run: Execution) -> list[RecordedDirectory]:
    """The directories of a run, from its first to its last."""

    def read(root: Path) -> RecordedDirectory:
        found = RecordedDirectory.read(root, run.graph)
        found.later = next(iter(continuations(run, found.events)), None)
        found.events = own_events(run, found.events)
        return found

    loaded = _LOADED.get(run)
    found = [loaded if loaded and loaded.is_current else read(run.logs_root)]
    for _ in range(MAX_RESTART_HOPS):
        before = found[0].before
        if before is None:
            break
        found.insert(0, read(before))
    for _ in range(MAX_RESTART_HOPS):
        after = found[-1].after
        if after is None:
            break
        found.append(read(after))
    return found
