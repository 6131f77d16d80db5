"""Stages that agents do, each against a stub that speaks as the real agent is documented to (spec 4.5)."""

import asyncio
import json
from pathlib import Path

import pytest

from attractor_nb import ClaudeBackend, CodexBackend, GeminiBackend, Node, Pipeline
from attractor_nb.backends import resolve_backend
from attractor_nb.context import Context
from attractor_nb.errors import OptionError
from attractor_nb.testing import verify_backend

CLASSES = {"claude": ClaudeBackend, "codex": CodexBackend, "gemini": GeminiBackend}
USAGE = {"claude": (1210, 40, 0.0125, 3), "codex": (1210, 40, None, 1), "gemini": (1210, 40, None, 1)}
MODELS = {"claude": "claude:claude-sonnet-4-5", "codex": "codex", "gemini": "gemini:auto"}


@pytest.fixture(params=["claude", "codex", "gemini"])
def agent(request):
    """Every agent, in `make test` too."""
    return request.param


def line(attributes="", *, graph=""):
    """A pipeline of one stage."""
    return f"""digraph g {{ {graph} start [shape=Mdiamond]; exit [shape=Msquare]
        work [prompt="Mend it.", allowed_tools="", {attributes}]
        start -> work -> exit }}"""


def two(attributes):
    """A pipeline of two stages."""
    return f"""digraph g {{ node [{attributes}] start [shape=Mdiamond]; exit [shape=Msquare]
        first [prompt="First."]; second [prompt="Second."]
        start -> first -> second -> exit }}"""


def run(source, backend, **options):
    """The result of a run, and its events."""
    events = []
    options = {"logs_root": "run", "durability": "fast", "wait": True, **options}
    result = Pipeline(source).run(backend=backend, observers=[events.append], **options)
    return result, events


def named(events, kind):
    return [event for event in events if type(event).__name__ == kind]


def flag(call, name):
    """The value behind a flag of a command line."""
    found = [word.partition("=")[2] for word in call["argv"] if word.split("=")[0] == name]
    return found[0] if found else None


def test_a_stage_is_done_by_an_agent(stubs, agent):
    result, events = run(line(), agent)
    assert (result.status, result.outcomes["work"].status) == ("success", "success")
    assert result.context.get("work.response") == "The work is done."
    usage = result.usage_by_node["work"]
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.calls) == USAGE[agent]
    (ended,) = named(events, "ModelCallEnded")
    assert (ended.model, ended.finish, ended.error, ended.usage) == (MODELS[agent], "stop", "", usage)
    assert (ended.name, ended.visit, ended.attempt, ended.thread) == ("work", 1, 1, "")
    streamed = "".join(event.text for event in named(events, "StageOutput"))
    assert streamed.startswith("Looking at it.\n\n")
    assert streamed.count("Looking at it.") == streamed.count("The work is done.") == 1
    directory = result.logs_root / "work"
    assert (directory / "response.md").read_text() == "The work is done."
    log = [json.loads(entry) for entry in (directory / "agent.jsonl").read_text().splitlines()]
    assert len(log) > 2
    assert {entry["type"] for entry in log} <= {
        "system", "assistant", "user", "result", "thread.started", "turn.started", "item.completed", "turn.completed",
        "init", "message", "tool_use", "tool_result",
    }  # fmt: skip


def test_the_prompt_goes_over_stdin_and_never_into_the_command_line(stubs, agent):
    source = line('prompt="Mend $(touch pwned); `touch pwned` and 100% of ünïcode"')
    run(source.replace('prompt="Mend it.", ', ""), agent)
    (call,) = stubs.calls
    assert "Mend $(touch pwned); `touch pwned` and 100% of ünïcode" in call["task"]
    assert not any("Mend" in word for word in call["argv"])


