"""The parts of the agents' backends: lines, values that are not trusted, the installed agents."""

import asyncio
import functools
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.backends.agents import ClaudeBackend, installed_agents
from attractor_nb.backends.agents.agent_backend import strict_schema
from attractor_nb.backends.agents.agent_events import (
    Began,
    Complained,
    Ended,
    TextWritten,
    Tokens,
    ToolAnswered,
    ToolCalled,
    WorkBegan,
    WorkEnded,
    cost_at,
    count_at,
    plain_text,
)
from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.dialects import Codex, Gemini
from attractor_nb.backends.agents.output_reader import ObjectLines, Transcript
from attractor_nb.model.outcome import Usage
from attractor_nb.testing import FakeProcesses, FakeResult

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
TYPES = [
    "system", "assistant", "user", "result", "thread.started", "item.started", "item.completed", "turn.completed",
    "turn.failed", "error", "init", "message", "tool_use", "tool_result",
]  # fmt: skip
FIELDS = [
    "subtype", "message", "content", "item", "usage", "error", "session_id", "thread_id", "role", "result", "is_error",
    "modelUsage", "stats", "status", "severity", "parameters", "tool_id", "total_cost_usd", "errors", "delta",
    "task_id", "patch", "description", "is_backgrounded", "stop_reason", "terminal_reason", "api_error_status",
]  # fmt: skip
LINES = st.fixed_dictionaries({"type": st.sampled_from(TYPES) | JSON}, optional=dict.fromkeys(FIELDS, JSON))


@given(LINES)
def test_no_line_is_too_strange(line):
    for dialect in (Claude(), Codex(), Gemini()):
        transcript = Transcript()
        for event in dialect.read(line):
            ended = transcript.take(event, 0.0)
            if ended is not None:
                values = [ended.arguments, ended.result, ended.error]
                assert json.loads(json.dumps(values, allow_nan=False)) == values
        assert transcript.answer.encode().decode() == transcript.answer


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3), max_size=5), st.data())
def test_objects_come_out_of_a_stream_however_it_is_cut(objects, data):
    text = "".join(json.dumps(entry) + "\n" for entry in objects)
    lines, found = ObjectLines(), []
    while text:
        cut = data.draw(st.integers(1, len(text)))
        found += lines.feed(text[:cut])
        text = text[cut:]
    found += lines.finish()
    assert found == objects


def test_a_line_that_is_too_long_is_dropped_and_the_next_one_read():
    lines = ObjectLines(max_characters=20)
    found = [*lines.feed('{"a": "' + "x" * 10), *lines.feed("x" * 10 + '"}\n{"b": 1}\n')]
    assert (found, lines.dropped) == ([{"b": 1}], 1)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07red", "red"),
        ("\x1b]8;;http://x\x1b\\red\x1b]8;;\x1b\\", "red"),
        ("re\x1bd", "re"),
    ],
    ids=["a colour", "a title", "a link", "a sequence of two characters"],
)
def test_escape_sequences_of_terminals_are_taken_out(text, left):
    assert plain_text(text) == left


@pytest.mark.parametrize("value", [True, -1, 2**60, 1.5, "7", None, [], float("nan")])
def test_what_counts_nothing_is_no_count(value):
    assert count_at({"tokens": value}, "tokens") == 0


@pytest.mark.parametrize("value", [True, -0.5, float("inf"), float("nan"), "0.1", None, 1e12])
def test_what_is_no_price_is_no_price(value):
    assert cost_at({"cost": value}, "cost") is None


def test_an_answer_in_pieces_is_one_message_until_a_tool_is_called():
    transcript = Transcript()
    for event in (
        TextWritten("I ", is_whole=False),
        TextWritten("look.", is_whole=False),
        ToolCalled("1", "ls"),
        ToolAnswered("1", "a"),
    ):
        transcript.take(event, 0.0)
    assert transcript.answer == "I look."
    transcript.take(TextWritten("Done.", is_whole=False), 0.0)
    assert transcript.answer == "Done."


