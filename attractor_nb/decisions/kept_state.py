"""The state of a run as its checkpoint stores it (spec 5.3; ruling 29).

A field here is the attribute of that name in the state, under its name in JSON. Fields of another form are
listed in ``_OTHERWISE``; they alone are converted by a rule for each direction.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from attractor_nb.decisions.notes import Note
from attractor_nb.decisions.preamble_page import StageSummary
from attractor_nb.decisions.routing import ConditionOutcome
from attractor_nb.decisions.run_state import (
    BranchState,
    BranchStates,
    InFlight,
    LastFailure,
    RunState,
    taken_edges,
    times_of,
)
from attractor_nb.model.checkpoint import TakenEdge
from attractor_nb.model.events import ParallelBranchCompleted
from attractor_nb.model.outcome import StageStatus, Usage
from attractor_nb.model.record import Record, no_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_S = TypeVar("_S", bound=msgspec.Struct)
_Stage = tuple[str, str, str, str, str, int, tuple[str, ...]]
_stage_of: Final = attrgetter("node_id", "label", "status", "notes", "excerpt", "size", "keys")


class KeptState(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The state beyond the entries that the spec names; older checkpoints lack the fields that have a default."""

    stale_gates: list[str]
    failed_in: dict[str, list[str]] = msgspec.field(default_factory=no_values)
    skipped: tuple[str, ...] = ()
    last_step: int = 0
    redirects: int
    restarts: int
    elapsed_seconds: float
    seen: ConditionOutcome
    last: tuple[StageStatus, str, str]
    last_notes: str = ""
    failure: LastFailure | None = None
    incoming_edge: int | None
    in_flight: InFlight | None
    ended: tuple[str, str, bool]
    bound: str = ""
    usage_by_node: dict[str, Usage] = msgspec.field(default_factory=no_values)
    restart: tuple[str, str]
    recent: list[_Stage]
    inputs: tuple[str, ...]
    recent_keys: list[str]
    notes: tuple[Note, ...] = ()
    fidelity: str
    threads: dict[str, str] = msgspec.field(default_factory=no_values)
    numbers: dict[str, int] = msgspec.field(default_factory=no_values)
    branches: dict[str, Any] = msgspec.field(default_factory=no_values)
    taken: tuple[TakenEdge, ...] = ()


class KeptRun(Record, frozen=True, kw_only=True):
    """The entries of a checkpoint that hold the state of the run, or of a branch."""

    next_node: str
    completed: list[str] = msgspec.field(name="completed_nodes")
    retries: dict[str, int] = msgspec.field(name="node_retries")
    outcomes: dict[str, StageStatus] = msgspec.field(name="node_outcomes")
    visits: dict[str, int]
    usage: Usage
    state: KeptState


class KeptBranch(KeptRun, frozen=True):
    """A branch that is under way: its own entries come before those of a run."""

    path: str
    id: str
    fan_out: str
    index: int
    context: dict[str, Any]
    logs: list[str]
    end: ParallelBranchCompleted | None


class KeptBranches(Record, frozen=True, omit_defaults=False):
    """``branches`` of the run's own state; that of a branch is empty there."""

    open: tuple[KeptBranch, ...] = ()
    numbers: dict[str, dict[str, int]] = msgspec.field(default_factory=no_values)
    steps: int = 0


_OTHERWISE: Final = {"stale_gates", "skipped", "last", "ended", "restart", "recent", "recent_keys", "taken", "branches"}
_OF_STATE: Final = [name for name in KeptState.__struct_fields__ if name not in _OTHERWISE]
_OF_RUN: Final = [name for name in KeptRun.__struct_fields__ if name != "state"]


def checkpoint_entries(state: RunState) -> dict[str, Any]:
    """The entries of a checkpoint with the position of the run, as JSON values."""
    return KeptRun(**_kept(state)).to_plain()


def state_of(checkpoint: Mapping[str, Any]) -> RunState:
    """The state that the entries of a checkpoint say."""
    return _restored(KeptRun.from_plain(checkpoint))


def _named(names: Iterable[str], source: object) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def _made_of(source: object, kind: type[_S], **more: Any) -> _S:
    """A value whose fields are attributes of another one, and these."""
    return kind(**more, **_named([name for name in kind.__struct_fields__ if name not in more], source))


def _kept(state: RunState) -> dict[str, Any]:
    """The fields of a ``KeptRun``."""
    kept = KeptState(
        **_named(_OF_STATE, state),
        stale_gates=sorted(state.stale_gates),
        skipped=tuple(state.skipped),
        last=(state.last_status, state.last_route, state.last_reason),
        ended=(state.ended, state.reason, state.is_resumable),
        restart=(state.restart_target, state.restart_logs_root),
        recent=[_stage_of(stage) for stage in state.recent],
        recent_keys=list(state.recent_keys),
        taken=taken_edges(state.taken),
        branches={} if state.root is not None else _kept_branches(state.branches).to_plain(),
    )
    return {**_named(_OF_RUN, state), "state": kept}


def _kept_branches(branches: BranchStates) -> KeptBranches:
    kept = (_made_of(branch, KeptBranch, **_kept(branch.state)) for branch in branches.open.values())
    return KeptBranches(tuple(kept), branches.numbers, branches.steps)


def _restored(kept: KeptRun, branch: str = "", root: RunState | None = None) -> RunState:
    fields, branches = kept.state, KeptBranches.from_plain(kept.state.branches)
    state = RunState(**_named(_OF_RUN, kept), **_named(_OF_STATE, fields), branch=branch, root=root)
    state.stale_gates = set(fields.stale_gates)
    state.skipped = dict.fromkeys(fields.skipped)
    state.last_status, state.last_route, state.last_reason = fields.last
    state.ended, state.reason, state.is_resumable = fields.ended
    state.restart_target, state.restart_logs_root = fields.restart
    state.recent.extend(StageSummary(*stage) for stage in fields.recent)
    state.recent_keys = dict.fromkeys(fields.recent_keys)
    state.taken = times_of(fields.taken)
    state.branches = BranchStates(numbers=branches.numbers, steps=branches.steps)
    for entry in branches.open:
        state.branches.add(_made_of(entry, BranchState, state=_restored(entry, entry.path, state)))
    return state
