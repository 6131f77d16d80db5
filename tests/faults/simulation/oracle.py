"""The claims about a run after each of its lives, and about all of them together.

It judges by what lies on the disk, by what the world around the run saw, and by the run of the same seed that
nothing happened to. Where a rule of the engine is needed, ``rules.py`` says it a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.decisions.kept_state import checkpoint_entries
from attractor_nb.errors import RunNotFound, StorageError
from attractor_nb.model.events import PipelineCompleted, PipelineFailed
from attractor_nb.runtime.handles.recorded_state import StoredValues, restored_context, restored_state
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.run_directory import VISITS_NAME
from tests.faults.simulation.rules import Walk, judge, wrong_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from tests.faults.simulation.lives import Life, LifeScene
    from tests.faults.simulation.sights import Sight, SightedDirectory, Visit

_NOT_IN_LOGS = frozenset({"elapsed_seconds"})
"""Of a state: what a checkpoint knows better than the log."""


def wrong_life(life: Life, before: Sight, after: Sight) -> list[str]:
    """The faults of one life, given the disk before and after it."""
    wrong: list[str] = []
    if life.left:
        wrong.append(f"{life.left} tasks were left when the run was over")
    wrong += [f"the loop complained: {complaint}" for complaint in life.complaints]
    if life.error is not None and not _may_be_raised(life, before):
        wrong.append(f"{life.error[0].__name__} was raised: {life.error[1]}")
    visits = list(dict.fromkeys((turn.node, turn.visit) for turn in life.turns))
    again = [visit for visit in visits if visit in before.committed]
    wrong += [f"{_name(visit)} was recorded, and executed again" for visit in again]
    is_over = life.result is not None and after.ended is not None
    known = visits if is_over else visits[:-1]
    wrong += [f"{_name(visit)} was acknowledged and is lost" for visit in known if visit not in after.committed]
    wrong += _wrong_growth(before, after)
    memory = before.memory
    wrong += [
        f"{question} was answered, and asked again"
        for question, attempt in life.asked
        if question in memory.answered and attempt <= memory.attempt + 1
    ]
    return wrong


def _may_be_raised(life: Life, before: Sight) -> bool:
    if life.error is None:
        return True
    if issubclass(life.error[0], RunNotFound):
        return not before.committed
    return issubclass(life.error[0], StorageError) and life.has_struck


def _wrong_growth(before: Sight, after: Sight) -> list[str]:
    wrong = [
        f"{directory}: what was recorded is gone or changed"
        for directory, visits in before.commits.items()
        if visits and after.commits.get(directory, [])[: len(visits)] != visits
    ]
    visits = [visit for found in after.commits.values() for visit in found]
    wrong += [f"{_name(visit)} is recorded twice" for visit in after.committed if visits.count(visit) > 1]
    return wrong


def wrong_sight(scene: LifeScene, plan: Plan, before: Sight, sight: Sight, bounds: Mapping[str, int]) -> list[str]:
    """The faults of a run on the disk after a life under these bounds."""
    wrong: list[str] = []
    is_new = sight.ended != before.ended
    reached = sight.ended.bound if is_new and isinstance(sight.ended, PipelineFailed) else ""
    previous: RunState | None = None
    walk = Walk()
    for place in sight.places:
        stored = place.stored
        if [event.sequence for event in stored.events] != list(range(1, len(stored.events) + 1)):
            wrong.append("the sequence numbers have gaps")
        if stored.is_owned:
            wrong.append("it is still owned")
        walk, found = judge(scene.graph, place.way, walk)
        is_last = place is sight.places[-1]
        wrong += [*found, *wrong_counts(walk, bounds, reached if is_last else "")]
        short = restored_state(plan, stored, _beginning(previous))
        previous = whole = restored_state(plan, _without_checkpoint(place), _beginning(previous))
        wrong += _different(_plain(short), _plain(whole), "checkpoint and log", "log alone")
        said = {
            "completed_nodes": walk.path,
            "node_outcomes": walk.statuses,
            "stale_gates": sorted(walk.stale),
            "redirects": walk.redirects,
        }
        wrong += _different({name: _plain(whole)[name] for name in said}, said, "log", "rules")
        context = _values(_context(plan, place))
        wrong += _different(
            {key: context.get(key) for key in walk.context}, _resolved(walk.context, context), "context", "log"
        )
    restarts = len(sight.places) - 1
    if not any(place.stored.events != tuple(place.way) for place in sight.places):
        limit = bounds["max_restarts"]
        if restarts > limit or (reached == "max_restarts" and restarts != limit):
            wrong.append(f"max_restarts={limit} and {restarts} were made")
    return wrong


def _beginning(previous: RunState | None) -> RunState | None:
    """The beginning of a restart whose own first record is lost: as the directory before it says."""
    return None if previous is None else previous.restarted(previous.restart_target)


def _without_checkpoint(place: SightedDirectory) -> Any:
    return replace(place.stored, checkpoint=None, tail=place.stored.events)


def _plain(state: RunState) -> dict[str, Any]:
    plain = checkpoint_entries(state)
    return {name: value for name, value in (plain.pop("state") | plain).items() if name not in _NOT_IN_LOGS}


def _context(plan: Plan, place: SightedDirectory) -> Context:
    return restored_context(plan, place.stored, {}, store=StoredValues(place.stored.logs_root))


def _values(context: Context) -> dict[str, Any]:
    return {key: context.get(key) for key in context.snapshot()}


def _resolved(values: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded values; of large ones, which are references there, it is enough that they can be read."""
    return {key: context.get(key) if isinstance(value, dict) else value for key, value in values.items()}


