"""Child runs: started or taken up for a stage, watched, steered, stopped (spec 4.11, 9.4).

A child is a run like any other, as a task in its parent's event loop, with its parent's backend, users,
seams and what is left of its parent's budget. Which child belongs to which attempt is in the parent's
log; the state of a child is in its own.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from attractor_nb.errors import GraphChanged, RunError, RunNotFound
from attractor_nb.lazy_imports import later
from attractor_nb.model.events import ChildEnded, ChildStarted, Event, StageEnd
from attractor_nb.model.outcome import Usage
from attractor_nb.model.vocabulary.isolation import IN_PLACE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, ITEM, ITEM_INDEX, ITEM_KEYS, list_key
from attractor_nb.runtime.begin import Injected, RunStart, begin
from attractor_nb.runtime.chosen_plugs import InheritedInterviewer, ParentLink, SharedByParent
from attractor_nb.runtime.prepare.run_options import BOUNDS, RunOptions
from attractor_nb.runtime.stage_child import (
    FinishedChild,
    LiveChild,
    ObservedChild,
    announce_start,
    finished_run,
    path_of,
)
from attractor_nb.runtime.stored_execution import read_definition
from attractor_nb.runtime.workspace.workspace import Workspace, child_workdir
from attractor_nb.stage import StageScope, current_stage
from attractor_nb.storage.child_directories import child_home, latest_run, make_home, next_place, runs_of_visit
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.stored_run import has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from attractor_nb.cassettes import Tape
    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.engine.gates import Gates
    from attractor_nb.engine.walking import RunSetup
    from attractor_nb.model.child import Child, ListItem
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import CodergenBackend, Processes, RunStore
    from attractor_nb.runtime import resume, stored_state
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.wired_run import RunningEngine
    from attractor_nb.workers.shipping import Shipping
else:
    stored_state = later("attractor_nb.runtime.stored_state")
    resume = later("attractor_nb.runtime.resume")


_OWN, _LATEST, _FOUND = "own", "latest", "found"
"""Origin of a child run that is resumed: the attempt's own, one of an earlier visit, or a foreign one."""
_NO_BOUNDS: dict[str, Any] = dict.fromkeys(BOUNDS)
"""A child has the bounds of its own graph, not those that a caller gave its parent."""


_Key = tuple[str, str]
"""Path of the branch, and the node."""


