"""MCP servers that have an address: streamable HTTP on loopback, asked through a whole run."""

import asyncio
import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools import mcp_servers as servers
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import UntrustedSource
from attractor_nb.model.allowed_tools import ServerDeclaration, header_variables, read_headers
from attractor_nb.source import SourceText
from tests.backends.llm.tools.http_mcp_server import POLL, HttpMcpServer

pytest.importorskip("mcp")
SOURCE = """digraph g {{ graph [mcp.files.url="{}" {}]
    start [shape=Mdiamond]; exit [shape=Msquare]
    work [prompt="Do it.", allowed_tools="mcp:files/*" {}]
    start -> work -> exit }}"""
KEY = "a-key-of-the-files-server-77"
HEADERS = ', mcp.files.headers="Authorization: Bearer $FILES_ACCESS"'
GET = ("files_get", {})


@pytest.fixture
def small():
    """Makes a server."""
    made = []

    def make(**options):
        made.append(HttpMcpServer(**options))
        return made[-1]

    yield make
    for server in made:
        server.close()


def run(user, url, graph="", attributes="", **options):
    pipeline = Pipeline(SOURCE.format(url, graph, attributes), backend=user)
    return pipeline.run(logs_root="run", durability="fast", wait=True, trust=True, **options)


def told(user, *arguments, **options):
    result = run(user, *arguments, **options)
    assert result.status == "success", result.reason
    return user.told


@pytest.mark.parametrize("sse", [False, True], ids=["JSON", "SSE"])
def test_a_tool_is_called_in_a_session_that_ends_with_the_run(sse, small, tool_user):
    server = small(sse=sse)
    user = tool_user([GET, GET])
    assert told(user, server.url) == ["got it", "got it"]
    assert user.offered == ["files_get"]
    methods = [method for method in server.methods if method != "GET"]
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call", "DELETE"]
    first, *others = [headers for verb, headers, _ in server.asked if verb == "POST"]
    assert "mcp-session-id" not in first
    assert {headers["mcp-session-id"] for headers in others} == {"session-1"}
    assert {headers["mcp-protocol-version"] for headers in others} == {"2025-11-25"}
    assert first["accept"] == "application/json, text/event-stream"