def test_a_prompt_that_looks_like_a_command_of_the_agent_is_none(stubs, agent):
    run(line().replace("Mend it.", "/clear everything"), agent)
    assert stubs.calls[0]["task"].startswith("Task:\n\n/clear everything")


def test_it_works_in_the_working_directory_of_the_run(stubs, agent, tmp_path):
    (tmp_path / "project").mkdir()
    stubs.do("writes_file")
    run(line('allowed_tools="write"').replace('allowed_tools="", ', ""), agent, workdir="project", trust=True)
    assert stubs.calls[0]["cwd"] == str(tmp_path / "project")
    assert (tmp_path / "project" / "made-by-agent.txt").read_text() == "made"


def test_ruling_41_without_a_working_directory_it_works_where_the_run_was_started(stubs, agent):
    run(line(), agent)
    assert stubs.calls[0]["cwd"] == str(Path.cwd())


def test_ruling_41_in_a_workspace_of_the_run_it_works_there(stubs, agent):
    result, _ = run(line(), agent, isolation="workspace")
    assert stubs.calls[0]["cwd"] == str((result.logs_root / "workspace").absolute())


MODEL = 'llm_model="m-5", reasoning_effort="low", llm.system_prompt="Be brief."'


def test_model_effort_and_system_prompt_reach_the_agent(stubs, agent):
    run(line(MODEL), agent)
    (call,) = stubs.calls
    assert flag(call, "--model") == "m-5"
    effort = {
        "claude": ("--effort", "low"),
        "codex": ("--config", 'model_reasoning_effort="low"'),
        "gemini": ("--effort", None),
    }
    name, value = effort[agent]
    assert flag(call, name) == value
    if agent == "claude":
        assert flag(call, "--append-system-prompt") == "Be brief."
    else:
        assert call["task"].startswith("Be brief.\n\nMend it.")


def test_what_a_node_does_not_say_is_left_to_the_agent(stubs, agent):
    run(line(), agent)
    assert {flag(stubs.calls[0], name) for name in ("--model", "--effort", "--config", "--append-system-prompt")} == {
        None
    }


def test_a_provider_before_the_model_is_not_passed_on(stubs, agent):
    run(line('llm_model="anthropic:claude-opus-4-6"'), agent)
    assert flag(stubs.calls[0], "--model") == "claude-opus-4-6"


def test_no_value_of_a_graph_becomes_a_flag(stubs, agent):
    run(line('llm_model="--dangerously-skip-permissions", llm.system_prompt="--yolo"'), agent)
    (call,) = stubs.calls
    assert not {"--dangerously-skip-permissions", "--yolo", "-y"} & set(call["argv"])
    assert flag(call, "--model") == "--dangerously-skip-permissions"


PERMISSIONS = {
    ("claude", ""): ["--permission-mode=default", "--disallowedTools=Bash,Edit,MultiEdit,Write,NotebookEdit"],
    ("claude", "read,list"): ["--permission-mode=default", "--disallowedTools=Bash,Edit,MultiEdit,Write,NotebookEdit"],
    ("claude", "write"): ["--permission-mode=acceptEdits", "--disallowedTools=Bash"],
    ("claude", "run"): [
        "--permission-mode=default",
        "--allowedTools=Bash",
        "--disallowedTools=Edit,MultiEdit,Write,NotebookEdit",
    ],
    ("claude", "write, run"): ["--permission-mode=acceptEdits", "--allowedTools=Bash"],
    ("claude", "Read, Grep, Bash(git:*)"): [
        "--permission-mode=default",
        "--allowedTools=Read,Grep,Bash(git:*)",
        "--disallowedTools=Edit,MultiEdit,Write,NotebookEdit,Glob,LS,NotebookRead,Task,TodoWrite,WebFetch,WebSearch",
    ],
    ("claude", "run, Edit"): [
        "--permission-mode=default",
        "--allowedTools=Bash,Edit",
        "--disallowedTools=MultiEdit,Write,NotebookEdit,Task,TodoWrite,WebFetch,WebSearch",
    ],
    ("codex", ""): ["--sandbox=read-only", "--skip-git-repo-check"],
    ("codex", "read,list"): ["--sandbox=read-only", "--skip-git-repo-check"],
    ("codex", "write"): ["--sandbox=workspace-write"],
    ("codex", "run"): ["--sandbox=read-only", "--skip-git-repo-check"],
    ("codex", "write, run"): ["--sandbox=workspace-write"],
    ("gemini", ""): ["--approval-mode=default"],
    ("gemini", "read,list"): ["--approval-mode=default"],
    ("gemini", "write"): ["--approval-mode=auto_edit"],
    ("gemini", "run"): ["--approval-mode=default", "--allowed-tools=run_shell_command"],
    ("gemini", "write, run"): ["--approval-mode=auto_edit", "--allowed-tools=run_shell_command"],
}
NAMES = {
    "--permission-mode", "--allowedTools", "--disallowedTools", "--sandbox", "--skip-git-repo-check", "--approval-mode",
    "--allowed-tools", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-skip-permissions", "--yolo",
}  # fmt: skip


