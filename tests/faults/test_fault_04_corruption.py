"""Fault 4: files of a run directory are damaged: bytes flipped, ends cut off, files gone or foreign.

One run is taken at three moments: as a process that was killed in a stage leaves it, as one that was killed
while a gate waited leaves it, and finished. Each file of each is damaged in every way, and read. What is read
must be the truth, an earlier moment of it where a file was cut, or an error in words; and it is resumed to the
end, once for each different thing that was read.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run, diagnose_run
from attractor_nb.errors import AttractorError, CheckpointCorrupt, StorageError
from attractor_nb.runtime.handles.recorded_state import StoredValues
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.sealed_file import seal, unseal
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock, ScriptedInterviewer, SeededRandomness

SOURCE = """
digraph Small {
    start   [shape=Mdiamond]
    collect [prompt="Collect"]
    plan    [prompt="Plan"]
    write   [prompt="Write"]
    gate    [shape=hexagon, label="Good?"]
    done    [shape=Msquare]
    start -> collect -> plan -> write -> gate
    gate -> done [label="[A] Yes"]
    gate -> plan [label="[R] No"]
}
"""
LARGE = "a line of what was collected\n" * 5_000
FLIPS = (0x01, 0x20, 0xFF)
MOMENTS = ("killed in a stage", "killed at a gate", "finished")
LOG = "events.jsonl"


class Author:
    """Answers, and keeps a copy of the run directory as it is in the middle of a stage."""

    def __init__(self, copy=None):
        self._copy = copy

    def run(self, node, prompt, context):
        from attractor_nb import Outcome, current_stage

        if node.id == "collect":
            return Outcome.success("collected", context_updates={"collected": LARGE, "ticket": "42"})
        if node.id == "write" and self._copy is not None:
            shutil.copytree(current_stage().logs_root, self._copy)
        return f"{node.id} done"


def resumed(directory):
    """The run taken to its end; its outcome as values that can be compared."""
    run = Run.load(directory)
    if run.status != "completed":
        run = Pipeline(SOURCE).resume(
            directory,
            backend=Author(),
            interviewer=ScriptedInterviewer({"gate": "A"}),
            durability="fast",
            clock=ManualClock(),
            randomness=SeededRandomness(2),
        )
    result = run.result(60)
    return result.status, result.completed_nodes, result.context.snapshot()


@dataclasses.dataclass
class Moment:
    """A run directory at one moment, and what is true of it."""

    name: str
    directory: Path
    end: tuple
    place: Path
    seen: dict = dataclasses.field(default_factory=dict)
    counts: Counter = dataclasses.field(default_factory=Counter)

    def __post_init__(self):
        self.truth = read_run(self.directory)
        self.status = Run.load(self.directory).status
        self.checkpoints = [None, *self._generations("checkpoint")]
        self.manifests = self._generations("manifest")
        self.work = self.place / "work"
        shutil.copytree(self.directory, self.work)

    def _generations(self, name):
        files = (self.directory / f"{name}.json", self.directory / f"{name}.previous.json")
        return [unseal(file.read_bytes()) for file in files if file.exists()]

    def problem_with(self, name, content, *, is_cut=False):
        """The faults when a file has that content, or is gone; empty if there are none."""
        path = self.work / name
        whole = (self.directory / name).read_bytes() if (self.directory / name).exists() else None
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        try:
            return self._problem(name, is_cut=is_cut)
        finally:
            path.unlink(missing_ok=True)
            if whole is not None:
                path.write_bytes(whole)

    def _problem(self, name, *, is_cut):
        self.counts["cases"] += 1
        try:
            stored = read_run(self.work)
        except CheckpointCorrupt as error:
            self.counts["refused in words"] += 1
            return _missing_words(error)
        except AttractorError as error:
            return f"{type(error).__name__}: {error}"
        if stored.events != self.truth.events[: len(stored.events)]:
            return "another history was read"
        if len(stored.events) < len(self.truth.events) and not is_cut:
            return f"{len(self.truth.events) - len(stored.events)} records were given up silently"
        if stored.checkpoint not in self.checkpoints:
            return "a checkpoint was read that never was"
        if not stored.problems and not is_cut and stored.manifest != self.truth.manifest:
            return "another manifest was read, and nothing was said"
        return self._resume_problem(stored)

    def _resume_problem(self, stored):
        """Resume, once for each different thing that can be read."""
        facts = (len(stored.events), stored.checkpoint, dict(stored.manifest), stored.cut_bytes > 0)
        mark = hashlib.blake2b(json.dumps(facts, sort_keys=True).encode()).digest()
        self.counts["read as it was" if len(stored.events) == len(self.truth.events) else "read as earlier"] += 1
        if mark in self.seen:
            return self.seen[mark]
        copy = self.place / "resumed"
        shutil.copytree(self.work, copy)
        try:
            if self.status == "completed" and len(stored.events) == len(self.truth.events):
                status = Run.load(copy).status
                if status != "completed":
                    self.seen[mark] = f"a finished run is shown as {status}"
                    return self.seen[mark]
            self.counts["resumes"] += 1
            end = resumed(copy)
            self.seen[mark] = "" if end == self.end else f"another end: {end[:2]}"
        except AttractorError as error:
            self.seen[mark] = f"the resume: {type(error).__name__}: {error}"
        finally:
            shutil.rmtree(copy)
        return self.seen[mark]


def _missing_words(error):
    """The facts that an error about a damaged log does not say."""
    text = str(error)
    if re.search(r"record in line \d+ \(byte \d+\)", text):
        return "" if "intact" in text and "doctor" in text else f"it does not say what is salvageable: {text}"
    is_placed = re.search(r"checkpoint|ends with record \d+, but manifest\.json knows", text)
    return "" if is_placed and "doctor" in text else f"it says no place: {text}"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The run at its three moments."""
    place = tmp_path_factory.mktemp("moments")

    class Gatekeeper(ScriptedInterviewer):
        async def ask(self, question):
            shutil.copytree(place / "run", place / MOMENTS[1])
            return await super().ask(question)

    result = Pipeline(SOURCE).run(
        wait=True,
        logs_root=place / "run",
        backend=Author(place / MOMENTS[0]),
        interviewer=Gatekeeper({"gate": "A"}),
        clock=ManualClock(),
        randomness=SeededRandomness(1),
        checkpoint_every_stage=True,
    )
    (place / "run").rename(place / MOMENTS[2])
    return place, (result.status, result.completed_nodes, result.context.snapshot())


