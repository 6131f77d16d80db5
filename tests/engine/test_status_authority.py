"""Writers of an outcome (ruling 42): a status.json counts only where the stage runs something that writes one."""

import json
import os
import sys

import pytest

from attractor_nb import Answer, Outcome, Pipeline, RetryableError, StageStatus, TerminalError
from attractor_nb.handlers.fan_out import FanInHandler, ParallelHandler
from attractor_nb.handlers.handler_registry import ConditionalHandler, ExitHandler, StartHandler
from attractor_nb.handlers.manager_loop import ManagerLoopHandler, SubPipelineHandler
from attractor_nb.handlers.wait_human import WaitHumanHandler
from attractor_nb.model.events import RunWarning, StageStarted
from attractor_nb.stage import current_stage
from attractor_nb.storage.log.event_log import read_log

CHILD = "digraph c { start [shape=Mdiamond] work [prompt=w] done [shape=Msquare] start -> work -> done }"
FRAME = "digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"
GATE = 'gate [shape=hexagon] yes no start -> gate; gate -> yes [label="[Y] Yes"]; gate -> no [label="[N] No"];'
GATE += " yes -> done; no -> done"
BRANCHES = "start -> fan; fan -> a; fan -> b; a -> join; b -> join; join -> done; fan [shape=component] "
BRANCHES += "join [shape=tripleoctagon] a [type=broken] b [type=broken]"
CHILDREN = 'child [type="{type}", "{key}"="child.dot"] start -> child -> done'
PLANTED = {"outcome": "success", "preferred_next_label": "[Y] Yes", "suggested_next_ids": [], "notes": "planted"}


def broken(node, context, graph, logs_root):
    return Outcome.fail("broken")


def planting(handler_class, monkeypatch, plain=PLANTED):
    """Let something write a status.json into each stage of a handler while it goes on."""
    original = handler_class.execute

    async def execute(self, node, context, graph, logs_root):
        (current_stage().files.directory / "status.json").write_text(json.dumps(plain))
        return await original(self, node, context, graph, logs_root)

    monkeypatch.setattr(handler_class, "execute", execute)


