"""status-schema.md: layout, fields, transitions, protocol, lifecycle and examples, each row a case."""

import inspect
import json
import re
import threading
from pathlib import Path

import pytest

import attractor_nb.sessions as sessions
from attractor_nb.errors import IllegalTransition
from attractor_nb.sessions import (
    SessionTracker,
    calculate_summary,
    cancel_agent,
    cancel_session,
    complete_agent,
    complete_session,
    create_session,
    fail_agent,
    get_active_session,
    is_session_complete,
    load_session_status,
    start_agent,
    update_agent_status,
)
from attractor_nb.testing import ManualClock

AGENT_TRANSITIONS = {
    "queued": ("running", "cancelled"),
    "running": ("complete", "failed", "cancelled"),
    "complete": (),
    "failed": (),
    "cancelled": (),
}
START = 1_769_956_222.0  # 2026-02-01T14:30:22Z
AGENTS = [
    {"id": "001", "name": "001-status-file-schema", "prompt_path": "prompts/001.md", "model": "claude"},
    {"id": "002", "name": "002-status-writer", "prompt_path": "prompts/002.md"},
]
WAVES = [{"wave": 1, "agents": ["001"]}, {"wave": 2, "agents": ["002"]}]


@pytest.fixture
def session_dir(tmp_path):
    return create_session(tmp_path, "orchestrate", "prompts/000.md", AGENTS, WAVES, now=ManualClock(START).time)


def agent(session_dir, agent_id="001"):
    return next(entry for entry in load_session_status(session_dir)["agents"] if entry["id"] == agent_id)


# -- Directory Structure ------------------------------------------------------------------------------


def test_status_schema_layout_sessions_lie_under_founder_mode_status(session_dir, tmp_path):
    base = tmp_path / ".founder-mode/status"
    assert session_dir.parent == base / "sessions"
    assert (session_dir / "status.json").is_file()
    assert (base / "active-session").is_symlink()
    assert (base / "active-session").resolve() == session_dir


def test_status_schema_session_ids_are_a_utc_stamp_and_a_short_id(session_dir):
    assert re.fullmatch(r"20260201-143022-[0-9a-f]{8}", session_dir.name)
    assert load_session_status(session_dir)["session_id"] == session_dir.name


# -- Field Descriptions -------------------------------------------------------------------------------

SESSION_FIELDS = {
    "schema_version": "1.0",
    "source": "orchestrate",
    "source_file": "prompts/000.md",
    "started_at": "2026-02-01T14:30:22.000Z",
    "completed_at": None,
    "status": "running",
    "summary": {"total": 2, "queued": 2, "running": 0, "complete": 0, "failed": 0, "cancelled": 0},
    "waves": [{"wave": 1, "status": "pending", "agents": ["001"]}, {"wave": 2, "status": "pending", "agents": ["002"]}],
}


@pytest.mark.parametrize("field", SESSION_FIELDS)
def test_status_schema_a_field_of_the_session_is_as_described(session_dir, field):
    assert load_session_status(session_dir)[field] == SESSION_FIELDS[field]


def test_status_schema_a_session_has_the_fields_of_the_schema_in_its_order(session_dir):
    expected = "schema_version session_id source source_file started_at completed_at status agents summary waves"
    assert list(load_session_status(session_dir)) == expected.split()
    written = json.loads((session_dir / "status.json").read_text())
    assert list(written) == [*expected.split(), "checksum"]


@pytest.mark.parametrize("source", ["orchestrate", "execute-phase", "run-prompt"])
def test_status_schema_a_source_is_one_of_three(tmp_path, source):
    assert load_session_status(create_session(tmp_path, source, "a.md", []))["source"] == source


AGENT_FIELDS = {
    "id": "001",
    "name": "001-status-file-schema",
    "prompt_path": "prompts/001.md",
    "status": "running",
    "wave": 1,
    "started_at": "2026-02-01T14:30:25.000Z",
    "completed_at": None,
    "duration_seconds": None,
    "exit_code": None,
    "pid": 12345,
    "model": "claude",
    "error": None,
}


