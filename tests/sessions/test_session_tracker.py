"""A session on disk: layout, safety, what is refused and what is left behind."""

import errno
import json
import os
import stat
import threading
import uuid

import pytest

from attractor_nb.errors import (
    IllegalTransition,
    OptionError,
    SessionBusy,
    SessionDamaged,
    SessionNotFound,
    StorageError,
)
from attractor_nb.sessions import (
    SessionTracker,
    complete_agent,
    create_session,
    fail_agent,
    get_active_session,
    load_session_status,
    open_agent_log,
    start_agent,
)
from attractor_nb.sessions.fold import AgentUpdate, SessionCancelled
from attractor_nb.sessions.tracker import gone_agents, stored_plain
from tests.disks.faulty_disk import FaultyDisk

BASE = ".founder-mode/status"


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_layout_is_that_of_the_schema_and_for_the_owner_alone(tracker, tmp_path):
    base = tmp_path / BASE
    assert sorted(entry.name for entry in base.iterdir()) == ["active-session", "sessions"]
    assert str((base / "active-session").readlink()) == f"sessions/{tracker.session_dir.name}"
    for directory in (tmp_path / ".founder-mode", base, base / "sessions", tracker.session_dir):
        assert mode(directory) == 0o700
    tracker.change(AgentUpdate("001", {"status": "running"}))
    assert {entry.name: mode(entry) for entry in tracker.session_dir.iterdir()} == {
        "status.json": 0o600,
        "status.json.lock": 0o600,
    }


def test_a_relative_working_directory_makes_a_link_that_leads_somewhere(tmp_path):
    session_dir = create_session(".", "run-prompt", "a.md", [{"id": "001"}])
    assert get_active_session(".") == session_dir
    assert load_session_status(get_active_session(tmp_path))["agents"][0]["id"] == "001"


def test_a_project_that_is_moved_keeps_its_active_session(tmp_path):
    (tmp_path / "old").mkdir()
    session_dir = create_session(tmp_path / "old", "run-prompt", "a.md", [])
    (tmp_path / "old").rename(tmp_path / "new")
    assert get_active_session(tmp_path / "new").name == session_dir.name


def test_the_agents_of_the_caller_are_not_changed(create):
    given = [{"id": "001"}]
    create(given)
    assert given == [{"id": "001"}]


class Ids:
    """Gives these ids, the last one for ever."""

    def __init__(self, *names):
        self.names = list(names)

    def __call__(self):
        name = self.names.pop(0) if len(self.names) > 1 else self.names[0]
        return uuid.UUID(hex=name * 32)


def test_a_session_whose_name_is_taken_has_another_one(create, monkeypatch):
    monkeypatch.setattr(uuid, "uuid4", Ids("a", "a", "b"))
    first, second = create(), create()
    first.change(AgentUpdate("001", {"status": "running"}))
    assert [tracker.session_dir.name[-8:] for tracker in (first, second)] == ["aaaaaaaa", "bbbbbbbb"]
    assert (first.read().summary.running, second.read().summary.running) == (1, 0)


def test_when_no_name_is_free_the_sessions_that_are_there_stay(create, tmp_path, monkeypatch):
    monkeypatch.setattr(uuid, "uuid4", Ids("a"))
    tracker = create()
    with pytest.raises(StorageError, match="no free name for a session"):
        create()
    assert tracker.read().summary.total == 3
    assert get_active_session(tmp_path) == tracker.session_dir


def test_a_working_directory_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StorageError, match=r"cannot open .*gone: no such file or directory"):
        create_session(tmp_path / "gone", "run-prompt", "a.md", [])
    assert not (tmp_path / "gone").exists()


def test_a_session_that_is_not_there_has_no_status(tmp_path):
    assert stored_plain(tmp_path / "gone") is None


def test_an_agent_is_gone_when_its_process_is(tracker, monkeypatch):
    """A process of another user lives, too, and so may one whose number this system does not know."""
    answers = {11: ProcessLookupError(), 12: PermissionError(), 13: OverflowError()}

    def kill(pid, number):
        assert number == 0
        raise answers[pid]

    monkeypatch.setattr(os, "kill", kill)
    for agent_id, pid in zip(("001", "002", "003"), answers, strict=True):
        tracker.change(AgentUpdate(agent_id, {"status": "running", "pid": pid}))
    assert gone_agents(tracker.read()) == {"001"}


def test_a_refused_session_leaves_nothing_behind(create, tmp_path):
    with pytest.raises(OptionError):
        create([{"id": "001", "status": "bored"}])
    assert not (tmp_path / ".founder-mode").exists()


def test_a_link_to_a_session_that_is_gone_is_none(tracker, tmp_path):
    for entry in tracker.session_dir.iterdir():
        entry.unlink()
    tracker.session_dir.rmdir()
    assert get_active_session(tmp_path) is None