def test_a_server_on_this_machine_is_asked_past_every_proxy(small, tool_user, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert told(tool_user([GET]), small().url) == ["got it"]


def test_a_header_has_the_value_of_the_variable_that_it_names_which_is_in_no_file(
    small, tool_user, monkeypatch, tmp_path
):
    monkeypatch.setenv("FILES_ACCESS", KEY)
    server = small(key=KEY)
    server.content = [{"type": "text", "text": f"your key is {KEY}"}]
    assert told(tool_user([GET]), server.url, HEADERS) == ["your key is [redacted]"]
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_refused_key_is_told_with_the_variable_that_holds_it(small, tool_user, monkeypatch):
    monkeypatch.setenv("FILES_ACCESS", "an-older-key-of-the-server")
    result = run(tool_user([GET]), small(key=KEY).url, HEADERS)
    assert result.status == "fail"
    assert "refused to start: answered 401 Unauthorized: the key is not valid" in result.reason
    assert "what FILES_ACCESS holds" in result.reason
    assert "an-older-key" not in result.reason


def test_a_server_that_asks_for_a_key_where_the_graph_names_none_says_how_to_name_it(small, tool_user):
    result = run(tool_user([GET]), small(key=KEY).url)
    assert "answered 401 Unauthorized" in result.reason
    assert 'mcp.files.headers="Authorization:' in result.reason


def test_a_variable_that_is_not_set_is_told_before_anything_is_sent(small, tool_user, monkeypatch):
    monkeypatch.delenv("FILES_ACCESS", raising=False)
    server = small(key=KEY)
    result = run(tool_user([GET]), server.url, HEADERS)
    assert (
        "the MCP server 'files' cannot be started: it needs the environment variable FILES_ACCESS, which is not set "
        "(mcp.files.headers names it; set it before the run)"
    ) in result.reason
    assert server.asked == []


def test_a_variable_with_a_line_break_is_no_header(small, tool_user, monkeypatch):
    monkeypatch.setenv("FILES_ACCESS", "one\r\nX-Other: two")
    server = small()
    result = run(tool_user([GET]), server.url, HEADERS)
    assert "FILES_ACCESS holds a character that no header of HTTP can have" in result.reason
    assert server.asked == []


@pytest.mark.parametrize("sse", [False, True], ids=["JSON", "SSE"])
def test_a_session_that_the_server_has_forgotten_is_begun_again_and_the_call_made_once(sse, small, tool_user):
    server = small(sse=sse)
    server.forget = 1
    assert told(tool_user([GET, GET]), server.url) == ["got it", "got it"]
    assert server.methods.count("initialize") == 2
    assert server.methods.count("tools/call") == 3
    assert server.asked[-1][1].get("mcp-session-id") in server.sessions


def test_sessions_that_are_forgotten_are_no_starts_of_a_server_that_dies(small, tool_user):
    server = small()

    class Forgetful(tool_user):
        async def run(self, node, prompt, context):
            server.forget = 1
            return await super().run(node, prompt, context)

    stages = "".join(f'more{n} [prompt="x", allowed_tools="mcp:files/*"] ' for n in range(servers.MAX_STARTS + 1))
    names = " -> ".join(f"more{n}" for n in range(servers.MAX_STARTS + 1))
    source = SOURCE.format(server.url, "", "").replace("start -> work", f"{stages} start -> {names} -> work")
    result = Pipeline(source, backend=Forgetful([GET])).run(logs_root="run", durability="fast", wait=True, trust=True)
    assert result.status == "success", result.reason
    assert server.methods.count("initialize") == servers.MAX_STARTS + 3


def test_a_server_that_forgets_every_session_is_told_to_the_model(small, tool_user):
    server = small()
    server.forget = 2
    (said,) = told(tool_user([GET]), server.url)
    assert "answered 404 Not Found: session not found" in said
    assert server.methods.count("initialize") == 2


def test_calls_that_find_one_forgotten_session_share_the_next(small):
    server = small()

    async def main():
        found = servers.McpServers({"files": ServerDeclaration("files", "", (), 9.0, server.url)})
        await found.tools("files")
        server.forget = 2
        try:
            return await asyncio.gather(found.call("files", "get", {}), found.call("files", "get", {}))
        finally:
            await found.close()

    assert asyncio.run(main()) == [("got it", False)] * 2
    assert server.methods.count("initialize") == 2
    assert server.methods.count("DELETE") == 2


def test_a_refusal_of_one_call_is_told_to_the_model_and_ends_no_session(small, tool_user):
    server = small()

    class Between(tool_user):
        async def run(self, node, prompt, context):
            from attractor_nb.stage import current_stage

            await current_stage().workplace.servers.tools("files")
            server.refusal = (503, b"back in a minute")
            return await super().run(node, prompt, context)

    (said,) = told(Between([GET]), server.url)
    assert "answered 503 Service Unavailable: back in a minute" in said


def test_a_connection_that_breaks_is_told_to_the_model_and_the_next_attempt_has_a_new_one(small, tool_user):
    server = small()
    server.drops = 1

    class Once(tool_user):
        async def run(self, node, prompt, context):
            try:
                return await super().run(node, prompt, context)
            finally:
                self.calls = [GET]

    user = Once([GET, GET])
    assert told(user, server.url, attributes=', max_retries=1, retry_policy="none"')[1:] == ["got it"]
    assert user.told[0].startswith("files/get: the MCP server 'files' failed: RemoteProtocolError: ")
    assert server.methods.count("initialize") == 2


@pytest.mark.parametrize("logged", ["not json at all", '{"jsonrpc": "2.0"'])
def test_an_answer_that_is_none_is_told_without_a_traceback_on_the_terminal(logged, small, tool_user, capfd, unlogged):
    unlogged()
    server = small()
    server.body = logged.encode()
    (said,) = told(tool_user([GET]), server.url)
    assert "Failed to parse JSON response" in said
    assert capfd.readouterr().err == ""


REFUSALS = {
    "a JSON-RPC error": (
        400,
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"bad id"}}',
        "400 Bad Request: bad id",
    ),
    "an OAuth error": (403, b'{"error":"no_scope"}', "403 Forbidden: no_scope"),
    "a problem document": (429, b'{"title":"x","detail":"slow down"}', "429 Too Many Requests: slow down"),
    "a status of its own": (499, b"gone  away", "499: gone away"),
    "nothing": (500, b"", "500 Internal Server Error ("),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_is_told_with_its_status_and_the_servers_own_words(case, small, tool_user):
    status, body, words = REFUSALS[case]
    server = small()
    server.refusal = (status, body)
    assert f"refused to start: answered {words}" in run(tool_user([GET]), server.url).reason


