"""The claims about a run that was killed, hit by faults and resumed, however often.

It looks from outside: at the marks that executions left beside the run directory, at the directory as any
reader sees it after each death, and at what the last caller was told. It knows no node of a graph: the
measure is an uninterrupted run of the same graph.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from attractor_nb.model.events import InterviewCompleted, StageEnd, StageStarted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.stored_run import has_event_log, read_run

STANDSTILLS = {"abandoned", "interrupted", "restarted", "completed", "failed"}
"""The statuses that a run whose process is gone may have in a list."""


@dataclass
class Sight:
    """A run as it lies on the disk between two lives: what the log and the marks say.

    Attributes:
        commits: Recorded ends of stages, in order: directory, branch, node, visit, status, way on.
        tried: Visits of which a failed attempt is recorded.
        in_flight: Visits that were begun and whose end is not known.
        answered: Visits of gates whose answer is recorded.
        marks: Executions, by visit.
        statuses: How a reader is shown the run, directory by directory.
    """

    commits: list = field(default_factory=list)
    tried: set = field(default_factory=set)
    in_flight: set = field(default_factory=set)
    answered: set = field(default_factory=set)
    marks: Counter = field(default_factory=Counter)
    statuses: list = field(default_factory=list)


class History:
    """All lives of one run."""

    def __init__(self, root, effects, at_once=1):
        """Begin it.

        Args:
            root: Its directory.
            effects: The file of the marks.
            at_once: How many stages can be in flight: as many may be cut off by one kill, and run again.
        """
        self._root = root
        self._effects = effects
        self._at_once = at_once
        self._commands = set()
        self.violations = []
        self.lives = []
        self.sights = []

    def note_life(self, fault, life):
        """Look at what a life left behind."""
        self.lives.append(life)
        if life["left_alive"]:
            self._blame(f"processes were left: {life['left_alive']}")
        if "Traceback" in life["said"] or "exception" in life["said"]:
            self._blame(f"somebody was shown: {life['said'][-2000:]}")
        if life.get("is_owned"):
            self._blame("the caller got an error and the run is still owned")
        if fault and not life["killed_by"] and "error" in life:
            self._check_error(fault, life["error"])
        if not fault and "error" in life:
            self._blame(f"the unharmed life failed: {life['error']}")
        sight = self._look()
        if "error" in life:
            self._note_taken_back(sight)
        self._check_sight(sight)
        self.sights.append(sight)

    def verdict(self, case, reference=None):
        """The verdict on the whole; without a reference it is one itself."""
        if reference is not None:
            self._check_end(case, reference)
        last, sight = self.lives[-1], self.sights[-1]
        interruptions = sum(1 for life in self.lives if _is_interrupted(life))
        counts = Counter(reference["marks"]) if reference else sight.marks
        told = {name: last.get(name) for name in ("status", "reason", "path", "outcomes", "visits", "context")}
        return {
            "violations": self.violations,
            "kills": sum(1 for life in self.lives if life["killed_by"]),
            "errors": [life["error"] for life in self.lives if "error" in life],
            "interruptions": interruptions,
            "re_runs": sum((sight.marks - counts).values()),
            "told": told,
            "commits": sight.commits,
            "marks": dict(sight.marks),
            "operations": [life.get("operations", []) for life in self.lives],
        }

    def _blame(self, what):
        self.violations.append(f"life {len(self.lives)}: {what}")

    def _check_error(self, fault, error):
        """The fault must be told as ours: a StorageError with its place and a way on."""
        if error["type"] != "StorageError":
            self._blame(f"{error['type']} was raised: {error['message']}")
            return
        if not error["path"] or not error["hint"]:
            self._blame(f"no path or no hint: {error}")
        if (wanted := fault.get("disk", {}).get("error")) and error["errno"] not in (wanted, None):
            self._blame(f"errno {error['errno']} was told, not {wanted}")

    # -- the disk ---------------------------------------------------------------------------------------

    def _look(self):
        sight = Sight()
        for directory in self._directories():
            try:
                stored = read_run(directory)
            except Exception as error:  # noqa: BLE001 - whatever a reader is told instead is a finding
                self._blame(f"{self._place(directory)} cannot be read: {type(error).__name__}: {error}")
                continue
            place = self._place(directory)
            if [event.sequence for event in stored.events] != list(range(1, len(stored.events) + 1)):
                self._blame(f"{place}: the log has gaps")
            if stored.is_owned:
                self._blame(f"{place} is still owned")
            sight.statuses.append(stored.status)
            _fold(sight, place, stored.events)
        sight.marks.update(self._marks())
        return sight

    def _note_taken_back(self, sight):
        """A flush that failed takes all back that was not flushed: also intents, but of commands.

        The intent of a stage that is run again in any case is written and not flushed of its own.
        """
        for last in self._marks()[-self._at_once :]:
            if last in sight.in_flight | set(recorded(sight)):
                continue
            if last in self._commands:
                self._blame(f"the intent of a command is gone: {last}")
            sight.in_flight.add(last)

    def _directories(self):
        """The run's directory, those of its restarts as far as they have begun, and those of its children."""
        restarts = sorted(path for path in self._root.glob("restart-?") if path.is_dir())
        children = sorted(path for path in self._root.glob("children/*/*") if path.is_dir())
        return [path for path in (self._root, *restarts, *children) if has_event_log(path)]

    def _place(self, directory):
        """The name of a directory, from the run's own one on."""
        return str(Path(directory).relative_to(self._root.parent))

    def _marks(self):
        """Executions by directory and by what is the same over re-runs: the key without its run's id."""
        lines = [json.loads(line) for line in self._effects.read_text("utf-8").splitlines()]
        for line in lines:
            line["where"] = self._place(line["where"])
        places, ids = {}, {}
        self._commands = {_mark_name(line) for line in lines if "command" in line}
        for line in lines:
            if places.setdefault(line["key"], line["where"]) != line["where"]:
                self._blame(f"the idempotency key {line['key']} stands for two stages")
            run = line["where"].partition("/restart-")[0]
            if ids.setdefault(run, run_id := line["key"].partition(":")[0]) != run_id:
                self._blame(f"a re-run in {run} has another run id in its idempotency key")
        return [_mark_name(line) for line in lines]

    def _check_sight(self, sight):
        if set(sight.statuses) - STANDSTILLS:
            self._blame(f"shown as {sight.statuses}")
        lost = set(sight.marks) - set(recorded(sight)) - sight.tried - sight.in_flight
        if lost:
            self._blame(f"executed and neither recorded nor in flight: {lost}")
        if not self.sights:
            return
        before = self.sights[-1]
        if repeated := [name for name in recorded(before) if sight.marks[name] > before.marks[name]]:
            self._blame(f"recorded and executed again: {repeated}")
        now = by_place(sight.commits)
        for place, commits in by_place(before.commits).items():
            if now.get(place, [])[: len(commits)] != commits:
                self._blame(f"what was recorded in {place} is gone or changed")
        if asked := [name for name in before.answered if sight.marks[name] > before.marks[name]]:
            self._blame(f"answered and asked again: {asked}")

    # -- the end ----------------------------------------------------------------------------------------

    def _check_end(self, case, reference):
        last, sight = self.lives[-1], self.sights[-1]
        is_same_expected = case.get("on_interrupted", "rerun") == "rerun" or not any(
            earlier.in_flight for earlier in self.sights[:-1]
        )
        if is_same_expected:
            for name, value in reference["told"].items():
                if last.get(name) != value:
                    self._blame(f"{name} is {_difference(last.get(name), value)}")
            wanted = by_branch(tuple(commit) for commit in reference["commits"])
            if by_branch(sight.commits) != wanted:
                self._blame(f"other commits: {sight.commits}")
        self._check_counts(case, reference)
        self._check_files()

    def _check_counts(self, case, reference):
        marks, counts = self.sights[-1].marks, Counter(reference["marks"])
        if case.get("on_interrupted") == "fail":
            self._check_nothing_again(counts)
            return
        more = marks - counts
        interruptions = sum(1 for life in self.lives[:-1] if _is_interrupted(life))
        if sum(more.values()) > interruptions * self._at_once:
            self._blame(f"{more} after {interruptions} interruptions")
        for name, times in more.items():
            if times > sum(1 for earlier in self.sights[:-1] if name in earlier.in_flight):
                self._blame(f"{name} ran {times} times more than it was cut off")

    def _check_nothing_again(self, counts):
        """Work that a kill cut off was not executed after it; and no visit more often than one of its stage ever is."""
        marks, most = self.sights[-1].marks, Counter()
        for name, times in counts.items():
            most[_stage_of(name)] = max(most[_stage_of(name)], times)
        if more := [name for name, times in marks.items() if times > max(1, most[_stage_of(name)])]:
            self._blame(f"executed more often than in any visit without a kill: {more}")
        for life, sight in zip(self.lives, self.sights, strict=True):
            if life["killed_by"] and (again := [name for name in sight.in_flight if marks[name] > sight.marks[name]]):
                self._blame(f"executed again although on_interrupted=fail: {again}")

    def _check_files(self):
        strays = [str(path) for path in self._root.rglob(f"{TEMPORARY_PREFIX}*")]
        if strays:
            self._blame(f"temporary files are left: {strays}")
        for directory in self._directories():
            stored = read_run(directory)
            ends = [event for event in stored.events if isinstance(event, StageEnd) and event.is_commit]
            answers = Counter(event.question_id for event in stored.events if isinstance(event, InterviewCompleted))
            place = self._place(directory)
            if stored.problems:
                self._blame(f"{place}: {stored.problems}")
            if stored.checkpoint is None or any(isinstance(event, StageEnd) for event in stored.tail):
                self._blame(f"{place}: the checkpoint is behind the log")
            elif stored.checkpoint["completed_nodes"] != [event.name for event in ends if not event.branch]:
                self._blame(f"{place}: the checkpoint says {stored.checkpoint['completed_nodes']}")
            if any(count > 1 for count in answers.values()):
                self._blame(f"{place}: answered more than once: {answers}")
            if stored.manifest["status"] not in {"completed", "failed", "restarted"}:
                self._blame(f"{place}: the manifest does not know the end")
            elif not stored.manifest["end_time"]:
                self._blame(f"{place}: the manifest does not know when it ended")


