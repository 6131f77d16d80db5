"""Fault 2: the power goes at any moment, and what was not flushed is there, lost, torn or out of order.

Real runs are recorded at the storage seam (``testing/recorded_disk.py``). Of each record every prefix is
taken, and of each prefix images of a disk that ``testing/power_loss.py`` says are possible. Each image is
written to a disk of its own, read, and resumed to the end.
"""

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus, current_stage
from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.model.events import StageStarted
from attractor_nb.storage.log.event_log import EventLog
from attractor_nb.storage.sealed_file import SealedFile
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import FakeProcesses, FakeResult, ManualClock, ScriptedInterviewer, SeededRandomness
from tests.disks.power_loss import PowerLoss, write_image
from tests.disks.recorded_disk import Noted, RecordedDisk

RELEASE = """
digraph Release {
    graph [goal="Ship it", max_goal_gate_redirects=3]
    start   [shape=Mdiamond]
    plan    [prompt="Plan: $goal"]
    fetch   [shape=parallelogram, tool_command="printf fetched"]
    write   [prompt="Write", max_retries=5]
    collect [prompt="Collect"]
    build   [prompt="Build"]
    check   [prompt="Check"]
    kind    [shape=diamond]
    review  [shape=hexagon, label="Ship?"]
    prove   [prompt="Prove", goal_gate=true, retry_target="polish"]
    polish  [prompt="Polish"]
    done    [shape=Msquare]
    start -> plan -> fetch -> write -> collect -> build -> check
    check -> build  [label="again"]
    check -> kind   [label="fine"]
    kind  -> review [condition="outcome=success"]
    kind  -> done   [condition="outcome=fail"]
    review -> polish [label="[A] Approve"]
    review -> plan   [label="[R] Reject"]
    polish -> prove -> done
}
"""
RESTARTING = """
digraph Restarting {
    graph [goal="Twice"]
    start [shape=Mdiamond]
    plan  [prompt="Plan"]
    fetch [shape=parallelogram, tool_command="printf fetched"]
    write [prompt="Write", max_retries=5]
    ready [shape=hexagon, label="Ready?"]
    check [prompt="Check"]
    done  [shape=Msquare]
    start -> plan -> fetch -> write -> ready
    ready -> check [label="[A] Yes"]
    ready -> plan  [label="[R] No"]
    check -> plan  [label="anew", loop_restart=true]
    check -> done  [label="fine"]
}
"""
NESTING = """
digraph Nesting {
    graph [goal="Together"]
    start [shape=Mdiamond]
    plan  [prompt="Plan"]
    sub   [type=pipeline, pipeline.name=worker, pipeline.inputs="ticket=context.ticket",
        pipeline.outputs="made=context.last_response"]
    build [prompt="Build"]
    done  [shape=Msquare]
    start -> plan -> sub -> build -> done
}
"""
PIPELINES = {
    "worker": """
digraph Worker {
    graph [goal="Help"]
    start [shape=Mdiamond]
    fetch [shape=parallelogram, tool_command="printf fetched"]
    write [prompt="Write", max_retries=5]
    ready [shape=hexagon, label="Ready?"]
    prove [prompt="Prove"]
    done  [shape=Msquare]
    start -> fetch -> write -> ready
    ready -> prove [label="[A] Yes"]
    ready -> fetch [label="[R] No"]
    prove -> done
}
"""
}
ENOUGH_PROBLEMS = 5
PARAMS = {"ticket": "42"}
LARGE = "a line of what was collected\n" * 5_000


