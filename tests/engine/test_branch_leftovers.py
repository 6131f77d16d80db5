"""Many branches leave nothing behind: no open file, no task, no thread."""

import asyncio
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.engine.walking import FanOut
from attractor_nb.side_by_side import _settled
from attractor_nb.testing import ManualClock

BRANCHES, AT_ONCE = 1000, 64
OPEN_FOR_THE_RUN = 24
"""Files that a run itself may hold open, and pauses of other tests' threads."""


def wide(branches, attrs=""):
    """A fan-out of so many branches of one stage."""
    names = [f"b{number}" for number in range(branches)]
    ways = " ".join(f"fan -> {name} -> join" for name in names)
    return (
        f"digraph wide {{ graph [max_steps=5000] start [shape=Mdiamond] done [shape=Msquare]"
        f" fan [shape=component, max_parallel={AT_ONCE}{attrs}] join [shape=tripleoctagon]"
        f' node [type="nap"] {" ".join(names)} start -> fan {ways} join -> done }}'
    )


class Nap:
    """Looks around, lets the others begin, and ends; a chosen one ends at once."""

    def __init__(self, first=""):
        self.first = first
        self.loop = None
        self.most_files = 0
        self.most_at_once = self._now = 0
        self._all_there = asyncio.Event()

    async def execute(self, node, context, graph, logs_root):
        self.loop = asyncio.get_running_loop()
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        if self._now == AT_ONCE:
            self._all_there.set()
        try:
            if node.id == self.first:
                await self._all_there.wait()
                self.most_files = open_files()
            elif self.first:
                await asyncio.Event().wait()
            else:
                await asyncio.sleep(0)
                self.most_files = max(self.most_files, open_files() if self._now == AT_ONCE else 0)
        finally:
            self._now -= 1
        return Outcome.success()


def open_files():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a directory that is never there in full


pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("first", ["", "b63"], ids=["all run", "the first wins"])
@pytest.mark.campaign
def test_a_thousand_branches_leave_no_file_and_no_task_behind(tmp_path, first):
    """All of them to their ends; and 63 of them cancelled in mid-stage, 936 before they began."""
    nap = Nap(first)
    policy = ", join_policy=first_success" if first else ""
    pipeline = Pipeline(wide(BRANCHES, policy), handlers={"nap": nap})
    small = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    small.run(wait=True, logs_root=tmp_path / "small", durability="fast")  # what a process opens once is open
    files, threads = open_files(), threading.active_count()
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast")
    assert result.status == "success", result.reason
    assert result.context.get("parallel.success_count") == (1 if first else BRANCHES)
    assert nap.most_at_once == AT_ONCE
    assert nap.most_files <= files + 2 * AT_ONCE + OPEN_FOR_THE_RUN, "branches that wait hold files open"
    assert open_files() <= files
    assert threading.active_count() <= threads
    assert nap.loop.is_running(), "the engine's loop is shared by all runs of a process"
    assert not [task for task in asyncio.all_tasks(nap.loop) if "FanOut" in repr(task) and not task.done()]


def test_a_run_that_has_ended_holds_no_file_while_its_result_is_kept(tmp_path):
    small = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    small.run(wait=True, logs_root=tmp_path / "first", durability="fast")
    files = open_files()
    kept = [small.run(wait=True, logs_root=tmp_path / str(number), durability="fast") for number in range(5)]
    assert all(result.status == "success" for result in kept)
    assert open_files() <= files


def test_branches_that_are_cancelled_one_by_one_stop_the_fan_out_and_come_to_nothing():
    """A result of some of its branches would look like that of all."""
    completed = []

    class Stopped(FanOut):
        def _begin(self, count, max_parallel):
            pass

        def _complete(self, results, seconds):
            completed.append(results)

        async def _walk_one(self, index, branch_id):
            raise asyncio.CancelledError

    edges = tuple(SimpleNamespace(target=name) for name in "ab")
    keeper = SimpleNamespace(is_stepping=False, state=SimpleNamespace(branches=SimpleNamespace(open={})))
    attempts = SimpleNamespace(branch="", setup=SimpleNamespace(clock=ManualClock()))
    fan = Stopped(keeper, attempts, SimpleNamespace(id="fan", branches=edges), None)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(fan.walk(max_parallel=2, settled=lambda ended: ""))
    assert completed == []


def test_a_fan_out_that_is_cancelled_while_its_branches_end_leaves_none_behind():
    async def main():
        free, cancels = asyncio.Event(), []

        async def stubborn():
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    cancels.append("again")
                    if len(cancels) > 1:
                        free.set()

        workers = {asyncio.ensure_future(stubborn())}
        waiting = asyncio.ensure_future(_settled(workers))
        for _ in range(2):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not waiting.done()
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return [worker.done() for worker in workers]

    assert asyncio.run(main()) == [True]