class ChildRuns:
    """Gives the stages of a run their children (``stage.Children``)."""

    def __init__(self, parent: ParentRun) -> None:
        self._parent = parent
        self._records: dict[_Key, dict[int | None, ChildRecord]] = {}
        self._begun: list[LiveChild] = []

    # -- what the log says ---------------------------------------------------------------------------

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take in an event of the parent's log; a sink of its stream."""
        if isinstance(event, ChildStarted):
            known = self._records.setdefault((event.branch, event.name), {})
            before = known.get(event.item)
            counted = before.counted if before is not None and before.root == event.child_root else Usage()
            known[event.item] = ChildRecord(event.visit, event.child_root, counted=counted)
        elif isinstance(event, ChildEnded):
            if record := self._records.get((event.branch, event.name), {}).get(event.item):
                record.is_ended, record.usage = True, event.usage or Usage()
        elif isinstance(event, StageEnd) and self._records:
            for item, record in self._records.get((event.branch, event.name), {}).items():
                self._note_end(event, item, record)

    @staticmethod
    def _note_end(event: StageEnd, item: int | None, record: ChildRecord) -> None:
        """Take in that an attempt is over whose child it was."""
        if not record.is_ended or record.is_consumed or record.visit != event.visit:
            return
        if event.outcome.usage is not None:
            record.counted = record.usage
        # What could not be executed continues its child, and the items of a list with those that have ended.
        record.is_consumed = not event.outcome.is_unmeasured and (item is None or event.is_commit)

    # -- the seam ------------------------------------------------------------------------------------

    async def start(self, node: Node, inputs: Mapping[str, Any], item: ListItem | None = None) -> Child:
        """Start the child run of a node, or take up the one of an attempt that was cut off."""
        charge = self._charge(node, inputs, item)
        if charge.options.durability == "none":
            return self._begin(charge, None)
        home = charge.home
        make_home(self._parent.seams.disk, home, is_synced=charge.options.durability == "full")
        there = runs_of_visit(home, charge.scope.visit)
        if self._is_new(charge, there):
            return self._begin(charge, next_place(home, charge.scope.visit, len(there)))
        place = there[-1]
        try:
            return self._taken_up(charge, place, origin=_OWN)
        except RunNotFound:  # it was cut off before its first record
            return self._begin(charge, place)
        except GraphChanged:  # the resume of the run around has accepted it: an item begins anew
            if item is None:  # the stage at which the child continues is gone
                raise
            return self._begin(charge, next_place(home, charge.scope.visit, len(there)))

    async def ended(self, node: Node, item: ListItem) -> Child | None:
        """The run of an item that had ended before this attempt."""
        charge = self._charge(node, {}, item)
        if charge.options.durability == "none" or not (there := runs_of_visit(charge.home, charge.scope.visit)):
            return None
        if self._is_new(charge, there):
            return None
        try:
            return self._read(charge, there[-1], origin=_OWN)
        except RunNotFound:
            return None

    def _is_new(self, charge: ChildCharge, there: Sequence[Path]) -> bool:
        """True if an attempt begins its own child run, of those of its visit that are there."""
        scope, item = charge.scope, charge.item
        if not there:
            return True
        record = self._record_of(charge)
        is_consumed = record is not None and record.is_consumed and record.visit == scope.visit
        if is_consumed and record is not None and Path(record.root).name == there[-1].name:
            return True
        return item is not None and not _has_begun_with(item, there[-1])

    async def join(self, node: Node, logs_root: str) -> Child:
        """Take up a child run that another caller started."""
        scope = current_stage()
        place = Path(logs_root) if logs_root else latest_run(child_home(scope.logs_root, node.id, scope.branch))
        if place is None or not has_event_log(place):
            raise RunNotFound(
                f'"{node.id}" starts no child (stack.child_autostart=false), and there is no child run '
                + (f"in {place}" if place else "of its own"),
                hint="start the child first and name its directory: stack.child_run=DIR",
            )
        pipeline = self._parent.pipeline.family.children.get(node.id)
        if pipeline is None:
            pipeline = self._kept_pipeline(place)
        charge = ChildCharge(pipeline, self._options(pipeline, node, scope, {}), scope)
        if is_owned(place):
            observed = ObservedChild(pipeline, scope, place, self._parent.seams.clock)
            announce_start(observed, is_taken_up=True)
            return observed
        return self._taken_up(charge, place, origin=_FOUND if logs_root else _LATEST)

    def _kept_pipeline(self, place: Path) -> Definition:
        """The pipeline that a child run's directory holds, with the handlers of this one."""
        own = self._parent.pipeline
        kept = read_definition(place, type(own))
        if kept.source is None:
            return kept
        return type(own)(
            kept.source,
            origin=kept.origin,
            handlers=own.handlers,
            schemas=own.schemas,
            tools=own.tools,
            functions=own.functions,
        )

    def live(self) -> dict[str, Execution]:
        """The handles of the children of this session, the latest of each stage."""
        return {child.stage_path: child.run for child in self._begun}

    def at_gates(self, waiting: Collection[str], within: str) -> dict[str, bool]:
        """By branch in which child runs are active: whether all that is active in them waits at gates.

        The arguments are those of ``RunningEngine.is_at_gates``.
        """
        found: dict[str, bool] = {}
        for child in self._begun:
            if not child.is_done:
                branch = child.scope.branch
                found[branch] = found.get(branch, True) and child.is_at_gates(waiting, within)
        return found

    # -- a lifetime, so that nothing outlives the run ------------------------------------------------

    async def open(self) -> None:
        """Nothing is needed before the first child."""

    async def close(self) -> None:
        """Stop what a handler has left behind."""
        for child in self._begun:
            await child.stop()

    # -- starting and resuming ----------------------------------------------------------------------

    def _pipeline_of(self, node: Node) -> Definition:
        pipeline = self._parent.pipeline.family.children.get(node.id)
        if pipeline is None:
            raise RunError(f'"{node.id}" names no child pipeline that can run', hint="see pipeline.lint()")
        return pipeline

    def _charge(self, node: Node, inputs: Mapping[str, Any], item: ListItem | None) -> ChildCharge:
        """The request of the running stage for a child run."""
        scope, pipeline = current_stage(), self._pipeline_of(node)
        if item is not None:
            inputs = {**inputs, ITEM: item.value, ITEM_INDEX: item.index}
        return ChildCharge(pipeline, self._options(pipeline, node, scope, inputs, item), scope, item)

    def _begin(self, charge: ChildCharge, place: Path | None) -> LiveChild:
        charge = msgspec.structs.replace(charge, options=replace(charge.options, logs_root=place))
        pipeline, options, seams = charge.pipeline, charge.options, self._parent.seams
        if charge.item is None:
            return self._launched(charge, begin(pipeline, options, seams))
        whole = list_key(pipeline.graph.get(FOR_EACH, str, ""))  # who has one item is not told all of them
        unlisted = options.params.keys() - (set(self._parent.setup.state.inputs) - {whole}) - set(ITEM_KEYS)
        return self._launched(charge, begin(pipeline, options, seams, inputs=options.params, unlisted=unlisted))

    def _read(self, charge: ChildCharge, place: Path, *, origin: str) -> FinishedChild | None:
        """A child run that has ended; None when it can continue. Our own is tidied up."""
        ended = finished_run(charge.pipeline, place)
        if ended is None:
            return None
        if origin == _OWN:
            stored_state.complete_end(charge.pipeline, place, charge.options, self._parent.seams)
        child = FinishedChild(ended, charge.scope, place, charge.item)
        child.counted = self._counted(charge, child.root)
        if (funds := charge.scope.for_child()) is not None:
            funds.charge(child.snapshot().own_usage or Usage())
        announce_start(child, is_taken_up=True)
        return child

    def _taken_up(self, charge: ChildCharge, place: Path, *, origin: str) -> Child:
        """An existing child run: resumed, or read when it has ended."""
        if (child := self._read(charge, place, origin=origin)) is not None:
            return child
        recorded: tuple[Command, ...] = ()
        if origin == _FOUND:
            options, recorded = _as_it_was(charge.pipeline, charge.options, place)
            charge = msgspec.structs.replace(charge, options=options)
        is_accepted = origin == _OWN and charge.item is None  # the hash of the run around covers its children
        start = resume.continue_run(
            charge.pipeline,
            place,
            charge.options,
            self._parent.seams,
            on_graph_change="accept" if is_accepted else "error",
            recorded=recorded,
        )
        return self._launched(charge, start, is_taken_up=True, is_found=origin == _FOUND)

    def _counted(self, charge: ChildCharge, place: Path) -> Usage:
        """The part of a child's usage that an earlier attempt of its stage has counted."""
        record = self._record_of(charge)
        is_same = record is not None and Path(record.root).name == place.name and record.visit == charge.scope.visit
        return record.counted if record is not None and is_same else Usage()

    def _record_of(self, charge: ChildCharge) -> ChildRecord | None:
        scope, item = charge.scope, charge.item
        return self._records.get((scope.branch, scope.node_id), {}).get(None if item is None else item.index)

    def _launched(
        self, charge: ChildCharge, start: RunStart, *, is_taken_up: bool = False, is_found: bool = False
    ) -> LiveChild:
        pipeline, options, scope = charge.pipeline, charge.options, charge.scope
        inherited = self._inherited(charge)
        if is_found:  # its own backend and working directory answer and work
            inherited = msgspec.structs.replace(inherited, backend=None, workspace=None, shipping=None)
        try:
            wired = self._parent.wire(
                pipeline, options, self._parent.seams, start, is_waited_for=True, inherited=inherited
            )
            child = LiveChild(wired, scope, self._parent.seams.clock, start.events, charge.item)
            child.counted = self._counted(charge, child.root)
            announce_start(child, is_taken_up=is_taken_up)
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            start.close()
            raise
        child.start()
        others = (other for other in self._begun if other.stage_path != child.stage_path)
        self._begun = [*(other for other in others if not _is_left_to_its_directory(other)), child]
        return child

    def _inherited(self, charge: ChildCharge) -> SharedByParent:
        """The objects that a child run inherits from its parent."""
        parent, scope = self._parent, charge.scope
        return SharedByParent(
            workspace=self._workspace(charge.options),
            tape=None if parent.tape is None else parent.tape.inside(path_of(scope, charge.item)),
            backend=None if "backend" in charge.pipeline.run_defaults else parent.backend,
            shipping=parent.shipping,
            above=ParentLink(parent.setup.debugging, scope.node_id, parent.stores),
            funds=scope.for_child(),
        )

    def _workspace(self, options: RunOptions) -> Workspace | None:
        """The parent's place, when the child works there: its commits and its end are the parent's, too."""
        own = self._parent.workspace
        return own if options.workdir == own.directory else None

    def _options(
        self,
        pipeline: Definition,
        node: Node,
        scope: StageScope,
        inputs: Mapping[str, Any],
        item: ListItem | None = None,
    ) -> RunOptions:
        """The parent's options, for a child: its own bounds within what is left of the parent's budget."""
        parent = self._parent
        own = pipeline.run_defaults
        workdir = node.get("stack.child_workdir", str, "") or parent.pipeline.graph.get("stack.child_workdir", str, "")
        path, is_here = path_of(scope, item), parent.shipping is None  # elsewhere there is no one place to work
        return replace(
            parent.options,
            params=dict(inputs),
            logs_root=None,
            runs_dir=None,
            backend=own.get("backend", parent.options.backend),
            interviewer=own.get("interviewer")
            or InheritedInterviewer(parent.gates, parent.options, f"{path}:{scope.visit}", path),
            processes=parent.processes if is_here else parent.options.processes,
            workdir=child_workdir(workdir, parent.workspace) or (parent.workspace.directory if is_here else None),
            isolation=IN_PLACE if is_here else None,
            workspace_from=None,
            **{**_NO_BOUNDS, **self._left(pipeline)},
            host="kernel",
            stop_after=None,
            breakpoints=(),
            pins={},
            trust=True,  # the parent's surface has its commands, and is trusted
            observers=(),
            tracer=None,
            session=False,
            is_shown=False,
            clock=parent.seams.clock,
            randomness=parent.seams.randomness,
            disk=parent.seams.disk,
        )

    def _left(self, pipeline: Definition) -> dict[str, Any]:
        """The bounds on the child's spending: those of its graph, at most what is left of the parent's."""
        bounds, usage = self._parent.setup.plan.bounds, self._parent.setup.state.usage
        found: dict[str, Any] = {}
        if bounds.max_budget_usd is not None:
            left = max(0.0, bounds.max_budget_usd - (usage.cost_usd or 0.0))
            own = pipeline.graph.get("max_budget_usd", float)
            found["max_budget_usd"] = left if own is None else min(left, own)
        if bounds.max_tokens_total is not None:
            tokens = max(0, bounds.max_tokens_total - usage.total_tokens)
            own_tokens = pipeline.graph.get("max_tokens_total", int)
            found["max_tokens_total"] = tokens if own_tokens is None else min(tokens, own_tokens)
        return found