class Author:
    """Answers by what is recorded alone, so that a resumed run hears what the first one heard."""

    def __init__(self):
        self.calls = []

    def run(self, node, prompt, context):
        stage = current_stage()
        visit = stage.visit
        self.calls.append((part_of(stage.logs_root), node.id, visit))
        if node.id == "write" and context.get("internal.retry_count.write") is None:
            return Outcome.retry("not yet")
        if node.id == "collect":
            return Outcome.success("collected", context_updates={"collected": LARGE, "lines": 5_000})
        if node.id == "check":
            again = "anew" if "restart" not in stage.logs_root.name else "fine"
            label = ("again" if visit < 3 else "fine") if "build" in context.get_string("known") else again
            return Outcome(StageStatus.SUCCESS, preferred_label=label)
        if node.id == "plan":
            return Outcome.success("planned", context_updates={"for": context.get_string("ticket")})
        if node.id == "build":
            return Outcome.success("built", context_updates={"known": "build", "built": visit})
        if node.id == "prove" and visit < 2 and not part_of(stage.logs_root):
            return Outcome.fail("not proven")
        return f"{node.id} {visit}"


ANSWERS = {"review": ["A"], "ready": ["A"], "sub/ready": ["A"]}


def part_of(directory):
    """The place of a restart's or a child's directory; empty for the run's own, which differs from disk to disk."""
    return directory.as_posix().partition("/runs/")[2].partition("/")[2]


def told(result):
    """The context that a run came to, but for the id of a child that may have begun anew."""
    return {key: value for key, value in result.context.snapshot().items() if key != "sub.run_id"}


class Recording:
    """A run whose every operation is known, and everything that was promised on the way.

    Attributes:
        disk: The record.
        promised: What was promised before the first operation.
        path, context: Where the run went and what it came to, uninterrupted.
        events: The log of each run directory, by its path below the root.
        written: Every generation of each projection that was written, by path.
    """

    def __init__(self, source, root, monkeypatch, *, durability="full", resume=None, **options):
        root.mkdir(exist_ok=True)
        self.pipeline = Pipeline(source, pipelines=PIPELINES)
        self.root = root
        self.disk = RecordedDisk(root)
        self.written = {}
        self.promised = {
            ("event", str(log.parent.relative_to(root))): len(read_run(log.parent).events)
            for log in root.rglob("events.jsonl")
        }
        with monkeypatch.context() as patch:
            self._listen(patch)
            given = {
                "disk": self.disk,
                "durability": durability,
                "backend": Author(),
                "interviewer": ScriptedInterviewer(ANSWERS),
                "clock": ManualClock(),
                "randomness": SeededRandomness(1),
                **options,
            }
            if resume is None:
                run = self.pipeline.run(runs_dir=root / "runs", params=PARAMS, **given)
            else:
                run = self.pipeline.resume(resume, on_interrupted="rerun", **given)
            self.result = run.result(60)
        assert self.result.status == "success", self.result.reason
        self.first = next(iter(sorted((root / "runs").glob("[!.]*")))).relative_to(root)
        self.path = self.result.completed_nodes
        self.context = told(self.result)
        logs = sorted(path.parent for path in root.rglob("events.jsonl"))
        self.events = {str(path.relative_to(root)): read_run(path).events for path in logs}
        shutil.rmtree(root)  # what a resume finds must be in the image

    def _listen(self, patch):
        disk, root, written = self.disk, self.root, self.written
        append, write = EventLog.append, SealedFile.write

        def appended(log, event, *, is_synced):
            append(log, event, is_synced=is_synced)
            if is_promised(event):
                disk.note(("event", str(log._path.parent.relative_to(root)), event.sequence))

        def projected(file, plain):
            place = f"{file._root.path.relative_to(root)}/{file._name}"
            written.setdefault(place, []).append(json.loads(json.dumps(plain)))
            number = len(written[place])
            size = write(file, plain)
            disk.note(("projection", place, number))
            return size

        patch.setattr(EventLog, "append", appended)
        patch.setattr(SealedFile, "write", projected)


def is_promised(event):
    """True if an event whose append returned must survive: all but notes and the intents of what may run twice."""
    if isinstance(event, StageStarted):
        return event.name == "fetch"
    return event.type not in NOT_FLUSHED


NOT_FLUSHED = {"StageRetrying", "RunWarning", "GoalGateUnsatisfied", "InterviewInformed", "ChildStarted", "ChildEnded"}
"""Of a child its own directory says what its parent's log does not any more."""


