"""Commands around each tool call of a model (spec 9.7), with real commands."""

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import UntrustedSource
from attractor_nb.processes import LocalProcesses
from attractor_nb.redaction import learn

NOT_STARTED = 127
TIMED_OUT = 124

WRITE = ("write_file", {"path": "a.txt", "content": "hello"})
FRAME = """digraph d {{ {graph} start [shape=Mdiamond] done [shape=Msquare]
  work [prompt="Work", allowed_tools="write,run", {node}] start -> work -> done }}"""


@pytest.fixture
def run(use_tools):
    def go(tmp_path, *calls, graph="", node="goal_gate=false", **options):
        return use_tools(tmp_path, Pipeline(FRAME.format(graph=graph, node=node)), list(calls) or [WRITE], **options)

    return go


def written(tmp_path):
    return (tmp_path / "run" / "workspace" / "a.txt").exists()


def test_9_7_a_pre_hook_that_ends_with_0_lets_the_call_be_made(tmp_path, run):
    user, result, events = run(tmp_path, graph='tool_hooks.pre="true"')
    assert (result.status, user.told, written(tmp_path)) == ("success", ["wrote 5 bytes to a.txt"], True)
    assert events[0].hooks == (("pre", 0, ""),)


def test_9_7_another_exit_code_skips_the_call_and_the_model_is_told(tmp_path, kept, run):
    user, result, events = run(tmp_path, graph='tool_hooks.pre="echo not here >&2; exit 7"')
    assert (result.status, written(tmp_path)) == ("success", False)
    assert user.told == ["the call was skipped: the pre-hook ended with exit code 7: not here"]
    assert events[0].skipped == "the pre-hook ended with exit code 7: not here"
    assert events[0].hooks == (("pre", 7, "not here"),)
    line = kept(tmp_path / "run")[0]
    assert (line["skipped"], line["hooks"]) == (events[0].skipped, [["pre", 7, "not here"]])


def test_9_7_a_hook_learns_of_the_call_by_environment_and_stdin(tmp_path, run):
    keep = f"cat > {tmp_path}/$ATTRACTOR_HOOK.json; env > {tmp_path}/$ATTRACTOR_HOOK.env"
    run(tmp_path, node=f'tool_hooks.pre="{keep}", tool_hooks.post="{keep}"')
    before, after = (json.loads((tmp_path / f"{when}.json").read_text()) for when in ("pre", "post"))
    assert before == {
        "hook": "pre",
        "tool": "write_file",
        "call_id": "call-1",
        "arguments": WRITE[1],
        "run_id": before["run_id"],
        "node_id": "work",
        "branch": "",
        "visit": 1,
        "attempt": 1,
        "workdir": str(tmp_path / "run" / "workspace"),
    }
    assert (after["result"], after["error"], after["hook"]) == ("wrote 5 bytes to a.txt", "", "post")
    assert after["duration"] >= 0
    environment = dict(line.split("=", 1) for line in (tmp_path / "pre.env").read_text().splitlines() if "=" in line)
    assert {name: environment[name] for name in environment if name.startswith("ATTRACTOR_TOOL")} == {
        "ATTRACTOR_TOOL_NAME": "write_file",
        "ATTRACTOR_TOOL_CALL_ID": "call-1",
    }
    assert environment["ATTRACTOR_NODE_ID"] == "work"
    assert environment["ATTRACTOR_RUN_ID"] == before["run_id"]
    assert environment["ATTRACTOR_WORKDIR"] == before["workdir"]


def test_9_7_the_nodes_hook_wins_over_the_graphs_and_an_empty_one_is_none(tmp_path, run):
    assert run(tmp_path / "a", graph='tool_hooks.pre="false"', node='tool_hooks.pre="true"')[2][0].skipped == ""
    assert run(tmp_path / "b", graph='tool_hooks.pre="false"', node='tool_hooks.pre=""')[2][0].hooks == ()
    assert run(tmp_path / "c", graph='tool_hooks.pre="true"', node='tool_hooks.pre="false"')[2][0].skipped