def _as_it_was(pipeline: Definition, options: RunOptions, place: Path) -> tuple[RunOptions, tuple[Command, ...]]:
    """The options of a run that another caller began and a stage joins, and what its directory chooses (ruling 43).

    It keeps its backend and its working directory, its gates wait for an answer to that run, and what it executes is
    trusted for itself: the parent's list shows its directory and not its commands.
    """
    own = replace(
        options,
        backend=pipeline.run_defaults.get("backend"),
        interviewer="deferred",
        executor=None,
        workdir=None,
        isolation=None,
        trust=False,
    )
    recorded = stored_state.choices_for(pipeline.graph, place, own)
    return stored_state.with_recorded_plugs(own, place), recorded


def _has_begun_with(item: ListItem, place: Path) -> bool:
    """True if the run of an item began with that item: the list may be another one since."""
    with contextlib.suppress(RunNotFound):
        stored = read_run(place)
        if stored.events:  # else it was cut off before its first record
            return stored_state.inputs_of(stored, {}).get(ITEM) == item.value
    return True


def _is_left_to_its_directory(child: LiveChild) -> bool:
    """True if the handle of a child is not needed any more: one of many items whose run has ended and is stored."""
    return child.item is not None and child.is_done and has_event_log(child.root)


# The objects that a run shares with its child runs, and a stage's request for a child run.


