"""Child runs: managers and sub-pipelines with real runs on the disk (spec 4.11, 9.4)."""

import asyncio
import errno
import functools
import json
import os
import shutil
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus, Usage, load_pipeline
from attractor_nb.errors import RunLocked, StorageError, UntrustedSource, ValidationError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    ChildSteered,
    InstructionGiven,
    RunWarning,
    StageFailed,
    StageStarted,
)
from attractor_nb.runtime.parked_answers import record_answer
from attractor_nb.server.run_service import posted_pipeline
from attractor_nb.stage import current_stage
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_log import EventLog
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import read_facts, read_run
from attractor_nb.testing import ManualClock, ScriptedBackend, ScriptedInterviewer
from tests.disks.power_loss import PowerLoss, write_image
from tests.disks.recorded_disk import RecordedDisk

WORKER = """digraph worker { start [shape=Mdiamond] plan [prompt="Plan it"] build [prompt="Build it"]
  done [shape=Msquare] start -> plan -> build -> done }"""
FRAME = "digraph top {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"


def managed(attributes="", body="", graph=""):
    """A pipeline text with a manager ``boss`` of the registered pipeline ``worker``."""
    more = f", {attributes}" if attributes else ""
    text = f"{graph} boss [shape=house, stack.child_pipeline=worker{more}] start -> boss {body or 'boss -> done'}"
    return FRAME.format(body=text)


def nested(attributes=""):
    """A pipeline text with a stage ``sub`` that runs the registered pipeline ``worker``."""
    more = f", {attributes}" if attributes else ""
    return FRAME.format(body=f"sub [type=pipeline, pipeline.name=worker{more}] start -> sub -> done")


class Holding:
    """A backend that holds one node until it is let go, and says when it is there."""

    def __init__(self, node, usage=None):
        self.node, self.usage = node, usage
        self.prompts = []
        self.reached = asyncio.Event()
        self.free = asyncio.Event()

    async def run(self, node, prompt, context):
        """Answer, or wait."""
        self.prompts.append((node.id, prompt))
        if node.id == self.node:
            self.reached.set()
            await self.free.wait()
        return Response("done", usage=self.usage)


@pytest.fixture
def directory(tmp_path):
    """A run directory to be."""
    return tmp_path / "run"


def in_a_loop(test):
    """Run an async test."""

    @functools.wraps(test)
    def wrapped(**given):
        asyncio.run(test(**given))

    return wrapped


def run(text, directory, worker=WORKER, **options):
    """Run a pipeline whose child is ``worker`` to its end."""
    pipelines = options.pop("pipelines", {"worker": worker})
    made = {key: options.pop(key) for key in ("guards", "handlers") if key in options}
    pipeline = Pipeline(text, pipelines=pipelines, **made)
    options = {"backend": ScriptedBackend(), "durability": "fast", **options}
    return pipeline.run(wait=True, logs_root=directory, **options)


def events_of(directory, kind):
    """Events of one kind in a run's log."""
    return [event for event in read_run(Path(directory)).events if isinstance(event, kind)]


# -- a child is a real run ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
def test_a_child_is_a_run_with_a_directory_below_its_parents(text, directory):
    result = run(text, directory)
    node = result.completed_nodes[1]
    assert result.status == "success"
    child = Run.load(directory / "children" / node / "1")
    assert child.result().completed_nodes == ("start", "plan", "build", "done")
    (started,), (ended,) = events_of(directory, ChildStarted), events_of(directory, ChildEnded)
    assert (started.child_id, started.child_root) == (child.id, f"children/{node}/1")
    assert (ended.child_id, ended.status) == (child.id, "completed")


def test_a_manager_tells_its_context_how_the_child_stands(directory):
    backend = ScriptedBackend({"build": [Outcome.retry("again"), "built"]})
    worker = WORKER.replace('prompt="Build it"', 'prompt="Build it", max_retries=2')
    context = run(managed(), directory, worker, backend=backend, clock=ManualClock()).context
    told = {key.removeprefix("stack.child."): context.get(key) for key in context if key.startswith("stack.child.")}
    assert told["status"] == "completed"
    assert told["outcome"] == "success"
    assert told["completed"] == ["start", "plan", "build", "done"]
    assert told["retries_by_node"] == {"build": 1}
    assert (told["retries"], told["run_id"]) == (1, Run.load(told["logs_root"]).id)


def test_without_observe_the_context_has_only_how_the_child_ended(directory):
    context = run(managed('manager.actions="wait"'), directory).context
    assert context.get("stack.child.outcome") == "success"
    assert "stack.child.completed" not in context


@pytest.mark.parametrize(
    ("text", "reason"),
    [(managed(), "Child failed: no paper"), (nested(), "worker failed: no paper")],
    ids=["manager", "pipeline"],
)
def test_a_child_that_fails_fails_the_stage_with_its_reason(text, reason, directory):
    result = run(text, directory, backend=ScriptedBackend({"build": Outcome.fail("no paper")}))
    assert (result.status, reason in result.reason) == ("fail", True)


def test_an_observer_of_the_parent_sees_the_childs_events(directory):
    seen = []
    run(managed(), directory, observers=[seen.append])
    inner = [event.event for event in seen if isinstance(event, ChildEvent)]
    assert [event.name for event in inner if isinstance(event, StageStarted)] == ["start", "plan", "build", "done"]
    assert not events_of(directory, ChildEvent)


def test_the_handle_of_a_run_has_those_of_its_children(directory):
    pipeline = Pipeline(managed(), pipelines={"worker": ASKING}, backend=ScriptedBackend())
    running = pipeline.run(logs_root=directory, durability="fast", interviewer="deferred")
    running.wait_for_gate(timeout=60)
    child = running.children["boss"]
    assert [gate.stage for gate in child.gates] == ["ok"]
    assert "waits for an answer" in str(running)
    assert running.to_svg().startswith("<svg")
    child.answer("ok", "Yes")
    assert running.result(timeout=60).status == "success"
    assert Run.load(directory).children["boss"].result().completed_nodes == ("start", "ok", "done")


