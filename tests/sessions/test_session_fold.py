"""A session and a change make the next session; nothing else is there."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import IllegalTransition, OptionError, SessionError
from attractor_nb.model.session import wave_status
from attractor_nb.sessions import calculate_summary
from attractor_nb.sessions.fold import (
    AgentsAdded,
    AgentUpdate,
    SessionCancelled,
    SessionCompleted,
    apply_change,
    begin_session,
)

ID = "20260201-143022-abc12345"
START = 1_769_956_222.0
AGENT_TRANSITIONS = {
    "queued": ("running", "cancelled"),
    "running": ("complete", "failed", "cancelled"),
    "complete": (),
    "failed": (),
    "cancelled": (),
}
WAY_TO = {"queued": [], "running": ["running"], "complete": ["running", "complete"]}
WAY_TO |= {"failed": ["running", "failed"], "cancelled": ["cancelled"]}


def begin(*ids, waves=None, **more):
    return begin_session(ID, "orchestrate", "a.md", [{"id": name, **more} for name in ids], waves, at=START)


def going(session, agent_id, *statuses, at=START):
    for status in statuses:
        session = apply_change(session, AgentUpdate(agent_id, {"status": status}), at=at)
    return session


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in itertools.product(AGENT_TRANSITIONS, repeat=2) if pair[0] != pair[1]]
)
def test_an_agent_goes_only_where_the_table_allows(source, target):
    session = going(begin("001"), "001", *WAY_TO[source])
    if target in AGENT_TRANSITIONS[source]:
        assert going(session, "001", target).agents[0].status == target
        return
    with pytest.raises(IllegalTransition) as caught:
        going(session, "001", target)
    error = caught.value
    assert f"from {source} to {target}" in error.message
    assert (error.source, error.target, error.allowed) == (source, target, AGENT_TRANSITIONS[source])
    assert all(allowed in error.message for allowed in error.allowed)


@pytest.mark.parametrize("end", [SessionCompleted(), SessionCancelled()], ids=["completed", "cancelled"])
@pytest.mark.parametrize("change", [SessionCompleted(), SessionCancelled(), AgentUpdate("001", {"name": "x"})])
def test_an_ended_session_changes_no_more(end, change):
    session = apply_change(going(begin("001"), "001", "cancelled"), end, at=START)
    assert session.status == ("complete" if isinstance(end, SessionCompleted) else "cancelled")
    with pytest.raises(IllegalTransition, match=f"is {session.status} and can no longer change"):
        apply_change(session, change, at=START)


@pytest.mark.parametrize("waiting", ["queued", "running"])
def test_a_session_does_not_complete_before_its_agents(waiting):
    session = going(begin("001", "002"), "001", "running", "complete")
    session = going(session, "002", *WAY_TO[waiting])
    with pytest.raises(IllegalTransition, match="not ended: 002"):
        apply_change(session, SessionCompleted(), at=START)


def test_after_a_failure_agents_that_wait_are_cancelled_with_the_session():
    session = going(begin("001", "002", waves=[{"wave": 1, "agents": ["001", "002"]}]), "001", "running", "failed")
    session = apply_change(session, SessionCompleted(), at=START + 5)
    assert session.status == "failed"
    assert [agent.status for agent in session.agents] == ["failed", "cancelled"]
    assert session.waves[0].status == "complete"


def test_after_a_failure_an_agent_that_runs_still_has_to_end():
    session = going(begin("001", "002"), "001", "running", "failed")
    session = going(session, "002", "running")
    with pytest.raises(IllegalTransition, match="to failed: an agent has not ended: 002"):
        apply_change(session, SessionCompleted(), at=START)


def test_a_duration_is_the_time_between_the_recorded_moments():
    session = going(begin("001"), "001", "running", at=START + 3)
    session = going(session, "001", "complete", at=START + 157.25)
    agent = session.agents[0]
    assert (agent.started_at, agent.completed_at) == ("2026-02-01T14:30:25.000Z", "2026-02-01T14:32:59.250Z")
    assert agent.duration_seconds == 154.25


def test_a_clock_that_was_set_back_makes_no_negative_duration():
    session = going(begin("001"), "001", "running", at=START + 100)
    assert going(session, "001", "failed", at=START).agents[0].duration_seconds == 0


def test_a_duration_is_unknown_when_a_foreign_start_names_no_time_zone():
    session = going(begin("001", started_at="2026-02-01T14:30:25", status="running"), "001", "complete")
    assert session.agents[0].duration_seconds is None


def test_an_agent_that_has_ended_has_no_process():
    session = apply_change(begin("001"), AgentUpdate("001", {"status": "running", "pid": 12}), at=START)
    assert session.agents[0].pid == 12
    assert going(session, "001", "cancelled").agents[0].pid is None


def test_the_same_status_again_is_no_transition():
    session = going(begin("001"), "001", "running", at=START)
    again = going(session, "001", "running", at=START + 9)
    assert again == session


def test_agents_that_join_later_extend_their_wave_or_begin_one():
    session = begin("001", wave=1)
    session = apply_change(session, AgentsAdded([{"id": "002"}], 1), at=START)
    session = apply_change(session, AgentsAdded([{"id": "003"}], 2), at=START)
    assert [(wave.wave, wave.agents) for wave in session.waves] == [(1, ("001", "002")), (2, ("003",))]
    assert session.agents[2].log_file == f".founder-mode/status/sessions/{ID}/003.log"


@pytest.mark.parametrize(
    ("agents", "waves", "words"),
    [
        ([{"id": "../x"}], None, "id: string should match"),
        ([{"id": 1}], None, "id: input should be a valid string"),
        ([{}], None, "id: field required"),
        ([{"id": "a"}, {"id": "A"}], None, "agent a occurs twice"),
        ([{"id": "a", "pid": True}], None, "pid"),
        ([{"id": "a", "status": "done"}], None, "status"),
        ([{"id": "a", "eror": ""}], None, "no field 'eror'"),
        ([{"id": "a", "own": {1}}], None, "not a JSON value"),
        ([{"id": "a", "own": float("nan")}], None, "not a JSON value"),
        ([{"id": "a"}], [{"wave": 1, "agents": ["b"]}], "agents that are not there: b"),
        ([{"id": "a"}], [{"wave": 1, "agents": []}], "at least 1 item"),
        ([{"id": "a"}], [{"wave": 0, "agents": ["a"]}], "greater than or equal to 1"),
        ([{"id": "a"}], [{"wave": 1, "agents": ["a"]}, {"wave": 2, "agents": ["a"]}], "wave 2 lists it"),
        ([{"id": "a", "wave": 1}], [{"wave": 2, "agents": ["a"]}], "has wave 1, but wave 2 lists it"),
        ([{"id": "a"}], [{"wave": 1, "agents": None}], "agents"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused_with_its_place(agents, waves, words):
    with pytest.raises(OptionError) as caught:
        begin_session(ID, "orchestrate", "a.md", agents, waves, at=START)
    assert words in str(caught.value)


def test_an_unknown_source_is_refused_with_the_nearest_and_all_others():
    with pytest.raises(OptionError, match=r"session source 'orchestrat' is not known.*orchestrate") as refused:
        begin_session(ID, "orchestrat", "a.md", [], None, at=START)
    assert "run-prompt" in refused.value.hint


@pytest.mark.parametrize(
    ("updates", "words"),
    [
        ({"id": "002"}, "the id of agent 001 cannot be changed"),
        ({"wave": 3}, "the wave of agent 001 cannot be changed"),
        ({"exitcode": 0}, "no field 'exitcode'"),
        ({"exit_code": "0"}, "exit_code: input should be a valid integer"),
        ({"duration_seconds": float("inf")}, "duration_seconds: input should be a finite number"),
        ({"started_at": "yesterday"}, "started_at: is not an ISO 8601 time"),
        ({"status": "complete", "completed_at": 5}, "completed_at"),
    ],
)
def test_an_update_that_the_schema_does_not_allow_is_refused(updates, words):
    session = going(begin("001"), "001", "running")
    with pytest.raises(OptionError) as caught:
        apply_change(session, AgentUpdate("001", updates), at=START)
    assert words in str(caught.value)


def test_keys_of_ones_own_are_kept():
    session = begin("001", progress={"done": 1})
    session = apply_change(session, AgentUpdate("001", {"progress": {"done": 2}}), at=START)
    assert session.to_plain()["agents"][0]["progress"] == {"done": 2}


def test_an_unknown_agent_is_named_with_the_known_ones():
    with pytest.raises(SessionError, match="no agent '01'; did you mean \"001\"") as caught:
        going(begin("001", "002"), "01", "running")
    assert caught.value.hint == "its agents: 001, 002"


STEPS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(AGENT_TRANSITIONS))), max_size=30)


@given(STEPS)
def test_whatever_happens_summary_and_waves_agree_with_the_agents(steps):
    session = begin(*"abcd", waves=[{"wave": 1, "agents": ["a", "b"]}, {"wave": 2, "agents": ["c", "d"]}])
    for agent_id, status in steps:
        try:
            session = going(session, agent_id, status)
        except IllegalTransition:
            continue
        plain = session.to_plain()
        assert plain["summary"] == calculate_summary(plain["agents"])
        standing = {agent.id: agent.status for agent in session.agents}
        for wave in session.waves:
            assert wave.status == wave_status([standing[name] for name in wave.agents])