@pytest.mark.parametrize("field", AGENT_FIELDS)
def test_status_schema_a_field_of_an_agent_is_as_described(session_dir, field):
    update_agent_status(
        session_dir, "001", {"status": "running", "pid": 12345, "started_at": "2026-02-01T14:30:25.000Z"}
    )
    assert agent(session_dir)[field] == AGENT_FIELDS[field]


def test_status_schema_the_log_file_is_named_relative_to_the_working_directory(session_dir, tmp_path):
    log_file = agent(session_dir)["log_file"]
    assert log_file == f".founder-mode/status/sessions/{session_dir.name}/001.log"
    assert (tmp_path / log_file).parent == session_dir


# -- Status Transitions -------------------------------------------------------------------------------

STEPS = {"running": start_agent, "complete": complete_agent, "cancelled": cancel_agent}
STEPS["failed"] = lambda session_dir, agent_id: fail_agent(session_dir, agent_id, "Exit code 1")


@pytest.mark.parametrize(
    "way", ["queued running complete", "queued running failed", "queued cancelled", "queued running cancelled"]
)
def test_status_schema_an_agent_goes_the_ways_of_the_table(session_dir, way):
    first, *rest = way.split()
    assert agent(session_dir)["status"] == first
    for status in rest:
        STEPS[status](session_dir, "001")
        assert agent(session_dir)["status"] == status


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (source, target)
        for source in AGENT_TRANSITIONS
        for target in ("running", "complete", "failed", "cancelled")
        if target not in AGENT_TRANSITIONS[source]
    ],
)
def test_status_schema_an_agent_goes_no_other_way(session_dir, source, target):
    for status in {"queued": [], "running": ["running"], "cancelled": ["cancelled"]}.get(source, ["running", source]):
        STEPS[status](session_dir, "001")
    before = load_session_status(session_dir)
    with pytest.raises(IllegalTransition, match=f"cannot go from {source} to {target}"):
        STEPS[target](session_dir, "001")
    assert load_session_status(session_dir) == before


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        (["complete", "complete"], "complete"),
        (["complete", "cancelled"], "complete"),
        (["cancelled", "cancelled"], "complete"),
        (["complete", "failed"], "failed"),
        (["failed", "cancelled"], "failed"),
    ],
)
def test_status_schema_a_session_ends_as_its_agents_did(session_dir, ends, status):
    for agent_id, end in zip(("001", "002"), ends, strict=True):
        if end != "cancelled":
            start_agent(session_dir, agent_id)
        STEPS[end](session_dir, agent_id)
    complete_session(session_dir)
    stored = load_session_status(session_dir)
    assert stored["status"] == status
    assert stored["completed_at"].endswith("Z")
    assert is_session_complete(session_dir)


def test_status_schema_a_session_is_cancelled_by_its_user(session_dir):
    start_agent(session_dir, "001")
    cancel_session(session_dir)
    stored = load_session_status(session_dir)
    assert stored["status"] == "cancelled"
    assert stored["summary"]["cancelled"] == 2
    assert is_session_complete(session_dir)


@pytest.mark.parametrize("end", ["complete", "failed", "cancelled"])
def test_status_schema_an_ended_session_changes_no_more(session_dir, end):
    for agent_id in ("001", "002"):
        start_agent(session_dir, agent_id)
        STEPS["failed" if end == "failed" else "complete"](session_dir, agent_id)
    (cancel_session if end == "cancelled" else complete_session)(session_dir)
    for attempt in (complete_session, cancel_session, lambda place: start_agent(place, "001")):
        with pytest.raises(IllegalTransition, match=f"is {end} and can no longer change"):
            attempt(session_dir)


