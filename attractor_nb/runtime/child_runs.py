"""Child runs: started or taken up for a stage, watched, steered, stopped (spec 4.11, 9.4).

A child is a run like any other, as a task in its parent's event loop, with its parent's backend, people,
seams and what is left of its parent's budget. Which child belongs to which attempt is in the parent's
log; how a child stands is in its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from attractor_nb.errors import RunError, RunNotFound
from attractor_nb.lazy_imports import later
from attractor_nb.model.events import ChildEnded, ChildStarted, Event, StageEnd
from attractor_nb.model.vocabulary.isolation import IN_PLACE
from attractor_nb.runtime.begin import begin
from attractor_nb.runtime.plugs.inherited import Above, Inherited, InheritedInterviewer
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.runtime.stage_child import FinishedChild, LiveChild, ObservedChild, announce_start, finished_run
from attractor_nb.runtime.stored_execution import read_definition
from attractor_nb.runtime.workspace.workspace import child_workdir
from attractor_nb.stage import current_stage
from attractor_nb.storage.child_directories import child_home, latest_run, make_home, next_place, runs_of_visit
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.stored_run import has_event_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from attractor_nb.cassettes import Tape
    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.engine.gates import Gates
    from attractor_nb.engine.run_setup import RunSetup
    from attractor_nb.model.child import Child
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import CodergenBackend, Processes, RunStore
    from attractor_nb.runtime import latest_state, recorded_options, resume
    from attractor_nb.runtime.begin import Beginning, Seams
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.wired_run import Wired
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.stage import StageScope
else:
    latest_state = later("attractor_nb.runtime.latest_state")
    recorded_options = later("attractor_nb.runtime.recorded_options")
    resume = later("attractor_nb.runtime.resume")

_OWN, _LATEST, _FOUND = "own", "latest", "found"
"""Whose a child run is that is taken up: the attempt's own, one of an earlier visit, or somebody else's."""
_NO_BOUNDS: dict[str, Any] = dict.fromkeys(BOUNDS)
"""A child has the bounds of its own graph, not those that a caller gave its parent."""


class ParentRun(Struct, frozen=True):
    """What a run shares with its children.

    Attributes:
        pipeline: The parent's pipeline, which knows its children.
        options: The parent's options.
        seams: Clock, randomness and disk.
        gates: The parent's gates, which reach its people.
        backend: What answers its prompts.
        processes: What starts its commands.
        workspace: Where it works, and its children where their node names no other place.
        tape: What its calls are recorded on or replayed from, if they are.
        setup: What the parent is made of; its store is another one after a restart.
        wire: Introduces everybody to everybody in a child.
    """

    pipeline: Definition
    options: RunOptions
    seams: Seams
    gates: Gates
    backend: CodergenBackend
    processes: Processes
    workspace: Workspace
    tape: Tape | None
    setup: RunSetup
    wire: Callable[..., Wired]

    def stores(self) -> tuple[RunStore, ...]:
        """The stores of the parent and of those above it, the nearest first."""
        return (self.setup.store, *self.setup.above())


class _Record(Struct):
    """What the parent's log says of the latest child of a node.

    Attributes:
        visit: The visit whose child it is.
        root: Its run directory, as recorded.
        is_ended: The stage was done with it.
        is_consumed: And the attempt that was done with it is over, so another attempt begins another child.
    """

    visit: int
    root: str
    is_ended: bool = False
    is_consumed: bool = False


class ChildRuns:
    """Gives the stages of a run their children (``stage.Children``)."""

    def __init__(self, parent: ParentRun) -> None:
        self._parent = parent
        self._records: dict[tuple[str, str], _Record] = {}
        self._begun: list[LiveChild] = []

    # -- what the log says ---------------------------------------------------------------------------

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take in an event of the parent's log; a sink of its stream."""
        if isinstance(event, ChildStarted):
            self._records[event.branch, event.name] = _Record(event.visit, event.child_root)
        elif isinstance(event, ChildEnded):
            if record := self._records.get((event.branch, event.name)):
                record.is_ended = True
        elif isinstance(event, StageEnd) and self._records:
            record = self._records.get((event.branch, event.name))
            is_open = event.outcome.is_unmeasured  # the next attempt goes on with it
            if record is not None and record.is_ended and not is_open:
                record.is_consumed = True

    # -- the seam ------------------------------------------------------------------------------------

    async def start(self, node: Node, inputs: Mapping[str, Any]) -> Child:
        """Start the child run of a node, or take up the one of an attempt that was cut off."""
        scope = current_stage()
        pipeline = self._pipeline_of(node)
        options = self._options(pipeline, node, scope, inputs)
        if options.durability == "none":
            return self._begin(pipeline, options, scope, None)
        home = child_home(scope.logs_root, node.id, scope.branch)
        make_home(self._parent.seams.disk, home, is_synced=options.durability == "full")
        there = runs_of_visit(home, scope.visit)
        record = self._records.get((scope.branch, node.id))
        is_new = not there or (
            record is not None
            and record.is_consumed
            and record.visit == scope.visit
            and Path(record.root).name == there[-1].name
        )
        if is_new:
            return self._begin(pipeline, options, scope, next_place(home, scope.visit, len(there)))
        place = there[-1]
        try:
            return self._taken_up(pipeline, options, scope, place, origin=_OWN)
        except RunNotFound:  # it was cut off before its first record
            return self._begin(pipeline, options, scope, place)

    async def join(self, node: Node, logs_root: str) -> Child:
        """Take up a child run that somebody else started."""
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
        options = self._options(pipeline, node, scope, {})
        if is_owned(place):
            observed = ObservedChild(pipeline, scope, place, self._parent.seams.clock)
            announce_start(observed, is_taken_up=True)
            return observed
        return self._taken_up(pipeline, options, scope, place, origin=_FOUND if logs_root else _LATEST)

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

    # -- a lifetime, so that nothing outlives the run ------------------------------------------------

    async def open(self) -> None:
        """Nothing is needed before the first child."""

    async def close(self) -> None:
        """Stop what a handler has left behind."""
        for child in self._begun:
            await child.stop()

    # -- beginning and going on ----------------------------------------------------------------------

    def _pipeline_of(self, node: Node) -> Definition:
        pipeline = self._parent.pipeline.family.children.get(node.id)
        if pipeline is None:
            raise RunError(f'"{node.id}" names no child pipeline that can run', hint="see pipeline.lint()")
        return pipeline

    def _begin(self, pipeline: Definition, options: RunOptions, scope: StageScope, place: Path | None) -> LiveChild:
        options = replace(options, logs_root=place)
        return self._launched(pipeline, options, scope, begin(pipeline, options, self._parent.seams))

    def _taken_up(
        self, pipeline: Definition, options: RunOptions, scope: StageScope, place: Path, *, origin: str
    ) -> Child:
        """A child run that is there: gone on with, or read when it has ended; our own is tidied up then."""
        ended = finished_run(pipeline, place)
        if ended is not None:
            if origin == _OWN:
                latest_state.complete_end(pipeline, place, options, self._parent.seams)
            child = FinishedChild(ended, scope, place)
            announce_start(child, is_taken_up=True)
            return child
        recorded: tuple[Command, ...] = ()
        if origin == _FOUND:
            options, recorded = _as_it_was(pipeline, options, place)
        start = resume.continue_run(
            pipeline, place, options, self._parent.seams, on_graph_change="error", recorded=recorded
        )
        return self._launched(pipeline, options, scope, start, is_taken_up=True, is_found=origin == _FOUND)

    def _launched(
        self,
        pipeline: Definition,
        options: RunOptions,
        scope: StageScope,
        start: Beginning,
        *,
        is_taken_up: bool = False,
        is_found: bool = False,
    ) -> LiveChild:
        inherited = self._inherited(pipeline, options, scope)
        if is_found:  # its own backend and working directory answer and work
            inherited = msgspec.structs.replace(inherited, backend=None, workspace=None)
        try:
            wired = self._parent.wire(
                pipeline, options, self._parent.seams, start, is_waited_for=True, inherited=inherited
            )
            child = LiveChild(wired, scope, self._parent.seams.clock, start.events)
            announce_start(child, is_taken_up=is_taken_up)
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            start.close()
            raise
        child.start()
        self._begun = [*(other for other in self._begun if other.stage_path != child.stage_path), child]
        return child

    def _inherited(self, pipeline: Definition, options: RunOptions, scope: StageScope) -> Inherited:
        """What a child has of its parent."""
        parent = self._parent
        return Inherited(
            workspace=self._workspace(options),
            tape=None if parent.tape is None else parent.tape.inside(_path(scope)),
            backend=None if "backend" in pipeline.run_defaults else parent.backend,
            above=Above(parent.setup.debugging, scope.node_id, parent.stores),
            funds=scope.for_child(),
        )

    def _workspace(self, options: RunOptions) -> Workspace | None:
        """The parent's place, when the child works there: its commits and its end are the parent's, too."""
        own = self._parent.workspace
        return own if options.workdir == own.directory else None

    def _options(self, pipeline: Definition, node: Node, scope: StageScope, inputs: Mapping[str, Any]) -> RunOptions:
        """The parent's options, for a child: its own bounds within what is left of the parent's budget."""
        house = self._parent
        own = pipeline.run_defaults
        workdir = node.get("stack.child_workdir", str, "") or house.pipeline.graph.get("stack.child_workdir", str, "")
        path = _path(scope)
        return replace(
            house.options,
            params=dict(inputs),
            logs_root=None,
            runs_dir=None,
            backend=own.get("backend", house.options.backend),
            interviewer=own.get("interviewer")
            or InheritedInterviewer(house.gates, house.options, f"{path}:{scope.visit}", path),
            processes=house.processes,
            workdir=child_workdir(workdir, house.workspace) or house.workspace.directory,
            isolation=IN_PLACE,
            workspace_from=None,
            **{**_NO_BOUNDS, **self._left(pipeline)},
            host="kernel",
            stop_after=None,
            breakpoints=(),
            pins={},
            trust=True,  # the parent's surface has its commands, and somebody trusted that
            observers=(),
            tracer=None,
            session=False,
            is_shown=False,
            clock=house.seams.clock,
            randomness=house.seams.randomness,
            disk=house.seams.disk,
        )

    def _left(self, pipeline: Definition) -> dict[str, Any]:
        """What the child may spend: what its graph says, and no more than is left of the parent's."""
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
    """The options of a run that somebody else began and a stage joins, and what its directory chooses (ruling 43).

    It keeps its backend and its working directory, its gates wait for an answer to that run, and what it executes is
    trusted for itself: the parent's list shows its directory and not its commands.

    Raises:
        OptionError: Its backend was somebody's own, or its working directory is gone.
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
    recorded = recorded_options.choices_for(pipeline.graph, place, own)
    return recorded_options.with_recorded_plugs(own, place), recorded


def _path(scope: StageScope) -> str:
    """The path of the stage whose child runs."""
    return f"{scope.branch}/{scope.node_id}" if scope.branch else scope.node_id
