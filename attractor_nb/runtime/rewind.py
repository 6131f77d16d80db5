"""Going back in a stored run, to just before a visit: one record, and nothing is erased.

Resume continues from the position of a run. A rewind only moves that position: the run is read
as if its log ended before that visit, and the first thing that is written is the record of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from attractor_nb.context import Context
from attractor_nb.decisions.log_folds import check_key
from attractor_nb.decisions.log_history import Point, counted_events, find_points, missing_visit, pick
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.events import Event, PipelineRestarted, PipelineRewound, PipelineStarted, StageEnd
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.recorded_state import directory_before
from attractor_nb.runtime.prepare.run_options import as_dict
from attractor_nb.runtime.stored_state import CONTINUED_FROM
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState


class Rewind(Struct, frozen=True):
    """The target of a rewind."""

    node_id: str  #: Before a visit of this node.
    visit: int | None = None  #: Its visit, by number; None for the latest.
    #: Values of the context that are others from there on.
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt: str = ""  #: The prompt of that node from there on, in this run; empty for that of the graph.


def read_rewind(node_id: object, visit: object, context: object = None, prompt: object = None) -> Rewind | None:
    """The rewind that a caller asks for; None when there is none."""
    if node_id is None:
        given = {"visit": visit, "context": context, "prompt": prompt}
        if name := next((name for name, value in given.items() if value is not None), ""):
            raise OptionError(
                f"{name} needs the node to rewind to", hint="rewind_to=…, --rewind-to at the command line"
            )
        return None
    if not isinstance(node_id, str):
        raise OptionError(f"the node to rewind to must be an id (text), not {type(node_id).__name__}")
    if visit is not None and (type(visit) is not int or visit < 1):
        raise OptionError(f"a visit must be a whole number of at least 1, not {visit!r}")
    if prompt is not None and (not isinstance(prompt, str) or not prompt.strip()):
        raise OptionError("the prompt is empty", hint="leave it out to keep the prompt")
    return Rewind(node_id, visit, _checked_context(context), redacted(prompt or ""))


def _checked_context(context: object) -> dict[str, Any]:
    """Values of the context as it keeps them."""
    values = as_dict("context", {} if context is None else context, hint='context={"tests": 3}')
    for key in values:
        check_key(key)
    return Context(values).snapshot()


def check_rewind(plan: Plan, logs_root: Path, rewind: Rewind) -> None:
    """Refuse what no log can make good, before anything is opened."""
    if rewind.node_id not in plan.nodes:
        raise OptionError(
            f"the pipeline has no node {rewind.node_id!r}{did_you_mean(rewind.node_id, plan.nodes)}",
            hint="rewind to a node of the given pipeline",
        )
    node = plan.nodes[rewind.node_id]
    if rewind.prompt and node.handler_type != "codergen" and not node.node.prompt:
        raise OptionError(f"{rewind.node_id} is a {node.handler_type} node and has no prompt to be changed")
    if logs_root.is_dir() and not has_event_log(logs_root):
        raise RunError(
            f"{logs_root} is a run of the older layout: it has no log to go back in",
            hint="resume it, which begins a directory with a log, or start a new run",
        )


class RewindPlace(Struct, frozen=True):
    """The point at which a run continues after a rewind."""

    stored: StoredRun  #: The directory as it is.
    counted: LoggedEvents  #: The events of it that still count.
    point: Point  #: The visit.
    stages: int  #: Number of stages that are set aside, those of later directories included.
    rewind: Rewind  #: The request.

    @property
    def shortened(self) -> StoredRun:
        """The directory as if its log ended before the visit."""
        return replace(self.stored, checkpoint=None, tail=self.counted, events=self.counted)

    def record(self, state: RunState) -> PipelineRewound:
        """The record of the rewind; ``state`` is the state of the run until then."""
        point = self.point
        return PipelineRewound(
            node=point.node_id,
            visit=point.visit,
            to_sequence=point.sequence,
            stages=self.stages,
            carried=state.carried,
            context=dict(self.rewind.context),
            prompt=self.rewind.prompt,
        )


def find_place(latest: StoredRun, rewind: Rewind) -> RewindPlace:
    """Find a visit: in the directory where the run is, else in those that it restarted from."""
    stored, stages = latest, 0
    points: list[Point] = []
    counted: list[Event] = []
    while True:
        here = counted_events(stored.events)
        found = find_points(here, rewind.node_id)
        if point := pick(found, rewind.visit):
            _check_is_in_log(stored, here)
            counted_until = LoggedEvents(event for event in here if event.sequence <= point.sequence)
            return RewindPlace(stored, counted_until, point, stages + point.stages, rewind)
        points, counted = [*found, *points], [*here, *counted]
        stages += sum(isinstance(event, StageEnd) and event.is_commit for event in here)
        before = directory_before(stored)
        if before is None:
            raise missing_visit(points, counted, rewind.node_id, rewind.visit)
        stored = read_run(before)


def _check_is_in_log(stored: StoredRun, counted: Sequence[Event]) -> None:
    """A run that continued from a checkpoint of the older layout has the values of before in no log."""
    started = next((event for event in counted if isinstance(event, PipelineStarted)), None)
    start_node = stored.manifest.get("start_node", "")
    began_elsewhere = started and not started.restart_of and start_node not in {"", started.start_node}
    if began_elsewhere or stored.manifest.get(CONTINUED_FROM):
        raise RunError(
            f"{stored.logs_root} began with a checkpoint of the older layout, and no log contains its state",
            hint="resume it from its checkpoint, or start a new run",
        )


def check_still_counts(stored: StoredRun) -> None:
    """Refuse to resume in a restart directory that a rewind set aside."""
    before = directory_before(stored)
    if before is None:
        return
    events = read_run(before).events
    if _leads_to(stored, events) and not _leads_to(stored, counted_events(events)):
        raise RunError(
            f"{stored.logs_root} was set aside: the run was rewound to before it, in {before}",
            hint=f"resume there: attractor-nb resume {before}",
        )


def _leads_to(stored: StoredRun, events: Sequence[Event]) -> bool:
    name = stored.logs_root.name
    restarts = (event for event in events if isinstance(event, PipelineRestarted))
    return any(Path(event.logs_root).name == name for event in restarts)
