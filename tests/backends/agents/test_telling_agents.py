"""An agent of the command line is told something meanwhile: its next turn, where it keeps sessions."""

import asyncio
import sys

import pytest

from attractor_nb import CommandLineBackend, Pipeline
from attractor_nb.backends import resolve_backend
from attractor_nb.backends.agents.agent_events import SavedSession
from attractor_nb.model.events import InstructionCarried, ModelCallEnded
from attractor_nb.storage.stored_run import read_run

TWO = """digraph g { start [shape=Mdiamond] plan [prompt="Plan it"] build [prompt="Build it"] exit [shape=Msquare]
    start -> plan -> build -> exit }"""


def told_during(backend, whom, source=TWO):
    """Run two stages, and tell the run something while the program of the first works: result and receipts."""
    receipts, run_program = [], backend._run

    async def telling(call, scope, listener):
        if not receipts:
            receipts.append(running.tell(whom, "Use two nails"))
        return await run_program(call, scope, listener)

    backend._run = telling

    async def go():
        nonlocal running
        running = Pipeline(source).run(backend=backend, logs_root="run", durability="fast", host="kernel", trust=True)
        return await running

    running = None
    return asyncio.run(go()), receipts[0]


def test_it_is_the_next_turn_of_the_agent_in_the_same_session(stubs, agent):
    result, receipt = told_during(resolve_backend(agent), "plan")
    assert result.status == "success", result.reason
    assert str(receipt) == "plan receives it as the next turn of its agent"
    first, turn, build = stubs.calls
    assert ["Use two nails" in call["task"] for call in stubs.calls] == [False, True, False]
    assert "Plan it" not in turn["task"]
    assert [bool(call["resumed"]) for call in (first, turn, build)] == [False, True, False]
    log = read_run(result.logs_root).events
    [carried] = log.select(InstructionCarried)
    assert (carried.name, carried.reach) == ("plan", "turn")
    assert [call.name for call in log.select(ModelCallEnded)] == ["plan", "plan", "build"]


def test_both_turns_are_counted(stubs):
    """Codex tells what the session has consumed so far: 1210 and 40 tokens a call in the stub."""
    result, _ = told_during(resolve_backend("codex"), None)
    assert result.usage_by_node["plan"].input_tokens == 2 * result.usage_by_node["build"].input_tokens
    assert result.usage_by_node["plan"].output_tokens == 2 * result.usage_by_node["build"].output_tokens


def test_the_thread_goes_on_from_the_last_turn(stubs):
    told_during(resolve_backend("codex"), None, TWO.replace("start [", "node [fidelity=full, thread_id=t] start [", 1))
    sessions = [call["resumed"] for call in stubs.calls]
    assert sessions[0] is None
    assert sessions[1] == sessions[2] is not None


def test_a_message_for_another_stage_is_no_turn(stubs):
    _, receipt = told_during(resolve_backend("claude"), "build")
    assert str(receipt) == "queued for the next attempt of build"
    assert ["Use two nails" in call["task"] for call in stubs.calls] == [False, True]


def test_a_program_without_sessions_leaves_it_to_the_next_prompt(stubs, tmp_path):
    echo = tmp_path / "echo.py"
    echo.write_text("import sys; print(sys.stdin.read())")
    result, receipt = told_during(CommandLineBackend([sys.executable, str(echo)]), None)
    assert str(receipt) == "queued for the next prompt"
    assert "Use two nails" not in result["plan"].response
    assert "Use two nails" in result["build"].response


@pytest.mark.parametrize("node", ["plan", None])
def test_an_agent_that_told_no_session_leaves_it_to_the_next_attempt(stubs, node, monkeypatch):
    monkeypatch.setattr(SavedSession, "gone_on", lambda self, session, ended: self)
    result, _ = told_during(resolve_backend("claude"), node)
    assert result.status == "success"
    assert ["Use two nails" in call["task"] for call in stubs.calls] == [False, node is None]