def test_the_graphs_of_children_are_beside_the_parents(directory):
    pipeline = Pipeline(managed(), pipelines={"worker": WORKER})
    assert list(pipeline.graph.children["boss"].nodes) == ["start", "plan", "build", "done"]
    assert Pipeline(managed(), pipelines={"worker": WORKER.replace("Plan", "Think")}).graph.content_hash != (
        pipeline.graph.content_hash
    )


def test_children_run_in_memory_where_nothing_is_stored():
    pipeline = Pipeline(managed(), pipelines={"worker": WORKER}, backend=ScriptedBackend())
    assert pipeline.run(wait=True, durability="none").status == "success"


class Breaking(ScriptedInterviewer):
    """Says yes; from then on something is wrong with what keeps the parent."""

    def __init__(self, breaks):
        super().__init__({"boss/ok": "Yes", "sub/ok": "Yes"})
        self.breaks = breaks

    async def ask(self, question):
        answer = await super().ask(question)
        self.breaks()
        return answer


class FailingWhenTold(Disk):
    """A disk of which one flush fails when it was told so."""

    def __init__(self):
        self.is_failing = False

    def sync_data(self, descriptor):
        if self.is_failing:
            self.is_failing = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync_data(descriptor)


@pytest.mark.parametrize("text", [managed(), nested()])
def test_what_the_parents_disk_refuses_at_a_gate_of_its_child_fails_no_stage(directory, text):
    disk = FailingWhenTold()
    people = Breaking(lambda: setattr(disk, "is_failing", True))
    pipeline = Pipeline(text, pipelines={"worker": ASKING})
    with pytest.raises(StorageError, match=f"cannot flush {directory}/events.jsonl"):
        pipeline.run(wait=True, logs_root=directory, interviewer=people, disk=disk)
    child = next(directory.glob("children/*/1"))
    assert not [event for event in read_run(child).events if isinstance(event, StageFailed)]
    result = pipeline.resume(directory, interviewer=ScriptedInterviewer({"boss/ok": "Yes", "sub/ok": "Yes"}))
    assert result.result(60).status == "success"
    assert Run.load(child).result().status == "success"


@pytest.mark.parametrize("text", [managed(), nested()])
def test_a_child_whose_parent_was_taken_over_at_its_gate_fails_no_stage(directory, text):
    def take_over():
        made = {"durability": "fast", "clock": ManualClock(), "take_over": True}
        DirectoryRunStore.open(directory, **made).close()

    pipeline = Pipeline(text, pipelines={"worker": ASKING})
    with pytest.raises(RunLocked):
        pipeline.run(wait=True, logs_root=directory, durability="fast", interviewer=Breaking(take_over))
    child = next(directory.glob("children/*/1"))
    assert not [event for event in read_run(child).events if isinstance(event, StageFailed)]
    result = pipeline.resume(directory, interviewer=ScriptedInterviewer({"boss/ok": "Yes", "sub/ok": "Yes"}))
    assert result.result(60).status == "success"


# -- inputs, outputs ---------------------------------------------------------------------------------


def test_inputs_and_outputs_are_mapped(directory):
    backend = ScriptedBackend({"build": "a boat"})
    text = nested(
        'pipeline.inputs="topic=context.subject, n=3, mood=\'dry\'", pipeline.outputs="made=context.last_response"'
    )
    result = run(text, directory, backend=backend, params={"subject": "boats"})
    given = next(call.context for call in backend.calls if call.node_id == "plan")
    assert (given["topic"], given["n"], given["mood"], "subject" in given) == ("boats", 3, "dry", False)
    assert result.context.get("made") == "a boat"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('pipeline.inputs="topic=context.subject"', 'the context has no "subject"'),
        ('pipeline.outputs="made=context.nothing"', "completed without nothing"),
    ],
)
def test_a_value_that_is_not_there_fails_the_stage(attributes, reason, directory):
    result = run(nested(attributes), directory)
    assert result.status == "fail"
    assert reason in result.reason


# -- the manager's loop ------------------------------------------------------------------------------


async def supervised(text, directory, backend, **options):
    """Start a supervision whose child waits; the run and what the backend saw."""
    made = {key: options.pop(key) for key in ("guards",) if key in options}
    pipeline = Pipeline(text, pipelines={"worker": WORKER}, **made)
    started = pipeline.run(logs_root=directory, backend=backend, durability="fast", host="kernel", **options)
    await asyncio.wait_for(backend.reached.wait(), 60)
    return started


@in_a_loop
async def test_max_cycles_fails_and_stops_the_child(directory):
    backend = Holding("build")
    clock = ManualClock()
    text = managed("manager.max_cycles=3, manager.poll_interval=10s")
    result = await (await supervised(text, directory, backend, clock=clock))
    assert (result.status, "Max cycles exceeded" in result.reason) == ("fail", True)
    assert Run.load(directory / "children/boss/1").status == "interrupted"
    assert result.context.get("stack.child.cycle") == 3
    assert clock.sleeps.count(10.0) >= 1


@in_a_loop
async def test_the_stop_condition_succeeds_and_stops_the_child(directory):
    backend = Holding("build")
    text = managed('manager.stop_condition="context.stack.child.active_stage=build"')
    result = await (await supervised(text, directory, backend, clock=ManualClock()))
    assert (result.status, result["boss"].outcome.notes) == ("success", "Stop condition satisfied")
    assert Run.load(directory / "children/boss/1").status == "interrupted"


@in_a_loop
async def test_escalation_stops_the_child_and_routes_as_a_failure(directory):
    backend = Holding("build")
    text = managed(
        'manager.escalate="context.stack.child.active_stage=build"',
        'boss -> done [condition="outcome=success"] call [prompt="Call for help"]\n'
        'boss -> call [condition="outcome=fail"] call -> done',
    )
    result = await (await supervised(text, directory, backend, clock=ManualClock()))
    assert result.completed_nodes == ("start", "boss", "call", "done")
    assert result.context.get("stack.child.guard") == "escalate"


@in_a_loop
async def test_a_guard_that_does_not_hold_steers_and_one_that_holds_does_not(directory):
    backend = Holding("build")
    text = managed(
        'manager.guard="context.stack.child.active_stage!=build", manager.actions="observe,steer,wait", '
        'manager.instructions="Hurry", manager.max_cycles=5, manager.poll_interval=10s, manager.steer_cooldown=1h'
    )
    await (await supervised(text, directory, backend, clock=ManualClock()))
    (steered,) = events_of(directory, ChildSteered)
    assert (steered.child_stage, steered.text) == ("build", "Hurry")


