"""Walks a fan-out through every order in which its stages can end.

Usage: python tests/engine/interleavings.py [--branches N] [--stages N] [--jobs N] [--every N]

The real branches run (``engine.walking.FanOut``, ``traverse_branch``, ``RunState``, ``Context``) on a loop
whose only outside world is a scheduler: when nothing can go on, it lets one of the waiting stages end. Each run
is looked at in three ways: what it came to under each policy, whether the log folds to the state that the live
run had, and whether a run that is cut off somewhere and goes on from its log repeats nothing and comes to the same.

``run_course`` takes every choice in turn: every order. ``run_states`` takes every choice once in every state:
where two orders have come to the same state, what follows is the same, and is not taken again. A state is
all that the engine knows: the records of each branch in their order, the order in which branches have ended,
which stages wait, and the run's state. The tests of this folder compare both where both can be had.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import sys
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from msgspec import Struct

from attractor_nb.context import Context
from attractor_nb.decisions.branch_policies import FanOutPolicy, judged, kept, settled
from attractor_nb.decisions.commits import StageResult
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.decisions.run_state import RunState
from attractor_nb.engine.walking import FanOut
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.events import ParallelBranchCompleted, ParallelBranchStarted, StageEnd, StageStarted
from attractor_nb.model.outcome import Outcome, StageStatus

NAMES = "abcd"
BROKEN = Outcome.fail("broken", is_terminal=True)
SCRIPTS = {
    "all succeed": {},
    "one fails": {"b2": BROKEN},
    "a retry, a partial one, a failure at the end": {
        "a2": [Outcome.retry("busy"), Outcome.success("a2")],
        "b1": Outcome(StageStatus.PARTIAL_SUCCESS, notes="half"),
        "c3": BROKEN,
    },
    "all fail": {"a1": BROKEN, "b2": BROKEN, "c1": BROKEN,
                 "d3": BROKEN},
}  # fmt: skip
MIXED = "a retry, a partial one, a failure at the end"


class Idle(asyncio.BaseEventLoop):
    """A loop in which nothing happens but what ``on_idle`` lets happen."""

    _ready: Any

    def __init__(self, on_idle):
        super().__init__()
        self._on_idle = on_idle
        self._selector = self

    def select(self, timeout):
        if timeout is None:
            self._on_idle()
        return []

    def _process_events(self, event_list):
        pass

    def _write_to_self(self):
        pass


class NoSuchChoice(Exception):
    """There are fewer stages to choose from."""


class Scheduler:
    """Lets one waiting stage end at a time, by a list of choices; notes how many there were."""

    def __init__(self):
        self.loop = Idle(self.release)
        self.chance = None
        self.before_choice = None
        self.begin(())

    def begin(self, choices):
        self.choices, self.widths, self.waiting = list(choices), [], {}

    async def wait(self, key):
        future = self.loop.create_future()
        self.waiting[key] = future
        try:
            await future
        finally:
            self.waiting.pop(key, None)

    def release(self):
        keys = sorted(key for key, future in self.waiting.items() if not future.done())
        assert keys, "deadlock: nothing is waited for, and the fan-out has not ended"
        turn = len(self.widths)
        if self.before_choice is not None:
            self.before_choice(turn, keys)
        self.widths.append(len(keys))
        chosen = self.choices[turn] if turn < len(self.choices) else 0
        if self.chance is not None:
            chosen = self.chance.randrange(len(keys))
        if chosen >= len(keys):
            raise NoSuchChoice
        self.waiting[keys[chosen]].set_result(None)

    def taken(self):
        """The choices that were taken, with those that were not named."""
        return [*self.choices, *[0] * (len(self.widths) - len(self.choices))]

    def following(self):
        """The choices after these; None after the last."""
        taken = self.taken()
        for turn in range(len(self.widths) - 1, -1, -1):
            if taken[turn] + 1 < self.widths[turn]:
                return [*taken[:turn], taken[turn] + 1]
        return None


class World(Struct):
    """The surroundings of branches: the part of attempts, store, clock and runner that they need."""

    plan: Any
    state: RunState
    context: Context
    script: dict
    scheduler: Scheduler
    events: list = []
    ran: list = []
    branch: str = ""
    run_id: str = "run"
    is_stepping: bool = False
    tries: dict = {}
    task: Any = None
    walking: set = set()

    clock = store = setup = property(lambda self: self)
    uniform = staticmethod(lambda low, high: low)
    debugging = SimpleNamespace(is_active=False)

    def monotonic(self):
        return 0.0

    def close_branch(self, branch):
        pass

    def distrust_state(self):
        pass

    def announce(self, event, *, is_synced=False):
        self.announce_in(self.branch, event)

    def announce_in(self, branch, event):
        event.branch = branch
        event.sequence = len(self.events) + 1
        self.events.append(event)

    def before_stage(self, state, effect):
        state.apply(effect.started)

    def commit_stage(self, attempts, effect):
        attempts.announce(effect.event)
        return False

    async def run(self, effect):
        node = effect.planned.id
        self.announce(effect.started)
        await self.scheduler.wait((self.branch, node))
        self.ran.append(node)
        number = self.tries[node] = self.tries.get(node, 0) + 1
        given = self.script.get(node, Outcome.success(node))
        outcome = given[min(number, len(given)) - 1] if isinstance(given, list) else given
        before = self.context.get("trail", [])
        self.context.set("trail", [*before, node])
        return StageResult(outcome.with_updates({f"{node}.own": node}), 1.0, 0.0)

    async def wait(self, seconds):
        return 0.0


def graph_text(branches, stages):
    """A fan-out of so many branches of so many stages."""
    ways = [
        " -> ".join(["fan", *(f"{name}{number}" for number in range(1, stages + 1)), "join"])
        for name in NAMES[:branches]
    ]
    nodes = " ".join(f"{name}{number}" for name in NAMES[:branches] for number in range(1, stages + 1))
    return (
        "digraph { start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] join [shape=tripleoctagon]"
        f" node [max_retries=1] {nodes} start -> fan {'; '.join(ways)}; join -> done }}"
    )


def as_value(thing):
    """A thing as a value that can be compared: dicts without their order, records without their numbers."""
    if is_dataclass(thing):
        names = (each.name for each in fields(thing) if each.compare and each.name not in {"root", "sequence"})
        return tuple((name, as_value(getattr(thing, name))) for name in names)
    if isinstance(thing, Struct):
        names = [name for name in thing.__struct_fields__ if name not in {"root", "sequence"}]
        return tuple((name, as_value(getattr(thing, name))) for name in names)
    if isinstance(thing, Mapping):
        return tuple(sorted((name, as_value(value)) for name, value in thing.items()))
    if isinstance(thing, list | tuple | deque):
        return tuple(as_value(value) for value in thing)
    return repr(sorted(thing)) if isinstance(thing, set | frozenset) else repr(thing)


def end_of(results):
    """The results of the branches of one order, as a value."""
    return as_value([result.to_plain() for result in results])


class EdgeRoute:
    """All runs of one fan-out under one way of settling."""

    def __init__(self, branches, stages, script, settling, *, max_parallel=None):
        self.plan = compile_plan(parse_dot(graph_text(branches, stages)))
        self.planned = self.plan.nodes["fan"]
        self.branches, self.stages, self.settling = branches, stages, settling
        self.script = {node: given for node, given in SCRIPTS[script].items() if node in self.plan.nodes}
        self.world, self.told = None, []
        self.max_parallel = max_parallel or branches
        self.scheduler = Scheduler()
        self.chance = random.Random(f"{script} {settling}")
        self.expected = {name: self._fate(name) for name in NAMES[:branches]}

    def _fate(self, name):
        """Stages that a branch runs to its end, and the status that it then has."""
        ran, status = [], StageStatus.SUCCESS
        for number in range(1, self.stages + 1):
            node = f"{name}{number}"
            given = self.script.get(node, Outcome.success(node))
            tried = given if isinstance(given, list) else [given]
            ran += [node] * len(tried)
            status = tried[-1].status
            if status is StageStatus.FAIL:
                break
        return ran, status

    def walk(self, choices=(), *, events=()):
        """One run, from the beginning or from a log: its results and its world."""
        state = RunState("fan")
        for event in events:
            state.apply(copy(event))
        world = World(self.plan, state, Context({"trail": ["start"]}), self.script, self.scheduler)
        self.world, self.told = world, []
        world.events.extend(events)
        for event in events:
            if isinstance(event, StageEnd):
                world.tries[event.name] = world.tries.get(event.name, 0) + 1
        self.scheduler.begin(choices)
        started = StageStarted(name="fan", visit=1, attempt=1)
        if not events:
            state.apply(started)
            world.announce(started)
        fan_out = FanOut(world, world, self.planned, started)
        results = self.scheduler.loop.run_until_complete(
            fan_out.walk(max_parallel=self.max_parallel, settled=partial(settled, self.settling))
        )
        return results, world

    def explore(self, *, every=1):
        """Run so many orders that every choice was taken in every state; the results of each.

        Args:
            every: How many orders there are to one that is cut off and gone on with.
        """
        known, planned, count = set(), [()], 0
        while planned:
            choices = planned.pop()
            new = []
            results, _ = self.check(choices, is_cut=count % every == 0, look=partial(self._look, known, new, choices))
            planned += new
            count += 1
            yield results

    def _look(self, known, new, choices, turn, keys):
        """Before a choice: when the state is new, plan the other choices in it."""
        if turn < len(choices):
            return
        state = self._whole_state(keys)
        if state in known:
            self.scheduler.before_choice = None  # and whatever follows is known, too
            return
        known.add(state)
        new += [(*self.scheduler.taken(), other) for other in range(1, len(keys))]

    def _whole_state(self, keys):
        """All that the engine knows, as a value."""
        for event in self.world.events[len(self.told) :]:
            plain = {name: value for name, value in event.to_plain().items() if name != "sequence"}
            self.told.append((event.branch, as_value(plain), isinstance(event, ParallelBranchCompleted)))
        records: dict[str, list] = {}
        for branch, value, _ in self.told:
            records.setdefault(branch, []).append(value)
        ended = tuple(branch for branch, _, is_end in self.told if is_end)
        own = tuple((branch, tuple(values)) for branch, values in sorted(records.items()))
        return own, ended, tuple(keys), as_value(self.world.state)

    def check(self, choices, *, is_cut=True, look=None):
        """Run one order, and look at it; the choices after these, or None."""
        self.scheduler.before_choice = look
        results, world = self.walk(choices)
        self.scheduler.before_choice = None
        following = self.scheduler.following()
        assert [result.id for result in results] == [f"{name}1" for name in NAMES[: self.branches]]
        assert world.context.snapshot() == {"trail": ["start"]}, "a branch reached its parent's context"
        for name, result in zip(NAMES, results, strict=False):
            self._check_branch(name, result, world)
        self._check_settled(results)
        if not is_cut:
            return results, following
        folded = RunState("fan")
        for event in world.events:
            folded.apply(copy(event))
        assert as_value(folded) == as_value(world.state), "the log does not fold to the state that the run had"
        self._check_cut(results, world)
        return results, following

    def _check_branch(self, name, result, world):
        ran, status = self.expected[name]
        own = [node for node in world.ran if node[0] == name]
        trail = result.context_updates.get("trail", ["start"])
        if result.is_cancelled:
            assert own == ran[: len(own)], "a cancelled branch ran something else"
        else:
            assert own == ran, f"{own} ran in {name}, not {ran}"
            assert result.status is status
            assert trail == ["start", *ran], "a branch saw what another wrote"
        assert {key[0] for key in result.context_updates if key.endswith(".own")} <= {name}

    def _check_settled(self, results):
        cancelled = [result for result in results if result.is_cancelled]
        ended = [result for result in results if not result.is_cancelled]
        causes = []
        if self.settling.join == "first_success":
            causes.append(any(result.is_success for result in ended))
        if self.settling.error == "fail_fast":
            causes.append(any(not result.is_success for result in ended))
        assert any(causes) or not cancelled, "cancelled without a cause"

    def _check_cut(self, results, world):
        """Cut the run off behind any record, and let another go on from there."""
        cut = world.events[: self.chance.randint(2, len(world.events))]
        while cut and not isinstance(cut[-1], StageStarted | StageEnd | ParallelBranchStarted):
            cut.pop()
        done = [event.name for event in cut if isinstance(event, StageEnd)]
        again, other = self.walk(events=cut)
        assert not [name for name in other.ran if done.count(name) and not self._is_retried(name)], (
            "a recorded stage was run again"
        )
        if not any(result.is_cancelled for result in (*results, *again)):
            assert [result.to_plain() for result in again] == [result.to_plain() for result in results]

    def _is_retried(self, name):
        return isinstance(self.script.get(name), list)


def policies(branches):
    """Every policy that waits for all branches, by name: they are judged side by side."""
    return {
        (join, error): FanOutPolicy(join, error, needed, branches)
        for join, needed in (("wait_all", branches), ("k_of_n", 2), ("quorum", -(-branches // 2)))
        for error in ("continue", "ignore")
    }


def settlings(branches):
    """The ways in which branches are cancelled: never, at the first success, at the first failure."""
    return (
        FanOutPolicy("wait_all", "continue", branches, branches),
        FanOutPolicy("first_success", "continue", 1, branches),
        FanOutPolicy("first_success", "ignore", 1, branches),
        *(
            FanOutPolicy(join, "fail_fast", needed, branches)
            for join, needed in (("wait_all", branches), ("k_of_n", 2), ("quorum", -(-branches // 2)),
                                 ("first_success", 1))
        ),
    )  # fmt: skip


def check_judgement(settling, results):
    """Check the judgement of each policy on the results."""
    succeeded = sum(result.is_success for result in results)
    failed = sum(not result.is_success and not result.is_cancelled for result in results)
    considered = [settling]
    if settling.join == "wait_all" and settling.error == "continue":
        considered = policies(len(results)).values()
    for policy in considered:
        status = judged(policy, results).status
        if policy.join == "wait_all":
            wanted = StageStatus.FAIL if not succeeded else StageStatus.SUCCESS
            if failed and succeeded and policy.error != "ignore":
                wanted = StageStatus.FAIL if policy.error == "fail_fast" else StageStatus.PARTIAL_SUCCESS
        else:
            wanted = StageStatus.SUCCESS if succeeded >= policy.needed else StageStatus.FAIL
        assert status is wanted, f"{policy}: {status}, not {wanted}"
        assert len(kept(policy, results)) == (succeeded if policy.error == "ignore" else len(results))


def run_course(branches, stages, script, settling, *, first=(), max_parallel=None, every=1, ends=None):
    """Run all orders of a course that begin with ``first``; how many there were.

    Args:
        branches: How many.
        stages: In each.
        script: Name of the script.
        settling: When the rest is cancelled.
        first: Choices with which all orders begin.
        max_parallel: How many branches at a time.
        every: How many orders there are to one that is folded, cut off and gone on with.
        ends: Takes what they came to.
    """
    course = EdgeRoute(branches, stages, script, settling, max_parallel=max_parallel)
    choices, count = list(first), 0
    while choices is not None and choices[: len(first)] == list(first):
        try:
            results, choices = course.check(choices, is_cut=count % every == 0)
        except NoSuchChoice:
            break
        check_judgement(settling, results)
        if ends is not None:
            ends.add(end_of(results))
        count += 1
    course.scheduler.loop.close()
    return count


def run_states(branches, stages, script, settling, *, every=1):
    """Take every choice in every state of a course.

    Returns:
        How many orders that took, and what they came to, each once.
    """
    course = EdgeRoute(branches, stages, script, settling)
    count, ends = 0, set()
    for results in course.explore(every=every):
        check_judgement(settling, results)
        ends.add(end_of(results))
        count += 1
    course.scheduler.loop.close()
    return count, ends


def run_random(branches, stages, script, settling, *, seed, runs):
    """Run orders by chance; how many."""
    course, chance = EdgeRoute(branches, stages, script, settling), random.Random(seed)
    course.scheduler.chance = chance
    for _ in range(runs):
        results, _ = course.check(())
        check_judgement(settling, results)
    course.scheduler.loop.close()
    return runs


def _job(job):
    return run_course(*job[:4], first=job[4], every=job[5])


def main():
    """Run all orders of all courses; 1 when one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--branches", type=int, default=4)
    parser.add_argument("--stages", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=16, help="how many orders to one that is cut off")
    asked = parser.parse_args()
    courses = [
        (asked.branches, asked.stages, MIXED, settling)
        for settling in settlings(asked.branches)
        if settling.join in {"wait_all", "first_success"} and settling.error != "ignore"
    ]
    jobs = [
        (*course, first, asked.every)
        for course in courses
        for first in itertools.product(range(asked.branches), repeat=2)
    ]
    began, total = time.monotonic(), 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        for job, count in zip(jobs, pool.map(_job, jobs), strict=True):
            total += count
            if job[4] == (asked.branches - 1,) * 2:
                print(f"{total} orders so far; {job[2]}, {job[3].join} {job[3].error}", flush=True)
    print(
        f"{total} orders of {asked.branches} branches of {asked.stages} stages, {len(courses)} courses,"
        f" {time.monotonic() - began:.0f} s: all as they must be"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