@pytest.mark.parametrize("target", ["/etc", "../../..", "sessions", "sessions/../..", "sessions/a/b"])
def test_an_active_session_elsewhere_is_refused(tracker, tmp_path, target):
    link = tmp_path / BASE / "active-session"
    link.unlink()
    link.symlink_to(target)
    with pytest.raises(SessionDamaged, match="leads out of"):
        get_active_session(tmp_path)


def test_a_session_that_is_itself_a_link_is_refused(tracker, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / BASE / "sessions/planted").symlink_to(tmp_path / "elsewhere")
    link = tmp_path / BASE / "active-session"
    link.unlink()
    link.symlink_to("sessions/planted")
    with pytest.raises(SessionDamaged, match="not a session directory"):
        get_active_session(tmp_path)


def test_something_else_in_the_place_of_the_link_is_refused(tracker, tmp_path):
    link = tmp_path / BASE / "active-session"
    link.unlink()
    link.write_text("sessions/x")
    with pytest.raises(SessionDamaged, match="is not a link"):
        get_active_session(tmp_path)


@pytest.mark.parametrize("name", [".founder-mode", BASE, f"{BASE}/sessions"])
def test_nothing_is_written_through_a_planted_link(create, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    place = tmp_path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(StorageError):
        create()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["status.json", "status.json.lock", "001.log"])
def test_a_link_in_the_place_of_a_file_is_refused(tracker, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    place = tracker.session_dir / name
    place.unlink(missing_ok=True)
    place.symlink_to(outside)
    opener = open_agent_log if name == "001.log" else start_agent
    with pytest.raises(StorageError):
        opener(tracker.session_dir, "001")
    assert outside.read_text() == "untouched"


def test_a_lock_of_the_mkdir_protocol_is_told_from_ours(tracker):
    (tracker.session_dir / "status.json.lock").mkdir()
    with pytest.raises(SessionBusy, match="is a directory"):
        tracker.change(AgentUpdate("001", {"status": "running"}))


def test_a_writer_that_holds_on_is_waited_for_and_named(tracker):
    holds, may_go = threading.Event(), threading.Event()

    def hold(session):
        holds.set()
        may_go.wait()
        return session

    holder = threading.Thread(target=tracker.update, args=(hold,))
    holder.start()
    holds.wait()
    hasty = SessionTracker(tracker.session_dir, patience_seconds=0.01)
    try:
        with pytest.raises(SessionBusy, match=r"for more than 0.01 s"):
            hasty.change(AgentUpdate("001", {"status": "running"}))
    finally:
        may_go.set()
        holder.join()
    assert hasty.change(AgentUpdate("001", {"status": "running"})).summary.running == 1


def test_readers_need_no_lock(tracker):
    seen = []

    def look(session):
        seen.append(SessionTracker(tracker.session_dir).read())
        return session

    tracker.update(look)
    assert [session.summary.total for session in seen] == [3]


def test_several_changes_are_made_all_or_none(tracker):
    before = tracker.read()
    with pytest.raises(IllegalTransition):
        tracker.change(AgentUpdate("001", {"status": "running"}), AgentUpdate("002", {"status": "complete"}))
    assert tracker.read() == before


def test_without_a_session_there_is_nothing_to_change(tmp_path):
    with pytest.raises(SessionNotFound):
        start_agent(tmp_path / "nowhere", "001")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SessionNotFound, match=r"no status\.json"):
        start_agent(tmp_path / "empty", "001")
    assert load_session_status(tmp_path / "empty") == {}


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_a_disk_that_refuses_any_operation_leaves_the_old_session(create, error):
    counted = FaultyDisk()
    tracker = create(disk=counted)
    before = len(counted.operations)
    tracker.change(AgentUpdate("001", {"status": "running"}))
    count = len(counted.operations) - before
    assert count >= 4
    for number in range(1, count + 1):
        healthy = create()
        whole = healthy.read()
        faulty = SessionTracker(healthy.session_dir, disk=FaultyDisk(fail_at=number, error=error))
        with pytest.raises(StorageError):
            faulty.change(AgentUpdate("001", {"status": "running"}))
        after = healthy.read()
        assert after == whole or after.summary.running == 1
        assert not list(healthy.session_dir.glob(".attractor-tmp-*"))


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_refuses_any_operation_of_a_creation_keeps_the_active_session(create, tmp_path, error):
    first = create()
    counted = FaultyDisk()
    create(disk=counted)
    SessionTracker(first.session_dir).read()
    for number in range(1, len(counted.operations) + 1):
        # Directories that are there already are tried again, and that is no failure.
        disk = FaultyDisk(fail_at=number, error=error)
        before = get_active_session(tmp_path)
        with pytest.raises(StorageError):
            create(disk=disk)
        now = get_active_session(tmp_path)
        assert now == before or SessionTracker(now).read().summary.total == 3