@pytest.mark.parametrize(
    ("said", "steered"), [("continue", 0), (True, 0), ("intervene", 1), (False, 1)], ids=["go", "yes", "tell", "no"]
)
@in_a_loop
async def test_a_registered_guard_judges_the_child(said, steered, directory):
    backend = Holding("build")
    looks = []

    def guard(child, context):
        looks.append((child.active_stage, context.get("stack.child.status")))
        return said

    text = managed(
        'manager.guard_function=sprint, manager.actions="observe,steer,wait", manager.instructions="Hurry", '
        "manager.max_cycles=2, manager.steer_cooldown=1h"
    )
    await (await supervised(text, directory, backend, clock=ManualClock(), guards={"sprint": guard}))
    assert len(events_of(directory, ChildSteered)) == steered
    assert ("build", "running") in looks


@pytest.mark.parametrize("said", ["sometimes", 7, None])
def test_a_guard_that_says_nonsense_fails_the_stage(said, directory):
    result = run(managed("manager.guard_function=sprint"), directory, guards={"sprint": lambda child, context: said})
    assert "the guard" in result.reason
    assert result.status == "fail"


def test_a_guard_that_is_not_registered_fails_the_stage(directory):
    assert "no guard is registered" in run(managed("manager.guard_function=sprint"), directory).reason


@in_a_loop
async def test_events_wake_the_manager_long_before_its_interval(directory):
    backend = Holding("build")
    text = managed("manager.poll_interval=1d")
    running = await supervised(text, directory, backend)
    backend.free.set()
    assert (await asyncio.wait_for(asyncio.wrap_future(running._future()), 20)).status == "success"


# -- steering ----------------------------------------------------------------------------------------

STEERING = 'manager.actions="observe,steer,wait", manager.steer_cooldown=1h, manager.instructions="Use less glue"'


class Steered(Holding):
    """Holds ``plan`` until an instruction has been given, then fails it once."""

    def __init__(self):
        super().__init__("")
        self.failed = False

    async def run(self, node, prompt, context):
        """Answer."""
        self.prompts.append((node.id, prompt))
        files = current_stage().files.directory
        while node.id == "plan" and not list(files.rglob("instruction-*.md")):  # noqa: ASYNC110 - the file is the event
            await asyncio.sleep(0)
        if node.id == "plan" and not self.failed:
            self.failed = True
            return Outcome.retry("not yet")
        return "done"


def test_an_instruction_is_in_the_next_attempts_prompt_and_not_in_the_stages_after(directory):
    backend = Steered()
    worker = WORKER.replace('prompt="Plan it"', 'prompt="Plan it", max_retries=1')
    guard = 'manager.guard="context.stack.child.active_stage!=plan"'
    result = run(managed(f"{STEERING}, {guard}"), directory, worker, backend=backend)
    assert result.status == "success"
    carried = [(node, "Use less glue" in prompt) for node, prompt in backend.prompts]
    assert carried == [("plan", False), ("plan", True), ("build", False)]
    child = directory / "children/boss/1"
    (given,) = events_of(child, InstructionGiven)
    assert (given.text, given.stage, given.file) == ("Use less glue", "plan", "instruction-1.md")
    kept = list((child / "plan").rglob("instruction-1.md"))
    assert [path.read_text() for path in kept] == ["Use less glue"]


def test_an_instruction_for_a_stage_that_needs_no_other_attempt_is_in_the_next_stages_prompt(directory):
    backend = Steered()
    backend.failed = True
    run(managed(f'{STEERING}, manager.guard="context.stack.child.active_stage!=plan"'), directory, backend=backend)
    assert [(node, "Use less glue" in prompt) for node, prompt in backend.prompts] == [("plan", False), ("build", True)]


def test_an_instruction_that_was_given_survives_a_power_loss(tmp_path, monkeypatch):
    """The manager goes on as if the child had it, and would not give it again."""
    (tmp_path / "recorded").mkdir()
    disk, append = RecordedDisk(tmp_path / "recorded"), EventLog.append

    def appended(log, event, *, is_synced):
        append(log, event, is_synced=is_synced)
        if isinstance(event, InstructionGiven):
            disk.note(event.text)

    monkeypatch.setattr(EventLog, "append", appended)
    backend = Steered()
    backend.failed = True
    text = managed(f'{STEERING}, manager.guard="context.stack.child.active_stage!=plan"')
    run(text, tmp_path / "recorded/run", backend=backend, disk=disk, durability="full")
    [(given, _)] = disk.notes()
    loss = PowerLoss(disk)
    while loss.place <= given:
        loss.advance()
    for number, image in enumerate(loss.images(8, seed=1)):
        (tmp_path / f"image{number}").mkdir()
        write_image(image, tmp_path / f"image{number}")
        child = read_run(tmp_path / f"image{number}/run/children/boss/1")
        assert [event.text for event in child.events.select(InstructionGiven)] == ["Use less glue"]


def test_a_manager_with_a_prompt_lets_its_model_write_the_instruction(directory):
    class Backend(Steered):
        async def run(self, node, prompt, context):
            if node.id == "boss":
                self.prompts.append((node.id, prompt))
                return Response("Use two nails", usage=Usage(7, 3, 0.5, 1))
            return await super().run(node, prompt, context)

    backend = Backend()
    backend.failed = True
    text = managed(
        'prompt="What should it do?", manager.actions="observe,steer,wait", manager.steer_cooldown=1h, '
        'manager.guard="context.stack.child.active_stage!=plan"'
    )
    result = run(text, directory, backend=backend)
    asked = next(prompt for node, prompt in backend.prompts if node == "boss")
    assert "What should it do?" in asked
    assert "Active stage: plan" in asked
    assert "Use two nails" in next(prompt for node, prompt in backend.prompts if node == "build")
    assert result.usage_by_node["boss"] == Usage(7, 3, 0.5, 1)
    assert (directory / "boss/steer-1.md").read_text() == "Use two nails"


