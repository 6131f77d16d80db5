"""The index beside the runs: cheap, never the truth, and no harm whatever it contains."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from hashlib import sha256

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from attractor_nb.model.outcome import Usage
from attractor_nb.storage import run_index, run_listing
from attractor_nb.storage.run_index import INDEX_NAME, SUMMARY_NAMES, forget_lists, list_runs, read_index
from attractor_nb.storage.run_listing import RunSummary, change_tags, remove_run
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.sealed_file import seal, unseal
from attractor_nb.testing import ManualClock

ENDED = {"status": "completed", "end_time": "2026-01-01T00:00:00Z", "duration": 2.5, "stages": 4}


@pytest.fixture(autouse=True)
def _index_of_any_size(monkeypatch):
    """Every change is worth a file, and a file settles at once: a test changes sizes, not times alone."""
    monkeypatch.setattr(run_index, "MIN_CHANGES", 1)
    monkeypatch.setattr(run_index, "SETTLED_NS", -(10**12))
    forget_lists()
    yield
    forget_lists()


@pytest.fixture
def base(create, tmp_path):
    """A runs base with five runs that have ended."""
    for number in range(5):
        store = create(f"runs/r{number}", run_id=f"r{number}")
        store.save_manifest({**ENDED, "usage": Usage(10, 5, 0.25, 1).to_plain()})
        store.close()
    return tmp_path / "runs"


@pytest.fixture
def made(monkeypatch):
    """The names of the directories whose lines are made anew."""
    names = []
    make = run_listing.summarize_with_dependencies

    def noted(path):
        names.append(path.name)
        return make(path)

    monkeypatch.setattr(run_index, "summarize_with_dependencies", noted)
    return names


def without_index(base):
    """The same list, made of nothing but the runs."""
    lines = [
        line
        for path in base.iterdir()
        if path.is_dir() and not path.is_symlink() and (line := run_listing.summarize(path))
    ]
    return sorted(lines, key=lambda line: line.logs_root.name)


def by_name(lines):
    return sorted(lines, key=lambda line: line.logs_root.name)


def rewrite(path, **facts):
    """Change a manifest in place, as an editor may: the directory is not told."""
    plain = unseal((path / "manifest.json").read_bytes())
    with (path / "manifest.json").open("r+b") as file:
        file.write(seal({**plain, **facts}))
        file.truncate()


@pytest.mark.parametrize("is_new_process", [False, True], ids=["here", "in another process"])
def test_a_second_list_opens_nothing_of_a_run(base, made, monkeypatch, is_new_process):
    first = list_runs(base)
    made.clear()
    if is_new_process:
        forget_lists()
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *more, **named: opened.append(path) or real(path, *more, **named))
    assert list_runs(base) == first
    assert made == []
    assert opened == [base, INDEX_NAME] if is_new_process else [base]


def test_one_changed_run_is_one_that_is_read(base, made):
    list_runs(base)
    made.clear()
    change_tags(base / "r3", add=["good"])
    assert {line.logs_root.name: line.tags for line in list_runs(base)}["r3"] == ("good",)
    assert made == ["r3"]


def tagged(path):
    change_tags(path, add=["good"])


def tag_edited_in_place(path):
    change_tags(path, add=["good"])
    list_runs(path.parent)
    (path / ".tags.json").write_text('{"tags": ["better"]}')


def gone_on(path):
    store = DirectoryRunStore.open(path, durability="fast", clock=ManualClock())
    store.save_manifest({"status": "failed", "reason": "no luck"})
    store.close()


def edited_in_place(path):
    rewrite(path, status="failed", reason="another word")


def cut_short(path):
    rewrite(path, log_sequence=3)


def log_lost(path):
    (path / "events.jsonl").unlink()


def log_grown(path):
    with (path / "events.jsonl").open("ab") as log:
        log.write(b"{}\n")


def damaged(path):
    (path / "manifest.json").write_bytes(b"{")


def renamed(path):
    path.rename(path.with_name("other"))


def removed(path):
    remove_run(path.parent, path, clock=ManualClock())


def half_removed(path):
    path.rename(path.with_name(f".deleted-{path.name}"))


def another_in_its_place(path):
    shutil.rmtree(path)
    shutil.copytree(path.with_name("r0"), path)


def a_link_in_its_place(path):
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


CHANGES = [
    *(tagged, tag_edited_in_place, gone_on, edited_in_place, cut_short, log_lost, log_grown, damaged),
    *(renamed, removed, half_removed, another_in_its_place, a_link_in_its_place),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("is_new_process", [False, True], ids=["here", "in another process"])
def test_every_change_of_a_run_is_seen(base, change, is_new_process):
    list_runs(base)
    change(base / "r3")
    if is_new_process:
        forget_lists()
    assert by_name(list_runs(base)) == without_index(base)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["list", "forget", *CHANGES]), st.integers(0, 4)), min_size=3, max_size=14))
def test_a_list_with_an_index_is_the_list_without(base, tmp_path, acts):
    work = tmp_path / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(base, work)
    forget_lists()
    for act, number in acts:
        if act == "list":
            assert by_name(list_runs(work)) == without_index(work)
        elif act == "forget":
            forget_lists()
        else:
            with contextlib.suppress(Exception):  # it is too late for that change: the run is damaged, or gone
                act(work / f"r{number}")
    assert by_name(list_runs(work)) == without_index(work)


def test_a_run_under_way_is_never_kept_and_asked_of_its_lock(create, event_of, tmp_path, made):
    store = create("runs/a")
    store.append(event_of(1), is_synced=True)
    base = tmp_path / "runs"
    for _ in range(2):
        assert [line.status for line in list_runs(base)] == ["running"]
    assert made == ["a", "a"]
    store.close()
    assert [line.status for line in list_runs(base)] == ["abandoned"]
    made.clear()
    assert [line.status for line in list_runs(base)] == ["abandoned"]
    assert made == []
    hold = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,2);print(1,flush=True);input()"
    command = [sys.executable, "-c", hold, str(base / "a/owner.lock")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        holder.stdout.readline()
        assert [line.status for line in list_runs(base)] == ["running"]
        holder.communicate(b"\n")
    assert [line.status for line in list_runs(base)] == ["abandoned"]


def test_what_changed_a_moment_ago_is_not_kept(base, made, monkeypatch):
    monkeypatch.setattr(run_index, "SETTLED_NS", 2_000_000_000)
    list_runs(base)
    made.clear()
    list_runs(base)
    assert sorted(made) == ["r0", "r1", "r2", "r3", "r4"]
    assert not (base / INDEX_NAME).exists()


def test_a_clock_that_ticks_slowly_hides_no_change(base, monkeypatch):
    """Two changes within one tick leave one stamp: the first one must not have been believed."""
    monkeypatch.setattr(run_index, "SETTLED_NS", 2_000_000_000)
    taken = run_index._stamp

    def coarse(home, name, grounds):
        numbers = list(taken(home, name, grounds))
        for place in (2, 3):
            numbers[place :: run_index.STAMP_LENGTH] = [
                number - number % 2_000_000_000 for number in numbers[place :: run_index.STAMP_LENGTH]
            ]
        return tuple(numbers)

    monkeypatch.setattr(run_index, "_stamp", coarse)
    list_runs(base)
    rewrite(base / "r3", duration=3.5)  # of the same length
    assert {line.logs_root.name: line.duration for line in list_runs(base)}["r3"] == 3.5


def write_file(base, lines, *, seals=True):
    body = b"".join(lines)
    digest = sha256(body).hexdigest().encode() if seals else b"0" * 64
    (base / INDEX_NAME).write_bytes(b'{"schema_version":2,"checksum":"%b"}\n' % digest + body)


def lines_of(base):
    return [json.loads(line) for line in (base / INDEX_NAME).read_bytes().split(b"\n")[1:-1]]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"\0" * len(data),
        lambda data: data.replace(b'"schema_version":2', b'"schema_version":3', 1),
        lambda data: b"[" * 100_000,
    ],
    ids=["empty", "torn", "a bit", "zeros", "newer", "deep"],
)
def test_a_damaged_file_is_as_good_as_none_and_is_written_anew(base, damage):
    first = list_runs(base)
    whole = (base / INDEX_NAME).read_bytes()
    (base / INDEX_NAME).write_bytes(damage(whole))
    forget_lists()
    assert list_runs(base) == first
    assert (base / INDEX_NAME).read_bytes() == whole


def planted_link(path):
    path.symlink_to("/etc/passwd")


def planted_pipe(path):
    os.mkfifo(path)


def planted_directory(path):
    path.mkdir()


def planted_giant(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("plant", [planted_link, planted_pipe, planted_directory, planted_giant])
def test_what_stands_in_place_of_the_file_breaks_no_list(base, plant):
    plant(base / INDEX_NAME)
    assert by_name(list_runs(base)) == without_index(base)
    forget_lists()
    assert by_name(list_runs(base)) == without_index(base)


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "../r0"), (0, ""), (0, 7), (1, "own"), (1, ["a"]), (2, []), (2, ["", "../r0"]), (2, 3), (2, [[]]),
        (3, 1), (4, "now"), (5, []), (5, [1.5] * 16), (5, None), (6, 5), (8, "running"), (8, "<b>"), (8, []),
        (10, 4), (11, "owner"), (12, -1), (12, "x"), (13, -1), (13, True), (14, []), (14, {"calls": -1}),
        (14, {"input_tokens": "many"}), (14, {"cost_usd": "free"}), (15, "good"), (15, ["a\nb"]), (15, [1]),
        (16, None), (17, {}),
    ],
)  # fmt: skip
def test_a_hostile_line_is_as_good_as_none(base, place, value, is_sealed):
    list_runs(base)
    plain = lines_of(base)[0]
    plain[place] = value
    raw = json.dumps(plain, separators=(",", ":")).encode() + b"\n"
    write_file(base, [raw, b"nonsense\n", b"[]\n", b'"x"\n'], seals=is_sealed)
    assert read_index((base / INDEX_NAME).read_bytes(), base) == {}
    forget_lists()
    assert by_name(list_runs(base)) == without_index(base)


def test_a_line_whose_stamp_does_not_fit_is_not_shown_whatever_it_says(base):
    list_runs(base)
    plain = lines_of(base)
    for line in plain:
        line[17], line[5][1] = "all is well", line[5][1] + 1
    write_file(base, [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in plain])
    forget_lists()
    assert by_name(list_runs(base)) == without_index(base)


def test_all_of_a_line_is_kept(base):
    kept = {entry.name for entry in fields(RunSummary)} - {"logs_root", "owner", "restart_root"}
    assert set(SUMMARY_NAMES) == kept
    list_runs(base)
    (line, *_) = read_index((base / INDEX_NAME).read_bytes(), base).values()
    full = structs.replace(
        line,
        summary=replace(
            line.summary,
            tags=("a", "b"),
            lineage="fork of x",
            note="über\ud800",
            usage=Usage(1, 2, None, 3, unpriced=1),
            duration=None,
        ),
    )
    assert read_index(run_index.index_bytes({"r\udc80": full}), base)["r\udc80"].summary == replace(
        full.summary, logs_root=base / "r\udc80"
    )


def test_a_line_with_a_secret_is_not_written(base):
    list_runs(base)
    (name, line), *_ = read_index((base / INDEX_NAME).read_bytes(), base).items()
    secret = "-".join(["sk", "ant", "api03", "Zq8" * 20])
    told = structs.replace(line, summary=replace(line.summary, note=f"refused {secret}"))
    assert secret.encode() not in run_index.index_bytes({name: told})


def test_a_folder_that_cannot_be_written_is_listed_all_the_same(base, monkeypatch):
    def refuse(*_, **__):
        raise run_listing.StorageError("read-only")

    monkeypatch.setattr(run_index, "write_whole", refuse)
    assert by_name(list_runs(base)) == without_index(base)
    assert not (base / INDEX_NAME).exists()


def test_a_folder_that_cannot_be_listed_is_a_storage_error_and_no_empty_list(base, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run_index.os, "scandir", refuse)
    before = psutil.Process().num_fds()
    with pytest.raises(run_listing.StorageError, match=r"cannot read .*/runs: permission denied"):
        list_runs(base)
    assert psutil.Process().num_fds() == before


def test_the_file_of_somebody_else_is_not_believed_and_none_is_left_with_him(base, monkeypatch):
    list_runs(base)
    told = (base / INDEX_NAME).read_bytes()
    monkeypatch.setattr(run_index.os, "geteuid", lambda: os.getuid() + 1)
    (base / INDEX_NAME).unlink()
    forget_lists()
    list_runs(base)
    assert not (base / INDEX_NAME).exists()
    if os.getuid() == 0:
        (base / INDEX_NAME).write_bytes(told)
        os.chown(base / INDEX_NAME, 12345, -1)
        home = os.open(base, os.O_RDONLY)
        assert run_index._read(home, base).lines == {}
        os.close(home)


@pytest.mark.parametrize("name", ["map.json", "events.jsonl"])
def test_nothing_is_written_into_a_run_or_a_map(base, name):
    (base / name).write_text("{}")
    list_runs(base)
    assert not (base / INDEX_NAME).exists()


def test_a_small_folder_is_left_as_it_is(base, monkeypatch):
    monkeypatch.setattr(run_index, "MIN_CHANGES", 32)
    list_runs(base)
    assert not (base / INDEX_NAME).exists()


def test_what_a_killed_writer_left_is_swept_once_it_is_old(base):
    old, new = base / ".attractor-tmp-old-1-1", base / ".attractor-tmp-new-1-1"
    old.write_text("x")
    new.write_text("x")
    os.utime(old, (1, 1))
    list_runs(base)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_restart_is_told_by_the_directory_in_which_it_went_on(create, tmp_path, made):
    first = create("runs/a")
    first.save_manifest({"status": "restarted", "restarted_as": "restart-1"})
    first.close()
    second = create("runs/a/restart-1", restart_of="..")
    second.save_manifest(ENDED)
    second.close()
    base = tmp_path / "runs"
    assert [line.status for line in list_runs(base)] == ["completed"]
    made.clear()
    (line,) = list_runs(base)
    assert (line.lineage, line.current_directory) == ("continued in restart-1", base / "a/restart-1")
    assert made == []
    rewrite(base / "a/restart-1", status="failed", reason="late")
    forget_lists()
    assert [(line.status, line.note) for line in list_runs(base)] == [("failed", "late")]


RACER = """
import sys
from pathlib import Path
from attractor_nb.storage import run_index
run_index.MIN_CHANGES, run_index.SETTLED_NS = 1, 50_000_000
base = Path(sys.argv[1])
for number in range(25):
    run_index.forget_lists()
    lines = run_index.list_runs(base)
    assert len(lines) == 5 and {line.status for line in lines} == {"completed"}, lines
"""


def test_processes_that_read_and_write_it_at_once_break_nothing(base):
    """Two runs change all the time, three are settled: their lines are what the racers write.

    A racer that kept a line of a file that changes while it is read would keep it for good: its time to
    settle is short, but longer than a tick of the clock of a file system.
    """
    racers = [subprocess.Popen([sys.executable, "-c", RACER, str(base)], stderr=subprocess.PIPE) for _ in range(4)]
    number = 0
    while any(racer.poll() is None for racer in racers):
        number += 1
        change_tags(base / f"r{number % 2}", add=[f"t{number}"], remove=[f"t{number - 2}"])
        if number % 64 == 0:
            (base / INDEX_NAME).write_bytes(b"x" * number)
    assert [racer.communicate(timeout=60)[1] for racer in racers] == [b""] * 4
    forget_lists()
    assert by_name(list_runs(base)) == without_index(base)
    assert [path.name for path in base.iterdir() if path.name.startswith(".attractor-tmp-")] == []
