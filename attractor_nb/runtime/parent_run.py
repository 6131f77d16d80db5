"""The objects that a run shares with its child runs, and a stage's request for a child run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from attractor_nb.model.outcome import Usage
from attractor_nb.storage.child_directories import child_home

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.cassettes import Tape
    from attractor_nb.engine.gates import Gates
    from attractor_nb.engine.run_setup import RunSetup
    from attractor_nb.model.child import ListItem
    from attractor_nb.protocols import CodergenBackend, Processes, RunStore
    from attractor_nb.runtime.begin import Injected
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.wired_run import RunningEngine
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.stage import StageScope
    from attractor_nb.workers.shipping import Shipping


class ParentRun(Struct, frozen=True):
    """The objects that a run shares with its child runs."""

    pipeline: Definition  #: The parent's pipeline, which knows its children.
    options: RunOptions  #: The parent's options.
    seams: Injected  #: Clock, randomness and disk.
    gates: Gates  #: The parent's gates, which reach its people.
    backend: CodergenBackend  #: What answers its prompts.
    processes: Processes  #: What starts its commands.
    workspace: Workspace  #: Where it works, and its children where their node names no other place.
    shipping: Shipping | None  #: The way to the workers of ``executor=``, open already; None when all is done here.
    tape: Tape | None  #: What its calls are recorded on or replayed from, if they are.
    setup: RunSetup  #: What the parent is made of; its store is another one after a restart.
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
    usage: Usage = Usage()  #: What it had consumed by then.
    counted: Usage = Usage()  #: What of that an attempt of the stage, which has ended, has counted as its own.


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
