"""Tools of models in a run: which there are, where they work, what is recorded."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools import tool_inputs
from attractor_nb.backends.llm.tools.catalog import TOOLS
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.handlers.codergen import CodergenHandler
from attractor_nb.model.graph import Node
from attractor_nb.redaction import learn
from attractor_nb.testing import try_stage

MAX_CALLS = 200
AGENT_TOOLS = ("read", "write", "list", "run")

FRAME = (
    'digraph d {{ start [shape=Mdiamond] done [shape=Msquare] work [prompt="Work", {attrs}] start -> work -> done }}'
)


def pipeline(attrs='allowed_tools="read,write,list,run"', body=""):
    return Pipeline(FRAME.format(attrs=attrs).replace("}", body + "}"))


@pytest.fixture
def run(use_tools):
    def go(tmp_path, *calls, attrs='allowed_tools="read,write,list,run"', **options):
        return use_tools(tmp_path, pipeline(attrs), list(calls), **options)

    return go


def test_there_is_a_tool_for_each_word_of_allowed_tools():
    assert tuple(tool.word for tool in TOOLS) == AGENT_TOOLS


@pytest.mark.parametrize(
    ("attrs", "offered"),
    [
        ("", []),
        ('allowed_tools=""', []),
        ('allowed_tools="read"', ["read_file"]),
        ('allowed_tools="run , list"', ["list_files", "run_command"]),
    ],
)
def test_a_model_gets_the_tools_that_its_node_allows_and_no_other(tmp_path, attrs, offered, run):
    user, result, _ = run(tmp_path, attrs=attrs or "goal_gate=false")
    assert (user.offered, result.status) == (offered, "success")


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ("read,wirte", "names 'wirte'; did you mean \"write\""),
        ("read,Bash(git:*)", r"names Bash\(git:\*\), a tool of the agent claude"),
    ],
    ids=["unknown", "of an agent"],
)
def test_a_tool_that_there_is_not_fails_the_stage_for_good(allowed, message, tmp_path, tool_user):
    node = Node("work", {"allowed_tools": allowed})
    with pytest.raises(TerminalError, match=message):
        asyncio.run(try_stage(CodergenHandler(tool_user([])), node, tmp_path))


def test_what_a_model_wrote_a_later_stage_reads_in_the_workspace_of_the_run(tmp_path, kept, run):
    user, result, events = run(
        tmp_path,
        ("write_file", {"path": "src/a.py", "content": "print(6 * 7)\n"}),
        ("list_files", {}),
        ("read_file", {"path": "src/a.py"}),
        ("run_command", {"command": "cat src/a.py; echo oops >&2; exit 3"}),
    )
    assert result.status == "success"
    assert (tmp_path / "run" / "workspace" / "src" / "a.py").read_text() == "print(6 * 7)\n"
    assert user.told == [
        "wrote 13 bytes to src/a.py",
        "src/\nsrc/a.py",
        "print(6 * 7)\n",
        "exit code 3\nstdout:\nprint(6 * 7)\n\nstderr:\noops\n",
    ]
    assert [event.tool for event in events] == ["write_file", "list_files", "read_file", "run_command"]
    assert [event.call_id for event in events] == ["call-1", "call-2", "call-3", "call-4"]
    assert all((event.name, event.visit, event.attempt) == ("work", 1, 1) for event in events)
    lines = kept(tmp_path / "run")
    assert [line["tool"] for line in lines] == [event.tool for event in events]
    assert lines[0]["arguments"] == {"path": "src/a.py", "content": "print(6 * 7)\n"}
    assert lines[3]["result"] == user.told[3]


def test_what_a_tool_cannot_do_is_told_to_the_model_and_ends_nothing(tmp_path, kept, run):
    user, result, events = run(
        tmp_path,
        ("read_file", {"path": "../../secret"}),
        ("read_file", {"path": "none.txt"}),
        ("read_file", {}),
        ("read_file", {"path": ["a"]}),
        ("read_file", {"path": "a", "mode": "x"}),
        ("list_files", {"depth": 10**5000}),
        ("run_command", {"command": "a\0b"}),
        ("run_command", {"command": "true", "timeout_seconds": 10**6}),
    )
    assert result.status == "success"
    assert user.told == [event.error for event in events]
    assert [event.error.split(";")[0] for event in events] == [
        "'../../secret' has '..' in it",
        "there is no file none.txt",
        "read_file needs path: Path relative to the working directory.",
        "path must be text, not list",
        "read_file takes path, first_line, not 'mode'",
        "depth must be a whole number of at least 1 and at most 20, not a number of 16610 bits",
        "command is a text of 1 to 20000 characters",
        "timeout_seconds must be a whole number of at least 1 and at most 600, not 1000000",
    ]
    assert [line["error"] for line in kept(tmp_path / "run")] == [event.error for event in events]


def test_a_command_whose_time_runs_out_is_ended_and_told(tmp_path, run):
    user, result, _ = run(tmp_path, ("run_command", {"command": "echo begun; sleep 60", "timeout_seconds": 1}))
    assert result.status == "success"
    assert user.told == ["timed out after 1 s, and was ended\nstdout:\nbegun\n"]


def test_a_command_has_no_key_and_knows_its_stage(tmp_path, monkeypatch, run):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdef")
    command = 'echo "${OPENAI_API_KEY-none} $ATTRACTOR_NODE_ID"; [ "$ATTRACTOR_WORKDIR" = "$(pwd)" ] && echo here'
    user, _, _ = run(tmp_path, ("run_command", {"command": command}))
    assert user.told == ["exit code 0\nstdout:\nnone work\nhere\n"]


def test_a_long_result_is_bounded_for_the_model_its_event_and_its_file(tmp_path, kept, run):
    user, _, events = run(tmp_path, ("run_command", {"command": "seq 200000; echo end"}))
    assert len(user.told[0]) < 26_000
    assert user.told[0].endswith("end\n")
    assert "characters left out" in user.told[0]
    assert len(events[0].result) < 1_100
    assert len(kept(tmp_path / "run")[0]["result"]) < 20_100


def test_calls_are_counted_and_the_model_is_told_when_there_are_no_more(tmp_path, run):
    user, result, events = run(tmp_path, [("list_files", {})] * (MAX_CALLS + 2))
    assert result.status == "success"
    assert [event.error for event in events].count("") == MAX_CALLS
    assert user.told[-1] == f"this stage has made its {MAX_CALLS} tool calls; answer with what you have"


def test_workdir_is_where_tools_and_commands_of_the_graph_work(tmp_path, tool_user):
    place = tmp_path / "repo"
    place.mkdir()
    seen = []
    made = Pipeline(
        """digraph d { start [shape=Mdiamond] done [shape=Msquare] work [allowed_tools="write"]
        check [shape=parallelogram, tool_command="cat made.txt; pwd"] start -> work -> check -> done }"""
    )
    user = tool_user([("write_file", {"path": "made.txt", "content": "by a model\n"})])
    result = made.run(wait=True, backend=user, workdir=place, logs_root=tmp_path / "run", observers=[seen.append])
    assert result.status == "success"
    assert result.context.get("tool.output") == f"by a model\n{place}\n"
    assert not (tmp_path / "run" / "workspace").exists()


def test_without_workdir_commands_of_the_graph_run_where_they_always_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Pipeline(
        """digraph d { start [shape=Mdiamond] done [shape=Msquare]
        check [shape=parallelogram, tool_command="pwd"] start -> check -> done }"""
    )
    assert made.run(wait=True).context.get("tool.output") == f"{tmp_path}\n"


def test_a_model_neither_reads_nor_forges_the_records_of_its_run_and_of_others(tmp_path, run):
    other = Pipeline("digraph o { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    other.run(wait=True, logs_root=tmp_path / "other")
    other.map([{}], wait=True, map_dir=tmp_path / "map")
    (tmp_path / "link").symlink_to("run")
    user, result, _ = run(
        tmp_path,
        ("write_file", {"path": "run/events.jsonl", "content": ""}),
        ("write_file", {"path": "run/work/status.json", "content": '{"outcome": "fail"}'}),
        ("read_file", {"path": "run/pipeline.dot"}),
        ("read_file", {"path": "link/manifest.json"}),
        ("read_file", {"path": "other/checkpoint.json"}),
        ("write_file", {"path": "map/row-00000/new", "content": ""}),
        ("list_files", {"path": "map"}),
        ("list_files", {"path": ".", "depth": 5}),
        workdir=tmp_path,
    )
    assert [told.partition("is inside a run directory")[1] for told in user.told[:-1]] == [
        "is inside a run directory"
    ] * 7
    assert user.told[-1] == "link@\nmap/\nother/\nrun/"
    assert result.status == "success"


def test_a_workdir_that_there_is_not_is_refused_before_the_run(tmp_path):
    with pytest.raises(OptionError, match=r"workdir .*none is not a directory"):
        pipeline().run(wait=True, workdir=tmp_path / "none", logs_root=tmp_path / "run")
    with pytest.raises(OptionError, match="workdir must be a path, not int"):
        pipeline().run(wait=True, workdir=7)
    assert not (tmp_path / "run").exists()


def test_workdir_and_executor_contradict_each_other(tmp_path):
    with ThreadPoolExecutor(1) as executor, pytest.raises(OptionError, match="directory of this machine"):
        pipeline().run(wait=True, workdir=tmp_path, executor=executor)


def test_tools_do_not_work_on_a_worker_and_say_so(tmp_path):
    def backend(node, prompt, context):
        from attractor_nb.backends.llm.tools import tools_for
        from attractor_nb.stage import current_stage

        tools_for(node, current_stage())
        return "done"

    with ThreadPoolExecutor(1) as executor:
        result = pipeline().run(wait=True, backend=backend, executor=executor, logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert "there is no working directory here" in result.reason


def test_a_resume_works_where_the_run_did(tmp_path):
    place = tmp_path / "repo"
    place.mkdir()
    made = Pipeline(
        """digraph d { start [shape=Mdiamond] done [shape=Msquare]
        one [shape=parallelogram, tool_command="echo 1 > one"] two [shape=parallelogram, tool_command="cat one; pwd"]
        start -> one -> two -> done }"""
    )
    first = made.run(wait=True, workdir=place, logs_root=tmp_path / "run", stop_after=2)
    assert first.status == "paused"
    result = made.resume(tmp_path / "run").result()
    assert result.context.get("tool.output") == f"1\n{place}\n"
    for entry in place.iterdir():
        entry.unlink()
    place.rmdir()
    with pytest.raises(OptionError, match="that directory is gone"):
        made.resume(tmp_path / "run", rewind_to="two")


def test_a_child_works_in_its_parents_workspace_unless_it_has_a_place_of_its_own(tmp_path, monkeypatch, tool_user):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    child = Pipeline(FRAME.format(attrs='allowed_tools="write,list"'))
    parent = Pipeline(
        """digraph p { start [shape=Mdiamond] done [shape=Msquare]
        sub [type="pipeline", pipeline.name="child"] look [allowed_tools="write,list"] start -> sub -> look -> done }""",
        pipelines={"child": child},
    )
    user = tool_user([("list_files", {}), ("write_file", {"path": "seen.txt", "content": "x"})])
    result = parent.run(wait=True, backend=user, logs_root=tmp_path / "run", isolation="workspace")
    assert result.status == "success"
    assert user.told == ["(empty)", "wrote 1 bytes to seen.txt", "seen.txt", "wrote 1 bytes to seen.txt"]
    assert (tmp_path / "run" / "workspace" / "seen.txt").exists()


def test_a_restart_works_on_in_the_same_workspace(tmp_path, tool_user):
    made = Pipeline(
        """digraph d { start [shape=Mdiamond] done [shape=Msquare] work [allowed_tools="write,list", verdict=json]
        start -> work  work -> done [condition="preferred_label=done"]
        work -> work [loop_restart=true, condition="preferred_label=again"] }"""
    )
    told = []

    async def backend(node, prompt, context):
        user = tool_user([("list_files", {}), ("write_file", {"path": "left.txt", "content": "x"})])
        await user.run(node, prompt, context)
        told.append(user.told[0])
        label = "done" if len(told) > 1 else "again"
        return json.dumps({"outcome": "success", "preferred_next_label": label})

    result = made.run(wait=True, backend=backend, logs_root=tmp_path / "run", isolation="workspace")
    assert (result.status, told) == ("success", ["(empty)", "left.txt"])


def test_a_run_that_keeps_nothing_leaves_no_workspace(tmp_path, monkeypatch, tool_user):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    user = tool_user([("write_file", {"path": "a.txt", "content": "x"}), ("read_file", {"path": "a.txt"})])
    result = pipeline().run(wait=True, backend=user, durability="none", isolation="workspace")
    assert (result.status, user.told[1]) == ("success", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_node_called_workspace_has_another_directory(tmp_path, tool_user):
    made = Pipeline(FRAME.replace("work", "workspace").format(attrs='allowed_tools="write"'))
    user = tool_user([("write_file", {"path": "status.json", "content": '{"outcome": "fail"}'})])
    result = made.run(wait=True, backend=user, logs_root=tmp_path / "run", isolation="workspace")
    assert result.status == "success"
    assert (tmp_path / "run" / "workspace" / "status.json").exists()


def test_no_secret_reaches_the_model_an_event_or_a_file(tmp_path, monkeypatch, run):
    secret = "planted-secret-0123456789"
    learn([secret])
    place = tmp_path / "repo"
    place.mkdir()
    (place / ".env").write_text(f"TOKEN={secret}\n")
    user, result, events = run(
        tmp_path,
        ("read_file", {"path": ".env"}),
        ("run_command", {"command": "cat .env >&2; false"}),
        ("read_file", {"path": secret}),
        workdir=place,
    )
    assert result.status == "success"
    assert user.told[0] == "TOKEN=[redacted]\n"
    said = json.dumps([user.told, [event.to_plain() for event in events]])
    files = "".join(path.read_text("utf-8", "replace") for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert secret not in said + files
    assert "[redacted]" in files


def test_what_the_tools_bring_into_a_call_is_told_by_name():
    assert tool_inputs(Node("work", {})) == []
    read = tool_inputs(Node("work", {"allowed_tools": "read"}))
    assert [entry["name"] for entry in read] == ["read_file"]
    assert json.dumps(read)


def test_a_server_that_is_not_declared_fails_the_stage_for_good_and_says_where_to_declare_it(tmp_path, tool_user):
    node = Node("work", {"allowed_tools": "mcp:files/*"})
    with pytest.raises(TerminalError, match="allowed_tools of node 'work' names the MCP server 'files'") as told:
        asyncio.run(try_stage(CodergenHandler(tool_user([])), node, tmp_path))
    assert told.value.hint == 'declare it on the graph: mcp.files.command="…", or .url'


def test_a_command_that_cannot_be_started_is_told_to_the_model_and_ends_nothing(tmp_path, run):
    class Refusing:
        async def run(self, command, **options):
            raise TerminalError("there is no shell", hint="install one")

    user, result, events = run(tmp_path, ("run_command", {"command": "true"}), processes=Refusing())
    assert result.status == "success", result.reason
    assert user.told == ["there is no shell"]
    assert [event.error for event in events] == ["there is no shell"]