@pytest.mark.parametrize(("agent_name", "tools"), PERMISSIONS)
def test_allowed_tools_are_what_the_agent_may_do_and_the_default_changes_nothing(stubs, agent_name, tools):
    backend = CLASSES[agent_name]()
    arguments = backend.dialect.arguments(backend._call(Node("work", {"allowed_tools": tools}), "", None, ""))
    assert [word for word in arguments if word.split("=")[0] in NAMES] == PERMISSIONS[agent_name, tools]


@pytest.mark.parametrize("agent_name", ["codex", "gemini"])
def test_tools_of_claude_are_refused_for_another_agent(stubs, agent_name):
    graph = Pipeline(line().replace('allowed_tools=""', 'allowed_tools="Read"')).graph
    with pytest.raises(OptionError, match=f"work allows Read, which {agent_name} does not know"):
        CLASSES[agent_name]().check_graph(graph)


def test_without_allowed_tools_a_node_may_change_nothing(stubs, agent):
    run(line().replace('allowed_tools="", ', ""), agent)
    assert [word for word in stubs.calls[0]["argv"] if word.split("=")[0] in NAMES] == PERMISSIONS[agent, ""]


UNRESTRICTED = {
    "claude": "--permission-mode=bypassPermissions",
    "codex": "--dangerously-bypass-approvals-and-sandbox",
    "gemini": "--approval-mode=yolo",
}


def test_restrictions_are_lifted_by_the_backends_own_constructor_alone(stubs, agent):
    run(line(), CLASSES[agent](is_unrestricted=True))
    assert [word for word in stubs.calls[0]["argv"] if word.split("=")[0] in NAMES] == [UNRESTRICTED[agent]]


def test_more_flags_of_the_constructor_reach_the_agent(stubs):
    run(line(), ClaudeBackend(arguments=("--max-turns=7",)))
    run(line(), CodexBackend(arguments=("--config=a=1",)), logs_root="two")
    run(line(), GeminiBackend(arguments=("--skip-trust",)), logs_root="three")
    claude, codex, gemini = stubs.calls
    assert (claude["argv"][-1], codex["argv"][-2:], gemini["argv"][-1]) == (
        "--max-turns=7",
        ["--config=a=1", "-"],
        "--skip-trust",
    )


@pytest.mark.parametrize("arguments", ["--max-turns=7", [7]], ids=["a text", "a number"])
def test_flags_that_are_no_list_of_texts_are_refused(stubs, arguments):
    with pytest.raises(OptionError, match="arguments must be a list of texts"):
        ClaudeBackend(arguments=arguments)
    with pytest.raises(OptionError, match="variables must be a list of texts"):
        ClaudeBackend(variables=arguments)


