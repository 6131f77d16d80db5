"""One life of a simulated run: from its beginning, or its resume, to its end or its death."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attractor_nb.runtime.begin import begin, seams_of
from attractor_nb.runtime.handles.recorded_state import StoredValues, ended_context
from attractor_nb.runtime.prepare.run_options import read_options
from attractor_nb.runtime.resume import continue_run
from attractor_nb.runtime.stored_execution import result_of
from attractor_nb.runtime.wire import wire
from attractor_nb.testing.fakes import SeededRandomness
from tests.disks.faulty_disk import FOR_EVER
from tests.faults.simulation.faults import CANCEL, PAUSE, Fault, PowerDisk, disk_of, has_struck, lose_power
from tests.faults.simulation.virtual_loop import VirtualClock, VirtualLoop
from tests.faults.simulation.worlds import Memory, World, WorldTurn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.engine.runner import Runner
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.runtime.rewind import Rewind
    from tests.faults.simulation.drawn_graphs import DrawnGraph

WALL = 1_700_000_000.0
SECONDS_BETWEEN_LIVES = 60.0


@dataclass(frozen=True, slots=True)
class LifeScene:
    """Facts that all lives of a run share.

    Attributes:
        seed: The seed.
        graph: The graph as drawn.
        pipeline: The same, read.
        root: The run directory; None for a run in memory.
        are_clocks_jumping: Wall clocks jump.
        on_interrupted: The caller's word on ambiguous stages, or None.
    """

    seed: int
    graph: DrawnGraph
    pipeline: Pipeline
    root: Path | None
    are_clocks_jumping: bool = False
    on_interrupted: str | None = None


@dataclass(slots=True)
class Life:
    """The outcome of one life.

    Attributes:
        number: Which one, from 0.
        fault: What it had to bear.
        turns: What was executed.
        asked: What was asked, by question and attempt.
        result: What the caller was given, or None.
        error: What was raised instead: its class and its words; or None.
        has_struck: The fault of its disk has struck.
        left: How many tasks were left when it was over.
        complaints: Uncaught errors, which asyncio would have shown to the user.
        loop_turns: How many turns the loop took.
        wall: Wall time at its end.
    """

    number: int
    fault: Fault | None
    turns: list[WorldTurn] = field(default_factory=list[WorldTurn])
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    result: RunResult | None = None
    error: tuple[type[Exception], str] | None = None
    has_struck: bool = False
    left: int = 0
    complaints: list[str] = field(default_factory=list[str])
    loop_turns: int = 0
    wall: float = WALL


def live(
    scene: LifeScene,
    number: int,
    fault: Fault | None,
    *,
    memory: Memory | None,
    bounds: Mapping[str, int],
    rewind: Rewind | None = None,
    wall: float = WALL,
) -> Life:
    """Begin a run, or go on with it, until it stops.

    Args:
        scene: What stays the same.
        number: Which life it is.
        fault: What happens to it.
        memory: What the log says; None to begin.
        bounds: Bounds in place of the graph's own.
        rewind: Go back first.
        wall: Wall time at its beginning.
    """
    loop = VirtualLoop(f"{scene.seed} {number}")
    life = Life(number, fault)
    loop.set_exception_handler(lambda _, told: life.complaints.append(f"{told['message']}: {told.get('exception')!r}"))
    disk = disk_of(fault, scene.root.parent) if scene.root is not None else None
    clock = VirtualClock(loop, wall)

    def is_dead() -> bool:
        return disk is not None and fault is not None and fault.lasts == FOR_EVER and has_struck(disk, fault)

    world = World(scene.seed, scene.graph, clock, memory or Memory(), is_dead=is_dead, jumps=scene.are_clocks_jumping)
    options = {
        "logs_root": scene.root if memory is None else None,
        "durability": "none" if scene.root is None else "full",
        "backend": world.model,
        "interviewer": world.people,
        "processes": world.commands,
        "clock": clock,
        "randomness": SeededRandomness(scene.seed),
        "disk": disk,
        "stop_after": fault.when if fault is not None and fault.kind == PAUSE else None,
        "on_interrupted": scene.on_interrupted if memory is not None else None,
        **bounds,
    }
    try:
        life.result = loop.run_until_complete(_run(scene, loop, options, fault, memory, rewind))
    except Exception as error:  # noqa: BLE001 - the oracle decides which ones may be
        life.error = type(error), str(error)  # with its traceback it would keep descriptors open
    life.loop_turns, life.wall = loop.turns, clock.time()
    life.left = _end(loop)
    life.turns, life.asked = world.turns, world.asked
    if disk is not None and fault is not None:
        life.has_struck = has_struck(disk, fault)
        if isinstance(disk, PowerDisk) and life.has_struck:
            lose_power(disk, fault, scene.seed)
    return life


async def _run(
    scene: LifeScene,
    loop: VirtualLoop,
    given: Mapping[str, Any],
    fault: Fault | None,
    memory: Memory | None,
    rewind: Rewind | None,
) -> RunResult:
    """Put a run together as ``Pipeline.run`` does, without a handle that looks at the time now and then."""
    options = read_options({}, **given)
    seams = seams_of(options)
    if memory is None or scene.root is None:
        beginning = begin(scene.pipeline, options, seams)
    else:
        beginning = continue_run(scene.pipeline, scene.root, options, seams, on_graph_change="error", rewind=rewind)
    try:
        wired = wire(scene.pipeline, options, seams, beginning, is_waited_for=True)
    except BaseException:  # an interrupt, too, must give the run up, or the next life finds it locked
        beginning.store.close()
        raise
    task = loop.create_task(_engine(wired.runner))
    if fault is not None and fault.kind == CANCEL:
        loop.call_at_turn(loop.turns + 1 + fault.when, task.cancel)
    ended = await task
    setup = wired.runner.setup
    wired.run.logs_root = setup.store.logs_root
    values = setup.store.values if scene.root is None else StoredValues(setup.store.logs_root)
    context = ended_context(*setup.context.committed(), values)
    return result_of(wired.run, wired.followed, setup.state, context, ended)


async def _engine(runner: Runner) -> Any:
    return await runner.run()


def _end(loop: VirtualLoop) -> int:
    """End what is left of a loop; how many tasks there were."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
    return len(left)