def recorded(sight):
    """The visits whose ends are recorded."""
    return [_visit(where, branch, node, visit) for where, branch, node, visit, *_ in sight.commits]


def by_place(commits):
    """Commits by directory, in their order."""
    found = {}
    for commit in commits:
        found.setdefault(commit[0], []).append(tuple(commit))
    return found


def by_branch(commits):
    """Commits by directory and branch: the order within each counts, that between branches is chance."""
    found = {}
    for commit in commits:
        found.setdefault(commit[:2], []).append(commit[2:])
    return found


def _fold(sight, where, events):
    """Add what a log says to a sight."""
    flights = {}
    for event in events:
        if isinstance(event, StageStarted):
            flights[event.branch] = _visit(where, event.branch, event.name, event.visit)
        elif isinstance(event, StageEnd):
            sight.tried.add(_visit(where, event.branch, event.name, event.visit))
            flights.pop(event.branch, None)
            if event.is_commit:
                status = str(event.outcome.status)
                sight.commits.append(
                    (where, event.branch, event.name, event.visit, status, event.next_node, event.route)
                )
        elif isinstance(event, InterviewCompleted) and event.branch in flights:
            sight.answered.add(flights[event.branch])
    sight.in_flight.update(flights.values())


def _is_interrupted(life):
    return bool(life["killed_by"]) or "error" in life


def _mark_name(line):
    """The visit that left a mark."""
    return _name(line["where"], line["key"].partition(":")[2])


def _visit(where, branch, node, visit):
    """A visit as the log has it, named as its key names it."""
    return _name(where, f"{branch}/{node}:{visit}" if branch else f"{node}:{visit}")


def _stage_of(name):
    """A visit's name without its number: the stage, whichever visit."""
    return name.rpartition(":")[0]


def _name(where, stage):
    """A visit: its directory, its branch and node, its number."""
    return f"{where}/{stage}"


def _difference(found, wanted):
    """Two values, or of two mappings what differs."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        names = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        pairs = {name: (str(found.get(name))[:80], str(wanted.get(name))[:80]) for name in names}
        return f"different (found, wanted): {pairs}"
    return f"{found!r}, not {wanted!r}"