def test_calls_of_tools_are_events_with_what_they_came_to(stubs, agent):
    stubs.do("tool")
    result, events = run(line(), agent)
    assert result.status == "success"
    first, second = (event for event in named(events, "ToolCallEnded") if event.call_id != "call_last")
    assert first.tool == {"claude": "Bash", "codex": "command_execution", "gemini": "run_shell_command"}[agent]
    assert (first.name, first.call_id, first.arguments["command"], first.result, first.error) == (
        "work",
        "call_1",
        "make test",
        "3 passed",
        "",
    )
    assert (second.call_id, second.arguments["command"], second.error) == ("call_2", "false", "exit code 1")
    assert all(event.duration >= 0 for event in (first, second))


def test_only_so_many_calls_of_tools_are_events_and_long_values_are_cut(stubs, agent):
    stubs.do("flood")
    result, events = run(line(), agent)
    assert result.status == "success"
    calls = named(events, "ToolCallEnded")
    assert len(calls) == 1000
    assert len(calls[0].arguments["command"]) == len(calls[0].result) == 1001
    log = (result.logs_root / "work" / "agent.jsonl").read_text()
    assert len(log) < 1_000_100
    assert "left_out" in log[-100:]


@pytest.mark.parametrize("tools", ["write", "read"])
def test_the_status_file_is_offered_to_an_agent_that_can_write_it(stubs, agent, tools):
    result, _ = run(line().replace('allowed_tools=""', f'allowed_tools="{tools}"'), agent, trust=True)
    (call,) = stubs.calls
    directory = str((result.logs_root / "work").absolute())
    assert (f"in the file {directory}/status.json" in call["task"]) == (tools == "write")
    assert any(word.endswith(f"={directory}") for word in call["argv"]) == (tools == "write")
    assert (result.logs_root / "work" / "agent.prompt.md").read_text() in call["task"]


def test_the_status_file_that_an_agent_writes_is_the_outcome(stubs, agent):
    stubs.do("report")
    result, _ = run(line().replace('allowed_tools=""', 'allowed_tools="write"'), agent, trust=True)
    outcome = result.outcomes["work"]
    assert (outcome.status, outcome.notes) == ("partial_success", "half of it")
    assert result.context.get("review") == "ok"
    assert outcome.usage.input_tokens == 1210


def test_a_node_with_a_verdict_is_asked_for_that_and_for_no_file(stubs, agent):
    stubs.do("verdict")
    result, _ = run(line('verdict="json"').replace('allowed_tools=""', 'allowed_tools="write"'), agent, trust=True)
    assert result.outcomes["work"].status == "fail"
    assert "status.json" not in stubs.calls[0]["task"]


def test_an_agent_is_told_why_its_verdict_was_not_accepted(stubs, agent):
    result, _ = run(line('verdict="json", max_retries=1'), agent)
    assert result.status == "fail"
    first, second = (call["task"] for call in stubs.calls)
    assert "not accepted" not in first
    complaint = second.split("## Your last answer was not accepted")[1]
    assert "the response does not end with a JSON verdict" in complaint


def test_an_agent_gets_its_own_keys_and_no_others(stubs, agent, monkeypatch):
    own = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
    for name in (*own.values(), "GITHUB_TOKEN", "DB_PASSWORD"):
        monkeypatch.setenv(name, f"value-of-{name.lower()}")
    run(line(), agent)
    seen = stubs.calls[0]["env"]
    keys = {name for name in (*own.values(), "GITHUB_TOKEN", "DB_PASSWORD") if name in seen}
    assert keys == {own[agent]}


