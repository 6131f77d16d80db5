"""Fault 3: an operation of the disk fails, at every place of a run, once or from there on.

EIO, ENOSPC, EDQUOT, EACCES and EROFS, thrown by the storage seam: at writes half of the data is written before.
The caller must get a ``StorageError`` with the place and a way on, or not notice; no user may be shown a
traceback; the run is given up, so that others can take it; the log keeps all that was recorded; and when the
fault is gone a resume comes to the same context by the same path, nothing recorded executed again
(``workers/kill_judge.py``). A few real disks besides: a full one, a read-only one, one of another user.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.errors import StorageError
from tests.disks.faulty_disk import FOR_EVER

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours"),
    pytest.mark.timeout(1800),
]
OTHERS = (errno.EDQUOT, errno.EACCES, errno.EROFS)
NOBODY = 65534
SOURCE = """digraph Reports {
    start [shape=Mdiamond]
    first [prompt="Write"]
    second [prompt="Write more"]
    done [shape=Msquare]
    start -> first -> second -> done
}"""
PATH = ("start", "first", "second", "done")
LOOK = """
import os, sys
from attractor_nb import Run
Run.load(sys.argv[1])  # once as ourselves: what it imports may be closed to others
os.setuid(int(sys.argv[2]))
try:
    Run.load(sys.argv[1])
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
"""Loads a run as another user, and tells what that user is told."""


STEPS = {"stages": 1, "restart": 4, "branches": 19, "children": 61}
"""Of which operations of a graph a campaign looks at the first, the one so many behind it, and so on."""


def operations_of(worker, graph):
    verdict = worker.judge(graph, {})
    assert not verdict["violations"], verdict["violations"]
    return verdict["operations"][0]


def faults_at(number):
    """The faults of one operation: an error that passes; of some a full disk that stays full, or one of the others."""
    other = OTHERS[number % len(OTHERS)]
    yield {"fail_at": number, "error": errno.EIO, "lasts": 1}
    if number % 2:
        yield {"fail_at": number, "error": errno.ENOSPC, "lasts": FOR_EVER}
    if number % 4 == 0:
        yield {"fail_at": number, "error": other, "lasts": FOR_EVER if number % 8 else 1}


@pytest.mark.protects(
    "attractor_nb/engine/attempts.py",
    "return isinstance(error, StorageError) and any(",
    instead="return False and any(",
)
@pytest.mark.parametrize("graph", STEPS)
@pytest.mark.campaign
def test_every_operation_fails(kill_worker, campaign, figures, graph):
    """Protected by: a refusal of the run's own directory stops the run and never becomes a failed stage."""
    operations = operations_of(kill_worker, graph)
    is_first = graph == "stages"
    chosen = campaign.pick(range(1, len(operations) + 1, STEPS[graph]), sample=8 if is_first else 4)
    chosen += [number for number, (_, name) in enumerate(operations, 1) if name in {"stdout.txt", "owner.json"}][
        : 4 if is_first else 1
    ]
    cases, told, violations = 0, 0, []
    for number in sorted(set(chosen)):
        for fault in faults_at(number):
            verdict = kill_worker.judge(graph, {"disk": fault})
            cases += 1
            told += len(verdict["errors"])
            violations += [f"{fault} {operations[number - 1]}: {text}" for text in verdict["violations"]]
    assert not violations, "\n".join(violations[:20])
    assert told
    figures.record(
        3,
        f"operations of graph {graph!r} that fail with EIO, ENOSPC, EDQUOT, EACCES, EROFS",
        f"{cases} of {cases} cases at {len(set(chosen))} of {len(operations)} operations: {told} told as StorageError,"
        " the others made good; all resumed to the same context and path, nothing recorded run again",
    )


@pytest.mark.protects(
    "attractor_nb/storage/log/event_log.py", 'raise storage_error(error, "flush", self._path) from error'
)
@pytest.mark.kind("a failing disk")
def test_every_flush_of_the_log_fails(kill_worker, campaign, figures):
    """Protected by: a flush that failed is never believed; what it should have flushed is taken back.

    The stage then counts as not recorded, and runs again: one execution more, though no process was killed.
    Flushes are counted, not operations: a checkpoint that is written while a stage runs comes between them or not.
    """
    flush = ["sync_data", "events.jsonl"]
    flushes = range(1, operations_of(kill_worker, "stages").count(flush) + 1)
    violations, told, repeated = [], 0, 0
    chosen = campaign.pick(flushes, sample=4)
    for number in chosen:
        verdict = kill_worker.judge("stages", {"disk": {"fail_at": number, "counted": flush, "error": errno.EIO}})
        told += len(verdict["errors"])
        repeated += verdict["re_runs"]
        violations += [f"flush {number}: {text}" for text in verdict["violations"]]
    assert not violations, "\n".join(violations[:20])
    assert told == len(chosen)
    assert repeated <= told
    figures.record(
        3,
        "flushes of commits that fail",
        f"{told} of {len(chosen)} told and taken back, {repeated} stages executed again, all resumed to the same end",
    )