class Inspector:
    """Reads and resumes images of one recording, and says what is wrong with them."""

    def __init__(self, recording, place):
        self.recording = recording
        self.place = place
        self.pipeline = recording.pipeline
        self.counts = Counter()

    def examine(self, wanted):
        """Look at so many distinct images; the problems, in words."""
        problems, seen = [], set()
        for place, image, promised in images_of(self.recording, wanted=wanted):
            seen.add(fingerprint(image))
            if problem := self.problem_of(image, promised):
                problems.append(f"after operation {place}: {problem}")
                if len(problems) == ENOUGH_PROBLEMS:
                    break
        self.counts["images"] = len(seen)
        return problems

    def figure(self):
        """The observations, in words."""
        kept = self.counts["resumed"] + self.counts["no run yet"]
        return (
            f"{self.counts['images']} distinct images of {len(self.recording.disk.operations)} operations, "
            f"{kept} of {self.counts['cases']} cases right: {self.counts['resumed']} came to the same end, "
            f"{self.counts['no run yet']} had not begun"
        )

    def problem_of(self, image, promised):
        """The faults of an image; empty if it has none."""
        root = Path(tempfile.mkdtemp(dir=self.place))
        try:
            write_image(image, root)
            return self._problem(root, promised)
        finally:
            shutil.rmtree(root)

    def _problem(self, root, promised):
        self.counts["cases"] += 1
        events = {place: number for (kind, place), number in promised.items() if kind == "event"}
        for place, number in events.items():
            if not (root / place).is_dir():
                return f"{place} is lost, and {number} of its events were promised"
        for place in sorted(self.recording.events):
            if (root / place).is_dir() and (found := self._check_files(root, place, promised)):
                return found
        return self._check_resume(root, events)

    def _check_files(self, root, place, promised):
        """True if the read records are the written ones, and no fewer than promised."""
        truth = self.recording.events[place]
        least = promised.get(("event", place), 0)
        try:
            stored = read_run(root / place)
        except RunNotFound:
            return "" if not least else f"{place}: no run, and {least} of its events were promised"
        except AttractorError as error:
            return f"{place}: {type(error).__name__}: {error}"
        if stored.events != truth[: len(stored.events)]:
            return f"{place}: the log is not one that ever was"
        if len(stored.events) < least:
            return f"{place}: {len(stored.events)} events of the {least} that were promised"
        for name, found in (("checkpoint.json", stored.checkpoint), ("manifest.json", stored.manifest)):
            written = self.recording.written.get(f"{place}/{name}", [])
            oldest = promised.get(("projection", f"{place}/{name}"), 0)
            if oldest and (found is None or found not in written[oldest - 1 :]):
                return f"{place}: {name} is older than the one that was promised"
        return ""

    def _check_resume(self, root, events):
        first = root / self.recording.first
        author = Author()
        done = {
            (part_of(place), event.name, event.visit)
            for place in (root / place for place in self.recording.events)
            if (place / "events.jsonl").exists()
            for event in read_run(place).events
            if getattr(event, "is_commit", False)
        }
        try:
            result = self._resumed(first, author)
        except RunNotFound as error:
            self.counts["no run yet"] += 1
            return "" if not events else f"RunNotFound, and events were promised: {error}"
        except AttractorError as error:
            return f"the resume: {type(error).__name__}: {error}"
        if again := done.intersection(author.calls):
            return f"committed stages ran again: {sorted(again)}"
        if result.completed_nodes != self.recording.path:
            return f"another way: {result.completed_nodes}"
        if told(result) != self.recording.context:
            want, got = self.recording.context, told(result)
            keys = [key for key in {**want, **got} if want.get(key, ...) != got.get(key, ...)]
            return f"another context: {[(key, str(want.get(key))[:60], str(got.get(key))[:60]) for key in keys]}"
        self.counts["resumed"] += 1
        return ""

    def _resumed(self, first, author):
        if Run.load(first).status == "completed":
            return Run.load(first).result()
        run = self.pipeline.resume(
            first,
            durability="fast",
            backend=author,
            interviewer=ScriptedInterviewer(ANSWERS),
            clock=ManualClock(),
            randomness=SeededRandomness(2),
            processes=FakeProcesses([FakeResult(stdout="fetched")]),
            on_interrupted="rerun",
        )
        return run.result(60)


