"""The supervisor's loop with a child that the test plays: its end, its time, and a disk that fails."""

import asyncio

import pytest

from attractor_nb.context import Context
from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.handlers.manager_loop import ManagerLoopHandler, charge_of, checked_guards
from attractor_nb.model.child import ChildSnapshot
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.outcome import StageStatus, Usage
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.testing import ScriptedBackend
from attractor_nb.testing.conformance import FolderFiles


class Child:
    """A child that runs on and on."""

    name = "worker"

    def __init__(self):
        self.told, self.ends = [], []

    def snapshot(self):
        return ChildSnapshot("child", "/child", usage=Usage(10))

    async def changed(self, seconds):
        await asyncio.Event().wait()

    def steer(self, text):
        self.told.append(text)
        return True

    async def stop(self):
        self.ends.append("stopped")

    async def end(self):
        self.ends.append("ended")
        return self.snapshot()


class Children:
    def __init__(self, child):
        self.child = child

    async def start(self, node, values):
        return self.child


@pytest.fixture
def supervise(tmp_path):
    """Supervise a child; returns the outcome."""

    def run(child, backend=None, **attrs):
        node = Node("boss", {"shape": "house", **attrs})
        scope = StageScope(
            "run", "boss", 1, 1, tmp_path, FolderFiles(tmp_path), lambda event: None, children=Children(child)
        )

        async def execute():
            enter_stage(scope)
            handler = ManagerLoopHandler(backend or ScriptedBackend())
            return await handler.execute(node, Context(), Graph("g", nodes={"boss": node}), tmp_path)

        return asyncio.run(execute())

    return run


def test_a_child_that_takes_too_long_is_ended_and_tried_again_and_its_usage_counts(supervise):
    child = Child()
    outcome = supervise(child, timeout=Duration(1))
    assert (outcome.status, outcome.failure_reason) == (StageStatus.RETRY, "timeout: boss took more than 1ms")
    assert outcome.usage == Usage(10)
    assert child.ends == ["ended"]


def test_a_disk_that_fails_under_an_instruction_ends_the_supervision_and_the_child(supervise):
    child, backend = Child(), ScriptedBackend({"boss": StorageError("the disk is full")})
    with pytest.raises(StorageError, match="the disk is full"):
        supervise(child, backend, prompt="What?", **{"manager.actions": "steer,wait"})
    assert (child.told, child.ends) == ([], ["stopped"])


def test_an_unknown_action_is_named_with_the_nearest_one():
    with pytest.raises(TerminalError, match=r'manager\.actions has no "stear"; did you mean "steer"\?'):
        charge_of(Node("boss", {"manager.actions": "observe,stear"}))


def test_a_guard_that_cannot_be_called_is_refused_with_one_that_can():
    guards = {"calm": lambda child, context: "continue"}
    assert checked_guards(guards) == guards
    with pytest.raises(OptionError, match="guard 'sprint' is int, not a function") as caught:
        checked_guards({**guards, "sprint": 3})
    assert caught.value.hint.startswith('guards={"sprint": lambda')


def test_ruling_46_a_child_is_told_an_instruction_and_not_what_was_considered(supervise, tmp_path):
    child, backend = Child(), ScriptedBackend({"boss": "<think>Or hurry?</think>Slow down."})
    supervise(child, backend, prompt="What?", timeout=Duration(1), **{"manager.actions": "steer,wait"})
    assert child.told == ["Slow down."]
    assert (tmp_path / "steer-1.reasoning.md").read_text() == "Or hurry?"