def wrong_end(
    plan: Plan, reference: Life, lives: Sequence[Life], sight: Sight, root: Path, *, is_rewound: bool
) -> list[str]:
    """The faults of the end of a run, compared with the undisturbed run."""
    wanted, last = reference.result, sight.places[-1]
    if wanted is None or sight.ended is None:
        return ["the run has no end"]
    wrong: list[str] = []
    if not lives[-1].has_struck:  # what a dead owner left goes when the next one comes
        # Under the files of earlier visits a power loss may leave some: evidence, which is not swept.
        strays = [path for path in root.rglob(f"{TEMPORARY_PREFIX}*") if VISITS_NAME not in path.parts]
        wrong += [f"a temporary file is left: {path.name}" for path in strays]
    state = restored_state(plan, last.stored)
    found: dict[str, Any] = {
        "status": "success" if isinstance(sight.ended, PipelineCompleted) else "fail",
        "reason": getattr(sight.ended, "error", ""),
        "path": list(state.completed),
        "outcomes": dict(state.outcomes),
        "context": _values(_context(plan, last)),
    }
    told: dict[str, Any] = {
        "status": wanted.status,
        "reason": wanted.reason,
        "path": list(wanted.completed_nodes),
        "outcomes": dict(wanted.node_outcomes),
        "context": _values(wanted.context),
    }
    if not is_rewound:
        found["usage"], told["usage"] = state.usage, wanted.usage
        found["executed"] = _executed(lives)
        told["executed"] = _executed([reference])
    elif "max_restarts" in (wanted.bound, getattr(sight.ended, "bound", "")):
        return wrong  # a rewind does not give restarts back
    wrong += _different(found, told, "the run", "the untroubled run")
    if lives[-1].result is not None:
        result = lives[-1].result
        live: dict[str, Any] = {
            "status": result.status,
            "path": list(result.completed_nodes),
            "outcomes": dict(result.node_outcomes),
            "context": _values(result.context),
        }
        wrong += _different(live, {name: found[name] for name in live}, "told", "recorded")
    wrong += _wrong_repeats(lives)
    return wrong


def _executed(lives: Sequence[Life]) -> list[tuple[str, int, int]]:
    """The executed stages, each once however often it was cut off."""
    turns = [(turn.node, turn.ordinal, turn.failures) for life in lives for turn in life.turns]
    return list(dict.fromkeys(turns))


def _wrong_repeats(lives: Sequence[Life]) -> list[str]:
    """Only what a life was about to do when it ended may be done again."""
    done: set[tuple[Visit, int]] = set()
    wrong: list[str] = []
    for life in lives:
        turns = [((turn.node, turn.visit), turn.failures) for turn in life.turns]
        wrong += [f"{_name(visit)} was executed again" for visit, failed in turns if (visit, failed) in done]
        done.update(turns[:-1])
    return wrong


def _different(found: Mapping[str, Any], wanted: Mapping[str, Any], one: str, other: str) -> list[str]:
    return [
        f"{name}: {one} has {_brief(found.get(name))}, {other} {_brief(wanted.get(name))}"
        for name in {**found, **wanted}
        if found.get(name) != wanted.get(name)
    ]


def _brief(value: object) -> str:
    return f"{value!r:.300}"


def _name(visit: Visit) -> str:
    return f"{visit[0]}:{visit[1]}"