def test_status_schema_a_wave_goes_from_pending_over_running_to_complete(tmp_path):
    waves = [{"wave": 1, "agents": ["001", "002"]}]
    session_dir = create_session(tmp_path, "orchestrate", "a.md", [{"id": "001"}, {"id": "002"}], waves)
    seen = []
    for step, agent_id in [(None, ""), *((STEPS[s], a) for a in ("001", "002") for s in ("running", "complete"))]:
        if step:
            step(session_dir, agent_id)
        seen.append(load_session_status(session_dir)["waves"][0]["status"])
    assert seen == ["pending", "running", "running", "running", "complete"]


# -- Atomic Update Protocol ---------------------------------------------------------------------------


def test_ruling_33_the_lock_is_the_kernels_and_temporary_names_are_unique(session_dir):
    names = set()
    may_look, has_looked = threading.Event(), threading.Event()

    def look():
        may_look.wait()
        names.update(entry.name for entry in session_dir.iterdir())
        has_looked.set()

    threading.Thread(target=look).start()

    def hold(session):
        may_look.set()
        has_looked.wait()
        return session

    SessionTracker(session_dir).update(hold)
    assert names == {"status.json", "status.json.lock"}
    assert (session_dir / "status.json.lock").is_file()
    # Left over by a holder that was killed, it keeps no other process out.
    start_agent(session_dir, "001")
    assert not [entry for entry in session_dir.iterdir() if entry.name.endswith(".tmp")]


def test_status_schema_an_update_changes_its_agent_alone_and_counts_anew(session_dir):
    before = load_session_status(session_dir)
    update_agent_status(session_dir, "001", {"status": "running"})
    after = load_session_status(session_dir)
    assert after["agents"][1] == before["agents"][1]
    assert after["summary"] == calculate_summary(after["agents"])
    assert after["summary"]["running"] == 1


def test_ruling_33_timestamps_are_utc_with_z(session_dir):
    start_agent(session_dir, "001")
    complete_agent(session_dir, "001")
    stored = load_session_status(session_dir)
    moments = [stored["started_at"], stored["agents"][0]["started_at"], stored["agents"][0]["completed_at"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment) for moment in moments)


# -- Session Lifecycle, Reading Status ----------------------------------------------------------------

NAMED = {
    "update_agent_status": ("session_dir", "agent_id", "updates"),
    "calculate_summary": ("agents",),
    "create_session": ("cwd", "source", "source_file", "agents", "waves"),
    "complete_session": ("session_dir",),
    "start_agent": ("session_dir", "agent_id", "pid"),
    "complete_agent": ("session_dir", "agent_id", "exit_code"),
    "fail_agent": ("session_dir", "agent_id", "error", "exit_code"),
    "get_active_session": ("cwd",),
    "load_session_status": ("session_dir",),
    "is_session_complete": ("session_dir",),
}


@pytest.mark.parametrize("name", NAMED)
def test_status_schema_a_function_has_its_name_and_its_parameters(name):
    parameters = inspect.signature(getattr(sessions, name)).parameters.values()
    assert tuple(entry.name for entry in parameters if entry.kind is not entry.KEYWORD_ONLY) == NAMED[name]


def test_status_schema_complete_agent_notes_exit_code_and_duration(session_dir):
    start_agent(session_dir, "001", pid=4242)
    assert agent(session_dir)["pid"] == 4242
    complete_agent(session_dir, "001")
    ended = agent(session_dir)
    assert (ended["exit_code"], ended["pid"], ended["error"]) == (0, None, None)
    assert ended["duration_seconds"] >= 0


def test_status_schema_fail_agent_notes_error_exit_code_and_duration(session_dir):
    start_agent(session_dir, "001")
    fail_agent(session_dir, "001", "Exit code 1: Missing required input")
    ended = agent(session_dir)
    assert (ended["exit_code"], ended["error"]) == (1, "Exit code 1: Missing required input")
    assert ended["duration_seconds"] >= 0


def test_status_schema_the_latest_session_is_the_active_one(session_dir, tmp_path):
    assert get_active_session(str(tmp_path)) == session_dir
    second = create_session(tmp_path, "run-prompt", "b.md", [])
    assert get_active_session(tmp_path) == second