def test_a_model_that_cannot_write_an_instruction_does_not_end_the_childs_work(directory):
    backend = ScriptedBackend({"boss": RuntimeError("overloaded")})
    text = managed('prompt="What?", manager.actions="observe,steer,wait"')
    assert run(text, directory, backend=backend).status == "success"
    assert any("overloaded" in event.message for event in events_of(directory, RunWarning))


def test_half_an_instruction_of_a_model_is_not_given(directory):
    backend = ScriptedBackend({"boss": Response("Delete the tests, if", is_truncated=True)})
    text = managed('prompt="What?", manager.actions="observe,steer,wait"')
    assert run(text, directory, backend=backend).status == "success"
    assert not events_of(directory, ChildSteered)
    assert any("cut off by the token limit" in event.message for event in events_of(directory, RunWarning))


def test_an_instruction_without_its_secrets(directory):
    backend = Steered()
    backend.failed = True
    attributes = STEERING.replace("Use less glue", "The word is hunter2-hunter2")
    run(
        managed(f'{attributes}, manager.guard="context.stack.child.active_stage!=plan"'),
        directory,
        backend=backend,
        secrets=["hunter2-hunter2"],
    )
    texts = [path.read_text() for path in directory.rglob("*") if path.is_file() and path.name != "pipeline.dot"]
    assert not [text for text in texts if "hunter2-hunter2" in text]
    assert any("The word is" in prompt for _, prompt in backend.prompts)


# -- people ------------------------------------------------------------------------------------------

ASKING = """digraph worker { start [shape=Mdiamond] ok [shape=hexagon, label="Fine?"] done [shape=Msquare]
  sorry [prompt="Say sorry"] start -> ok ok -> done [label="Yes"] ok -> sorry [label="No"] sorry -> done }"""


def test_a_childs_gate_reaches_the_same_person_marked_with_its_path(directory):
    interviewer = ScriptedInterviewer({"boss/ok": "No"})
    result = run(managed(), directory, ASKING, interviewer=interviewer)
    assert [question.stage for question in interviewer.questions] == ["boss/ok"]
    assert Run.load(directory / "children/boss/1").result().completed_nodes == ("start", "ok", "sorry", "done")
    assert result.status == "success"


def test_a_childs_gate_is_answered_through_the_parents_handle(directory):
    pipeline = Pipeline(managed(), pipelines={"worker": ASKING}, backend=ScriptedBackend())
    running = pipeline.run(logs_root=directory, durability="fast", interviewer="deferred")
    gate = running.wait_for_gate(timeout=60)
    assert gate.stage == "boss/ok"
    running.answer(gate.id, "Yes")
    assert running.result(timeout=60).status == "success"


# -- stopping and going on ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
@in_a_loop
async def test_stopping_the_parent_stops_the_child_and_both_go_on(text, directory):
    backend = Holding("build")
    pipeline = Pipeline(text, pipelines={"worker": WORKER})
    running = pipeline.run(logs_root=directory, backend=backend, durability="fast", host="kernel")
    await asyncio.wait_for(backend.reached.wait(), 60)
    running.cancel()
    result = await running
    assert result.status == "interrupted"
    node = next(iter(pipeline.graph.children))
    child = directory / "children" / node / "1"
    assert Run.load(child).status == "interrupted"
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if not task.done()]
    after = ScriptedBackend()
    again = await pipeline.resume(directory, backend=after, durability="fast", host="kernel")
    assert again.status == "success"
    assert [call.node_id for call in after.calls] == ["build"]  # plan was committed, and is not run again
    assert Run.load(child).id == events_of(directory, ChildStarted)[-1].child_id
    assert events_of(directory, ChildStarted)[-1].is_taken_up


@in_a_loop
async def test_a_child_that_had_ended_before_its_parents_commit_is_only_read(directory):
    backend = Holding("build")
    pipeline = Pipeline(nested('pipeline.outputs="made=context.last_response"'), pipelines={"worker": WORKER})
    running = pipeline.run(logs_root=directory, backend=backend, durability="fast", host="kernel")
    await asyncio.wait_for(backend.reached.wait(), 60)
    running.cancel()
    await running
    child = Run.load(directory / "children/sub/1")
    finished = Pipeline(WORKER).resume(child.logs_root, backend=ScriptedBackend({"build": "alone"}), durability="fast")
    finished.result(timeout=60)
    after = ScriptedBackend()
    again = await pipeline.resume(directory, backend=after, durability="fast", host="kernel")
    assert (again.status, again.context.get("made"), after.calls) == ("success", "alone", [])


def test_another_attempt_begins_another_child(directory):
    backend = ScriptedBackend({"build": [Outcome.fail("first"), "second"]})
    result = run(nested("max_retries=1"), directory, backend=backend, clock=ManualClock())
    assert result.status == "success"
    assert Run.load(directory / "children/sub/1").status == "failed"
    assert Run.load(directory / "children/sub/1.2").status == "completed"


def test_another_visit_begins_another_child(directory):
    text = FRAME.format(
        body="sub [type=pipeline, pipeline.name=worker] check [prompt=Check, verdict=json] start -> sub -> check\n"
        'check -> sub [condition="outcome=fail"] check -> done [condition="outcome=success"]'
    )
    backend = ScriptedBackend({"check": [Outcome.fail("no"), Outcome(StageStatus.SUCCESS)]})
    assert run(text, directory, backend=backend).status == "success"
    assert [Run.load(directory / f"children/sub/{visit}").status for visit in (1, 2)] == ["completed"] * 2


@in_a_loop
async def test_a_stage_that_takes_too_long_ends_its_child_and_counts_what_it_spent(directory):
    class Slow(Holding):
        async def run(self, node, prompt, context):
            return await super().run(node, prompt, context)

    backend = Slow("build", usage=Usage(10, 5, 0.25, 1))
    pipeline = Pipeline(nested("timeout=1s"), pipelines={"worker": WORKER})
    result = await pipeline.run_async(logs_root=directory, backend=backend, durability="fast")
    assert "timeout" in result.reason
    assert result.usage == Usage(10, 5, 0.25, 1)
    assert Run.load(directory / "children/sub/1").status == "interrupted"


# -- a child that another process started -------------------------------------------------------------


