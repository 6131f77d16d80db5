"""Fault 13: node ids that file systems refuse or mix up, and what was planted in the run directory."""

import hashlib
import os
import stat

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.errors import AttractorError

IDS = [
    "artifacts", "ARTIFACTS", "visits", "CON", "con", "Con", "PRN", "aux", "NUL", "COM1", "LPT9", "plan", "Plan", "PLAN",
    "_", "__", "manifest", "checkpoint", "events", "owner", "restart", "status", "x" * 300, "X" * 300, "y" * 256, "z" * 101,
]  # fmt: skip
DEVICES = {"CON", "PRN", "AUX", "NUL", "COM1", "LPT9"}
OWN = {"artifacts", "visits"}
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=own] next [type=own] done [shape=Msquare]
    start -> work -> next -> done
}"""
NAMES = [
    "events.jsonl", "checkpoint.json", "checkpoint.previous.json", "manifest.json", "manifest.previous.json",
    "pipeline.dot", "owner.json", "owner.lock", "artifacts", "start", "work", "work/visits", "work/status.json",
    "work/prompt.md", "next", "next/status.json", "done",
]  # fmt: skip
KINDS = ["link to a file", "link to a directory", "dangling link", "pipe", "directory", "hard link", "device"]


def plant(path, kind, outside):
    """Put something in the place of a name; False where there is no way."""
    try:
        path.parent.mkdir(exist_ok=True)
        if path.is_symlink() or path.is_file() or stat.S_ISFIFO(path.lstat().st_mode if os.path.lexists(path) else 0):
            path.unlink()
        elif path.is_dir():
            path.rename(path.with_name(f"{path.name}-before"))
        if kind == "link to a file":
            path.symlink_to(outside / "file")
        elif kind == "link to a directory":
            path.symlink_to(outside / "directory")
        elif kind == "dangling link":
            path.symlink_to(outside / "nothing")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "directory":
            path.mkdir()
        elif kind == "hard link":
            os.link(outside / "file", path)
        else:
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except OSError:
        return False
    return True


def pictured(place):
    """All of a tree: names, kinds, modes, contents."""
    return {
        str(path.relative_to(place)): (
            path.lstat().st_mode,
            path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(place.rglob("*"))
    }


@pytest.fixture
def outside(tmp_path):
    place = tmp_path / "outside"
    (place / "directory").mkdir(parents=True)
    for name in ("file", "directory/status.json", "directory/prompt.md", "directory/events.jsonl"):
        (place / name).write_text("not yours")
    return place


def following(*_):
    return Outcome.success(context_updates={"big": "x" * 200_000})


def went(call):
    """The end of a run: its status, or the error that refused it. Anything else is the test's failure."""
    try:
        return call().status
    except AttractorError as error:
        return type(error).__name__


@pytest.mark.protects(
    "attractor_nb/storage/stages/stage_directories.py",
    "if folded in self._taken or not is_safe_name(node_id):",
    instead="if not is_safe_name(node_id):",
)
@pytest.mark.protects(
    "attractor_nb/storage/stages/stage_directories.py",
    "return _SAFE.fullmatch(node_id) is not None",
    instead="return bool(node_id)",
)
def test_each_id_has_a_directory_of_its_own_that_every_file_system_takes(tmp_path, figures):
    """Protected by: names that are reserved, too long, or differ from another in case alone are escaped."""
    statements = " ".join(f'{name} [type=own, label="../../{name}"]' for name in IDS)
    source = (
        f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {statements} start -> {' -> '.join(IDS)} -> done }}"
    )
    root = tmp_path / "run"
    handlers = {"own": lambda node, *_: Outcome.success(node.id)}
    result = Pipeline(source, handlers=handlers).run(wait=True, logs_root=root, durability="fast")
    assert result.status == "success"
    names = [path.name for path in root.iterdir() if path.is_dir() and path.name not in OWN]
    assert len({name.casefold() for name in names}) == len(names) == len(IDS) + 2
    assert all(len(name) <= 100 and name.partition(".")[0].upper() not in DEVICES for name in names)
    loaded = Run.load(root)
    read = [loaded.read_stage_file(name, "status.json") for name in IDS]
    assert all(f'"notes": "{name}"' in text for name, text in zip(IDS, read, strict=True))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    figures.record(13, "node ids hostile to file systems", f"{len(IDS)} of {len(IDS)}: a safe directory of their own")


@pytest.mark.protects(
    "attractor_nb/storage/files/disk.py", "_FLAGS = O_CLOEXEC | O_NOFOLLOW", instead="_FLAGS = O_CLOEXEC"
)
@pytest.mark.protects(
    "attractor_nb/storage/files/atomic.py",
    "_READ_FLAGS = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK",
    instead="_READ_FLAGS = os.O_RDONLY | O_NOFOLLOW",
)
@pytest.mark.kind("a hostile file name")
def test_nothing_that_is_planted_leads_outside(tmp_path, outside, campaign, figures):
    """Protected by: names are reached through open directories, without following links or waiting for pipes."""
    cases = [
        (name, kind, when) for name in NAMES for kind in KINDS for when in ("before", "during", "before the resume")
    ]
    chosen = campaign.pick(cases, sample=120)
    before, ends, planted = pictured(outside), {}, 0
    for number, (name, kind, when) in enumerate(chosen):
        root = tmp_path / "runs" / str(number)
        root.mkdir(parents=True)
        is_planted = []

        def put(name=name, kind=kind, root=root, is_planted=is_planted):
            is_planted.append(plant(root / name, kind, outside))

        def work(node, context, graph, logs_root, when=when, put=put):
            if when == "during" and node.id == "work":
                put()
            return following()

        if when == "before":
            put()
        pipeline = Pipeline(SOURCE, handlers={"own": work})
        if when == "before the resume":
            pipeline.run(wait=True, logs_root=root, stop_after=2, durability="fast")
            put()
            end = went(lambda pipeline=pipeline, root=root: pipeline.resume(root).result(60))
        else:
            end = went(lambda pipeline=pipeline, root=root: pipeline.run(logs_root=root, durability="fast").result(60))
        planted += is_planted == [True]
        ends[end] = ends.get(end, 0) + 1
        assert pictured(outside) == before, (name, kind, when)
    assert planted > len(chosen) * 0.8
    told = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    figures.record(
        13,
        "planted at the names of a run directory",
        f"{planted} planted, {len(chosen)} runs: nothing outside changed ({told})",
    )