def test_what_a_killed_writer_left_is_swept_by_the_next(tracker):
    stray = tracker.session_dir / ".attractor-tmp-dead-1-1"
    stray.write_text("half")
    tracker.change(AgentUpdate("001", {"status": "running"}))
    assert not stray.exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:100], "is not JSON"),
        (lambda data: b"", "is not JSON"),
        (lambda data: b"[]\n", "has a wrong shape"),
        (lambda data: b"5", "has a wrong shape"),
        (lambda data: b"null", "has a wrong shape"),
        (lambda data: data.replace(b"queued", b"cueued", 1), "does not match its checksum"),
        (lambda data: data.replace(b'"1.0"', b'"2.0"'), "does not match its checksum"),
        (lambda data: data + b" ", "has no checksum at its end"),
        (lambda data: data.replace(b'"001"', b'"\xff01"', 1), "is not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_and_says_what_is_left(tracker, damage, words):
    open_agent_log(tracker.session_dir, "002").close()
    path = tracker.session_dir / "status.json"
    path.write_bytes(damage(path.read_bytes()))
    for attempt in (tracker.read, lambda: load_session_status(tracker.session_dir), tracker.change):
        with pytest.raises(SessionDamaged) as caught:
            attempt()
        assert words in caught.value.message
        assert "1 agent log beside it" in caught.value.message


def test_a_damaged_file_that_is_json_can_be_salvaged(tracker):
    path = tracker.session_dir / "status.json"
    path.write_bytes(path.read_bytes().replace(b"schema", b"cchema"))
    with pytest.raises(SessionDamaged, match="3 agents of it can be read, but nothing proves them right") as caught:
        tracker.read()
    assert [agent["id"] for agent in caught.value.salvageable["agents"]] == ["001", "002", "003"]


def without_checksum(path, **changes):
    plain = json.loads(path.read_text())
    del plain["checksum"]
    path.write_text(json.dumps({**plain, **changes}, indent=2))


def test_a_file_of_another_program_is_taken_when_it_keeps_the_schema(tracker):
    path = tracker.session_dir / "status.json"
    without_checksum(path)
    assert tracker.change(AgentUpdate("001", {"status": "running"})).summary.running == 1
    assert "checksum" in json.loads(path.read_text())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"summary": {"total": 3, "running": 3}}, "summary says 3 total, 3 running, the agents 3 total, 3 queued"),
        ({"waves": [{"wave": 1, "status": "complete", "agents": ["001"]}]}, "wave 1 says complete, its agents pending"),
        ({"waves": [{"wave": 1, "status": "pending", "agents": ["009"]}]}, "agents that are not there: 009"),
        ({"schema_version": "2.0"}, "schema_version"),
        ({"source": "somewhere"}, "source"),
        ({"started_at": 5}, "started_at"),
        ({"agents": None}, "agents"),
        ({"status": "paused"}, "status"),
    ],
)
def test_a_file_of_another_program_that_contradicts_itself_is_refused(tracker, changes, words):
    without_checksum(tracker.session_dir / "status.json", **changes)
    with pytest.raises(SessionDamaged) as caught:
        tracker.read()
    assert words in caught.value.message


def test_threads_of_one_process_lose_nothing(create):
    tracker = create([{"id": f"{number:03}"} for number in range(8)])

    def count(agent_id):
        start_agent(tracker.session_dir, agent_id)
        for number in range(10):
            tracker.change(AgentUpdate(agent_id, {"step": number}))
        complete_agent(tracker.session_dir, agent_id)

    threads = [threading.Thread(target=count, args=(f"{number:03}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session = tracker.read()
    assert session.summary.complete == 8
    assert [agent.model_extra for agent in session.agents] == [{"step": 9}] * 8


def test_two_who_begin_at_once_leave_a_link_to_one_of_both(tmp_path):
    made = []
    barrier = threading.Barrier(8)

    def begin():
        barrier.wait()
        made.append(create_session(tmp_path, "orchestrate", "a.md", [{"id": "001"}]))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8
    assert get_active_session(tmp_path) in made
    assert sorted(entry.name for entry in (tmp_path / BASE).iterdir()) == ["active-session", "sessions"]


def test_a_secret_of_the_environment_is_not_written(tracker, monkeypatch):
    monkeypatch.setenv("CHEESE_API_KEY", "stilton-and-9-crackers")
    start_agent(tracker.session_dir, "001")
    fail_agent(tracker.session_dir, "001", "no entry for stilton-and-9-crackers\n")
    assert b"stilton" not in (tracker.session_dir / "status.json").read_bytes()
    assert tracker.read().agents[0].error == "no entry for [redacted]\n"


def test_a_cancelled_session_cancels_who_has_not_ended(tracker):
    tracker.change(AgentUpdate("001", {"status": "running"}))
    session = tracker.change(SessionCancelled("stopped by hand"))
    assert session.status == "cancelled"
    assert {(agent.status, agent.error) for agent in session.agents} == {("cancelled", "stopped by hand")}