def test_without_autostart_there_must_be_a_child(directory):
    result = run(managed("stack.child_autostart=false"), directory)
    assert "there is no child run" in result.reason


def test_without_autostart_a_finished_child_is_read(directory, tmp_path):
    other = tmp_path / "other"
    Pipeline(WORKER, backend=ScriptedBackend()).run(wait=True, logs_root=other, durability="fast")
    backend = ScriptedBackend()
    text = managed(f'stack.child_autostart=false, stack.child_run="{other}"')
    result = run(text, directory, backend=backend)
    assert (result.status, backend.calls) == ("success", [])
    assert result.context.get("stack.child.completed") == ["start", "plan", "build", "done"]


def test_a_child_with_another_owner_is_observed_and_cannot_be_steered(directory, tmp_path):
    other = tmp_path / "other"
    holding = Pipeline(ASKING, backend=ScriptedBackend()).run(
        logs_root=other, durability="fast", interviewer="deferred"
    )
    holding.wait_for_gate(timeout=60)
    looks = []

    class Clock(ManualClock):
        async def sleep(self, seconds):
            looks.append(seconds)
            if len(looks) == 2:
                holding.answer("ok", "Yes")
                await asyncio.wrap_future(holding._future())
            await super().sleep(seconds)

    text = managed(f'stack.child_autostart=false, stack.child_run="{other}", {STEERING.replace("1h", "0s")}')
    result = run(text, directory, ASKING, clock=Clock(), interviewer="auto")
    assert result.status == "success"
    assert any("another process" in event.message for event in events_of(directory, RunWarning))
    assert not events_of(other, InstructionGiven)


@pytest.fixture
def waiting(tmp_path):
    """An interrupted run of another user, paused at a gate before a command."""
    mark = tmp_path / "DEPLOYED"
    text = FRAME.format(
        body=f"""plan [prompt=plan] ask [shape=hexagon, label="Deploy?"] no [prompt=no] tell [prompt=tell]
        ship [shape=parallelogram, tool_command="pwd > '{mark}'"]
        start -> plan -> ask ask -> ship [label="Yes"] ask -> no [label="No"] ship -> tell -> done no -> done"""
    )
    work = tmp_path / "work"
    work.mkdir()
    run = Pipeline(text).run(logs_root=tmp_path / "other", interviewer="deferred", workdir=work, durability="fast")
    run.wait_for_gate(timeout=60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    return run


def joining(other, cycles=2):
    """A pipeline that joins a run, and gives up when nothing has happened for a while."""
    boss = f'boss [shape=house, stack.child_autostart=false, stack.child_run="{other}", manager.poll_interval="1s"'
    return FRAME.format(body=boss + f", manager.max_cycles={cycles}] start -> boss -> done")


def test_a_run_to_be_joined_needs_trust_ruling_43(waiting, tmp_path):
    (tmp_path / "harmless.dot").write_text(joining(waiting.logs_root))
    with pytest.raises(UntrustedSource, match=r"stack\.child_run"):
        Pipeline(tmp_path / "harmless.dot").run(interviewer="auto")


def test_joining_a_run_answers_none_of_its_gates_ruling_43(waiting, directory, tmp_path):
    Pipeline(joining(waiting.logs_root)).run(
        wait=True, logs_root=directory, interviewer="auto", backend=ScriptedBackend(), clock=ManualClock()
    )
    assert not (tmp_path / "DEPLOYED").exists()
    assert Run.load(waiting.logs_root).status == "interrupted"


def test_a_joined_run_keeps_its_backend_and_working_directory_ruling_43(waiting, directory, tmp_path):
    record_answer(waiting.logs_root, "ask", choice="Yes", answered_by="a test")
    before = read_facts(waiting.logs_root)
    backend = ScriptedBackend()
    result = Pipeline(joining(waiting.logs_root, 1000)).run(
        wait=True, logs_root=directory, backend=backend, workdir=tmp_path
    )
    assert (result.status, backend.calls) == ("success", [])
    assert (tmp_path / "DEPLOYED").read_text().strip() == str(tmp_path / "work")
    after = read_facts(waiting.logs_root)
    assert [after[name] for name in ("backend", "workdir")] == [before[name] for name in ("backend", "workdir")]


def test_a_joined_run_of_somebody_else_executes_nothing_ruling_43(waiting, directory, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))
    result = Pipeline(joining(waiting.logs_root)).run(wait=True, logs_root=directory, trust=True)
    assert (result.status, "needs your trust" in result.reason) == ("fail", True)
    assert Run.load(waiting.logs_root).status == "interrupted"


# -- usage and budgets -------------------------------------------------------------------------------


class Costly:
    """Each call costs half a dollar."""

    def __init__(self):
        self.calls = []

    async def run(self, node, prompt, context):
        """Answer."""
        self.calls.append(node.id)
        return Response("done", usage=Usage(10, 10, 0.5, 1))


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
def test_the_childs_usage_counts_for_the_parents_stage(text, directory):
    result = run(text, directory, backend=Costly())
    assert result.usage == Usage(20, 20, 1.0, 2)


@pytest.mark.parametrize("bound", [{"max_budget_usd": 0.5}, {"max_tokens_total": 15}], ids=["money", "tokens"])
def test_what_is_left_of_the_parents_budget_bounds_the_child(bound, directory):
    backend = Costly()
    result = run(nested(), directory, backend=backend, **bound)
    assert (result.status, backend.calls) == ("fail", ["plan"])
    assert next(iter(bound)) in result.reason


def test_a_child_runs_no_command_once_the_parents_budget_is_used_up(directory):
    """A command claims nothing from an account: the bounds that the child has for itself keep it from running."""
    text = WORKER.replace("build [", 'build [shape=parallelogram, tool_command="touch ran", ', 1)
    pipeline = Pipeline(nested(), pipelines={"worker": text})
    result = pipeline.run(wait=True, logs_root=directory, backend=Costly(), trust=True, max_budget_usd=0.5)
    assert result.bound == "max_budget_usd"
    assert not list(directory.rglob("ran"))
    assert Run.load(directory / "children/sub/1").result().reason.endswith("before build")


