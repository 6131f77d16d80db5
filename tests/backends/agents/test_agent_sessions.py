"""Agents and threads: under `full` fidelity a thread's stages go on with one session (spec 5.4)."""

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.agents.agent_events import Ended, SavedSession, Tokens
from attractor_nb.errors import TerminalError
from attractor_nb.model.outcome import Usage

THREE = """digraph g {{ node [{}] start [shape=Mdiamond]; exit [shape=Msquare]
    first [prompt="First."]; second [prompt="Second."]; third [prompt="Third."]
    start -> first -> second -> third -> exit }}"""
FULL = 'fidelity="full", thread_id="main"'


def run(source, backend, **options):
    events = []
    options = {"logs_root": "run", "durability": "fast", "wait": True, **options}
    result = Pipeline(source).run(backend=backend, observers=[events.append], **options)
    return result, events


def test_stages_of_a_thread_go_on_with_one_session(stubs, agent):
    result, events = run(THREE.format(FULL), agent)
    assert result.status == "success"
    first, second, third = stubs.calls
    assert first["resumed"] is None
    assert second["resumed"]
    assert third["resumed"]
    if agent == "claude":  # each call has a session of its own, forked from the one before
        assert second["resumed"] != third["resumed"]
        assert "--fork-session" in second["argv"]
    else:
        assert second["resumed"] == third["resumed"]
    threads = [event.thread for event in events if type(event).__name__ == "ModelCallEnded"]
    assert threads == ["main"] * 3


def test_under_other_fidelities_each_stage_has_a_session_of_its_own(stubs, agent):
    run(THREE.format('fidelity="compact"'), agent)
    assert [call["resumed"] for call in stubs.calls] == [None] * 3


def test_tokens_of_a_session_are_counted_once(stubs):
    """Codex tells what the thread has consumed so far: 1210 and 40 tokens a call in the stub."""
    two = THREE.format(FULL).replace('third [prompt="Third."]', "").replace("-> third", "")
    result, _ = run(two, "codex")
    assert [result.usage_by_node[node].input_tokens for node in ("first", "second")] == [1210, 1210]
    assert [result.usage_by_node[node].output_tokens for node in ("first", "second")] == [40, 40]


def test_an_attempt_that_failed_is_made_again_from_what_was_committed(stubs, agent, monkeypatch):
    """The session that is gone on with is that of the last committed stage, not that of the failed attempt."""
    from attractor_nb.backends import resolve_backend

    backend = resolve_backend(agent)
    run_once = backend._run

    async def second_fails_once(call, scope, listener):
        if scope.node_id == "second" and scope.attempt == 1:
            stubs.do("fail:limit")
        result = await run_once(call, scope, listener)
        stubs.do("answer")
        return result

    monkeypatch.setattr(backend, "_run", second_fails_once)
    result, _ = run(THREE.format(FULL + ', max_retries=1, retry_policy="none"'), backend)
    assert result.status == "success"
    _, failed, again, _ = stubs.calls
    assert failed["resumed"] == again["resumed"]


def test_a_session_that_is_gone_says_so(stubs, agent, monkeypatch):
    from attractor_nb.backends import resolve_backend

    backend = resolve_backend(agent)
    monkeypatch.setattr(backend, "_saved_session", lambda _: SavedSession(agent, "gone"))  # kept on another machine
    result, _ = run(THREE.format(FULL), backend)
    assert result.status == "fail"
    assert result.outcomes["first"].is_terminal
    assert "start a new thread with another thread_id" in result.reason


@pytest.mark.parametrize(
    "text",
    ["[]", "not json", '{"agent": "codex", "session": "s1"}', '{"agent": "claude"}', '{"agent": "claude", "session": "--yolo"}'],
)  # fmt: skip
def test_a_thread_that_another_has_kept_is_refused(text):
    with pytest.raises(TerminalError, match=r"the thread 'main' is .* claude cannot continue it") as caught:
        SavedSession.read(text, "claude", "main")
    assert "thread_id" in caught.value.hint


def test_a_session_is_kept_as_text_and_read_again():
    saved = SavedSession("codex", "0199-a", 5, 6)
    assert SavedSession.read(saved.text(), "codex", "main") == saved
    assert json.loads(saved.text())["session"] == "0199-a"


def test_a_thread_begins_without_a_session():
    assert SavedSession.read("", "claude", "main") == SavedSession("claude")


def test_a_sessions_usage_that_begins_anew_is_taken_as_it_is():
    saved = SavedSession("codex", "s1", 1000, 50, 700)
    grown = Ended(usage=Usage(1500, 80, None, 1), tokens=(Tokens("", 1500, 80, 1100),))
    assert saved.own_part(grown) == (Usage(500, 30, None, 1), (Tokens("", 500, 30, 400),))
    anew = Ended(usage=Usage(400, 80, None, 1), tokens=(Tokens("", 400, 80, 0),))
    assert saved.own_part(anew) == (anew.usage, anew.tokens)


def test_a_resume_goes_on_with_the_recorded_agent_and_degrades_one_hop(stubs, agent):
    """The first stage after a resume has a fresh session; the next one goes on with the thread (5.3)."""
    stopped, _ = run(THREE.format(FULL), agent, stop_after=2)
    assert stopped.status == "paused"
    assert len(stubs.calls) == 1
    result = Pipeline(THREE.format(FULL)).resume(stopped.logs_root).result()
    assert result.status == "success"
    first, second, third = stubs.calls
    assert (first["resumed"], second["resumed"]) == (None, None)
    assert third["resumed"]