@pytest.fixture(params=MOMENTS)
def moment(request, base, tmp_path):
    place, end = base
    return Moment(request.param, place / request.param, end, tmp_path)


def used(content):
    """The number of bytes of a log that are records, and not free space."""
    return len(content.rstrip(b"\0"))


def flips_of(content, campaign, *, sample):
    """Every byte with every pattern; of free space the beginning."""
    places = range(min(len(content), used(content) + 600))
    cases = [(place, flip) for place in places for flip in FLIPS]
    return campaign.pick(cases, sample=sample)


def flipped(content, place, flip):
    damaged = bytearray(content)
    damaged[place] ^= flip
    return bytes(damaged)


FILES = (LOG, "checkpoint.json", "checkpoint.previous.json", "manifest.json", "manifest.previous.json")
LINES = "attractor_nb/storage/log/event_lines.py"
SEALED = "attractor_nb/storage/sealed_file.py"
STORED = "attractor_nb/storage/stored_run.py"


def files_of(moment):
    return [name for name in FILES if (moment.directory / name).exists()]


@pytest.mark.timeout(1800)
@pytest.mark.protects(
    LINES,
    "            raise _damaged(path, sequence, offset + position, _problem_of(line), _form_of(events))\n",
    instead="            break\n",
)
@pytest.mark.protects(SEALED, "    if sha256(body).hexdigest().encode() != found[1]:", instead="    if False:")
def test_every_flipped_byte_is_noticed_or_harmless(moment, campaign, figures):
    """Protected by the checksums of the log's records and of the projections."""
    counts, problems = {}, []
    for name in files_of(moment):
        content = (moment.directory / name).read_bytes()
        cases = flips_of(content, campaign, sample=150)
        counts[name] = len(cases)
        problems += [
            f"{name}: byte {place} ^ {flip:#x}: {problem}"
            for place, flip in cases
            if (problem := moment.problem_with(name, flipped(content, place, flip)))
        ]
    assert problems[:5] == []
    figures.record(4, f"bytes flipped, {moment.name}", _figure(moment, counts), flips=counts)