def test_the_parents_duration_bounds_the_child_and_a_longer_one_lets_it_go_on(directory):
    backend = Holding("build")
    pipeline = Pipeline(nested(), pipelines={"worker": WORKER})
    result = pipeline.run(wait=True, logs_root=directory, backend=backend, durability="fast", max_duration=0.5)
    assert result.bound == "max_duration"
    assert Run.load(directory / "children/sub/1").status == "interrupted"
    after = ScriptedBackend()
    again = pipeline.resume(directory, backend=after, durability="fast", max_duration=60).result(timeout=60)
    assert (again.status, [call.node_id for call in after.calls]) == ("success", ["build"])


def test_the_simulated_backend_runs_parent_and_child_offline(directory):
    assert run(managed(), directory, backend="simulated").status == "success"
    assert json.loads((directory / "children/boss/1/manifest.json").read_text())["backend"] == "simulated"


# -- files, trust, depth -----------------------------------------------------------------------------


def family(tmp_path, **files):
    """Write pipeline files; the directory they are in."""
    for name, text in files.items():
        (tmp_path / f"{name}.dot").write_text(text)
    return tmp_path


def by_file(path, name="sub"):
    """A pipeline text with a stage that runs the child in a file."""
    return FRAME.format(body=f'{name} [type=pipeline, pipeline.dotfile="{path}"] start -> {name} -> done')


def errors_of(pipeline):
    """Messages of the errors that lint finds."""
    return [found.message for found in pipeline.diagnostics if found.is_error]


def test_a_childs_file_is_looked_for_beside_its_parents(tmp_path, directory):
    family(tmp_path, top=by_file("worker.dot"), worker=WORKER)
    pipeline = Pipeline(tmp_path / "top.dot", backend=ScriptedBackend())
    assert errors_of(pipeline) == []
    assert pipeline.run(wait=True, logs_root=directory, durability="fast", trust=True).status == "success"


