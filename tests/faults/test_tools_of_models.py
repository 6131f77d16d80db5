"""Tools of models: whatever a model asks for, a hook does or a disk refuses, nothing outside is touched."""

import asyncio
import contextlib
import errno
import json
import os
import secrets
import signal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools import tools_for
from attractor_nb.backends.llm.tools.catalog import TOOLS
from attractor_nb.backends.llm.tools.file_tools import ToolProblem
from attractor_nb.backends.llm.tools.tool_calls import ToolCalls
from attractor_nb.errors import StorageError
from attractor_nb.model.events import ToolCallEnded
from attractor_nb.model.graph import Graph, Node
from attractor_nb.runtime.workspace.workspace import Folder, RunWorkplace
from attractor_nb.stage import StageScope, current_stage
from attractor_nb.testing import FakeProcesses, FolderFiles
from tests.disks.faulty_disk import FaultyDisk
from tests.waiting import wait_until

MAX_KEPT_CHARACTERS = 20_000

PLACES = "attractor_nb/backends/llm/tools/file_tools.py"
CALLS = "attractor_nb/backends/llm/tools/tool_calls.py"
HOOKS = "attractor_nb/backends/llm/tools/tool_calls.py"
SOURCE = """digraph d { start [shape=Mdiamond] done [shape=Msquare]
  work [prompt="Work", allowed_tools="read,write,list,run", %s] start -> work -> done }"""


def asks(*calls):
    """A backend whose model asks for these tools and then answers."""

    async def backend(node, prompt, context):
        left = list(calls)

        def answer(messages, info):
            if not left:
                return ModelResponse(parts=[TextPart("done")])
            tool, arguments, *name = left.pop(0)
            return ModelResponse(parts=[ToolCallPart(tool, arguments, tool_call_id=name[0] if name else "call")])

        agent = Agent(FunctionModel(answer), toolsets=[tools_for(node, current_stage())])
        return (await agent.run(prompt)).output

    return backend


def run(place, *calls, attrs="goal_gate=false", **options):
    seen = []
    result = Pipeline(SOURCE % attrs).run(
        wait=True,
        backend=asks(*calls),
        logs_root=place / "run",
        durability="fast",
        observers=[seen.append],
        isolation="workspace",
        **options,
    )
    return result, [event for event in seen if isinstance(event, ToolCallEnded)]


def tree(place):
    """Every file below a place, with what it holds."""
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