@pytest.mark.timeout(1800)
@pytest.mark.protects(STORED, "    if sequence > scan.sequence:", instead="    if False:")
@pytest.mark.protects(SEALED, '        raise JsonProblem("has no checksum at its end")', instead="        return {}")
def test_every_length_cut_off_is_noticed_or_an_earlier_moment(moment, campaign, figures):
    """Protected by comparing the log's end with the newest checkpoint, and by the seal at a projection's end."""
    counts, problems = {}, []
    for name in files_of(moment):
        content = (moment.directory / name).read_bytes()
        cases = campaign.pick(range(min(len(content), used(content) + 2)), sample=100)
        counts[name] = len(cases)
        problems += [
            f"{name} cut to {length}: {problem}"
            for length in cases
            if (problem := moment.problem_with(name, content[:length], is_cut=name == LOG))
        ]
    assert problems[:5] == []
    figures.record(4, f"lengths cut off, {moment.name}", _figure(moment, counts), cuts=counts)


def _figure(moment, counts):
    words = ("refused in words", "read as it was", "read as earlier")
    parts = [f"{moment.counts[word]} {word}" for word in words if moment.counts[word]]
    total = moment.counts["cases"]
    assert total == sum(counts.values()) == sum(moment.counts[word] for word in words)
    return f"{total} of {total} right in {len(counts)} files: {', '.join(parts)}"


