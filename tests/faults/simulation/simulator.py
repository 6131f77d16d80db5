"""A run from one seed: graph, outcomes, answers, schedule, clock and faults; and what is wrong with it.

The engine, the storage and the gates are the real ones. What they stand on is not: a loop on virtual time, a
disk in memory that fails, models and people that answer by the seed. A seed is all that a failure needs to
be seen again.
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.model.events import PipelineFailed
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.rewind import Rewind
from tests.faults.simulation.drawn_graphs import FINAL_BOUNDS, draw_graph
from tests.faults.simulation.faults import BOUND, REWIND, draw_trouble
from tests.faults.simulation.lives import SECONDS_BETWEEN_LIVES, WALL, Life, LifeScene, live
from tests.faults.simulation.oracle import wrong_end, wrong_life, wrong_sight
from tests.faults.simulation.sights import Sight, look, memory_after

if TYPE_CHECKING:
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.model.events import Event
    from tests.faults.simulation.drawn_graphs import DrawnGraph
    from tests.faults.simulation.faults import Fault, Trouble

SEEDS_PER_GRAPH = 4
MAX_LIVES = 12
AMPLE = 10_000
"""A bound that no drawn run comes near."""
ALL_FAULTS = 99
DESCRIPTORS = Path("/proc/self/fd")


@dataclass(slots=True)
class Simulated:
    """The outcome of a seed.

    Attributes:
        seed: The seed.
        wrong: What is wrong, in words; nothing if all is well.
        graph: The graph.
        lives: The lives of the run.
        faults: How often each kind of fault struck.
        stages: How many stages the untroubled run has.
    """

    seed: int
    wrong: list[str]
    graph: DrawnGraph
    lives: list[Life] = field(default_factory=list[Life])
    faults: Counter[str] = field(default_factory=Counter[str])
    stages: int = 0


@lru_cache(maxsize=8)
def _prepared(number: int) -> tuple[DrawnGraph, Pipeline]:
    graph = draw_graph(number)
    return graph, Pipeline(graph.text())


def simulate(seed: int, place: Path, *, most_faults: int = ALL_FAULTS) -> Simulated:
    """Run a seed.

    Args:
        seed: The seed.
        place: An empty directory; best on a disk in memory.
        most_faults: No more faults than that; the seed is otherwise the same.
    """
    graph, pipeline = _prepared(seed // SEEDS_PER_GRAPH)
    reference = live(LifeScene(seed, graph, pipeline, None), 0, None, memory=None, bounds={})
    simulated = Simulated(seed, [], graph)
    if reference.result is None:
        simulated.wrong.append(f"the untroubled run failed: {reference.error}")
        return simulated
    simulated.stages = len(reference.result.completed_nodes)
    trouble = draw_trouble(seed, simulated.stages, most=most_faults)
    scene = LifeScene(seed, graph, pipeline, place / "run", trouble.are_clocks_jumping, trouble.on_interrupted)
    open_before = _open_descriptors()
    course = _Course(scene, trouble, simulated, reference)
    course.run()
    if _open_descriptors() > open_before:
        gc.collect()  # what an error held on to goes with it
    if (left := _open_descriptors() - open_before) > 0:
        simulated.wrong.append(f"{left} descriptors were left open")
    return simulated


def _open_descriptors() -> int:
    return len(list(DESCRIPTORS.iterdir())) if DESCRIPTORS.is_dir() else 0


class _Course:
    """The lives of one run, one after the other."""

    def __init__(self, scene: LifeScene, trouble: Trouble, simulated: Simulated, reference: Life) -> None:
        assert scene.root is not None, "a run that shall be resumed has a directory"
        self._scene = scene
        self._root: Path = scene.root
        self._simulated = simulated
        self._reference = reference
        self._faults: list[Fault] = list(trouble.faults)
        self._tight = dict(trouble.tight)
        self._lives: list[Life] = []
        self._sight = Sight()
        self._tight_end: Event | None = None
        self._is_rewound = False

    def run(self) -> None:
        """Live until the run has ended and no fault is left that could strike it."""
        wrong = self._simulated.wrong
        while not wrong:
            if len(self._simulated.lives) == MAX_LIVES:
                wrong.append(f"no end after {MAX_LIVES} lives")
                return
            if self._is_over():
                bounds = {**FINAL_BOUNDS, **self._tight}
                wrong += wrong_end(
                    self._plan(bounds),
                    self._reference,
                    self._lives,
                    self._sight,
                    self._root,
                    is_rewound=self._is_rewound,
                )
                return
            self._live()

    def _is_over(self) -> bool:
        """True if the run has ended for good; a rewind that is still to come begins it again."""
        ended = self._sight.ended
        if ended is None:
            return False
        if ended == self._tight_end:
            return False
        while self._faults and self._faults[0].kind != REWIND:
            self._faults.pop(0)
        return not self._faults

    def _live(self) -> None:
        fault = self._faults.pop(0) if self._faults else None
        before, memory, rewind = self._sight, self._sight.memory, None
        visits = before.visits
        if fault is not None and visits and (fault.kind == REWIND or fault.when % 8 == 0):
            node, visit = visits[int(fault.share * len(visits))]
            rewind, memory = Rewind(node, visit), memory_after(before, node, visit)
            self._simulated.faults[REWIND] += 1
            self._is_rewound = True
        bounds = {**FINAL_BOUNDS, **self._tight}
        number = len(self._simulated.lives)
        life = live(
            self._scene,
            number,
            fault,
            memory=memory if self._lives else None,
            bounds=bounds,
            rewind=rewind,
            wall=self._simulated.lives[-1].wall + SECONDS_BETWEEN_LIVES if number else WALL,
        )
        self._simulated.lives.append(life)
        self._lives.append(life)
        if life.has_struck and fault is not None:
            self._simulated.faults[fault.kind] += 1
        elif life.result is not None and life.result.status in {"paused", "interrupted"}:
            self._simulated.faults[fault.kind if fault else life.result.status] += 1
        wrong = self._simulated.wrong
        try:
            self._sight = look(self._root)
            wrong += wrong_sight(self._scene, self._plan(bounds), before, self._sight, bounds)
        except AttractorError as error:
            wrong.append(f"it cannot be read: {type(error).__name__}: {error}")
        wrong += wrong_life(life, before, self._sight)
        self._raise_bound(before)
        if not wrong and life.error is not None and issubclass(life.error[0], RunNotFound):
            self._begin_anew()

    def _raise_bound(self, before: Sight) -> None:
        """Give a run that a tight bound has ended more room, as its user would: it keeps what it has."""
        ended = self._sight.ended
        if self._tight_end is not None or not isinstance(ended, PipelineFailed):
            return
        if ended != before.ended and ended.bound in self._tight:
            self._tight = {name: FINAL_BOUNDS.get(name, AMPLE) for name in self._tight}
            self._tight_end = ended
            self._simulated.faults[BOUND] += 1

    def _begin_anew(self) -> None:
        """The run had not begun, and says so: begin it, as its user would."""
        self._lives = []
        self._root = self._root.with_name(f"run-{len(self._simulated.lives)}")
        self._scene = LifeScene(
            self._scene.seed,
            self._scene.graph,
            self._scene.pipeline,
            self._root,
            self._scene.are_clocks_jumping,
            self._scene.on_interrupted,
        )
        self._sight = Sight()

    def _plan(self, bounds: dict[str, int]) -> Plan:
        pipeline = self._scene.pipeline
        return pipeline.compile(bounds_of(pipeline.graph, bounds))