def fingerprint(image):
    """Of what a resume reads: images that differ only in the evidence of stages count once."""
    digest = hashlib.blake2b()
    for path, content in sorted(image.items()):
        name = path.rpartition("/")[2]
        if content is None or (name.endswith(("json", "jsonl", "dot")) and name != "status.json"):
            digest.update(f"{path}\0{'/' if content is None and 'artifacts' in path else ''}".encode())
            digest.update(content or b"")
    return digest.digest()


def images_of(recording, *, wanted, seed=0):
    """Distinct images, spread over all prefixes, each with what was promised by then.

    The same image comes again where more was promised meanwhile: it may be right before and wrong after.
    """
    prefixes = len(recording.disk.operations)
    seen, tried = set(), set()
    for turn in range(1, 13):  # later turns go deeper where the first ones found too few
        loss, promised = PowerLoss(recording.disk), dict(recording.promised)
        while True:
            found = 0
            for image in loss.images(turn * max(8, 3 * wanted // prefixes), seed + turn):
                mark = fingerprint(image)
                case = (mark, tuple(promised.items()))
                if case in tried or found > turn * wanted / prefixes:
                    continue
                found += 1
                tried.add(case)
                seen.add(mark)
                yield loss.place, image, dict(promised)
            if len(seen) >= wanted and turn > 1:
                return
            if not loss.advance():
                break
            done = recording.disk.operations[loss.place - 1]
            if isinstance(done, Noted):
                kind, place, number = done.subject
                promised[kind, place] = number


@pytest.fixture
def memory_disk():
    """A directory on a disk in memory, where there is one."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="attractor-power-", dir=base) as place:
        yield Path(place)


@pytest.fixture
def record(memory_disk, monkeypatch):
    """Record a run, or a resume, on a disk of its own."""

    def make(source, **options):
        return Recording(source, memory_disk / "recorded", monkeypatch, **options)

    return make


LOG, ATOMIC = "attractor_nb/storage/log/event_log.py", "attractor_nb/storage/files/atomic.py"
RENAMED = "        replace_file(disk, parent, name, data, is_synced=is_synced, keep_as=keep_as)\n"


@pytest.mark.timeout(3600)
@pytest.mark.protects(LOG, "            self._disk.sync_data(self._descriptor)\n", instead="            pass\n")
@pytest.mark.protects(ATOMIC, RENAMED + "        if is_synced:\n            disk.sync(parent)\n", instead=RENAMED)
@pytest.mark.protects(ATOMIC, "            if is_synced:\n                disk.sync(descriptor)\n", instead="")
@pytest.mark.protects(
    "attractor_nb/storage/run_directory.py",
    "            _sync_directory(disk, path.parent)\n",
    instead="            pass\n",
)
@pytest.mark.protects(
    "attractor_nb/storage/log/event_lines.py",
    "if _is_lost_write(data, position, end, offset) and",
    instead="if False and",
)
@pytest.mark.protects("attractor_nb/runtime/stored_state.py", "        _check_begun(stored)\n", instead="")
@pytest.mark.campaign
def test_a_power_loss_at_any_moment_of_a_run_loses_nothing_that_was_promised(record, memory_disk, campaign, figures):
    """Protected by the flush of each commit, the flushes before and after each rename, that of the run
    directory's own name, by reading a record that is lost by sectors as lost, and by not resuming a run whose
    first record is lost."""
    inspector = Inspector(record(RELEASE, checkpoint_every_stage=True), memory_disk)
    assert inspector.examine(campaign.count(sample=25, full=6500)) == []
    figures.record(2, "a run of 18 stages", inspector.figure(), images=inspector.counts["images"])


@pytest.mark.timeout(3600)
@pytest.mark.protects(ATOMIC, RENAMED + "        if is_synced:\n            disk.sync(parent)\n", instead=RENAMED)
@pytest.mark.campaign
def test_a_power_loss_around_a_restart_directory_loses_nothing_that_was_promised(
    record, memory_disk, campaign, figures
):
    """Protected by the flushes that make the names of what is in the new directory durable before the record
    in the old one that sends the run there."""
    inspector = Inspector(record(RESTARTING), memory_disk)
    assert inspector.examine(campaign.count(sample=25, full=2500)) == []
    figures.record(
        2, "a run that a loop_restart takes to another directory", inspector.figure(), images=inspector.counts["images"]
    )


@pytest.mark.timeout(3600)
@pytest.mark.protects(
    "attractor_nb/runtime/child_runs.py",
    "        except RunNotFound:  # it was cut off before its first record\n",
    instead="        except FileExistsError:\n",
)
@pytest.mark.campaign
def test_a_power_loss_around_a_child_run_loses_nothing_that_was_promised(record, memory_disk, campaign, figures):
    """Protected by: a child whose first record is lost begins anew in its directory."""
    inspector = Inspector(record(NESTING), memory_disk)
    assert inspector.examine(campaign.count(sample=25, full=500)) == []
    figures.record(2, "a run with a child run", inspector.figure(), images=inspector.counts["images"])


@pytest.mark.timeout(3600)
@pytest.mark.protects(LOG, "            self._disk.sync_data(self._descriptor)\n", instead="            pass\n")
@pytest.mark.protects(
    "attractor_nb/engine/runner.py",
    "attempts.announce(effect.event, is_synced=True)",
    instead="attempts.announce(effect.event)",
)
@pytest.mark.campaign
def test_a_power_loss_during_a_resume_loses_nothing_that_was_promised(record, memory_disk, campaign, figures):
    """The run was cut off in mid-way, and the power goes again while it goes on. Protected by the flush of each
    commit, and by asking for it."""
    first = record(RELEASE)
    told = [place for place, subject in first.disk.notes() if subject[0] == "event"]
    cut = told[len(told) // 2]
    loss = PowerLoss(first.disk)
    while loss.place <= cut:
        loss.advance()
    again = memory_disk / "again"
    again.mkdir()
    write_image(next(loss.images(1, 0)), again)
    second = Recording(RELEASE, again, pytest.MonkeyPatch(), resume=again / first.first)
    assert (second.path, second.context) == (first.path, first.context)
    inspector = Inspector(second, memory_disk)
    assert inspector.examine(campaign.count(sample=25, full=1500)) == []
    figures.record(2, "the resume of a run that was cut off", inspector.figure(), images=inspector.counts["images"])


@pytest.mark.protects(
    LOG, "            if self._disk.write(self._descriptor, line) != len(line):", instead="            if not line:"
)
@pytest.mark.kind("a power loss")
def test_a_fast_run_survives_a_kill_but_not_a_power_loss(record, memory_disk, figures):
    """The test of the test: without flushes the same images do lose promised records, and it is seen. A killed
    process loses nothing, because each record is handed to the system before it counts."""
    recording = record(RELEASE, durability="fast")
    inspector = Inspector(recording, memory_disk)
    loss, promised, lost, cases = PowerLoss(recording.disk), {}, 0, 0
    while loss.advance():
        done = recording.disk.operations[loss.place - 1]
        if isinstance(done, Noted):
            kind, place, number = done.subject
            promised[kind, place] = number
            if kind == "projection":
                continue
            killed, unpowered = loss.images(2, 0)
            assert inspector.problem_of(killed, promised) == ""
            lost += inspector.problem_of(unpowered, promised) != ""
            cases += 1
    assert lost == cases
    figures.record(
        2,
        "durability=fast, which promises a killed process alone",
        f"{cases} of {cases} kills lose nothing; {lost} of {cases} power losses do, and are seen to",
    )