def test_a_proxy_that_cannot_be_used_is_named_before_anything_is_sent(tool_user, monkeypatch):
    monkeypatch.setenv("https_proxy", "nonsense://proxy")
    result = run(tool_user([GET]), "https://mcp.example.invalid/mcp")
    assert "the environment variable https_proxy is nonsense://proxy" in result.reason


def test_a_proxy_on_the_way_to_a_server_is_named_where_it_fails(tool_user, monkeypatch, small):
    proxy = small()
    proxy.close()
    monkeypatch.setenv("https_proxy", proxy.url.removesuffix("/mcp"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    result = run(tool_user([GET]), "https://mcp.example.invalid/mcp")
    assert "cannot be reached" in result.reason
    assert "requests go through the proxy that https_proxy names" in result.reason


def test_a_page_for_people_is_not_quoted(small, tool_user):
    server = small()
    server.refusal = (404, b"<html><body>" + b"x" * 200_000)
    result = run(tool_user([GET]), server.url)
    assert "refused to start: answered 404 Not Found (check its address" in result.reason


def test_a_call_that_hangs_is_told_to_the_model_within_the_time_of_its_tools(small, tool_user):
    server = small()
    server.hangs = {"tools/call"}
    (said,) = told(tool_user([GET]), server.url, ', mcp.files.timeout="300ms"')
    assert said.endswith("files/get: no answer within 0.3 s")


@pytest.mark.parametrize("method", ["initialize", "tools/list", "tools/call"])
def test_the_time_limit_of_a_stage_holds_whatever_of_a_server_hangs(method, small, tool_user):
    server = small()
    server.hangs = {method, "DELETE"}
    result = run(tool_user([GET]), server.url, attributes=", timeout=500ms, max_retries=0")
    assert (result.status, "took more than" in result.reason) == ("fail", True)


def test_a_server_that_is_not_there_is_named_with_its_address(small, tool_user):
    server = small()
    server.close()
    result = run(tool_user([GET]), server.url, attributes=", max_retries=0")
    assert result.status == "fail"
    assert "the MCP server 'files' cannot be reached: " in result.reason
    assert f"(check its address, {server.url}, and whether it runs there)" in result.reason


def test_an_answer_of_any_size_is_bounded(small, tool_user, monkeypatch):
    from attractor_nb.backends.llm.tools import mcp_transports

    monkeypatch.setattr(mcp_transports, "MAX_MESSAGE_BYTES", 20_000)
    server = small()
    server.content = [{"type": "text", "text": "x" * 30_000}]
    (said,) = told(tool_user([GET]), server.url)
    assert "the answer is over 20000 bytes" in said


def test_a_compressed_answer_has_no_bound_and_is_refused(small, tool_user):
    server = small()
    server.encoding = "gzip"
    (said,) = told(tool_user([GET]), server.url)
    assert "the answer is compressed, which was not asked for" in said
    assert {headers["accept-encoding"] for verb, headers, _ in server.asked if verb == "POST"} == {"identity"}


# What is asked has to be trusted


def test_address_and_headers_of_a_server_are_trusted_like_its_command_and_variables():
    graph = Pipeline(SOURCE.format("https://mcp.example.org/mcp", HEADERS, "")).graph
    commands = [(entry.attribute, entry.text) for entry in executable_surface(graph).commands]
    assert ("mcp.files.url", "https://mcp.example.org/mcp") in commands
    assert ("mcp.files.headers", "Authorization: Bearer $FILES_ACCESS") in commands


def test_a_server_of_a_pipeline_from_elsewhere_is_not_asked_untrusted(small, tool_user):
    server = small()
    text = SourceText(SOURCE.format(server.url, "", ""), "elsewhere")
    pipeline = Pipeline(text, backend=tool_user([GET]), origin="https://elsewhere.example/x.dot")
    with pytest.raises(UntrustedSource):
        pipeline.run(logs_root="run", wait=True)
    assert server.asked == []


def test_address_and_what_the_variables_hold_are_part_of_the_caches_key(monkeypatch):
    found = []
    for url, value in (("http://127.0.0.1:1", "one"), ("http://127.0.0.1:2", "one"), ("http://127.0.0.1:2", "two")):
        monkeypatch.setenv("FILES_ACCESS", value)
        declared = ServerDeclaration("files", "", (), 9.0, url, "Authorization: Bearer $FILES_ACCESS")
        found.append(servers.McpServers({"files": declared}).cache_inputs("files"))
    assert len({str(inputs) for inputs in found}) == 3
    assert "two" not in str(found[2]["environment"].values())


WRONG = {
    ("127.0.0.1:8000/mcp", ""): "is no address",
    ("ftp://example.org", ""): "is no address",
    ("https://me:secret-word-42@example.org/mcp", ""): "holds a user's name or password",
    ("https://x.example/mcp", ', mcp.files.command="serve"'): "has a command and an address",
    ("https://x.example/mcp", ', mcp.files.env="HOME"'): "belongs to a server that has a command",
    (
        "https://x.example/mcp",
        ', mcp.other.headers="A: $B", mcp.other.command="x"',
    ): "belongs to a server that has a url",
    ("https://x.example/mcp", ', mcp.files.headers="Authorization: Bearer abc"'): "not a header with one variable",
    ("https://x.example/mcp", ', mcp.files.headers="$TOKEN"'): "not a header with one variable",
    ("https://x.example/mcp", ', mcp.files.headers="A: $B, a: $C"'): "twice",
    ("https://x.example/mcp", ', mcp.files.headers="Mcp-Session-Id: $B"'): "which the client writes itself",
    ("https://x.example/mcp", ', mcp.files.header="A: $B"'): 'did you mean "mcp.files.headers"?',
}


@pytest.mark.parametrize(("url", "graph"), WRONG)
def test_what_is_wrong_with_an_address_or_its_headers_is_an_error_of_lint(url, graph):
    found = [entry for entry in Pipeline(SOURCE.format(url, graph, "")).diagnostics if entry.is_error]
    assert [entry.rule for entry in found] == ["servers_declared"]
    assert WRONG[url, graph] in found[0].message


def test_an_address_that_travels_unencrypted_is_a_warning_unless_it_is_on_this_machine():
    def rules(url):
        return [(entry.rule, entry.is_error) for entry in Pipeline(SOURCE.format(url, "", "")).diagnostics]

    assert rules("http://mcp.example.org/mcp") == [("servers_declared", False)]
    assert rules("http://127.0.0.1:8000/mcp") == rules("https://mcp.example.org/mcp") == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("X-Key: $KEY", ("X-Key", "", "KEY", "")),
        ("X-Key:${KEY}", ("X-Key", "", "KEY", "")),
        ("Authorization: Token token=${KEY}; v=1", ("Authorization", "Token token=", "KEY", "; v=1")),
    ],
)
def test_a_header_is_read_around_its_variable(text, parts):
    (header,) = read_headers(text)
    assert (header.name, header.before, header.variable, header.after) == parts