@pytest.mark.parametrize(
    ("line", "answer"), [({"result": ""}, "I begin."), ({"result": "Done."}, "Done."), ({}, "I begin.")]
)
def test_what_was_said_last_is_the_answer_where_the_end_does_not_say_one(line, answer):
    transcript = Transcript()
    transcript.take(TextWritten("I begin."), 0.0)
    for event in Claude().read({"type": "result", "subtype": "success", "is_error": False, **line}):
        transcript.take(event, 0.0)
    assert transcript.answer == answer


def test_the_answer_to_a_call_that_nobody_saw_tells_nothing():
    assert Transcript().take(ToolAnswered("1", "a"), 0.0) is None


# What is installed


def look(**options):
    return {agent.name: agent for agent in asyncio.run(installed_agents(**options))}


def test_installed_agents_are_found_with_their_versions(stubs):
    found = look()
    assert {name: agent.version for name, agent in found.items()} == {
        "claude": "2.1.42",
        "codex": "0.142.0",
        "gemini": "0.45.0",
    }
    assert all(agent.is_installed and agent.executable and not agent.problem for agent in found.values())


def test_agents_that_are_not_installed_say_how_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = look()
    assert not any(agent.is_installed for agent in found.values())
    assert found["codex"].install == "npm install -g @openai/codex"


PROBLEMS = {
    "#!/bin/sh\nsleep 1000\n": "it did not say its version within 0.2 s",
    "#!/bin/sh\necho broken >&2\nexit 3\n": "it ended with exit code 3: broken",
    "#!/bin/sh\necho hello\n": "it did not say its version",
    "#!/no/such/interpreter\n": "cannot be started",
}