def test_an_agent_gets_settings_of_its_own_and_what_it_is_given_by_name(stubs, monkeypatch):
    names = ["ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "OPENAI_BASE_URL"]
    for name in names:
        monkeypatch.setenv(name, f"value-of-{name.lower()}")
    run(line(), ClaudeBackend(variables=["AWS_ACCESS_KEY_ID"]))
    assert [name for name in names if name in stubs.calls[0]["env"]] == names[:3]


def test_an_agent_that_is_not_installed_is_an_error_before_the_run(agent, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        OptionError, match=f"the agent {agent} is not installed: there is no program '{agent}'"
    ) as caught:
        run(line(), agent)
    assert "npm install -g" in caught.value.hint
    assert not (tmp_path / "run").exists()


def test_a_program_that_is_not_there_is_an_error_of_the_constructor(agent):
    with pytest.raises(OptionError, match="there is no program '/no/such/agent'"):
        CLASSES[agent](executable="/no/such/agent")


def test_an_agent_is_resolved_by_its_name(stubs, agent):
    assert type(resolve_backend(agent)) is CLASSES[agent]


def test_agents_keep_the_contract_of_backends(stubs, agent):
    assert asyncio.run(verify_backend(CLASSES[agent]())) == "The work is done."


def test_what_goes_into_a_call_is_told_for_recordings_and_the_cache(stubs, agent):
    backend = CLASSES[agent](arguments=("--max-turns=3",))
    node = Node("work", {"llm_model": "anthropic:m", "reasoning_effort": "low", "allowed_tools": "run, write"})
    assert backend.call_inputs(node, Context()) == {
        "agent": agent, "model": "m", "effort": "low", "system_prompt": "", "tools": ["run", "write"],
        "is_unrestricted": False, "arguments": ["--max-turns=3"],
    }  # fmt: skip


def test_every_input_of_a_call_changes_what_is_told(stubs):
    def inputs(backend=None, **attributes):
        return (backend or ClaudeBackend()).call_inputs(Node("work", attributes), Context())

    told = [
        inputs(), inputs(llm_model="a"), inputs(reasoning_effort="low"), inputs(allowed_tools="run"),
        inputs(**{"llm.system_prompt": "Be brief."}), inputs(CodexBackend()), inputs(ClaudeBackend(is_unrestricted=True)),
        inputs(ClaudeBackend(arguments=["--x"])),
    ]  # fmt: skip
    assert len({json.dumps(entry, sort_keys=True) for entry in told}) == len(told)


@pytest.mark.parametrize("where", ["node", "graph"])
def test_a_graph_that_names_a_server_is_not_sent_to_another(stubs, agent, where):
    server = 'llm.base_url="http://private:1/v1"'
    source = line(server) if where == "node" else line(graph=f"graph [{server}]")
    with pytest.raises(
        OptionError, match=f"work names the server http://private:1/v1, but {agent} uses its own server"
    ):
        run(source, agent, trust=True)
    assert stubs.calls == []


def test_a_budget_that_cannot_hold_is_refused(stubs, agent):
    if agent == "claude":
        assert run(line(), agent, max_budget_usd=1)[0].status == "success"
        return
    with pytest.raises(OptionError, match=f"max_budget_usd=1 cannot hold: {agent} reports no price"):
        run(line(), agent, max_budget_usd=1)
    assert run(line(), agent, max_budget_usd=1, max_tokens_total=10_000)[0].status == "success"


# Answers of a schema, denials, prices

ORDER = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string", "default": ""}},
    "required": ["items"],
}  # fmt: skip


def quoted(value):
    return json.dumps(json.dumps(value))


def test_an_agent_is_bound_to_the_schema_of_its_answer_by_its_own_means(stubs, agent):
    stubs.do("structured")
    result, _ = run(line(f"response_schema={quoted(ORDER)}"), agent)
    assert result.status == "success"
    assert json.loads(result.context["work.response"]) == {"items": ["bolt"], "note": "ünïcode"}
    (call,) = stubs.calls
    file = result.logs_root.absolute() / "work" / "agent.schema.json"
    if agent == "claude":
        assert json.loads(flag(call, "--json-schema")) == ORDER
    if agent == "codex":
        assert flag(call, "--output-schema") == str(file)
        assert json.loads(file.read_text())["required"] == ["items", "note"]
    assert file.exists() == (agent == "codex")