HOSTILE_PATHS = (
    st.sampled_from(
        [
            "..", "../victim", "a/../../victim", "/etc/passwd", "/proc/self/environ", "~/.ssh/id_rsa", "link/victim",
            "loop", "loop/x", ".git/config", "sub/.Git/hooks/x", ".attractor/runs", "CON", "a\nb", "\u202e", "x" * 5000,
            "victim\0", "//etc/passwd", "./././..", "%2e%2e/victim", "..\\victim", "file/below", "\ud800",
        ]
    )
    | st.text(alphabet="./\\~\0ab\n ", max_size=12)
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = (
    st.fixed_dictionaries(
        {}, optional={"path": HOSTILE_PATHS | JSON, "content": JSON, "first_line": JSON, "depth": JSON, "command": JSON}
    )
    | st.dictionaries(st.text(max_size=8), JSON, max_size=5)
)  # fmt: skip


@pytest.mark.protects(PLACES, "if not real.is_relative_to(real_root):", instead="if False:")
@settings(max_examples=150, deadline=None)
@example(tool=TOOLS[0], arguments={"path": "link/victim"}, call_id="a")
@example(tool=TOOLS[1], arguments={"path": "link/victim", "content": "mine"}, call_id="b")
@given(tool=st.sampled_from(TOOLS), arguments=ARGUMENTS, call_id=st.text(max_size=30))
@pytest.mark.campaign
def test_whatever_a_model_sends_nothing_outside_is_touched_and_the_call_is_recorded(
    tmp_path_factory, tool, arguments, call_id
):
    place = tmp_path_factory.mktemp("tools")
    root = place / "root"
    root.mkdir()
    (place / "victim").write_text("untouched")
    (root / "file").write_text("inside")
    (root / "link").symlink_to("..")
    (root / "loop").symlink_to("loop")
    events = []
    scope = StageScope("run", "work", 1, 1, place, FolderFiles(place / "stage"), events.append)
    workplace = RunWorkplace(Graph("g"), Folder(root), FakeProcesses())
    told = ""
    with contextlib.suppress(ToolProblem):
        told = asyncio.run(ToolCalls(Node("work", {}), scope, workplace).run(tool, call_id, arguments))
    assert "untouched" not in told
    after = tree(place)
    assert after["victim"] == b"untouched"
    assert not [name for name in after if not name.startswith(("root/", "stage/", "victim"))]
    assert not [name for name in after if "/.git/" in name.lower()]
    (event,) = events
    json.dumps(event.to_plain(), allow_nan=False)
    (line,) = after["stage/tool_calls.jsonl"].splitlines()
    assert json.loads(line)["tool"] == tool.name
    assert len(line) < 20 * MAX_KEPT_CHARACTERS


@pytest.mark.protects(HOOKS, "env=self._environment(when, tool, call_id),", instead="env=None,")
def test_nothing_that_a_model_wrote_becomes_part_of_a_hook(tmp_path):
    evil = f"$(touch {tmp_path}/owned) `touch {tmp_path}/owned` ; touch {tmp_path}/owned #\n\"'"
    hook = f'tool_hooks.pre="printf %s \\"$ATTRACTOR_TOOL_CALL_ID\\" > {tmp_path}/id; cat > {tmp_path}/stdin"'
    result, events = run(tmp_path, ("write_file", {"path": "a", "content": evil}, evil + "\0" + "x" * 500), attrs=hook)
    assert (result.status, events[0].hooks) == ("success", (("pre", 0, ""),))
    assert not (tmp_path / "owned").exists()
    assert json.loads((tmp_path / "stdin").read_text())["arguments"]["content"] == evil
    assert (tmp_path / "id").read_text().startswith("$(touch ")
    assert len((tmp_path / "id").read_text()) == 200


@pytest.mark.protects(CALLS, "if before.exit_code != 0:", instead="if before.exit_code == 1:")
@pytest.mark.parametrize(
    "hook",
    ["exit 3", "kill -9 $$", "kill -TERM $$", "no-such-program", "((", "sleep 60", "yes | head -c 80000000; exit 2"],
)
@pytest.mark.campaign
def test_a_pre_hook_that_did_not_say_yes_means_no(tmp_path, hook):
    result, events = run(
        tmp_path,
        ("write_file", {"path": "a.txt", "content": "x"}),
        attrs=f'tool_hooks.pre="{hook}", tool_hooks.timeout="2s"',
    )
    assert result.status == "success"
    assert events[0].skipped
    assert not (tmp_path / "run" / "workspace" / "a.txt").exists()
    assert len(events[0].hooks[0][2]) <= 1000


def alive(tag):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and tag.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("where", ["command", "pre", "post"])
def test_a_run_that_is_stopped_ends_what_a_tool_or_a_hook_has_started(tmp_path, where):
    tag = f"tag{os.getpid()}{where}{secrets.token_hex(8)}"
    begun = tmp_path / "begun"
    command = f"touch {begun}; (exec -a {tag} sleep 1000) & exec -a {tag} sleep 1000"
    script = tmp_path / "slow.sh"
    script.write_text(f"#!/bin/bash\n{command}\n")
    script.chmod(0o755)
    hook = "goal_gate=false" if where == "command" else f'tool_hooks.{where}="{script}"'
    call = ("run_command", {"command": str(script) if where == "command" else "true"})
    handle = Pipeline(SOURCE % hook).run(backend=asks(call), logs_root=tmp_path / "run")
    wait_until(begun.exists, "the command")
    handle.cancel()
    assert handle.result(60).status == "interrupted"
    left = alive(tag)
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_call_that_cannot_be_recorded_stops_the_run_which_can_go_on(tmp_path, error):
    counted = FaultyDisk()
    call = ("write_file", {"path": "a.txt", "content": "x"})
    run(tmp_path / "counted", call, disk=counted)
    at = next(index for index, (_, name) in enumerate(counted.operations) if name == "tool_calls.jsonl") + 1
    with pytest.raises(StorageError):
        run(tmp_path, call, disk=FaultyDisk(fail_at=at, error=error, lasts=10**6))
    again = Pipeline(SOURCE % "goal_gate=false", backend=asks(call)).resume(tmp_path / "run").result(60)
    assert again.status == "success"
    assert (tmp_path / "run" / "workspace" / "a.txt").read_text() == "x"


def test_an_agent_that_replaces_the_workspace_by_a_link_moves_no_write_out_of_its_reach(tmp_path):
    """With `run` a model can do what its user can; a later model without it goes where the link leads, no further."""
    (tmp_path / "victim").write_text("untouched")
    result, events = run(
        tmp_path,
        ("run_command", {"command": "ln -s / root"}),
        ("write_file", {"path": f"root{tmp_path}/victim", "content": "mine"}),
        ("read_file", {"path": "root/etc/passwd"}),
    )
    assert result.status == "success"
    assert all("leads out" in event.error for event in events[1:])
    assert (tmp_path / "victim").read_text() == "untouched"