def test_headers_that_lint_lets_pass_are_refused_all_the_same_before_anything_is_sent(small, tool_user, tmp_path):
    server, wrong = small(), ', mcp.files.headers="Authorization: Bearer abc"'
    text = SOURCE.format(server.url, wrong, ", cache=true")
    pipeline = Pipeline(text, backend=tool_user([GET]), severity={"servers_declared": "warning"})
    result = pipeline.run(logs_root="run", durability="fast", wait=True, trust=True, cache=tmp_path / "cache")
    assert result.status == "fail"
    assert 'mcp.files.headers has "Authorization: Bearer abc", which is not a header' in result.reason
    assert server.asked == []


def test_a_server_that_asks_to_be_polled_without_a_pause_is_asked_with_one_and_not_for_ever(small, tool_user):
    server = small()
    server.streams = [POLL]
    user = tool_user([GET])
    assert told(user, server.url, ', mcp.files.timeout="3s"') == ["files/get: no answer within 3 s"]
    # Of two readers, the session's own and the call's: at 0, 0.5, 1.5 and 3.5 s at the earliest.
    assert 1 <= server.methods.count("GET") <= 8


def test_a_stream_that_ended_at_once_for_the_whole_time_is_not_asked_for_again():
    import httpx2

    from attractor_nb.backends.llm.tools import mcp_transports

    async def ask_twice():
        polls, request = mcp_transports._Polls(0), httpx2.Request("GET", "http://127.0.0.1/mcp")
        await polls.space(request)
        with pytest.raises(httpx2.StreamError, match="the server ended each stream at once, for 0 s"):
            await polls.space(request)
        await polls.space(httpx2.Request("POST", "http://127.0.0.1/mcp"))

    asyncio.run(ask_twice())


def test_an_answer_that_is_polled_for_is_taken(small, tool_user):
    server = small()
    answer = json.dumps({"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "late"}]}})
    server.streams = [POLL, POLL, f"id: 2\ndata: {answer}\n\n"]
    assert told(tool_user([GET]), server.url) == ["late"]


def test_headers_that_are_wrong_name_no_variables():
    assert header_variables("Authorization: Bearer ${KEY}, and more") == ()
