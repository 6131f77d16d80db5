"""A branch that breaks off between its state and the log: no checkpoint may hold what the log does not."""

import asyncio
import errno
from collections import Counter

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.errors import StorageError
from attractor_nb.model.events import StageCompleted
from attractor_nb.storage.log.event_log import EventLog
from attractor_nb.storage.stored_run import read_run

TEXT = """digraph d { start [shape=Mdiamond] fan [shape=component] a [prompt=A] b [prompt=B] c [prompt=C]
  join [shape=tripleoctagon] done [shape=Msquare] start -> fan fan -> a -> c -> join fan -> b -> join join -> done }"""


class Together:
    """A backend whose stages of the first step end in the same turn of the loop."""

    def __init__(self):
        self.asked = Counter()
        self.both = None

    async def run(self, node, prompt, context):
        self.asked[node.id] += 1
        if node.id != "c":
            self.both = self.both or asyncio.Event()
            if len(self.asked) == 2:
                self.both.set()
            await self.both.wait()
        return node.id


def committed(place):
    return Counter(event.name for event in read_run(place).events if isinstance(event, StageCompleted))


def broken(monkeypatch, node, error, *, is_recorded=False):
    """Have the record of a stage's end break off with an error, once: before it is there, or just behind it."""
    append = EventLog.append
    left = [error]

    def refused(log, event, *, is_synced):
        is_it = isinstance(event, StageCompleted) and event.name == node and bool(left)
        if is_recorded or not is_it:
            append(log, event, is_synced=is_synced)
        if is_it:
            raise left.pop()

    monkeypatch.setattr(EventLog, "append", refused)


@pytest.mark.parametrize("node", ["a", "b", "c"])
@pytest.mark.parametrize("kind", ["interrupt", "disk"])
def test_a_stage_whose_end_was_not_recorded_is_run_again(node, kind, tmp_path, monkeypatch):
    place = tmp_path / "run"
    refusal = StorageError("cannot write", path=str(place / "events.jsonl"))
    refusal.__cause__ = OSError(errno.EIO, "input/output error")
    error = KeyboardInterrupt() if kind == "interrupt" else refusal
    backend = Together()
    pipeline = Pipeline(TEXT, backend=backend)
    with monkeypatch.context() as patch:
        broken(patch, node, error)
        with pytest.raises(type(error)):
            asyncio.run(pipeline.run_async(logs_root=place, checkpoint_every_stage=True))
    before, recorded = backend.asked[node], committed(place)
    assert recorded[node] == 0
    again = FunctionBackend(lambda node, prompt, context: backend.asked.update([node.id]) or node.id)
    result = Pipeline(TEXT, backend=again).resume(place).result(60)
    assert result.status == "success"
    assert backend.asked[node] == before + 1
    assert committed(place) == Counter(["start", "fan", "a", "b", "c", "join", "done"])
    assert all(backend.asked[name] == 1 for name in recorded if name in {"a", "b", "c"})


@pytest.mark.parametrize("node", ["a", "b", "c"])
def test_who_interrupts_just_behind_a_record_is_told_so_and_the_log_goes_on(node, tmp_path, monkeypatch):
    place = tmp_path / "run"
    backend = Together()
    pipeline = Pipeline(TEXT, backend=backend)
    with monkeypatch.context() as patch:
        broken(patch, node, KeyboardInterrupt(), is_recorded=True)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(pipeline.run_async(logs_root=place, checkpoint_every_stage=True))
    assert read_run(place).status == "interrupted"
    again = FunctionBackend(lambda node, prompt, context: backend.asked.update([node.id]) or node.id)
    assert Pipeline(TEXT, backend=again).resume(place).result(60).status == "success"
    assert backend.asked[node] == 1
    assert committed(place) == Counter(["start", "fan", "a", "b", "c", "join", "done"])