@pytest.mark.parametrize(
    ("child", "message"),
    [
        ("missing.dot", "there is no file"),
        ("../outside.dot", "outside of the directories"),
        ("link.dot", "outside of the directories"),
        (".env", "is hidden"),
        (".git/x.dot", "is hidden"),
        ("shown.dot", "is hidden"),
        ("notes.txt", "is none of .dot .gv"),
        ("folder", "is not a file"),
        ("broken.dot", "cannot be read"),
        ("faulty.dot", "has an error"),
        ("top.dot", "includes itself: top.dot -> top.dot"),
        ("circle.dot", "includes itself: top.dot -> circle.dot -> top.dot"),
    ],
)
def test_a_child_that_cannot_run_is_refused_before_anything_runs(child, message, tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    (inner / "folder").mkdir(parents=True)
    monkeypatch.chdir(inner)
    family(tmp_path, outside=WORKER)
    family(
        inner,
        top=by_file(child),
        broken="digraph {",
        faulty="digraph { start [shape=Mdiamond] }",
        circle=by_file("top.dot"),
    )
    (inner / "link.dot").symlink_to(tmp_path / "outside.dot")
    (inner / ".git").mkdir()
    for name in (".env", ".git/x.dot", "notes.txt"):
        (inner / name).write_text(WORKER)
    (inner / "shown.dot").symlink_to(inner / ".git" / "x.dot")
    pipeline = Pipeline(inner / "top.dot")
    found = [each for each in pipeline.diagnostics if each.is_error]
    assert [each.rule for each in found] == ["child_pipeline"]
    assert message in found[0].message
    with pytest.raises(ValidationError):
        pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_child_without_a_handler_is_a_warning_of_the_text_and_refuses_the_run(tmp_path):
    child = 'digraph { start [shape=Mdiamond] a [type="team.review"] done [shape=Msquare] start -> a -> done }'
    family(tmp_path, top=by_file("middle.dot"), middle=by_file("child.dot"), child=child)
    pipeline = Pipeline(tmp_path / "top.dot")
    (found,) = (each for each in pipeline.diagnostics if each.rule == "handler_missing")
    assert not any(each.is_error for each in pipeline.diagnostics)
    assert 'child.dot: no handler is registered for the type "team.review" of "a"' in found.message
    with pytest.raises(ValidationError, match=r"team\.review"):
        pipeline.run(wait=True, logs_root=tmp_path / "run", trust=True)
    assert not (tmp_path / "run").exists()
    able = Pipeline(tmp_path / "top.dot", handlers={"team.review": lambda *given: Outcome.success()})
    assert not [each for each in able.diagnostics if each.rule == "handler_missing"]


@pytest.mark.parametrize(
    "make",
    [posted_pipeline, lambda text, **more: Pipeline(text, origin="stdin", **more)],
    ids=["posted to a server", "from stdin"],
)
def test_a_pipeline_from_elsewhere_reads_no_child_here_ruling_43(make, tmp_path, monkeypatch):
    family(tmp_path, worker=WORKER)
    monkeypatch.chdir(tmp_path)
    for name in ("worker.dot", "missing.dot"):
        pipeline = make(by_file(name))
        (found,) = errors_of(pipeline)
        assert "is not read: the pipeline came from" in found
        assert not pipeline.graph.children
    assert make(by_file("worker.dot"), child_roots=[tmp_path]).graph.children


def test_a_pipeline_in_a_hidden_folder_has_its_children_beside_it(tmp_path):
    (tmp_path / ".config").mkdir()
    family(tmp_path / ".config", top=by_file("worker.dot"), worker=WORKER)
    assert not errors_of(Pipeline(tmp_path / ".config" / "top.dot"))


def test_child_roots_allow_another_directory(tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    family(tmp_path, outside=WORKER)
    family(inner, top=by_file("../outside.dot"))
    assert errors_of(Pipeline(inner / "top.dot"))
    assert not errors_of(Pipeline(inner / "top.dot", child_roots=[tmp_path]))


def test_the_depth_of_nesting_has_a_bound(tmp_path):
    for level in range(4):
        family(tmp_path, **{f"level{level}": by_file(f"level{level + 1}.dot")})
    family(tmp_path, level4=WORKER)
    assert not errors_of(Pipeline(tmp_path / "level0.dot"))
    text = (tmp_path / "level0.dot").read_text().replace("{", "{ graph [max_child_depth=3]", 1)
    (tmp_path / "level0.dot").write_text(text)
    assert "deeper than max_child_depth=3" in errors_of(Pipeline(tmp_path / "level0.dot"))[0]


class Counting:
    """A lint rule that finds nothing and keeps the name of each graph that it was asked about."""

    name = "counting"

    def __init__(self):
        self.asked = []

    def apply(self, graph):
        """Find nothing."""
        self.asked.append(graph.name)
        return ()


def naming_one_another(place, files, names):
    """Files that each name the next one so many times; the first of them."""
    for level in range(files):
        nodes = [f"n{number}" for number in range(names)]
        child = f'[type=pipeline, pipeline.dotfile="level{level + 1}.dot"]' if level + 1 < files else "[prompt=x]"
        body = "\n".join([*(f"{node} {child}" for node in nodes), " -> ".join(["start", *nodes, "done"])])
        text = FRAME.format(body=body).replace("top", f"level{level}", 1)
        (place / f"level{level}.dot").write_text(text)
    return place / "level0.dot"


def test_a_child_that_many_nodes_name_is_read_and_linted_once_ruling_52(tmp_path):
    counting = Counting()
    pipeline = Pipeline(naming_one_another(tmp_path, files=4, names=5), rules=[counting])
    assert not errors_of(pipeline)
    assert sorted(counting.asked) == ["level0", "level1", "level2", "level3"]
    assert len({id(child) for child in pipeline.graph.children.values()}) == 1, "one graph, one hash"


def test_files_that_name_one_another_many_times_are_a_finding_and_each_is_linted_once_ruling_52(tmp_path):
    counting = Counting()
    pipeline = Pipeline(naming_one_another(tmp_path, files=6, names=10), rules=[counting])
    (message,) = set(errors_of(pipeline))
    assert "level2.dot has an error: with this one, the child pipelines have 10,656 nodes together, counted" in message
    assert "10,000 are allowed" in message
    assert len(counting.asked) == 6
    assert not pipeline.graph.children


def test_a_child_that_is_refused_is_linted_once_for_each_level_ruling_52(tmp_path):
    (tmp_path / "bad.dot").write_text(FRAME.format(body="a start -> a"))
    counting = Counting()
    text = naming_one_another(tmp_path, files=3, names=4)
    (tmp_path / "level1.dot").write_text(text.read_text().replace("level1.dot", "bad.dot"))
    pipeline = Pipeline(text, rules=[counting])
    assert len(errors_of(pipeline)) == 4
    assert len(counting.asked) == 3


def test_pipelines_nest_at_most_32_levels_whatever_the_graph_says_ruling_52(tmp_path):
    top = naming_one_another(tmp_path, files=200, names=1)
    top.write_text(top.read_text().replace("{", "{ graph [max_child_depth=100000]", 1))
    (message,) = errors_of(Pipeline(top))
    assert "level33.dot would be nested deeper than 32 levels, the most there can be" in message
    for level in (33, 200):
        (tmp_path / f"level{level - 1}.dot").write_text(WORKER)
    assert not errors_of(Pipeline(top))


def test_pipelines_that_say_for_each_of_themselves_count_as_levels_ruling_52(tmp_path):
    top = naming_one_another(tmp_path, files=40, names=1)
    for path in tmp_path.glob("*.dot"):
        path.write_text(path.read_text().replace("{", '{ graph [for_each="item in x"]', 1))
    top.write_text(top.read_text().replace("{", "{ graph [max_child_depth=100000]", 1))
    (message,) = errors_of(Pipeline(top))
    assert "would be nested deeper than 32 levels" in message


def test_a_node_that_only_says_the_type_for_each_is_an_error_in_words():
    pipeline = Pipeline(FRAME.format(body="a [type=for_each] start -> a -> done"))
    (found,) = [each for each in pipeline.run_diagnostics() if each.is_error]
    assert found.message == 'no handler is registered for the type "for_each" of "a": a run is refused'


def test_a_known_child_is_refused_where_it_would_be_too_deep_ruling_52(tmp_path):
    named = {"leaf": WORKER, "middle": by_file("leaf.dot"), "above": by_file("middle.dot")}
    family(tmp_path, **named)
    body = """graph [max_child_depth=2] first [type=pipeline, pipeline.dotfile="middle.dot"]
        second [type=pipeline, pipeline.dotfile="above.dot"] start -> first -> second -> done"""
    family(tmp_path, top=FRAME.format(body=body))
    (message,) = errors_of(Pipeline(tmp_path / "top.dot"))
    assert "above.dot has an error: middle.dot would be nested deeper than max_child_depth=2" in message


def test_a_registered_pipeline_that_names_itself_is_refused():
    text = nested()
    assert "includes itself" in errors_of(Pipeline(text, pipelines={"worker": nested()}))[0]


def test_an_unregistered_name_suggests_the_nearest():
    assert (
        'did you mean "worker"'
        in errors_of(Pipeline(nested().replace("=worker", "=wroker"), pipelines={"worker": WORKER}))[0]
    )


COMMANDS = FRAME.format(body='sweep [shape=parallelogram, tool_command="touch swept"] start -> sweep -> done')


def test_a_childs_commands_are_part_of_what_must_be_trusted(tmp_path, directory):
    family(tmp_path, top=by_file("worker.dot"), worker=COMMANDS)
    pipeline = Pipeline(tmp_path / "top.dot", backend=ScriptedBackend())
    with pytest.raises(UntrustedSource, match="touch swept") as refused:
        pipeline.run(wait=True, logs_root=directory, durability="fast")
    assert not directory.exists()
    changed = COMMANDS.replace("swept", "gone")
    (tmp_path / "worker.dot").write_text(changed)
    with pytest.raises(UntrustedSource, match="touch gone"):
        Pipeline(tmp_path / "top.dot").run(wait=True, logs_root=directory, trust=refused.value.surface_hash)


def test_a_file_that_ones_own_text_names_must_be_trusted_too(tmp_path, directory, monkeypatch):
    monkeypatch.chdir(family(tmp_path, worker=COMMANDS, calm=WORKER))
    with pytest.raises(UntrustedSource, match="sub/sweep"):
        Pipeline(by_file("worker.dot")).run(wait=True, logs_root=directory, durability="fast")
    calm = Pipeline(by_file("calm.dot"), backend=ScriptedBackend())
    assert calm.run(wait=True, logs_root=directory, durability="fast").status == "success"


def test_a_childs_commands_run_in_its_workdir(tmp_path, directory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yard").mkdir()
    result = run(managed("stack.child_workdir=yard"), directory, COMMANDS)
    assert (result.status, (tmp_path / "yard/swept").exists()) == ("success", True)
    assert "is not a directory" in run(managed("stack.child_workdir=moon"), tmp_path / "two", COMMANDS).reason


def test_a_run_directory_alone_is_enough_to_go_on(tmp_path):
    class Stop(ScriptedBackend):
        async def run(self, node, prompt, context):
            if node.id == "before":
                raise KeyboardInterrupt
            return await super().run(node, prompt, context)

    text = FRAME.format(
        body='sub [type=pipeline, pipeline.dotfile="worker.dot"] before [prompt=B] start -> before -> sub -> done'
    )
    family(tmp_path, top=text, worker=WORKER)
    first = Pipeline(tmp_path / "top.dot").run(
        wait=True, logs_root=tmp_path / "run", backend=ScriptedBackend(), durability="fast", stop_after=1, trust=True
    )
    assert first.status == "paused"
    (tmp_path / "worker.dot").unlink()
    again = load_pipeline(tmp_path / "run", backend=ScriptedBackend()).resume(tmp_path / "run", durability="fast")
    assert again.result(timeout=60).status == "success"


def test_a_planted_link_in_place_of_child_runs_is_not_followed(tmp_path, directory):
    class Plant(ScriptedBackend):
        async def run(self, node, prompt, context):
            home = directory / "children" / "sub"
            (home / "1").symlink_to(tmp_path)
            return "planted"

    text = FRAME.format(
        body="sub [type=pipeline, pipeline.name=worker] before [prompt=B] start -> before -> sub -> done"
    )
    with pytest.raises(Exception, match="not the directory of a child run"):
        run(text, directory, backend=Plant())
    assert not (tmp_path / "events.jsonl").exists()


def test_children_in_branches_have_directories_of_their_own(directory):
    text = FRAME.format(
        body="fan [shape=component] join [shape=tripleoctagon] a [type=pipeline, pipeline.name=worker]\n"
        "b [type=pipeline, pipeline.name=worker] start -> fan fan -> a fan -> b a -> join b -> join join -> done"
    )
    result = run(text, directory)
    assert result.status == "success"
    assert len(list((directory / "children").glob("*~*/1/events.jsonl"))) == 2


def without_records(run_directory):
    """Leave of a run directory what there is before its first record."""
    for place in run_directory.iterdir():
        if place.is_dir():
            shutil.rmtree(place)
        elif place.name not in {"manifest.json", "owner.json", "owner.lock", "pipeline.dot"}:
            place.unlink()


@in_a_loop
async def test_a_child_that_was_cut_off_before_its_first_record_begins_anew_in_its_place(directory):
    backend = Holding("plan")
    pipeline = Pipeline(nested(), pipelines={"worker": WORKER})
    running = pipeline.run(logs_root=directory, backend=backend, durability="fast", host="kernel")
    await asyncio.wait_for(backend.reached.wait(), 60)
    running.cancel()
    await running
    without_records(directory / "children/sub/1")
    after = ScriptedBackend()
    again = await pipeline.resume(directory, backend=after, durability="fast", host="kernel")
    assert (again.status, [call.node_id for call in after.calls]) == ("success", ["plan", "build"])
    assert [place.name for place in (directory / "children/sub").iterdir() if place.is_dir()] == ["1"]


async def changed_at_build(text, directory, worker):
    """Stop a run whose child is at its second stage, and accept another child: the result, and the calls after it."""
    backend = Holding("build")
    running = Pipeline(text, pipelines={"worker": WORKER}).run(
        logs_root=directory, backend=backend, durability="fast", host="kernel"
    )
    await asyncio.wait_for(backend.reached.wait(), 60)
    running.cancel()
    await running
    changed, after = Pipeline(text, pipelines={"worker": worker}), ScriptedBackend()
    result = await changed.resume(directory, backend=after, durability="fast", host="kernel", on_graph_change="accept")
    return result, [(call.node_id, call.prompt.splitlines()[-1]) for call in after.calls]


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
@in_a_loop
async def test_a_child_continues_with_the_change_that_the_resume_of_its_parent_accepted(text, directory):
    result, calls = await changed_at_build(text, directory, WORKER.replace("Build it", "Build it well"))
    assert (result.status, result.reason) == ("success", "")
    assert calls == [("build", "Build it well")]


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
@in_a_loop
async def test_a_child_whose_next_stage_the_accepted_change_removed_fails_its_stage(text, directory):
    result, calls = await changed_at_build(text, directory, WORKER.replace("build", "make"))
    assert (result.status, calls) == ("fail", [])
    assert "would resume at build, which the graph does not have" in result.reason


def test_a_registered_pipeline_is_refused_with_all_that_is_below_it_when_that_is_too_deep():
    inner = Pipeline(nested(), pipelines={"worker": WORKER})
    text = nested().replace("{", "{ graph [max_child_depth=1]", 1)
    assert "deeper than max_child_depth=1" in errors_of(Pipeline(text, pipelines={"worker": inner}))[0]


def test_inputs_of_a_child_that_cannot_be_read_are_told_by_its_own_lint_and_not_as_missing():
    child = Pipeline(WORKER.replace("{", '{ graph [inputs="no*good"]', 1), severity={"inputs_valid": "warning"})
    assert [found.rule for found in child.diagnostics if "inputs" in found.message] == ["inputs_valid"]
    assert errors_of(Pipeline(nested(), pipelines={"worker": child})) == []


@pytest.mark.parametrize("text", [managed(), nested()], ids=["manager", "pipeline"])
def test_a_child_that_nobody_has_fails_its_stage_where_lint_lets_it_pass(text, directory):
    pipeline = Pipeline(text, severity={"child_pipeline": "warning"})
    result = pipeline.run(logs_root=directory, wait=True)
    assert result.status == "fail"
    assert "names no child pipeline that can run (see pipeline.lint())" in result.reason