def test_status_schema_without_a_session_there_is_no_active_one_and_no_status(tmp_path):
    assert get_active_session(tmp_path) is None
    assert load_session_status(tmp_path) == {}
    assert not is_session_complete(tmp_path)


# -- Example Files ------------------------------------------------------------------------------------


def example(session_id, status, agents, waves, completed_at=None, source="orchestrate"):
    return {
        "schema_version": "1.0",
        "session_id": session_id,
        "source": source,
        "source_file": "prompts/monitor/000-orchestrator.md",
        "started_at": "2026-02-01T14:30:22Z",
        "completed_at": completed_at,
        "status": status,
        "agents": agents,
        "summary": calculate_summary(agents),
        "waves": waves,
    }


def ended(agent_id, seconds):
    return {"id": agent_id, "status": "complete", "duration_seconds": seconds}


TWO_WAVES = [{"wave": 1, "status": "complete", "agents": ["001", "003"]}]
EXAMPLES = {
    "running": (
        [
            {"id": "001", "name": "status-schema", "status": "complete", "duration_seconds": 154},
            {"id": "003", "name": "table-renderer", "status": "complete", "duration_seconds": 192},
            {"id": "002", "name": "status-writer", "status": "running", "started_at": "2026-02-01T14:33:00Z"},
            {"id": "004", "name": "executor-integration", "status": "running", "started_at": "2026-02-01T14:33:05Z"},
            {"id": "005", "name": "log-utilities", "status": "queued"},
        ],
        [*TWO_WAVES, {"wave": 2, "status": "running", "agents": ["002", "004", "005"]}],
    ),
    "complete": (
        [ended("001", 154), ended("002", 201), ended("003", 192), ended("004", 245), ended("005", 178)],
        [*TWO_WAVES, {"wave": 2, "status": "complete", "agents": ["002", "004", "005"]}],
    ),
    "failed": (
        [
            ended("001", 154),
            {"id": "002", "status": "failed", "error": "Exit code 1: Missing required input", "exit_code": 1},
            *({"id": agent_id, "status": "cancelled"} for agent_id in ("003", "004", "005")),
        ],
        [
            {"wave": 1, "status": "complete", "agents": ["001"]},
            {"wave": 2, "status": "complete", "agents": ["002", "003", "004", "005"]},
        ],
    ),
    "cancelled": ([{"id": "001", "status": "cancelled", "started_at": "2026-02-01T14:30:25Z"}], []),
}


@pytest.fixture(params=EXAMPLES)
def given_example(request, tmp_path):
    """A file as the schema shows it, written by another program."""
    agents, waves = EXAMPLES[request.param]
    completed_at = None if request.param == "running" else "2026-02-01T14:45:18Z"
    plain = example("20260201-143022-abc12345", request.param, agents, waves, completed_at)
    (tmp_path / "given").mkdir()
    Path(tmp_path / "given/status.json").write_text(json.dumps(plain, indent=2))
    return plain, tmp_path / "given"


def test_status_schema_an_example_reads_as_it_stands(given_example):
    plain, session_dir = given_example
    assert load_session_status(session_dir) == plain
    assert is_session_complete(session_dir) == (plain["status"] != "running")
    session = SessionTracker(session_dir).read()
    assert session.summary.model_dump() == plain["summary"]
    assert [wave.status for wave in session.waves] == [wave["status"] for wave in plain["waves"]]


def test_status_schema_the_running_example_can_be_led_to_its_end(given_example):
    plain, session_dir = given_example
    if plain["status"] != "running":
        with pytest.raises(IllegalTransition):
            complete_session(session_dir)
        return
    for agent_id in ("002", "004"):
        complete_agent(session_dir, agent_id)
    start_agent(session_dir, "005")
    complete_agent(session_dir, "005")
    assert complete_session(session_dir).status == "complete"
    assert [wave["status"] for wave in load_session_status(session_dir)["waves"]] == ["complete", "complete"]
