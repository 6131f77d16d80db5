"""The handler of commands (spec 4.10; ruling 25)."""

import asyncio
import json

import pytest

from attractor_nb.context import Context
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.handlers.tool import ToolHandler
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.processes import LocalProcesses
from attractor_nb.testing import FakeProcesses, FakeResult, try_stage, verify_handler


def tool(command="make", **attrs):
    return Node("build", {"shape": "parallelogram", "tool_command": command, **attrs})


def run_fake(tmp_path, result=None, node=None, context=None):
    processes = FakeProcesses([result or FakeResult()])
    trial = asyncio.run(try_stage(ToolHandler(processes), node or tool(), tmp_path, context=context))
    return trial, processes


def run_real(tmp_path, node, context=None):
    return asyncio.run(try_stage(ToolHandler(LocalProcesses()), node, tmp_path, context=context))


def test_it_keeps_the_handler_contract():
    assert asyncio.run(verify_handler(ToolHandler(FakeProcesses()))).status is StageStatus.SUCCESS


@pytest.mark.parametrize("command", ["", "  "], ids=["empty", "blank"])
def test_a_tool_without_a_command_fails_for_good(tmp_path, command):
    trial, processes = run_fake(tmp_path, node=tool(command))
    assert (trial.outcome.failure_reason, trial.outcome.is_terminal) == ("No tool_command specified", True)
    assert processes.commands == []


def test_exit_code_0_is_success(tmp_path):
    outcome = run_fake(tmp_path, FakeResult("built\n", "a warning\n"))[0].outcome
    assert outcome.status is StageStatus.SUCCESS
    assert outcome.notes == "Tool completed: make"
    assert outcome.context_updates == {
        "tool.output": "built\n",
        "tool.stderr": "a warning\n",
        "tool.exit_code": 0,
        "tool.last_line": "built",
    }


def test_ruling_25_another_exit_code_is_fail_with_the_end_of_stderr_and_the_output_kept(tmp_path):
    outcome = run_fake(tmp_path, FakeResult("half", "x" * 600 + "no rule\n", 2))[0].outcome
    assert outcome.status is StageStatus.FAIL
    assert outcome.failure_reason.startswith("the command ended with exit code 2: xxx")
    assert outcome.failure_reason.endswith("no rule")
    assert len(outcome.failure_reason) < 560
    assert outcome.context_updates["tool.exit_code"] == 2
    assert outcome.context_updates["tool.output"] == "half"


def test_a_timeout_is_a_failure_that_may_be_retried(tmp_path):
    node = tool(timeout=Duration(1500))
    trial, processes = run_fake(tmp_path, FakeResult(exit_code=-9, is_timed_out=True), node)
    assert processes.commands[0].timeout_seconds == 1.5
    assert trial.outcome.failure_reason == "the command timed out after 1500ms and was ended"
    assert not trial.outcome.is_terminal


def test_ruling_25_the_command_is_never_interpolated(tmp_path):
    context = Context({"last_response": "; rm -rf /", "graph.goal": "$(reboot)"})
    _, processes = run_fake(tmp_path, node=tool("echo $goal ${last_response}"), context=context)
    assert processes.commands[0].command == "echo $goal ${last_response}"


def test_ruling_25_values_reach_the_command_as_json_and_as_environment(tmp_path):
    context = Context({"tests.failed": 3, "internal.retry_count.build": 1})
    trial, processes = run_fake(tmp_path, context=context)
    given = processes.commands[0]
    assert json.loads(given.stdin) == {"tests.failed": 3}
    assert trial.files.read_text("context.json") == given.stdin.decode()
    stage = tmp_path / "build"
    assert given.env == {
        "ATTRACTOR_RUN_ID": "trial",
        "ATTRACTOR_NODE_ID": "build",
        "ATTRACTOR_STAGE_DIR": str(stage),
        "ATTRACTOR_LOGS_ROOT": str(tmp_path),
        "ATTRACTOR_CONTEXT_FILE": str(stage / "context.json"),
        "ATTRACTOR_IDEMPOTENCY_KEY": "trial:build:1",
    }
    assert given.output_directory == stage


def test_output_is_announced_as_it_arrives(tmp_path):
    events = run_fake(tmp_path, FakeResult("out", "err"))[0].events
    assert [(event.name, event.channel, event.text) for event in events] == [
        ("build", "stdout", "out"),
        ("build", "stderr", "err"),
    ]


def test_a_real_command_reads_the_context_and_its_environment(tmp_path):
    node = tool('cat; printf " %s" "$ATTRACTOR_NODE_ID"; cat "$ATTRACTOR_CONTEXT_FILE" >&2')
    outcome = run_real(tmp_path, node, Context({"a": "ü"})).outcome
    assert outcome.context_updates["tool.output"] == '{"a":"ü"} build'
    assert json.loads(outcome.context_updates["tool.stderr"]) == {"a": "ü"}


@pytest.mark.parametrize(
    ("command", "reason"),
    [("echo boom; exit 1", "exit code 1; stdout.txt ends with: boom"), ("exit 1", "exit code 1; it wrote nothing")],
)
def test_a_failed_command_without_stderr_shows_the_end_of_its_output(tmp_path, command, reason):
    trial = run_real(tmp_path, tool(command))
    assert trial.outcome.failure_reason == f"the command ended with {reason}"


def test_a_real_command_leaves_its_full_output_in_the_stage_directory(tmp_path):
    trial = run_real(tmp_path, tool("echo hello; echo oops >&2; exit 3"))
    assert trial.outcome.failure_reason == "the command ended with exit code 3: oops"
    assert trial.files.read_text("stdout.txt") == "hello\n"
    assert trial.files.read_text("stderr.txt") == "oops\n"


def test_a_real_command_that_takes_too_long_is_ended(tmp_path):
    outcome = run_real(tmp_path, tool("echo begun; sleep 30", timeout=Duration(300))).outcome
    assert outcome.failure_reason == ("the command timed out after 300ms and was ended; stdout.txt ends with: begun")
    assert outcome.context_updates["tool.output"] == "begun\n"


@pytest.mark.parametrize(
    ("command", "shell", "status"),
    [
        ("false | cat", "sh", "success"),
        ("false | cat", "bash", "fail"),
        ("[[ a == a ]] && echo 'it is' \"$0\"", "bash", "success"),
    ],
)
def test_a_command_runs_in_the_shell_that_its_node_names(tmp_path, command, shell, status):
    trial = run_real(tmp_path, tool(command, tool_shell=shell))
    assert str(trial.outcome.status) == status


def test_the_shell_is_part_of_what_is_called_and_of_what_is_trusted(tmp_path):
    trial, processes = run_fake(tmp_path, node=tool("make | tail", tool_shell="bash"))
    assert processes.commands[0].command == "bash -o pipefail -c 'make | tail'"
    assert trial.outcome.notes == "Tool completed: make | tail"
    graph = parse_dot('digraph { t [shape=parallelogram, tool_command="make | tail", tool_shell=bash] }')
    assert [entry.attribute for entry in executable_surface(graph).commands] == ["tool_command", "tool_shell"]