def test_9_7_a_post_hook_that_fails_is_recorded_and_changes_nothing(tmp_path, run):
    user, result, events = run(tmp_path, graph='tool_hooks.post="echo full >&2; exit 9"')
    assert (result.status, user.told, written(tmp_path)) == ("success", ["wrote 5 bytes to a.txt"], True)
    assert events[0].hooks == (("post", 9, "full"),)


def test_9_7_a_post_hook_learns_of_an_error_and_does_not_run_for_a_call_that_was_skipped(tmp_path, run):
    keep = f"cat >> {tmp_path}/after.jsonl; echo >> {tmp_path}/after.jsonl"
    pre = "case $(cat) in *forbidden*) exit 1;; esac"
    calls = [("write_file", {"path": "../x", "content": ""}), ("write_file", {"path": "forbidden", "content": ""})]
    run(tmp_path, *calls, node=f'tool_hooks.pre="{pre}", tool_hooks.post="{keep}"')
    lines = (tmp_path / "after.jsonl").read_text().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["error"].startswith("'../x' has '..' in it")


@pytest.mark.parametrize("when", ["pre", "post"])
def test_a_hook_whose_time_runs_out_is_ended_pre_skips_and_post_is_recorded(tmp_path, when, run):
    _, result, events = run(tmp_path, node=f'tool_hooks.{when}="sleep 60 & wait", tool_hooks.timeout="300ms"')
    assert result.status == "success"
    assert events[0].hooks == ((when, TIMED_OUT, "it took more than 0.3 s and was ended"),)
    assert bool(events[0].skipped) == (when == "pre")
    assert written(tmp_path) == (when == "post")


@pytest.mark.parametrize("when", ["pre", "post"])
def test_a_hook_that_cannot_be_started_pre_skips_and_post_is_recorded(tmp_path, when, run):
    _, result, events = run(
        tmp_path, node=f'tool_hooks.{when}="true"', processes=LocalProcesses(shell="/no/such/shell")
    )
    assert result.status == "success"
    assert events[0].hooks[0][:2] == (when, NOT_STARTED)
    assert "/no/such/shell" in events[0].hooks[0][2]
    assert written(tmp_path) == (when == "post")


def test_hooks_run_where_commands_of_the_graph_do(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "repo"
    place.mkdir()
    keep = f'tool_hooks.pre="pwd >> {tmp_path}/places"'
    run(tmp_path / "a", node=keep, workdir=None)
    run(tmp_path / "b", node=keep, workdir=place)
    assert (tmp_path / "places").read_text().splitlines() == [str(tmp_path), str(place)]


def test_a_child_has_the_hooks_of_its_own_graph(tmp_path, tool_user):
    child = Pipeline(FRAME.format(graph='tool_hooks.pre="exit 5"', node="goal_gate=false"))
    parent = Pipeline(
        """digraph p { tool_hooks.pre="true" start [shape=Mdiamond] done [shape=Msquare]
        sub [type="pipeline", pipeline.name="child"] start -> sub -> done }""",
        pipelines={"child": child},
    )
    user = tool_user([WRITE])
    assert parent.run(wait=True, backend=user, logs_root=tmp_path / "run").status == "success"
    assert user.told == ["the call was skipped: the pre-hook ended with exit code 5"]


def test_hooks_of_a_pipeline_from_elsewhere_must_be_trusted(tmp_path, tool_user):
    source = FRAME.format(graph='tool_hooks.pre="true"', node="goal_gate=false")
    foreign = Pipeline(source, origin="a stranger")
    with pytest.raises(UntrustedSource, match="allowed_tools") as refused:
        foreign.run(wait=True, backend=tool_user([WRITE]))
    assert "tool_hooks.pre" in str(refused.value)


def test_a_secret_that_a_hook_prints_is_in_no_event_and_no_file(tmp_path, run):
    secret = "hook-secret-0123456789abcdef"
    learn([secret])
    script = tmp_path / "leak.sh"
    script.write_text(f"echo {secret} >&2; exit 1\n")
    user, _, events = run(tmp_path, node=f'tool_hooks.pre="sh {script}"')
    files = "".join(path.read_text("utf-8", "replace") for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert secret not in files + json.dumps([user.told, [event.to_plain() for event in events]])