def test_an_answer_that_breaks_the_schema_is_no_success_whatever_the_agent_says(stubs, agent):
    stubs.do("structured")
    result, _ = run(line(f"response_schema={quoted({**ORDER, 'required': ['price']})}"), agent)
    assert result.status == "fail"
    assert "price" in result.reason


@pytest.mark.parametrize("schema", ['{"type": "array"}', "not json", "Named", "{}"])
def test_a_schema_of_something_else_than_an_object_stands_in_the_prompt_alone(stubs, agent, schema):
    backend = CLASSES[agent]()
    call = backend._call(Node("work", {"response_schema": schema}), "", None, "")
    assert not any("schema" in word for word in backend.dialect.arguments(call))


def test_a_schema_that_is_too_long_for_a_command_line_stands_in_the_prompt_alone(stubs):
    properties = {f"name_{number:05}": {"type": "string"} for number in range(5000)}
    schema = json.dumps({"type": "object", "properties": properties})
    backend = ClaudeBackend()
    call = backend._call(Node("work", {"response_schema": schema}), "", None, "")
    assert flag({"argv": backend.dialect.arguments(call)}, "--json-schema") is None


def test_tools_that_were_denied_are_a_warning_and_in_the_stages_notes(stubs, agent):
    stubs.do("denied")
    result, events = run(line(), agent)
    assert result.status == "success"
    tool = {"claude": "Bash", "codex": "command_execution", "gemini": "run_shell_command"}[agent]
    said = f"{agent} was denied {tool} (2 times)"
    assert said in result.outcomes["work"].notes
    assert said in json.loads((result.logs_root / "work" / "status.json").read_text())["notes"]
    (warning,) = named(events, "RunWarning")
    assert (warning.node, warning.message) == ("work", f"work: {said}; allowed_tools says what it may do")


PRICED = {"codex": ("gpt-5", (210 * 1.25 + 1000 * 0.125 + 40 * 10) / 1e6), "gemini": ("gemini-2.5-flash", None)}


@pytest.mark.parametrize("agent_name", PRICED)
def test_tokens_of_an_agent_that_tells_no_price_are_priced_by_the_list(stubs, agent_name):
    model, price = PRICED[agent_name]
    result, _ = run(line(f'llm_model="{model}"'), agent_name)
    usage = result.usage_by_node["work"]
    assert usage.unpriced_calls == 0
    assert 0 < usage.cost_usd < 0.01
    assert price is None or usage.cost_usd == pytest.approx(price)


def test_each_stage_of_a_session_has_its_own_price(stubs):
    source = two('fidelity="full", thread_id="t", llm_model="gpt-5"')
    result, _ = run(source, "codex")
    first, second = (result.usage_by_node[name] for name in ("first", "second"))
    assert first == second
    assert first.cost_usd == pytest.approx(PRICED["codex"][1])


def test_a_model_that_the_price_list_does_not_have_has_no_price(stubs):
    result, _ = run(line('llm_model="nobody-knows-it"'), "codex")
    usage = result.usage_by_node["work"]
    assert (usage.cost_usd, usage.unpriced_calls) == (None, 1)


@pytest.mark.parametrize("agent_name", PRICED)
def test_a_budget_holds_where_the_price_list_has_every_model(stubs, agent_name):
    result, _ = run(line(f'llm_model="{PRICED[agent_name][0]}"'), agent_name, max_budget_usd=1)
    assert result.status == "success"


def test_a_text_that_comes_in_pieces_and_then_whole_is_streamed_and_logged_once(stubs):
    result, events = run(line(), "claude")
    pieces = [event.text for event in named(events, "StageOutput")]
    assert "".join(pieces) == "Looking at it.\n\nThe work is done."
    assert "stream_event" not in (result.logs_root / "work" / "agent.jsonl").read_text()