@pytest.mark.parametrize(
    ("handler_class", "node", "body", "status"),
    [
        (StartHandler, "start", "start -> done", "success"),
        (ExitHandler, "done", "start -> done", "success"),
        (ConditionalHandler, "check", 'check [shape=diamond] start -> check; check -> done [label="x"]', "success"),
        (WaitHumanHandler, "gate", GATE, "success"),
        (ParallelHandler, "fan", BRANCHES, "fail"),
        (FanInHandler, "join", f"graph [on_fail=continue] {BRANCHES} fan [error_policy=ignore]", "fail"),
        (SubPipelineHandler, "child", CHILDREN.format(type="pipeline", key="pipeline.dotfile"), "fail"),
        (ManagerLoopHandler, "child", CHILDREN.format(type="stack.manager_loop", key="stack.child_dotfile"), "fail"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_ruling_42_a_status_file_in_a_stage_that_writes_none_is_renamed_and_warned_of(
    handler_class, node, body, status, monkeypatch, tmp_path
):
    plain = {**PLANTED, "outcome": "success" if status == "fail" else "fail"}
    planting(handler_class, monkeypatch, plain)
    (tmp_path / "child.dot").write_text(CHILD)
    monkeypatch.chdir(tmp_path)

    def backend(task, prompt, context):
        return Outcome.fail("the child's stage failed") if task.id == "work" else "fine"

    pipeline = Pipeline(FRAME.format(body=body), backend=backend, handlers={"broken": broken})
    run = pipeline.run(wait=False, logs_root=tmp_path / "run", interviewer=lambda question: Answer("N"))
    result = run.result()
    stage = tmp_path / "run" / node
    assert json.loads((stage / "status.json.ignored").read_text()) == plain
    assert json.loads((stage / "status.json").read_text())["outcome"] == status
    assert "yes" not in result.completed_nodes
    warnings = [
        event
        for event in read_log(tmp_path / "run").events
        if isinstance(event, RunWarning) and "status.json" in event.message
    ]
    assert [event.node for event in warnings] == [node]
    assert "ignored" in warnings[0].message


def test_ruling_42_an_answer_no_stays_no_when_a_tool_of_another_branch_writes_yes(tmp_path):
    body = """fan [shape=component] gate [shape=hexagon] yes no tool [type=plant]
        start -> fan; fan -> gate; fan -> tool; gate -> yes [label="[Y] Yes"]; gate -> no [label="[N] No"]
        yes -> join; no -> join; tool -> join; join [shape=tripleoctagon] join -> done"""
    planted = []

    def plant(node, context, graph, logs_root):
        for gate in logs_root.rglob("gate"):
            (gate / "status.json").write_text(json.dumps({**PLANTED, "suggested_next_ids": ["yes"]}))
            planted.append(gate)
        return Outcome.success()

    def answer(question):
        while not planted:
            plant(None, None, None, tmp_path / "run")
        return Answer("N")

    run = Pipeline(FRAME.format(body=body), handlers={"plant": plant}).run(
        wait=False, logs_root=tmp_path / "run", interviewer=answer, backend=lambda prompt: "fine"
    )
    result = run.result()
    assert planted
    assert result.status == "success", result.reason
    begun = {event.name for event in read_log(tmp_path / "run").events if isinstance(event, StageStarted)}
    assert {"yes", "no"} & begun == {"no"}


def own(then):
    """A handler that writes a success and then ends otherwise."""

    def execute(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text(json.dumps({**PLANTED, "context_updates": {"found": 3}}))
        return then()

    return execute


def raising(error):
    def then():
        raise error

    return then


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RetryableError("429 Too Many Requests"), "429 Too Many Requests"),
        (TerminalError("no credit"), "no credit"),
        (ValueError("wrong"), "ValueError: wrong"),
        (TimeoutError("late"), "TimeoutError: late"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_ruling_42_a_status_file_makes_no_success_of_an_exception(error, reason, tmp_path):
    source = FRAME.format(body="a [type=own, goal_gate=true] start -> a -> done")
    pipeline = Pipeline(source, handlers={"own": own(raising(error))})
    result = pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert (result.status, result.outcomes["a"].failure_reason) == ("fail", reason)
    assert "found" not in result.context
    assert json.loads((tmp_path / "run/a/status.rejected.json").read_text())["notes"] == "planted"
    status = json.loads((tmp_path / "run/a/status.json").read_text())
    assert status["failure_reason"] == reason
    assert "its status.json says success, and does not count" in status["notes"]
    assert "planted" in status["notes"]


@pytest.mark.parametrize("written", ["success", "partial_success", "skipped"])
@pytest.mark.parametrize(
    ("end", "reason"),
    [("sys.exit(1)", "exit code 1"), ("os.kill(os.getpid(), 9)", "exit code"), ("time.sleep(600)", "timed out")],
    ids=["exit code", "SIGKILL", "timeout"],
)
def test_ruling_42_a_status_file_makes_no_success_of_a_failed_command(end, reason, written, tmp_path):
    script = tmp_path / "tool.py"
    script.write_text(
        "import json, os, sys, time\n"
        "path = os.path.join(os.environ['ATTRACTOR_STAGE_DIR'], 'status.json')\n"
        f"open(path, 'w').write(json.dumps({{'outcome': {written!r}}}))\n{end}\n"
    )
    body = f'a [shape=parallelogram, tool_command="{sys.executable} {script}", timeout=3s, goal_gate=true]'
    result = Pipeline(FRAME.format(body=f"{body} start -> a -> done")).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert reason in result.outcomes["a"].failure_reason
    assert "tool.exit_code" in result.context


def test_ruling_42_a_status_file_makes_no_success_of_the_time_limit(tmp_path):
    import asyncio

    from attractor_nb.testing import ManualClock

    async def forever(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text('{"outcome": "success"}')
        await asyncio.Event().wait()

    source = FRAME.format(body="a [type=own, timeout=900s] start -> a -> done")
    result = Pipeline(source, handlers={"own": forever}).run(wait=True, logs_root=tmp_path / "run", clock=ManualClock())
    assert result.status == "fail"
    assert "timeout: a took more than 15m" in result.reason


@pytest.mark.parametrize("written", ["fail", "retry", "partial_success"])
def test_ruling_42_a_status_file_may_lower_an_outcome(written, tmp_path):
    def execute(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text(json.dumps({"outcome": written, "notes": "as written"}))
        return Outcome.success()

    source = FRAME.format(body="a [type=own] start -> a -> done")
    result = Pipeline(source, handlers={"own": execute}).run(wait=True, logs_root=tmp_path / "run")
    assert result.outcomes["a"].status is StageStatus("fail" if written == "retry" else written)
    assert "as written" in result.outcomes["a"].notes


def test_ruling_42_a_failure_that_the_file_says_too_keeps_what_was_observed(tmp_path):
    def execute(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text('{"outcome": "fail", "preferred_label": "later"}')
        raise TerminalError("no credit")

    source = FRAME.format(body="a [type=own, max_retries=3] start -> a -> done")
    result = Pipeline(source, handlers={"own": execute}).run(wait=True, logs_root=tmp_path / "run")
    outcome = result.outcomes["a"]
    assert (outcome.failure_reason, outcome.is_terminal) == ("no credit", True)
    status = json.loads((tmp_path / "run/a/status.json").read_text())
    assert (status["attempt"], status["failure_reason"]) == (1, "no credit")


def test_ruling_42_a_failure_that_a_handler_returned_is_its_own_word_and_the_file_counts(tmp_path):
    def execute(node, context, graph, logs_root):
        (logs_root / node.id / "status.json").write_text('{"outcome": "success"}')
        return Outcome.fail("not sure")

    source = FRAME.format(body="a [type=own] start -> a -> done")
    result = Pipeline(source, handlers={"own": execute}).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "success"


def test_ruling_42_a_status_file_with_two_names_does_not_count(tmp_path):
    def execute(node, context, graph, logs_root):
        kept = tmp_path / "kept.json"
        kept.write_text('{"outcome": "success"}')
        os.link(kept, logs_root / node.id / "status.json")

    source = FRAME.format(body="a [type=own] start -> a -> done")
    result = Pipeline(source, handlers={"own": execute}).run(wait=True, logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert "link" in result.reason
