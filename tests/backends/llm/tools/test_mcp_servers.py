"""Tools of MCP servers: a real server of the reference implementation, run as a program of its own."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools import mcp_servers as servers
from attractor_nb.backends.llm.tools.mcp_transports import _Lines, _readable
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError, RetryableError, TerminalError, UntrustedSource
from attractor_nb.model.allowed_tools import ServerDeclaration
from attractor_nb.source import SourceText
from tests.waiting import is_alive, wait_for_end, wait_until

pytest.importorskip("mcp")
SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND = f"{sys.executable} {SERVER}"
ODD = f"{sys.executable} {Path(__file__).with_name('odd_mcp_server.py')}"
SOURCE = """digraph g {{ graph [mcp.files.command="{}", mcp.files.env="SERVER_PIDS, A_NAME, SOME_API_KEY" {}]
    start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Do it.", allowed_tools="{}" {}]
    start -> work -> exit }}"""


@pytest.fixture
def pids(monkeypatch, tmp_path):
    """The process ids of the servers that were started."""
    log = tmp_path / "pids.txt"
    monkeypatch.setenv("SERVER_PIDS", str(log))
    return lambda: [int(line) for line in log.read_text().splitlines()] if log.exists() else []


def run(user, allowed="mcp:files/*", *, command=COMMAND, graph="", attributes="", **options):
    events = []
    pipeline = Pipeline(SOURCE.format(command, graph, allowed, attributes), backend=user)
    options = {"logs_root": "run", "durability": "fast", "wait": True, "trust": True, **options}
    result = pipeline.run(observers=[events.append], **options)
    return result, [event for event in events if type(event).__name__ == "ToolCallEnded"]


def told(tool_user, *calls, **options):
    user = tool_user(list(calls))
    result, _ = run(user, **options)
    assert result.status == "success", result.reason
    return user.told


@pytest.mark.kind("an MCP server")
def test_a_model_calls_a_tool_of_a_server_that_ends_with_the_run(tool_user, pids, kept, tmp_path):
    (tmp_path / "note.txt").write_text("remember the milk")
    user = tool_user([("files_read_file", {"path": str(tmp_path / "note.txt")}), ("files_read_file", {"path": "/no"})])
    result, calls = run(user, "mcp:files/read_file, list")
    assert result.status == "success", result.reason
    assert user.offered == ["list_files", "files_read_file"]
    assert user.told[0] == "remember the milk"
    assert user.told[1].startswith("files/read_file: ")
    assert [(event.tool, event.result, bool(event.error)) for event in calls] == [
        ("files_read_file", "remember the milk", False),
        ("files_read_file", "", True),
    ]
    assert kept(result.logs_root)[0]["result"] == "remember the milk"
    assert len(pids()) == 1
    wait_for_end(*pids())


@pytest.mark.campaign
def test_all_tools_of_a_server(tool_user, pids):
    user = tool_user([])
    run(user)
    assert {"files_read_file", "files_where", "files_die"} <= set(user.offered)


@pytest.mark.campaign
def test_one_server_serves_all_stages_of_a_run(tool_user, pids):
    source = SOURCE.format(COMMAND, "", "mcp:files/where", "").replace(
        "start -> work -> exit", 'more [prompt="More.", allowed_tools="mcp:files/where"] start -> work -> more -> exit'
    )
    user = tool_user([("files_where", {})])
    result = Pipeline(source, backend=user).run(logs_root="run", durability="fast", wait=True, trust=True)
    assert result.status == "success", result.reason
    assert len(pids()) == 1


def test_a_server_that_no_stage_needs_is_not_started(tool_user, pids):
    assert run(tool_user([]), "list")[0].status == "success"
    assert pids() == []


@pytest.mark.campaign
def test_it_works_in_the_working_directory_with_named_variables_alone(tool_user, pids, monkeypatch, tmp_path):
    monkeypatch.setenv("A_NAME", "a value")
    monkeypatch.setenv("OTHER_API_KEY", "not for servers")
    (tmp_path / "project").mkdir()
    said = told(
        tool_user,
        ("files_where", {}),
        ("files_variable", {"name": "A_NAME"}),
        ("files_variable", {"name": "OTHER_API_KEY"}),
        workdir="project",
    )
    assert said == [str(tmp_path / "project"), "a value", "not set"]


@pytest.mark.campaign
def test_what_a_server_answers_is_bounded(tool_user, pids):
    (said,) = told(tool_user, ("files_much", {"characters": 3_000_000}))
    assert len(said) < 51_000
    assert "characters left out" in said


CONTENTS = {
    "resource": "Found:\nremember the milk",
    "blob": "[resource file:///logo.png of ",
    "surrogate": "a\ufffdb",
    "link": "[resource_link https://example.org/report.pdf of ",
}


@pytest.mark.parametrize("mode", CONTENTS)
def test_the_text_of_a_resource_reaches_the_model_and_of_what_is_no_text_where_it_is(mode, tool_user):
    (said,) = told(tool_user, ("files_get", {}), command=f"{ODD} {mode}")
    assert said.startswith(CONTENTS[mode])


OUTPUTS = {
    "regex": "files/get: the server gave an invalid response: ",
    "refs": "files/get: the server gave an invalid response: the schema for the results of get cannot",
    "broken": "files/get: the server gave an invalid response: 'a' is a required property",
    "kept": "found",
}


@pytest.mark.parametrize("mode", OUTPUTS)
def test_ruling_52_no_schema_of_a_server_for_its_results_holds_the_run(mode, tool_user):
    (said,) = told(tool_user, ("files_get", {}), command=f"{ODD} {mode}")
    assert said.startswith(OUTPUTS[mode])


def test_the_text_of_a_resource_is_bounded(tool_user):
    (said,) = told(tool_user, ("files_get", {}), command=f"{ODD} large")
    assert len(said) < 51_000
    assert "characters left out" in said


def test_a_tool_that_takes_too_long_is_told_to_the_model(tool_user, pids):
    (said,) = told(tool_user, ("files_slow", {}), graph=', mcp.files.timeout="300ms"')
    assert said == "files/slow: no answer within 0.3 s"
    wait_for_end(*pids())


@pytest.mark.campaign
def test_a_server_that_dies_is_told_to_the_model_and_then_fails_the_stage(tool_user, pids, kept):
    user = tool_user([("files_die", {}), ("files_where", {})])
    result, _ = run(user, attributes=", max_retries=0")
    assert result.status == "fail"
    assert "the MCP server 'files' ended with exit code 7" in result.reason
    assert "the disk is on fire" in result.reason
    assert "the disk is on fire" in user.told[0]
    assert len(kept(result.logs_root)) == 2
    wait_for_end(*pids())


@pytest.mark.campaign
def test_the_next_attempt_starts_it_anew(tool_user, pids):
    class Once(tool_user):
        async def run(self, node, prompt, context):
            try:
                return await super().run(node, prompt, context)
            finally:
                self.calls = [("files_where", {})]

    user = Once([("files_die", {}), ("files_where", {})])
    result, _ = run(user, attributes=', max_retries=1, retry_policy="none"')
    assert result.status == "success", result.reason
    assert len(pids()) == 2
    wait_for_end(*pids())


STARTS = {
    "exit 3": "the MCP server 'files' ended with exit code 3",
    "echo no such module >&2; exit 1": "no such module",
    "/no/such/program": "not found",
    "cat": "the MCP server 'files'",
    "echo no licence >&2; exit 0": "ended with exit code 0; it said last:\nno licence",
    "echo no licence; exit 0": "ended with exit code 0; it said last:\nno licence",
    f"{ODD} refuses": "the MCP server 'files' refused to start: the licence has expired",
    f"{ODD} old": "Unsupported protocol version from the server: 1999-01-01",
    f"{ODD} schemaless": "the MCP server 'files' broke the protocol: ListToolsResult tools.0.inputSchema.type: Field",
}


@pytest.mark.parametrize("command", STARTS)
def test_a_server_that_does_not_start_fails_the_stage_and_says_why(command, tool_user, monkeypatch):
    monkeypatch.setattr(servers, "START_SECONDS", 1.0 if command == "cat" else 30.0)
    result, _ = run(tool_user([("files_where", {})]), command=command)
    assert result.status == "fail"
    assert STARTS[command] in result.reason


@pytest.mark.campaign
def test_a_server_that_prints_what_is_no_message_is_heard_all_the_same(tool_user, pids):
    (said,) = told(tool_user, ("files_variable", {"name": "NOTHING"}), command=f"echo hello; exec {COMMAND}")
    assert said == "not set"


@pytest.mark.campaign
def test_a_tool_that_the_server_has_not_is_said_with_the_nearest(tool_user, pids):
    result, _ = run(tool_user([]), "mcp:files/read_fiel")
    assert result.status == "fail"
    assert "has no tool 'read_fiel'; did you mean 'read_file'?" in result.reason.replace('"', "'")


def test_a_cancelled_run_ends_the_server_and_what_it_started(tool_user, pids):
    user = tool_user([("files_leave_child", {}), ("files_slow", {})])
    pipeline = Pipeline(SOURCE.format(COMMAND, "", "mcp:files/*", ""), backend=user)

    run = pipeline.run(logs_root="run", durability="fast", trust=True, wait=False)
    wait_until(lambda: user.told, "the first answer")
    run.cancel()
    assert run.result(30).status == "interrupted"
    wait_for_end(*pids(), int(user.told[0]))


def test_a_server_that_still_starts_when_its_run_ends_is_ended_at_once(tool_user, pids, monkeypatch):
    monkeypatch.setattr(servers, "CLOSE_SECONDS", 1000.0)
    result, _ = run(tool_user([]), command=f"{ODD} slow", attributes=", timeout=500ms, max_retries=0")
    assert (result.status, "took more than" in result.reason) == ("fail", True)
    wait_for_end(*pids())


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import importlib.util
spec = importlib.util.spec_from_file_location("conftest", {conftest!r})
module = importlib.util.module_from_spec(spec)
sys.modules["conftest"] = module
spec.loader.exec_module(module)
from attractor_nb import Pipeline
user = module.ToolUser([("files_leave_child", {{}}), ("files_slow", {{}})])
Pipeline({source!r}, backend=user).run(logs_root="run", durability="fast", trust=True, wait=True)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.campaign
def test_no_server_outlives_a_program_that_is_killed(number, pids, kept, tmp_path):
    import subprocess

    source = SOURCE.format(COMMAND, "", "mcp:files/*", "")
    code = PROGRAM.format(folder=str(SERVER.parent), conftest=str(SERVER.with_name("conftest.py")), source=source)
    program = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL)
    calls = tmp_path / "run" / "work" / "tool_calls.jsonl"
    wait_until(lambda: calls.exists() and calls.read_text().endswith("\n"), "the first call")
    child = int(kept(tmp_path / "run")[0]["result"])
    assert is_alive(child)
    os.kill(program.pid, number)
    program.wait(30)
    wait_for_end(*pids(), child)


# What is run has to be trusted


def test_a_server_is_a_command_of_the_graph():
    graph = Pipeline(SOURCE.format("python -m files", ', mcp.files.timeout="5s"', "mcp:files/*", "")).graph
    commands = [(entry.attribute, entry.text) for entry in executable_surface(graph).commands]
    assert ("mcp.files.command", "python -m files") in commands
    assert ("mcp.files.env", "SERVER_PIDS, A_NAME, SOME_API_KEY") in commands
    assert ("allowed_tools", "mcp:files/*") in commands


def test_a_server_from_elsewhere_is_not_started_untrusted(tool_user, pids):
    text = SourceText(SOURCE.format(COMMAND, "", "mcp:files/*", ""), "elsewhere")
    pipeline = Pipeline(text, backend=tool_user([]), origin="https://elsewhere.example/x.dot")
    with pytest.raises(UntrustedSource):
        pipeline.run(logs_root="run", wait=True)
    assert pids() == []


WRONG = {"mcp:fiels/read_file": 'did you mean "mcp:files/read_file"?', "mcp:files": "mcp:files", "mcp:": "mcp:"}


@pytest.mark.parametrize("word", WRONG)
def test_a_server_that_is_not_declared_is_an_error_of_lint(word):
    found = [entry for entry in Pipeline(SOURCE.format("x", "", word, "")).diagnostics if entry.is_error]
    assert [entry.rule for entry in found] == ["tools_known"]
    assert WRONG[word] in found[0].message


def test_a_time_that_is_none_is_an_error_of_lint():
    found = Pipeline(SOURCE.format("x", ', mcp.files.timeout="soon"', "mcp:files/*", "")).diagnostics
    assert [entry.rule for entry in found] == ["servers_declared"]


def test_a_misspelt_field_of_a_server_is_an_error_of_lint():
    found = Pipeline(SOURCE.format("x", ', mcp.files.comand="y"', "mcp:files/*", "")).diagnostics
    assert ['did you mean "mcp.files.command"?' in entry.message for entry in found] == [True]


def test_stages_that_are_done_elsewhere_have_no_servers():
    from concurrent.futures import ThreadPoolExecutor

    from attractor_nb import ProviderBackend

    pipeline = Pipeline(SOURCE.format("x", "", "mcp:files/*", 'llm_model="openai:m"'))
    with ThreadPoolExecutor(1) as executor, pytest.raises(OptionError, match="which stay on this machine"):
        pipeline.run(backend=ProviderBackend(), executor=executor, trust=True, logs_root="run")


def test_without_the_library_the_stage_says_what_to_install(tool_user, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "mcp" else find(name))
    result, _ = run(tool_user([]))
    assert result.status == "fail"
    assert "needs mcp, which is not installed" in result.reason.replace("servers need", "needs")


# -- a server's end, without one ---------------------------------------------------------------------


DECLARED = ServerDeclaration("files", "serve --files", (), 1.0)


@pytest.fixture
def living(monkeypatch):
    """A server of which only the exchange is another."""

    def make(exchange):
        monkeypatch.setattr(servers._Server, "_exchange", exchange)
        return servers._Server(DECLARED, None)

    return make


async def for_ever(*_):
    await asyncio.Event().wait()


async def refused(*_):
    raise TerminalError("no such shell")


@pytest.mark.parametrize(
    ("exchange", "how"),
    [(for_ever, "did not say within 0.01 s what tools it has"), (refused, "cannot be started: no such shell")],
    ids=["silent", "refused"],
)
def test_a_server_that_never_says_what_it_has_is_told_with_its_command(living, monkeypatch, exchange, how):
    async def main():
        monkeypatch.setattr(servers, "START_SECONDS", 0.01)
        await living(exchange).tools()

    with pytest.raises(TerminalError, match=f"^the MCP server 'files' {how}") as told:
        asyncio.run(main())
    assert told.value.hint == "try its command in a terminal: serve --files"


def test_a_server_that_is_ended_with_its_run_says_so(living):
    async def main():
        server = living(for_ever)
        await asyncio.sleep(0)
        server.task.cancel()
        await asyncio.wait({server.task})
        return server.task.cancelled(), server.exit_report()

    assert asyncio.run(main()) == (True, "the MCP server 'files' was ended")


def test_an_answer_that_is_none_is_told_to_the_model(living):
    class Session:
        async def call_tool(self, tool, arguments):
            raise ValueError(f"{tool} gave no object")

    async def main():
        server = living(for_ever)
        server._ready.set_result(Session())
        try:
            return await server.call("read", {})
        finally:
            server.task.cancel()

    assert asyncio.run(main()) == ("the server gave an invalid response: read gave no object", True)


def test_a_call_of_a_server_that_does_not_run_may_be_tried_again():
    with pytest.raises(RetryableError, match="the MCP server 'files' is no longer running"):
        asyncio.run(servers.McpServers({"files": DECLARED}).call("files", "read", {}))


def test_a_server_that_has_died_too_often_is_not_started_again(monkeypatch):
    async def dies(server, limit):
        raise ConnectionResetError("gone")

    async def main():
        found = servers.McpServers({"files": DECLARED})
        for _ in range(servers.MAX_STARTS):
            with pytest.raises(TerminalError, match="failed: ConnectionResetError: gone"):
                await found.tools("files")
        await found.tools("files")

    monkeypatch.setattr(servers._Server, "_exchange", dies)
    with pytest.raises(TerminalError, match="failed: ConnectionResetError: gone; it was started 3 times"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b'{"a": "\\ud83d\\ude00"}', '{"a": "\U0001f600"}'.encode()),
        (b'{"a": "\\ud83d"}', '{"a": "\ufffd"}'.encode()),
        (b'log: "\\ud83d"', b'log: "\\ud83d"'),
    ],
    ids=["whole", "half", "no message"],
)
def test_a_message_is_read_without_halves_of_characters(line, read):
    assert _readable(line) == read


def test_a_message_that_nobody_waits_for_any_more_is_dropped():
    anyio = pytest.importorskip("anyio")

    async def main():
        incoming, read = anyio.create_memory_object_stream(1)
        read.close()
        _Lines(incoming).take(b'{"jsonrpc": "2.0", "method": "ping"}\n' * 2)
        kept_without_a_reader = incoming.statistics().current_buffer_used
        incoming.close()
        _Lines(incoming).take(b'{"jsonrpc": "2.0", "method": "ping"}\n')
        return kept_without_a_reader, incoming.statistics().current_buffer_used

    assert asyncio.run(main()) == (0, 0)