@pytest.fixture
def small_disk():
    """A real file system in memory of 1 MB, and how to change it.

    It is not below `tmp_path`: pytest could not remove the folder of a test that was killed before it unmounted this.
    """
    place = Path(tempfile.mkdtemp(prefix="attractor-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "attractor-test", str(place)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False) if os.geteuid() == 0 else None
    if ended is None or ended.returncode:
        pytest.skip(f"mounting is not permitted here: {ended.stderr.strip() if ended else 'not root'}")

    def remount(options):
        subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)

    yield place, remount
    subprocess.run(["umount", "-l", str(place)], check=True)
    place.rmdir()


def large_response(node, prompt, context):
    return f"{node.id}: " + "word " * 8_000


@pytest.mark.protects("attractor_nb/storage/files/disk.py", "errno.ENOSPC: ", instead="-1: ")
def test_a_disk_that_is_really_full(small_disk, figures):
    """Protected by: a full disk is told with what to do."""
    place, _ = small_disk
    (place / "other files").write_bytes(bytes(800_000))
    pipeline = Pipeline(SOURCE, backend=large_response)
    with pytest.raises(StorageError, match="no space left on device") as caught:
        pipeline.run(wait=True, logs_root=place / "run")
    assert "free some space" in caught.value.hint
    assert "resume" in caught.value.hint
    committed = Run.load(place / "run").result().completed_nodes
    assert committed == PATH[: len(committed)]
    (place / "other files").unlink()
    result = pipeline.resume(place / "run").result()
    assert (result.status, result.completed_nodes) == ("success", PATH)
    figures.record(
        3,
        "a real disk of 1 MB that runs full",
        f"StorageError after {len(committed)} stages, resumed to the end once freed",
    )


@pytest.mark.protects(
    "attractor_nb/storage/files/disk.py", "error.hint.replace(_RESUMABLE, anew)", instead="error.hint"
)
@pytest.mark.campaign
def test_a_disk_that_is_really_full_before_the_first_record(small_disk, figures):
    """Protected by: where nothing was recorded, no user is told to resume, and the place can be used anew."""
    place, _ = small_disk
    (place / "straight.dot").write_text("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    begun = 0
    for pages in range(6):
        for name in ("other files", "run"):
            subprocess.run(["rm", "-rf", str(place / name)], check=True)
        free = os.statvfs(place).f_bavail - pages
        (place / "other files").write_bytes(bytes(4096 * free))
        ended, resumed = (_at_the_command_line(place, *words) for words in (RUN, ("resume", "run", "-q")))
        (place / "other files").unlink()
        if "nothing of it was recorded" not in ended.stderr:
            assert "can then be resumed" in ended.stderr
            assert _at_the_command_line(place, "resume", "run", "-q").returncode == 0
            continue
        begun += 1
        assert "then start the run anew" in ended.stderr
        assert "can then be resumed" not in resumed.stderr
        assert "holds no run" in resumed.stderr or "start the pipeline anew" in resumed.stderr, resumed.stderr
        assert _at_the_command_line(place, *RUN).returncode == 0
    assert begun > 1
    figures.record(3, "a real disk that is full before the first record", f"{begun} places, started anew once freed")


RUN = ("run", "straight.dot", "-q", "--logs-root", "run")


def _at_the_command_line(place, *words):
    """The command as a process of its own."""
    command = [str(Path(sys.executable).with_name("attractor-nb")), *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.protects("attractor_nb/storage/files/disk.py", "errno.EROFS: ", instead="-1: ")
def test_a_disk_that_becomes_read_only(small_disk, figures):
    """Protected by: a read-only disk is told with what to do."""
    place, remount = small_disk
    pipeline = Pipeline(SOURCE)
    assert pipeline.run(wait=True, logs_root=place / "run", stop_after=2).status == "paused"
    remount("ro")
    try:
        assert Run.load(place / "run").status == "paused"
        with pytest.raises(StorageError, match="read-only file system") as caught:
            pipeline.resume(place / "run").result()
    finally:
        remount("rw")
    assert "make the file system writable" in caught.value.hint
    result = pipeline.resume(place / "run").result()
    assert (result.status, result.completed_nodes) == ("success", PATH)
    figures.record(
        3, "a real disk that is remounted read-only", "readable, resume refused as StorageError, resumed once writable"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user too")
@pytest.mark.protects(
    "attractor_nb/storage/stored_run.py",
    'raise storage_error(error, "read", logs_root) from error\n    return True',
    instead="return False\n    return True",
)
@pytest.mark.campaign
def test_a_run_directory_of_somebody_else(kill_worker, figures):
    """Protected by: a directory that may not be entered is not taken for one without a run."""
    with tempfile.TemporaryDirectory() as theirs:
        Path(theirs).chmod(0o755)  # who looks gets as far as the run directory itself
        place = Path(theirs, "run")
        Pipeline(SOURCE).run(logs_root=place, is_shown=False).result()
        looked = subprocess.run([sys.executable, "-P", "-c", LOOK, place, str(NOBODY)], capture_output=True, text=True)
    assert looked.stdout.startswith(f"StorageError: cannot read {place}: permission denied"), looked.stderr
    begun = kill_worker.judge("stages", {"user": NOBODY})
    assert not begun["violations"], begun["violations"]
    assert [error["type"] for error in begun["errors"]] == ["StorageError"]
    resumed = kill_worker.judge("stages", {"disk": {"kill_at": 120}}, {"user": NOBODY})
    assert not resumed["violations"], resumed["violations"]
    assert [error["type"] for error in resumed["errors"]] == ["StorageError"]
    figures.record(
        3,
        "a directory that belongs to another user",
        "run, resume and load refused as StorageError, resumed by its owner",
    )
