"""Fault 1: the process is killed at any durable operation of a run, and again while it resumes.

Each case is a run of its own in a process of its own, killed by SIGKILL; a fresh process resumes it. What must
be true after each death and in the end is in ``workers/kill_judge.py``: the same context, path, outcomes and
visits as without the kill; nothing recorded executed again; at most what was under way repeated per kill, one
execution, or of branches side by side one each; an answer that was recorded not asked for again; no process and no temporary file left; the log without
gaps and readable at every point; checkpoint and manifest as the log says. Nothing but times, durations, the
run's id and the numbers of attempts may differ.

Two killers: the storage seam itself (``FaultyDisk``), and a library in C, preloaded, which counts what goes to
the run directory through the C library, whoever asks for it.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours"),
    pytest.mark.timeout(1800),
]
GRAPHS = ("stages", "restart", "branches")
WITH_CHILDREN = (*GRAPHS, "children")
"""Another one with child runs: of its operations, thrice as many and mostly the same, every twelfth is looked at."""
STAGES_AT_LEAST = 12
LIFE_AT_LEAST = 40
"""Operations that a resume near the end still has."""


class Tally:
    """Verdicts of many cases as one figure."""

    def __init__(self):
        self.cases = self.kills = self.resumes = self.re_runs = self.missed = 0
        self.violations = []

    def add(self, what, verdict):
        self.cases += 1
        self.missed += not verdict["kills"]
        self.kills += verdict["kills"]
        self.resumes += len(verdict["operations"]) - 1
        self.re_runs += verdict["re_runs"]
        self.violations += [f"{what}: {violation}" for violation in verdict["violations"]]

    def check(self):
        assert not self.violations, "\n".join(self.violations[:20])
        # On a busy machine the counted run writes more late checkpoints, which makes it longer than the next ones.
        assert self.missed <= max(1, self.cases // 10), f"{self.missed} runs of {self.cases} ended before their kill"

    def __str__(self):
        return (
            f"{self.cases} of {self.cases} cases right after {self.kills} kills and {self.resumes} resumes; no"
            f" recorded stage run again; {self.re_runs} executions repeated, never more than were in flight"
        )


def counted(worker, graph):
    """The operations of an uninterrupted run."""
    verdict = worker.judge(graph, {})
    assert not verdict["violations"], verdict["violations"]
    assert verdict["told"]["status"] == "success"
    assert len(verdict["commits"]) >= (STAGES_AT_LEAST if graph == "stages" else STAGES_AT_LEAST - 1)
    return verdict["operations"][0]


FOLLOWING = {
    "stages": {"approve": "verify", "flaky": "polish", "build": "flaky"},
    "restart": {"approve": "judge", "build": "approve"},
    "branches": {"fan": "best"},
    "children": {"sub": "boss"},
}
"""Of each graph the stages whose operations are all looked at, and the stage after each."""


def stage_of(operations, graph, node):
    """Numbers of the operations from the first visit of a stage to the stage after it."""
    begin = operations.index(["make_directory", node])
    end = operations.index(["make_directory", FOLLOWING[graph][node]], begin)
    return range(begin, end + 2)


@pytest.mark.protects(
    "attractor_nb/engine/gates.py",
    "if recorded := self._recorded.pop(question.id, None):",
    instead="if recorded := None:",
)
@pytest.mark.protects("attractor_nb/decisions/traversal.py", "context=changes,", instead="context={},")
@pytest.mark.protects("attractor_nb/processes/descendants.py", "read -r group\n        read -r word", instead="exit")
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(graph, marks=pytest.mark.kind("a kill") if graph == "branches" else pytest.mark.campaign)
        for graph in WITH_CHILDREN
    ],
)
def test_killed_at_every_operation_of_the_storage_seam(kill_worker, campaign, figures, graph):
    """Protected by: a recorded answer is taken in place of a question; what a failed attempt changed in the
    context is logged with it; a watchdog ends a dead run's tool.
    """
    operations = counted(kill_worker, graph)
    numbers = range(1, len(operations) + 1, 12 if graph == "children" else 1)
    chosen = campaign.pick(numbers, sample=5)
    steps = {
        "approve": slice(None, None, 2),
        "flaky": slice(None, None, 3),
        "build": slice(4, None, 4),
        "sub": slice(None, None, 40),
    }
    for node in FOLLOWING[graph]:
        chosen += stage_of(operations, graph, node)[steps.get(node, slice(None, None, 12))]
    tally = Tally()
    for number in sorted(set(chosen)):
        name, target = operations[number - 1]
        for is_halfway in (False, True) if name.startswith("write") else (False,):
            fault = {"disk": {"kill_at": number, "is_halfway": is_halfway}}
            verdict = kill_worker.judge(graph, fault)
            tally.add(f"{name} {target} ({number}, halfway: {is_halfway})", verdict)
    tally.check()
    subject = f"killed before and half-way through operations of the storage seam, graph {graph!r}"
    figures.record(1, subject, f"{len(operations)} operations; {tally}")


@pytest.mark.protects(
    "attractor_nb/runtime/child_runs.py",
    "            return self._begin(charge, place)",
    instead="            return self._begin(charge, next_place(home, charge.scope.visit, len(there)))",
)
@pytest.mark.protects(
    "attractor_nb/runtime/child_runs.py", "complete_end(charge.pipeline, place, charge.options, self._parent.seams)"
)
@pytest.mark.protects("attractor_nb/storage/child_directories.py", "sweep(disk, place.descriptor)")
@pytest.mark.campaign
def test_killed_around_the_beginning_and_the_end_of_a_child(kill_worker, campaign, figures):
    """Protected by: a child that never began begins in the directory that it has; of one that has ended the
    manifest says so; what was half written beside the source of a child is removed.
    """
    operations = counted(kill_worker, "children")
    begins = operations.index(["make_directory", "sub"])
    begun = operations.index(["make_directory", "start"], begins)
    ends = operations.index(["make_directory", "done"], begun)
    ended = operations.index(["make_directory", "boss"], ends)
    sources = [number for number, entry in enumerate(operations) if entry == ["rename", "pipeline.dot"]]
    step = campaign.count(sample=6, full=2)
    tally = Tally()
    for number in (*sources[:3], *range(begins, begun, step), *range(ends, ended, step)):
        verdict = kill_worker.judge("children", {"disk": {"kill_at": number + 1}})
        tally.add(f"{operations[number]} ({number + 1})", verdict)
    tally.check()
    figures.record(1, "killed around the beginning and the end of a child run", str(tally))


@pytest.mark.protects("attractor_nb/decisions/run_state.py", "self.numbers = dict(carried.visits)")
def test_each_stage_has_a_key_of_its_own_in_a_restart_too(kill_worker):
    """Protected by: a restart goes on with the numbers of the visits before it."""
    assert not kill_worker.judge("restart", {})["violations"]


SEEN_AS = {
    "write": "write",
    "write_at": "pwrite64",
    "sync": "fsync",
    "sync_data": "fdatasync",
    "truncate": "ftruncate64",
    "create": "openat64",
    "open_update": "openat64",
    "make_directory": "mkdirat mkdir",
    "rename": "renameat",
    "link": "linkat link",
    "remove": "unlinkat unlink",
    "set_mode": "",
}
"""Calls of the C library for an operation of the seam; changing a mode is no operation there."""


def traced(worker, graph, tmp_path):
    """The calls of an uninterrupted run that the library saw, and the operations that the seam counted in it."""
    trace = tmp_path / "trace"
    library = {"at": 0, "when": "after", "trace": str(trace)}
    verdict = worker.judge(graph, {"library": library})
    assert not verdict["violations"], verdict["violations"]
    lines = [line.split(" ", 1) for line in trace.read_text().splitlines()]
    return lines, verdict["operations"][0]


def not_of_the_seam(seen, counted_operations):
    """The calls that the library saw and the seam did not count."""
    named = iter([entry for entry in counted_operations if SEEN_AS[entry[0]] and entry[1]])
    left = []
    operation, name = next(named, (None, ""))
    for call, path in seen:
        if operation and call in SEEN_AS[operation].split() and f"run{path}".endswith(Path(name).name):
            operation, name = next(named, (None, ""))
        else:
            left.append((call, path))
    assert operation is None, f"the library never saw {operation} {name}"
    for operation, name in counted_operations:
        if operation == "sync" and not name and ("fsync", "") in left:
            left.remove(("fsync", ""))  # of a parent directory, which the seam knows by its number alone
    return left


@pytest.mark.protects(
    "attractor_nb/storage/files/atomic.py",
    "descriptor = disk.create(temporary, parent)",
    instead="descriptor = Disk().create(temporary, parent)",
)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.campaign
def test_nothing_is_written_beside_the_storage_seam(preloaded_worker, tmp_path, figures, graph):
    """Protected by: the durable writer makes its files through the disk that it was given.

    The lock file is the lock's own affair; before it opens it, it makes sure of its directory, which is there.
    """
    seen, operations = traced(preloaded_worker, graph, tmp_path)
    strays = not_of_the_seam(seen, operations)
    others = [(call, path) for call, path in strays if call != "mkdir" and not path.endswith("/owner.lock")]
    assert not others
    figures.record(
        1,
        f"what a preloaded library sees of graph {graph!r} and the storage seam does not",
        f"{len(seen)} operations seen: all of the seam but {len(strays)}, which are the lock's own",
    )


@pytest.mark.protects("attractor_nb/storage/files/atomic.py", "disk.remove(second, parent)")
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.campaign
def test_killed_after_every_operation_that_the_c_library_sees(preloaded_worker, campaign, figures, tmp_path, graph):
    """Protected by: a temporary name of a file that has its final name already is removed, not renamed.

    The other killer kills before each operation; this one after each, and half-way through the first write.
    """
    seen, _ = traced(preloaded_worker, graph, tmp_path)
    kept = [number for number, (_, path) in enumerate(seen, 1) if path.endswith(".previous.json")]
    tally = Tally()
    numbers = range(1, len(seen) + 1, 1 if graph == "stages" else 3)
    for number in sorted({*campaign.pick(numbers, sample=5), *kept[:2]}):
        verdict = preloaded_worker.judge(graph, {"library": {"at": number, "when": "after"}})
        tally.add(f"{seen[number - 1]} ({number})", verdict)
    tally.check()
    figures.record(
        1,
        f"killed after operations that a preloaded library counts, graph {graph!r}",
        f"{len(seen)} operations; {tally}",
    )


@pytest.mark.protects("attractor_nb/storage/log/event_log.py", "os.lseek(self._descriptor, scan.offset, os.SEEK_SET)")
@pytest.mark.campaign
def test_killed_in_a_process_that_was_started_for_it(preloaded_worker, campaign, figures, tmp_path):
    """Protected by: a log is written on behind its last whole record.

    No fork here: each life is a Python that was started for it, counted from its first instruction.
    """
    seen, _ = traced(preloaded_worker, "stages", tmp_path)
    writes = [
        number for number, (call, path) in enumerate(seen, 1) if call == "write" and path.endswith("events.jsonl")
    ]
    tally = Tally()
    chosen = campaign.pick(range(1, len(seen) + 1, 20), sample=2)
    for number in sorted({*chosen, *writes[8:10]}):
        when = "halfway" if number in writes else "before"
        verdict = preloaded_worker.judge("stages", {"library": {"at": number, "when": when}}, is_whole=True)
        tally.add(f"{seen[number - 1]} ({number}, {when})", verdict)
    tally.check()
    figures.record(1, "killed in whole processes of their own", str(tally))


@pytest.mark.protects("attractor_nb/runtime/handles/recorded_state.py", "context.restore(values, tuple(logs))")
@pytest.mark.parametrize("graph", WITH_CHILDREN)
@pytest.mark.campaign
def test_killed_again_while_it_resumes_and_once_more(kill_worker, campaign, figures, graph):
    """Protected by: what the log says after the checkpoint is in the context again."""
    operations = counted(kill_worker, graph)
    step = 80 if graph == "children" else 4
    kept = [number for number, (_, name) in enumerate(operations, 1) if name.endswith(".previous.json")]
    rng = random.Random(3)
    tally = Tally()
    firsts = campaign.pick(range(1, len(operations) + 1, step), sample=5)
    for first in sorted({*firsts, kept[1] + 1}):
        second, third = rng.randint(1, LIFE_AT_LEAST), rng.randint(1, LIFE_AT_LEAST)
        faults = [{"disk": {"kill_at": number}} for number in (first, second, third)]
        verdict = kill_worker.judge(graph, *faults)
        tally.add(f"killed at {first}, {second}, {third}", verdict)
    tally.check()
    figures.record(1, f"killed, killed again in the resume, and in the resume of that, graph {graph!r}", str(tally))


@pytest.mark.protects(
    "attractor_nb/decisions/ambiguity.py", "return Outcome.fail(LOST_REASON, is_terminal=True)", instead='return ""'
)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.campaign
def test_a_stage_that_was_cut_off_is_never_repeated_under_fail(kill_worker, campaign, figures, graph):
    """Protected by: a cut-off attempt is recorded as failed in place of being run again.

    Who resumes with ``on_interrupted="fail"`` gets at most one execution of each stage, at the price of a run
    that may fail; where nothing was cut off, the end is the usual one.
    """
    operations = counted(kill_worker, graph)
    tally = Tally()
    in_tool = stage_of(operations, graph, "fan" if graph == "branches" else "build")[4:-4:3]
    in_tool = in_tool[::6] if graph == "branches" else in_tool
    for number in sorted({*campaign.pick(range(1, len(operations) + 1, 6), sample=5), *in_tool}):
        verdict = kill_worker.judge(graph, {"disk": {"kill_at": number}}, on_interrupted="fail")
        tally.add(f"{operations[number - 1]} ({number})", verdict)
    tally.check()
    figures.record(
        1,
        f"resumed with on_interrupted=fail, graph {graph!r}",
        f"{tally.kills} of {tally.kills} kills: no visit executed twice",
    )
