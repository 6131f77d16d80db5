"""An agent that does not end: its answer is taken, and what it reported is counted (rulings 18, 47)."""

import asyncio
import json

import pytest

from attractor_nb import ClaudeBackend, Pipeline
from attractor_nb.backends.agents import output_reader
from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.output_reader import (
    ANSWER_GRACE_SECONDS,
    WORK_GRACE_SECONDS,
    Listener,
    ended_in_grace,
)
from tests.waiting import is_alive

MESSAGE = {
    "type": "assistant",
    "message": {
        "id": "m1",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "All done."}],
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 20,
            "output_tokens": 1,
        },
    },
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "All done.",
    "total_cost_usd": 0.0123,
    "usage": {"input_tokens": 5, "output_tokens": 40},
}
DELTA = {"type": "stream_event", "event": {"type": "message_delta", "usage": {"output_tokens": 700}}}
STARTED = {"type": "system", "subtype": "task_started", "task_id": "t1", "is_backgrounded": True}
SOURCE = """digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Mend it.", retry_policy="none", {}]
    start -> work -> exit }}"""


@pytest.fixture
def stays(tmp_path):
    """Run a stage whose agent says these lines and stays; the result, and the ids of its processes."""

    def run(attributes, *lines, **options):
        (tmp_path / "output.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        program, pids = tmp_path / "agent", tmp_path / "pids"
        program.write_text(
            f"#!/bin/sh\necho $$ >> {pids}\ncat > /dev/null\ncat {tmp_path / 'output.jsonl'}\nexec sleep 1000\n"
        )
        program.chmod(0o755)
        result = Pipeline(SOURCE.format(attributes)).run(
            wait=True,
            durability="fast",
            logs_root=tmp_path / "run",
            backend=ClaudeBackend(executable=str(program)),
            **options,
        )
        return result, [int(pid) for pid in pids.read_text().split()]

    return run


def test_ruling_47_an_agent_that_stays_after_its_result_is_ended_and_its_answer_taken(stays, monkeypatch):
    monkeypatch.setattr(output_reader, "ANSWER_GRACE_SECONDS", 0.2)
    events = []
    result, pids = stays("", MESSAGE, RESULT, observers=[events.append])
    assert (result.status, result.context.get("work.response")) == ("success", "All done.")
    assert result.usage.cost_usd == 0.0123
    assert not any(is_alive(pid) for pid in pids)
    warnings = [event.message for event in events if type(event).__name__ == "RunWarning"]
    assert warnings == ["work: claude did not exit after its result, and was ended"]


def test_ruling_18_the_price_of_an_agent_that_is_cut_off_counts_and_the_budget_holds(stays):
    result, pids = stays("timeout=1500ms, max_retries=5", MESSAGE, RESULT, max_budget_usd=0.02)
    assert result.status == "fail"
    assert "max_budget_usd" in result.reason
    assert len(pids) == 2
    assert result.usage.cost_usd == pytest.approx(2 * 0.0123)


def test_ruling_18_tokens_of_messages_count_where_the_end_is_never_said(stays):
    """A message says them again with each of its parts."""
    result, _ = stays("timeout=1500ms, max_retries=0", MESSAGE, MESSAGE, DELTA)
    assert "timeout: work took more than 1500ms" in result.reason
    assert (result.usage.input_tokens, result.usage.output_tokens) == (33, 700)


def grace_after(*lines):
    async def heard():
        listener = Listener(Claude(), None, lambda: 0.0)
        listener.take("stdout", "".join(json.dumps(line) + "\n" for line in lines))
        return listener.grace_seconds

    return asyncio.run(heard())


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([MESSAGE], None),
        ([MESSAGE, RESULT], ANSWER_GRACE_SECONDS),
        ([MESSAGE, RESULT, {"type": "system", "subtype": "status"}], ANSWER_GRACE_SECONDS),
        ([RESULT, MESSAGE], None),
        ([STARTED, RESULT], WORK_GRACE_SECONDS),
        ([STARTED, RESULT, {**STARTED, "subtype": "task_notification", "status": "completed"}], ANSWER_GRACE_SECONDS),
    ],
    ids=["no result", "a result", "noise after it", "another turn", "work goes on", "work is done"],
)
def test_the_grace_begins_with_the_last_word(lines, seconds):
    assert grace_after(*lines) == seconds


class Agent:
    """Gives these graces, one each time it is asked."""

    def __init__(self, *graces):
        self.moved = asyncio.Event()
        self._graces = list(graces)

    @property
    def grace_seconds(self):
        return self._graces.pop(0)


def test_an_agent_that_goes_on_after_its_last_word_has_not_said_it():
    async def goes_on():
        agent, end = Agent(30.0, None), asyncio.Event()

        async def work():
            agent.moved.set()
            await asyncio.sleep(0)
            end.set()
            return "its own end"

        return await ended_in_grace(work(), agent)

    assert asyncio.run(goes_on()) == ("its own end", False)


def test_whoever_is_cancelled_ends_the_agent_first():
    ended = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    async def cancelled():
        task = asyncio.ensure_future(ended_in_grace(work(), Agent(None, None)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["ended"]