class ParentRun(Struct, frozen=True):
    """The objects that a run shares with its child runs."""

    pipeline: Definition  #: The parent's pipeline, which knows its children.
    options: RunOptions  #: The parent's options.
    seams: Injected  #: Clock, randomness and disk.
    gates: Gates  #: The parent's gates, which reach its users.
    backend: CodergenBackend  #: Backend of its prompts.
    processes: Processes  #: Runner of its commands.
    workspace: Workspace  #: Its working directory, and that of its children unless their node names another.
    shipping: Shipping | None  #: The way to the workers of ``executor=``, open already; None when all is done here.
    tape: Tape | None  #: Recording of its calls, or None.
    setup: RunSetup  #: Setup of the parent; its store changes with a restart.
    wire: Callable[..., RunningEngine]  #: Introduces everybody to everybody in a child.

    def stores(self) -> tuple[RunStore, ...]:
        """The stores of the parent and of those above it, the nearest first."""
        return (self.setup.store, *self.setup.above())


class ChildRecord(Struct):
    """The record of a node's latest child run in the parent's log."""

    visit: int  #: The visit whose child it is.
    root: str  #: Its run directory, as recorded.
    is_ended: bool = False  #: The stage was done with it.
    #: And the attempt that was done with it is over, so another attempt begins another child.
    is_consumed: bool = False
    usage: Usage = Usage()  #: Its usage by then.
    counted: Usage = Usage()  #: Part of that usage that an ended attempt of the stage has counted as its own.


class ChildCharge(Struct, frozen=True):
    """A stage's request for a child run."""

    pipeline: Definition  #: The child pipeline.
    options: RunOptions  #: The options of its run.
    scope: StageScope  #: The attempt of the stage.
    item: ListItem | None = None  #: The item whose run it is, if the stage has one for each.

    @property
    def home(self) -> Path:
        """The place of the child runs."""
        scope = self.scope
        return child_home(scope.logs_root, scope.node_id, scope.branch, None if self.item is None else self.item.index)
