"""A run as its logs tell it, read by rules of our own: nothing here is taken from the engine's fold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.model.events import (
    InterviewCompleted,
    PipelineCompleted,
    PipelineFailed,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    StageEnd,
    StageFailed,
    StageStarted,
)
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.stored_run import StoredRun, read_run
from tests.faults.simulation.worlds import Memory

if TYPE_CHECKING:
    from attractor_nb.model.events import Event

Visit = tuple[str, int]
"""A node and the number of a visit."""


@dataclass(slots=True)
class SightedDirectory:
    """One directory of a run.

    Attributes:
        stored: What is in it.
        way: Its events that no rewind set aside.
    """

    stored: StoredRun
    way: list[Event]


@dataclass(slots=True)
class Sight:
    """A run as it lies on the disk.

    Attributes:
        places: Its directories, in the order in which the run came to them.
        commits: By directory: the visits that are recorded, those that were set aside too.
        begun: By directory: the visits that were begun, likewise.
        ended: The event of its end; None when it goes on.
        memory: What a life that begins now must know.
    """

    places: list[SightedDirectory] = field(default_factory=list[SightedDirectory])
    commits: dict[str, list[Visit]] = field(default_factory=dict[str, list[Visit]])
    begun: dict[str, list[Visit]] = field(default_factory=dict[str, "list[Visit]"])
    ended: PipelineCompleted | PipelineFailed | None = None
    memory: Memory = field(default_factory=Memory)

    @property
    def visits(self) -> list[Visit]:
        """The visits that are committed on the way, in order."""
        return [visit for place in self.places for visit in visits_of(place.way)]

    @property
    def committed(self) -> set[Visit]:
        """All visits that are recorded, anywhere."""
        return {visit for visits in self.commits.values() for visit in visits}


def visits_of(events: list[Event]) -> list[Visit]:
    """The visits that events commit."""
    return [(event.name, event.visit) for event in commits_of(events)]


def commits_of(events: list[Event]) -> list[StageEnd]:
    """The commits among events: ends of stages that no further attempt follows."""
    return [
        event
        for event in events
        if isinstance(event, StageEnd) and not (isinstance(event, StageFailed) and event.will_retry)
    ]


def look(root: Path) -> Sight:
    """Read a run and its restarts."""
    sight = Sight()
    for directory in sorted([root, *root.glob("restart-?")]):
        if (directory / EVENT_LOG_NAME).exists():
            events = list(read_run(directory).events)
            sight.commits[directory.name] = visits_of(events)
            sight.begun[directory.name] = [
                (event.name, event.visit) for event in events if isinstance(event, StageStarted)
            ]
    directory: Path | None = root if root.name in sight.commits else None
    rewound: dict[str, int] = {}
    while directory is not None:
        stored = read_run(directory)
        way: list[Event] = []
        for event in stored.events:
            if isinstance(event, PipelineRewound):
                way = [earlier for earlier in way if earlier.sequence <= event.to_sequence]
                before = Counter(name for name, _ in sight.visits + visits_of(way))
                rewound = {name: used - before[name] for name, used in dict(event.carried.visits).items()}
            else:
                way.append(event)
        sight.places.append(SightedDirectory(stored, way))
        following = next((event for event in reversed(way) if isinstance(event, PipelineRestarted)), None)
        place = root / Path(following.logs_root).name if following else None
        directory = place if place is not None and place.name in sight.commits else None
    if sight.places:
        way = sight.places[-1].way
        ends = [event for event in way if isinstance(event, PipelineCompleted | PipelineFailed | PipelineResumed)]
        if ends and not isinstance(ends[-1], PipelineResumed):
            sight.ended = ends[-1]
        sight.memory = _memory(way, rewound)
    return sight


def _memory(way: list[Event], offsets: dict[str, int]) -> Memory:
    memory = Memory(offsets)
    answered: set[str] = set()
    for event in way:
        if isinstance(event, StageStarted):
            if memory.flight != (event.name, event.visit):
                memory.flight, memory.failures = (event.name, event.visit), 0
            memory.attempt = event.attempt
        elif isinstance(event, StageEnd):
            answered.clear()
            if isinstance(event, StageFailed) and event.will_retry:
                memory.failures += 1
            else:
                memory.flight = None
        elif isinstance(event, InterviewCompleted):
            answered.add(event.question_id)
    memory.answered = frozenset(answered)
    return memory


def memory_after(sight: Sight, node: str, visit: int) -> Memory:
    """The memory of a life that begins by going back to before a visit."""
    used: dict[str, int] = {}
    for visits in sight.begun.values():
        for name, number in visits:
            used[name] = max(number, used.get(name, 0))
    visits = sight.visits
    kept = Counter(name for name, _ in visits[: visits.index((node, visit))])
    return Memory({name: number - kept[name] for name, number in used.items()})
