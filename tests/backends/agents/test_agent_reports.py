"""An agent's report against itself counts, whatever its final result says (ruling 47)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import ClaudeBackend, CodexBackend, CommandLineBackend, GeminiBackend, Pipeline
from attractor_nb.backends.agents.agent_backend import TURN
from attractor_nb.backends.agents.agent_events import Ended
from attractor_nb.processes import command_environment

BACKENDS = {"claude": ClaudeBackend, "codex": CodexBackend, "gemini": GeminiBackend}
SOURCE = """digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; work [prompt="Mend it."]
    start -> work -> exit }"""


@pytest.fixture
def said(tmp_path):
    """Run a stage whose agent says these lines; the result."""

    def run(agent, *lines, exit_code=0):
        output = tmp_path / "output.jsonl"
        output.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        program = tmp_path / "agent"
        program.write_text(f"#!/bin/sh\ncat > /dev/null\ncat {output}\nexit {exit_code}\n")
        program.chmod(0o755)
        return Pipeline(SOURCE).run(
            wait=True, durability="fast", logs_root=tmp_path / "run", backend=BACKENDS[agent](executable=str(program))
        )

    return run


def wrote(text, **facts):
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}, **facts}


def called(call_id, tool, **given):
    return {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": call_id, "name": tool, "input": given}]},
    }


def result(**facts):
    return {"type": "result", "subtype": "success", "is_error": False, "result": "All done.", **facts}


def task(subtype, **facts):
    return {"type": "system", "subtype": subtype, "task_id": "t1", **facts}


STARTED = task("task_started", description="make test", is_backgrounded=True)
STOPPED = task("task_notification", status="stopped", summary="make test")
DONE = result()
RUNNING = {"type": "item.started", "item": {"id": "i", "type": "command_execution", "command": "make test"}}
MESSAGE = {"type": "item.completed", "item": {"type": "agent_message", "text": "All done."}}
TURN_DONE = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}
FINE = {"type": "result", "status": "success", "stats": {"input_tokens": 1, "output_tokens": 1}}
SAID = {"type": "message", "role": "assistant", "content": "All done."}

AGAINST = {
    "claude refuses": (
        "claude",
        [result(stop_reason="refusal", result="I cannot.")],
        "it refused to answer: I cannot.",
    ),
    "claude refuses in a message": (
        "claude",
        [{"type": "assistant", "message": {"stop_reason": "refusal", "content": []}}, DONE],
        "it refused to answer",
    ),
    "claude's background work is stopped": (
        "claude",
        [STARTED, STOPPED, DONE],
        "stopped before it was done: make test",
    ),
    "claude's background work is killed": (
        "claude",
        [STARTED, task("task_updated", patch={"status": "killed"}), DONE],
        "stopped before it was done: make test",
    ),
    "claude's background work is not done": ("claude", [STARTED, DONE], "background work was not done: make test"),
    "claude's call goes on in the background": (
        "claude",
        [
            called("c1", "Bash", command="make test", run_in_background=True),
            task("task_started", description="make test", tool_use_id="c1"),
            DONE,
        ],
        "background work was not done: make test",
    ),
    "claude's work goes to the background": (
        "claude",
        [task("task_started", description="make"), task("task_updated", patch={"is_backgrounded": True}), DONE],
        "background work was not done: make",
    ),
    "an error of claude's message": ("claude", [wrote("API Error: 529", error="overloaded"), DONE], "API Error: 529"),
    "claude complains again after an error": (
        "claude",
        [wrote("API Error", error="overloaded"), wrote("A helper's", error="unknown", parent_tool_use_id="c1"), DONE],
        "claude failed: API Error",
    ),
    "claude's message is an error": ("claude", [wrote("No access", is_api_error_message=True), DONE], "No access"),
    "a status of claude's result": ("claude", [result(api_error_status=500, result="Sorry.")], "claude failed: Sorry."),
    "a reason of claude's result": ("claude", [result(terminal_reason="api_error")], "api_error: All done."),
    "errors of claude's result": ("claude", [result(result="", errors=["boom"])], "boom"),
    "a failed result of claude before another": (
        "claude",
        [result(subtype="error_during_execution", is_error=True, result="boom"), DONE],
        "boom",
    ),
    "codex leaves a command": ("codex", [RUNNING, MESSAGE, TURN_DONE], "background work was not done: make test"),
    "codex reports an error": (
        "codex",
        [{"type": "error", "message": "boom"}, MESSAGE, TURN_DONE],
        "codex failed: boom",
    ),
    "codex fails a turn before another": (
        "codex",
        [{"type": "turn.failed", "error": {"message": "boom"}}, MESSAGE, TURN_DONE],
        "boom",
    ),
    "gemini detects a loop": (
        "gemini",
        [{"type": "error", "severity": "warning", "message": "Loop detected, stopping execution"}, SAID, FINE],
        "gemini failed: Loop detected",
    ),
    "gemini reports an error": (
        "gemini",
        [{"type": "error", "severity": "error", "message": "Maximum session turns exceeded"}, SAID, FINE],
        "Maximum session turns exceeded",
    ),
    "an error of gemini's result": ("gemini", [SAID, {**FINE, "error": {"message": "boom"}}], "gemini failed: boom"),
}
ODD_REFUSALS = [["refusal"], {"type": "refusal"}, "Refusal", " refusal "]
YES = [1, "true", ["yes"], {"is": True}]
ODD = {
    **{f"claude's result refuses with {odd}": ("claude", [result(stop_reason=odd)]) for odd in ODD_REFUSALS},
    **{
        f"claude's message refuses with {odd}": (
            "claude",
            [{"type": "assistant", "message": {"stop_reason": odd, "content": []}}, DONE],
        )
        for odd in ODD_REFUSALS
    },
    **{f"claude's result is an error, {yes}": ("claude", [result(is_error=yes)]) for yes in YES},
    **{f"claude's message is an error, {yes}": ("claude", [wrote("x", is_api_error_message=yes), DONE]) for yes in YES},
    **{f"claude's status is {odd}": ("claude", [result(api_error_status=odd)]) for odd in ("529", 529.0, [529], 529)},
    **{
        f"claude's reason is {odd}": ("claude", [result(terminal_reason=odd)])
        for odd in (["max_turns"], {"a": "error"})
    },
    **{f"claude's subtype is {odd}": ("claude", [result(subtype=odd)]) for odd in (None, ["success"], 1, {})},
    **{
        f"claude's work is in the background, {yes}": (
            "claude",
            [task("task_started", description="make", is_backgrounded=yes), DONE],
        )
        for yes in YES
    },
    **{
        f"claude starts work in the background, {yes}": (
            "claude",
            [called("c1", "Bash", run_in_background=yes), task("task_started", tool_use_id="c1"), DONE],
        )
        for yes in YES
    },
    **{
        f"codex's turn has the error {odd}": ("codex", [MESSAGE, {**TURN_DONE, "error": odd}])
        for odd in ("x", ["x"], 7)
    },
    **{
        f"codex fails with {odd}": ("codex", [MESSAGE, {"type": "turn.failed", "error": odd}])
        for odd in ("x", [], None)
    },
    **{f"gemini's status is {odd}": ("gemini", [SAID, {**FINE, "status": odd}]) for odd in (["success"], True, None)},
    **{
        f"gemini's error is of severity {odd}": (
            "gemini",
            [{"type": "error", "severity": odd, "message": "x"}, SAID, FINE],
        )
        for odd in (["error"], "ERROR", 3, None, {})
    },
    **{
        f"gemini's result has the error {odd}": ("gemini", [SAID, {**FINE, "error": odd}])
        for odd in ("x", ["x"], 7, True)
    },
}


@pytest.mark.parametrize(("agent", "lines"), ODD.values(), ids=ODD)
def test_ruling_47_a_report_against_itself_counts_whatever_its_type(said, agent, lines):
    ended = said(agent, *lines)
    assert ended.status == "fail"
    assert agent in ended.outcomes["work"].failure_reason


@pytest.mark.parametrize("odd", [["max_tokens"], {"why": "max_tokens"}, "MAX_TOKENS"], ids=repr)
def test_ruling_47_a_limit_that_cut_the_answer_off_counts_whatever_its_type(said, odd):
    assert said("claude", result(stop_reason=odd)).outcomes["work"].status.value == "partial_success"


NOTHING = [None, False, 0, "", "false", [], {}]


@pytest.mark.parametrize("value", NOTHING, ids=repr)
def test_a_report_that_says_no_is_none_against_it(said, value):
    facts = {"is_error": value, "stop_reason": value, "terminal_reason": value, "api_error_status": value}
    ended = said("claude", wrote("Hello.", is_api_error_message=value), result(**facts))
    assert ended.status == "success", ended.reason


STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["refusal", "error", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "message"]), inner, max_size=2)
    ),
    max_leaves=4,
)
REPORTS = {
    "claude": (
        "result",
        ["stop_reason", "is_error", "error", "errors", "subtype", "terminal_reason", "api_error_status"],
    ),
    "codex": ("turn.completed", ["error", "usage"]),
    "gemini": ("result", ["status", "error", "stats"]),
}


@given(st.data())
def test_ruling_47_no_type_of_a_report_is_a_crash(data):
    agent = data.draw(st.sampled_from(sorted(REPORTS)))
    kind, names = REPORTS[agent]
    line = {"type": kind} | {name: data.draw(STRANGE) for name in names}
    (ended,) = [event for event in BACKENDS[agent].dialect.read(line) if isinstance(event, Ended)]
    said_against = any("refusal" in json.dumps(line.get(name, "")) for name in ("stop_reason", "error", "errors"))
    assert ended.is_failure or not said_against


@pytest.mark.parametrize("name", ["is_error", "api_error_status"])
def test_ruling_47_a_report_that_is_nested_too_deep_to_be_read_counts(name):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    line = {"type": "result", "subtype": "success", name: deep}
    (ended,) = [event for event in BACKENDS["claude"].dialect.read(line) if isinstance(event, Ended)]
    assert ended.is_failure


NOT_AGAINST = {
    "claude's background work is done": ("claude", [STARTED, task("task_notification", status="completed"), DONE]),
    "claude ends its background work itself": (
        "claude",
        [STARTED, called("c2", "TaskStop", task_id="t1"), STOPPED, DONE],
    ),
    "claude's work ends with its call": ("claude", [task("task_started", description="look"), DONE]),
    "an agent that claude started meets an error": (
        "claude",
        [wrote("API Error", error="overloaded", parent_tool_use_id="c1"), DONE],
    ),
    "claude names its reason": ("claude", [result(terminal_reason="completed", stop_reason="end_turn", errors=[])]),
    "codex reconnects": ("codex", [{"type": "error", "message": "Reconnecting... 2/5"}, MESSAGE, TURN_DONE]),
    "codex's command is done": (
        "codex",
        [RUNNING, {"type": "item.completed", "item": {**RUNNING["item"], "exit_code": 1}}, MESSAGE, TURN_DONE],
    ),
    "gemini warns": ("gemini", [{"type": "error", "severity": "warning", "message": "slow"}, SAID, FINE]),
}


@pytest.mark.parametrize(("agent", "lines", "words"), AGAINST.values(), ids=AGAINST)
def test_ruling_47_a_report_against_itself_is_no_success(said, agent, lines, words):
    ended = said(agent, *lines)
    assert ended.status == "fail"
    assert words in ended.outcomes["work"].failure_reason


@pytest.mark.parametrize(("agent", "lines"), NOT_AGAINST.values(), ids=NOT_AGAINST)
def test_what_was_put_right_or_done_is_no_report_against_it(said, agent, lines):
    ended = said(agent, *lines)
    assert (ended.status, ended.context.get("work.response")) == ("success", "All done.")


def test_ruling_47_an_exit_code_after_a_success_is_told_with_what_the_program_said(said):
    assert "claude ended with exit code 3" in said("claude", STARTED, DONE, exit_code=3).reason


@pytest.mark.parametrize("text", ["", None])
def test_a_result_without_text_leaves_what_claude_wrote(said, text):
    ended = said("claude", wrote("Hello."), result(result=text))
    assert (ended.status, ended.context.get("work.response")) == ("success", "Hello.")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_error": True}, "an error: Fine."),
        ({"is_error": 1}, "an error: Fine."),
        ({"is_error": "true"}, "an error: Fine."),
        ({"error": ["rate limit"]}, "rate limit"),
        ({"error": "rate limit exceeded"}, "rate limit exceeded"),
        ({"error": {"message": "no credit"}}, "no credit"),
    ],
)
def test_ruling_47_an_error_beside_the_answer_of_any_program_is_no_success(tmp_path, facts, reason):
    (tmp_path / "out.json").write_text(json.dumps({"result": "Fine.", **facts}))
    backend = CommandLineBackend(["cat", str(tmp_path / "out.json")], output="json")
    ended = Pipeline(SOURCE).run(wait=True, durability="none", backend=backend)
    assert ended.status == "fail"
    assert reason in ended.reason


def test_an_error_that_is_empty_is_none(tmp_path):
    (tmp_path / "out.json").write_text('{"result": "Fine.", "error": null, "is_error": false}')
    backend = CommandLineBackend(["cat", str(tmp_path / "out.json")], output="json")
    assert Pipeline(SOURCE).run(wait=True, durability="none", backend=backend).status == "success"


def test_ruling_47_an_agent_is_told_that_nothing_outlives_its_turn(stubs, agent):
    Pipeline(SOURCE).run(wait=True, durability="none", backend=agent)
    assert TURN in stubs.calls[0]["task"]


OUTER = {
    "claude": {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "1", "CLAUDE_CODE_SESSION_ID": "s"},
    "codex": {"CODEX_THREAD_ID": "t", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE": "x"},
    "gemini": {"GEMINI_CLI": "1", "GEMINI_CLI_IDE_SERVER_PORT": "1"},
}  # fmt: skip
OWN = {"claude": "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "codex": "CODEX_HOME", "gemini": "GEMINI_SANDBOX"}


def test_an_agent_does_not_take_itself_for_a_part_of_the_session_around_it(stubs, agent, monkeypatch):
    monkeypatch.setenv(OWN[agent], "kept")
    for name, value in OUTER[agent].items():
        monkeypatch.setenv(name, value)
    Pipeline(SOURCE).run(wait=True, durability="none", backend=agent)
    environment = stubs.calls[0]["env"]
    assert not OUTER[agent].keys() & environment.keys()
    assert environment[OWN[agent]] == "kept"


def test_a_command_inherits_no_marks_of_a_session_around_it():
    marks = {name: value for outer in OUTER.values() for name, value in outer.items()}
    assert command_environment({**marks, "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize("first", [True, False])
def test_ruling_47_a_result_that_says_twice_whether_it_is_an_error_is_none(said, first):
    both = [json.dumps(each) for each in (first, not first)]
    line = (
        f'{{"type": "result", "subtype": "success", "is_error": {both[0]}, "result": "Mended.", "is_error": {both[1]}}}'
    )
    assert said("claude", line).status == "fail"