@pytest.mark.parametrize("script", PROBLEMS)
def test_an_agent_that_does_not_say_its_version_is_a_problem_and_holds_nobody_up(script, monkeypatch, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "claude").write_text(script)
    (folder / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    found = look(timeout_seconds=0.2)["claude"]
    assert (found.is_installed, found.version) == (True, "")
    assert PROBLEMS[script] in found.problem


def test_only_installed_agents_are_started(stubs, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    processes = FakeProcesses([FakeResult("1.2.3")])
    look(processes=processes)
    assert processes.commands == []


def test_importing_the_backends_loads_nothing_heavy():
    import subprocess

    code = "import sys, attractor_nb.backends.agents as a; print([m for m in ('httpx', 'openai', 'pydantic_ai') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


# Lines as the documentation and the sources of the agents show them

SAID = [
    (
        Claude(),
        {"type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-sonnet-4-5", "tools": ["Bash"], "mcp_servers": []},
        [Began("s-1", "claude-sonnet-4-5")],
    ),
    (
        Claude(),
        {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a"}}]}},
        [TextWritten("I look."), ToolCalled("toolu_1", "Read", {"file_path": "/a"})],
    ),
    (
        Claude(),
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}]}},
        [ToolAnswered("toolu_1", "text")],
    ),
    (
        Claude(),
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "Claude requested permissions to use Bash"}]}},
        [ToolAnswered("toolu_1", error="Claude requested permissions to use Bash")],
    ),
    (
        Claude(),
        {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s-2", "num_turns": 2, "total_cost_usd": 0.5, "stop_reason": "max_tokens",
         "usage": {"input_tokens": 1, "output_tokens": 2},
         "modelUsage": {"a": {"inputTokens": 10, "outputTokens": 4, "cacheReadInputTokens": 100, "cacheCreationInputTokens": 5, "costUSD": 0.4}, "b": {"inputTokens": 3, "outputTokens": 1}}},
        [Began("s-2"), Ended("Done.", usage=Usage(118, 5, 0.5, 2), is_truncated=True)],
    ),
    (
        Claude(),
        {"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "s-2", "errors": ["first", "second"]},
        [Began("s-2"), Ended(is_failure=True, error="error_during_execution: first; second")],
    ),
    (Codex(), {"type": "thread.started", "thread_id": "0199a213-81c0"}, [Began("0199a213-81c0")]),
    (
        Codex(),
        {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "Done."}},
        [TextWritten("Done.")],
    ),
    (Codex(), {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Thinking**"}}, []),
    (
        Codex(),
        {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", "command": "bash -lc ls", "aggregated_output": "", "exit_code": None, "status": "in_progress"}},
        [ToolCalled("item_1", "command_execution", {"command": "bash -lc ls"}), WorkBegan("item_1", "bash -lc ls", is_background=True)],
    ),
    (
        Codex(),
        {"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "command": "rm x", "aggregated_output": "", "exit_code": None, "status": "declined"}},
        [ToolAnswered("item_1", error="declined", called=ToolCalled("item_1", "command_execution", {"command": "rm x"}), is_denied=True), WorkEnded("item_1")],
    ),
    (
        Codex(),
        {"type": "item.completed", "item": {"id": "item_2", "type": "file_change", "changes": [{"path": "a", "kind": "add"}], "status": "completed"}},
        [ToolAnswered("item_2", called=ToolCalled("item_2", "file_change", {"changes": [{"path": "a", "kind": "add"}]}))],
    ),
    (
        Codex(),
        {"type": "item.completed", "item": {"id": "item_4", "type": "mcp_tool_call", "server": "docs", "tool": "search", "arguments": {"q": "x"}, "result": {"content": [{"type": "text", "text": "found"}]}, "error": None, "status": "completed"}},
        [ToolAnswered("item_4", "found", called=ToolCalled("item_4", "search", {"server": "docs", "arguments": {"q": "x"}}))],
    ),
    (
        Codex(),
        {"type": "turn.completed", "usage": {"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122, "reasoning_output_tokens": 64}},
        [Ended(usage=Usage(24763, 122, None, 1), tokens=(Tokens("", 24763, 122, 24448),))],
    ),
    (Codex(), {"type": "turn.failed", "error": {"message": "no"}}, [Ended(is_failure=True, error="no")]),
    (Codex(), {"type": "error", "message": "Reconnecting... 1/5"}, [Complained("Reconnecting... 1/5")]),
    (Gemini(), {"type": "init", "session_id": "g-1", "model": "auto"}, [Began("g-1", "auto")]),
    (Gemini(), {"type": "message", "role": "user", "content": "what was asked"}, []),
    (Gemini(), {"type": "message", "role": "assistant", "content": "Do", "delta": True}, [TextWritten("Do", is_whole=False)]),
    (
        Gemini(),
        {"type": "tool_result", "tool_id": "t1", "status": "error", "error": {"type": "E", "message": "no such file"}},
        [ToolAnswered("t1", error="no such file")],
    ),
    (
        Gemini(),
        {"type": "result", "status": "success", "stats": {"total_tokens": 30, "input_tokens": 20, "output_tokens": 10, "cached": 5, "input": 15, "duration_ms": 1, "tool_calls": 0}},
        [Ended(usage=Usage(20, 10, None, 1), tokens=(Tokens("", 20, 10, 5),))],
    ),
    (Gemini(), {"type": "result", "status": "error", "error": {"type": "E", "message": "no"}}, [Ended(is_failure=True, error="no")]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "line", "events"), SAID)
def test_a_line_says_what_the_agents_documentation_says(dialect, line, events):
    assert dialect.read(line) == events


def test_agents_say_that_they_do_more_than_answer(stubs):
    assert ClaudeBackend().has_effects


NESTED = functools.reduce(lambda inner, _: [inner], range(100_000), 0)


@pytest.mark.parametrize("value", [10**5000, NESTED], ids=["huge", "deep"])
def test_a_value_that_has_no_text_leaves_the_rest_of_its_call_to_be_told(value):
    transcript = Transcript()
    transcript.take(ToolCalled("1", "read", {"path": "a.py", "odd": value}), 0.0)
    ended = transcript.take(ToolAnswered("1", "text"), 1.0)
    assert ended.arguments == {"path": "a.py", "odd": ""}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "array"},
        {"description": "anything"},
        {"type": "array", "items": True},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "patternProperties": {"^x": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"type": "object"}]},
    ],
    ids=str,
)
def test_a_schema_that_strict_mode_cannot_say_binds_nothing(schema):
    """The prompt asks for the object all the same, and the answer is checked against the whole schema."""
    assert strict_schema(json.dumps({"type": "object", "properties": {"a": {"type": "string"}}}))
    assert strict_schema(json.dumps(schema)) == ""