@pytest.mark.protects(LINES, " and not _is_flushed_behind(data, end + 1)", instead="")
@pytest.mark.protects(
    STORED,
    "(MANIFEST_NAME, manifest)):\n        _check_length",
    instead="(CHECKPOINT_NAME, None)):\n        _check_length",
)
def test_a_lost_sector_with_commits_behind_it_is_damage_not_an_unfinished_write(moment, figures):
    """No checkpoint is there to tell. Protected by looking whether what follows a hole shows that the hole was
    flushed once; and of a run that has ended, by the manifest, which knows how long the log was."""
    for path in moment.work.glob("checkpoint*.json"):
        path.unlink()
    content = (moment.directory / LOG).read_bytes()
    # Without the end while it is not recorded: what was flushed last has nothing behind it.
    count = -(-used(content) // 512) if moment.status == "completed" else used(content) // 512 - 2
    sectors = range(count)
    problems = []
    for sector in sectors:
        damaged = bytearray(content)
        damaged[sector * 512 : (sector + 1) * 512] = bytes(len(content[sector * 512 : (sector + 1) * 512]))
        if problem := moment.problem_with(LOG, bytes(damaged)):
            problems.append(f"sector {sector} of {len(sectors)}: {problem}")
    assert problems == []
    figures.record(4, f"sectors of the log zeroed, {moment.name}", f"{len(sectors)} of {len(sectors)} right")


@pytest.mark.protects(
    "attractor_nb/storage/stages/artifact_store.py", "if sha256(text).hexdigest() != artifact_id:", instead="if False:"
)
def test_a_damaged_artifact_is_never_taken_for_the_value(moment, campaign, figures):
    """Protected by the hash that is an artifact's name."""
    reference = next(value for value in moment.end[2].values() if isinstance(value, dict) and "artifact_id" in value)
    path = moment.work / "artifacts" / f"{reference['artifact_id']}.json"
    content = path.read_bytes()
    values = StoredValues(moment.work)
    assert values.resolve(reference) == LARGE
    flips = campaign.pick(range(len(content)), sample=60, seed=1)[:: 1 if not campaign.is_full else 29]
    cuts = campaign.pick(range(len(content)), sample=30, seed=2)[:: 1 if not campaign.is_full else 61]
    for damaged in [*(flipped(content, place, 0x01) for place in flips), *(content[:cut] for cut in cuts)]:
        path.write_bytes(damaged)
        with pytest.raises(CheckpointCorrupt, match="is not what the run stored"):
            values.resolve(reference)
    path.unlink()
    with pytest.raises(CheckpointCorrupt, match="gone"):
        values.resolve(reference)
    count = len(flips) + len(cuts) + 1
    figures.record(4, f"an artifact of {len(content):,} bytes, {moment.name}", f"{count} of {count} damages noticed")


@pytest.mark.protects(
    "attractor_nb/runtime/handles/run_result.py",
    "            self.outcomes[event.name] = event.outcome\n",
    instead="            pass\n",
)
def test_a_damaged_status_file_of_a_stage_changes_nothing(moment, campaign, figures):
    """Evidence for people. Protected by taking what a stage came to from the log."""
    path = moment.work / "collect" / "status.json"
    content = path.read_bytes()
    places = campaign.pick(range(len(content)), sample=4)[:40]
    for place in places:
        path.write_bytes(flipped(content, place, 0x20) if place % 2 else content[:place])
        copy = moment.place / "resumed"
        shutil.copytree(moment.work, copy)
        assert resumed(copy) == moment.end
        assert Run.load(copy)["collect"].outcome.notes == "collected"
        shutil.rmtree(copy)
    figures.record(
        4, f"status.json of a finished stage, {moment.name}", f"{len(places)} of {len(places)} resumes the same"
    )


@pytest.mark.protects(
    SEALED, "    for candidate in (name, previous_name(name)):", instead="    for candidate in (name,):"
)
def test_the_generation_before_is_used_and_said(moment):
    """Protected by reading the older generation when the newer is damaged."""
    assert moment.problem_with("checkpoint.json", b"{") == ""
    path = moment.work / "checkpoint.json"
    path.write_bytes(b"{")
    stored = read_run(moment.work)
    assert stored.checkpoint == moment.checkpoints[2]
    assert stored.problems == ("checkpoint.json has no checksum at its end",)


@pytest.mark.parametrize("gone", [("checkpoint",), ("manifest",), ("checkpoint", "manifest")], ids=" and ".join)
@pytest.mark.protects("attractor_nb/storage/manifest_file.py", "                    run_id=event.id,\n", instead="")
def test_the_log_alone_is_enough(moment, gone):
    """Protected by what the first record says of the run."""
    for name in gone:
        for path in (moment.work / f"{name}.json", moment.work / f"{name}.previous.json"):
            path.write_bytes(b"\0" * 100)
    stored = read_run(moment.work)
    assert stored.events == moment.truth.events
    assert stored.manifest["run_id"] == moment.truth.manifest["run_id"]
    assert resumed(moment.work) == moment.end


@pytest.mark.protects(STORED, "    if read_checkpoint(logs_root)[0] is not None:", instead="    if False:")
def test_a_log_that_is_gone_is_not_made_up_from_the_checkpoint(moment):
    """Protected by telling our own checkpoint from one of another engine, which comes without a log."""
    (moment.work / LOG).unlink()
    for read in (read_run, Run.load, resumed):
        with pytest.raises(CheckpointCorrupt, match=r"events\.jsonl is gone") as caught:
            read(moment.work)
        assert "doctor" in caught.value.hint
    assert not (moment.work.parent / ".attractor").exists()


@pytest.mark.parametrize("name", ["checkpoint", "manifest"])
@pytest.mark.protects(STORED, "    _check_run_ids(logs_root, checkpoint, manifest, scan)\n", instead="")
def test_a_file_of_another_run_is_refused(moment, name):
    """The other run has the same shape and the same length. Protected by comparing run ids."""
    path = moment.work / f"{name}.json"
    plain = unseal(path.read_bytes())
    plain["run_id"] = "another2"
    path.write_bytes(seal(plain))
    with pytest.raises(CheckpointCorrupt, match=f"{name}.json is of run another2"):
        read_run(moment.work)


@pytest.mark.parametrize("name", ["checkpoint", "manifest"])
@pytest.mark.protects(
    SEALED,
    '            problems.append(f"{candidate} {wrong_shape(error)}")\n',
    instead="            return None, []\n",
)
def test_a_file_of_a_newer_version_is_refused_and_said(moment, name):
    """Protected by checking a projection's shape, its version first of all, and naming what is wrong with it."""
    path = moment.work / f"{name}.json"
    path.write_bytes(seal(unseal(path.read_bytes()) | {"schema_version": 2}))
    stored = read_run(moment.work)
    assert any(f"{name}.json has a wrong shape: schema_version" in problem for problem in stored.problems)
    assert resumed(moment.work) == moment.end


def _gone(stage):
    shutil.rmtree(stage)


def _file(stage):
    shutil.rmtree(stage)
    stage.write_text("no directory")


def _link(stage):
    shutil.rmtree(stage)
    stage.symlink_to(stage.parent)


def _pipe(stage):
    shutil.rmtree(stage)
    os.mkfifo(stage)


def _inner_pipes(stage):
    for path in stage.iterdir():
        path.unlink()
    for name in ("prompt.md", "response.md", "status.json"):
        os.mkfifo(stage / name)


@pytest.mark.parametrize("damage", [_gone, _file, _link, _pipe, _inner_pipes], ids=lambda damage: damage.__name__[1:])
@pytest.mark.protects(
    "attractor_nb/storage/files/atomic.py", "        if not stat.S_ISREG(facts.st_mode):", instead="        if False:"
)
def test_the_directory_of_a_finished_stage_is_not_needed_to_go_on(moment, damage):
    """Protected by reading plain files only, so that nothing is waited for."""
    damage(moment.work / "collect")
    run = Run.load(moment.work)
    assert run.outcomes["collect"].notes == "collected"
    if damage is _inner_pipes:
        with pytest.raises(StorageError, match="not a plain file"):
            run.read_stage_file("collect", "response.md")
    assert resumed(moment.work) == moment.end


@pytest.mark.protects(
    "attractor_nb/storage/directory_survey.py", "    if checkpointed > log.records:", instead="    if False:"
)
def test_what_is_saved_of_a_damaged_log_goes_on_to_the_same_end(moment, figures):
    """Each record is damaged in its turn, and then the whole log is gone. Protected by taking the checkpoint
    where it is newer than the records that are whole: without it a log that is gone leaves nothing."""
    content = (moment.directory / LOG).read_bytes()
    ends = [place for place, byte in enumerate(content) if byte == ord("\n")]
    begins = [0, *(end + 1 for end in ends[:-1])]
    cases = [flipped(content, begin + 1, 0x01) for begin in begins]
    for number, damaged in enumerate([*cases, None]):
        path = moment.work / LOG
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        found = diagnose_run(moment.work)
        assert (found.verdict, found.is_resumable) == ("damaged", False)
        saved = found.salvage(moment.place / f"saved-{number}")
        assert resumed(saved) == moment.end, number
        shutil.rmtree(saved)
        path.write_bytes(content)
    count = len(cases) + 1
    figures.record(
        4,
        f"records damaged, and the log gone, {moment.name}",
        f"{count} of {count} saved by doctor, and went on to the same end",
    )


@pytest.mark.parametrize("moment", [MOMENTS[2]], indirect=True)
@pytest.mark.protects(
    "attractor_nb/storage/manifest_file.py", "            return so(DAMAGED)", instead="            pass"
)
@pytest.mark.protects(
    "attractor_nb/storage/directory_survey.py", "MANIFEST_NAME: manifest})", instead="MANIFEST_NAME: None})"
)
@pytest.mark.protects("attractor_nb/storage/directory_survey.py", ", known_records(survey.manifest))", instead=", 0)")
def test_a_finished_run_that_lost_its_end_is_damaged_for_all_who_look(moment, figures):
    """The log is cut after each record, and no checkpoint is left. Protected by what the manifest knows of the
    log's length: else a run that has ended would run recorded stages again."""
    for path in moment.work.glob("checkpoint*.json"):
        path.unlink()
    lines = (moment.directory / LOG).read_bytes().rstrip(b"\0").splitlines(keepends=True)
    known = moment.truth.manifest["log_sequence"]
    assert known == len(lines)
    for count in range(1, known):
        (moment.work / LOG).write_bytes(b"".join(lines[:count]))
        found = diagnose_run(moment.work)
        assert (found.status, found.verdict, found.is_resumable) == ("damaged", "damaged", False)
        assert found.plan.lost == f"records {count + 1} to {known} of the log, and whatever followed"
        assert {run.logs_root.name: run.status for run in list_runs(moment.place)}["work"] == "damaged"
        for read in (read_run, Run.load, resumed):
            with pytest.raises(CheckpointCorrupt, match=f"manifest.json knows {known}") as caught:
                read(moment.work)
            assert "doctor" in caught.value.hint
    figures.record(
        4, "ends of the log of a finished run cut off, without a checkpoint", f"{known - 1} of {known - 1} refused"
    )
