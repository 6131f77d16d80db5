"""The state of a stored run: its latest directory, its state, inputs and options (ruling 29)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from attractor_nb import backends
from attractor_nb.backends import NAMED
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.planning.recorded_choices import foreign_choices, recorded_choices
from attractor_nb.decisions.routing import ConditionOutcome, end_reason, next_step
from attractor_nb.errors import GraphChanged, OptionError, RunError, RunNotFound, StorageError
from attractor_nb.lazy_imports import later
from attractor_nb.model.events import LOG_FORM, PipelineStarted, UnknownEvent
from attractor_nb.model.outcome import Outcome, read_status
from attractor_nb.runtime.begin import SIMULATED, Injected, RunStart, backend_facts, begin, describe_backend
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    StoredValues,
    restart_directory,
    restored_state,
)
from attractor_nb.runtime.prepare.run_options import BOUNDS, RunOptions
from attractor_nb.runtime.prepare.trust import are_choices_known, is_own_directory, note_choices
from attractor_nb.runtime.workspace.workspace import with_recorded_workdir
from attractor_nb.storage.map_directory import is_map, read_map
from attractor_nb.storage.run_directory import first_directory, utc_text
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import StoredRun, check_directory, has_event_log, read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.storage import directory_survey
    from attractor_nb.storage.log.event_lines import LogScan
else:
    directory_survey = later("attractor_nb.storage.directory_survey")


# The latest state of a stored run: its directory, state and inputs (ruling 29); also of the older layout.

CONTINUED_FROM = "continued_from"
"""Entry of the manifest: the older run, whose values no log has; only the checkpoints hold them."""


def continue_legacy(
    pipeline: Definition, plan: Plan, checkpoint_dir: Path, options: RunOptions, seams: Injected
) -> RunStart:
    """Begin where the checkpoint says."""
    stored = read_run(checkpoint_dir)
    checkpoint = stored.checkpoint or {}
    completed: list[str] = list(checkpoint.get("completed_nodes", ()))
    current = str(checkpoint.get("current_node", ""))
    values: Mapping[str, Any] = checkpoint.get("context", {})
    if current not in plan.nodes:
        raise GraphChanged(f"the run stopped at {current or 'no node'}, which the graph does not have")
    start = begin(pipeline, options, seams)
    try:
        start.store.save_manifest({CONTINUED_FROM: str(checkpoint_dir.absolute())})
        start.context.apply_updates(values)
        state = start.state
        state.completed = completed
        for name in completed:
            state.visits[name] = state.visits.get(name, 0) + 1
        state.retries = dict(checkpoint.get("node_retries", {}))
        for name, status in checkpoint.get("node_outcomes", {}).items():
            if read := read_status(str(status)):
                state.outcomes[name] = read
        _place_legacy(plan, state, current, start.context)
    except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
        start.store.close()
        raise
    return start


def _place_legacy(plan: Plan, state: RunState, current: str, context: Context) -> None:
    """Set the resume point of a legacy run: at ``current``, or after it when it was completed."""
    status = read_status(context.get_string("outcome"))
    if status is not None:
        state.seen = ConditionOutcome(status, context.get_string("preferred_label"))
    if current not in state.completed or status is None:
        state.next_node = current
        return
    planned = plan.nodes[current]
    outcome = Outcome(status, preferred_label=context.get_string("preferred_label"))
    step = next_step(plan, planned, outcome, state.seen, context.get)
    state.last_status = status
    state.next_node = step.target if step else ""
    state.incoming_edge = step.edge.index if step and step.edge else None
    if step is None and not planned.is_exit:
        state.last_reason = end_reason(plan, planned, outcome, state.seen, context.get)
        state.last_route = "no_match" if state.last_reason else "end"


def complete_end(pipeline: Definition, logs_root: Path, options: RunOptions, seams: Injected) -> None:
    """Do for a run that has ended what its process was killed before: name its end in the manifest, tidy up."""
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    store, _ = open_latest(plan, logs_root, options, seams)
    store.close()


def _complete_manifest(store: DirectoryRunStore, latest: Latest, *, is_restarted: bool) -> None:
    """Name the end of a directory in its manifest, when its process was killed before it did."""
    stored, state = latest.stored, latest.state
    status = "restarted" if is_restarted else state.ended
    if status and stored.manifest.get("status") != status:
        facts = {"status": status, "end_time": utc_text(stored.events[-1].time)}
        store.save_manifest(facts if is_restarted else {**facts, "reason": state.reason, **state.totals()})


class Latest(Struct, frozen=True):
    """The latest state of a run: its latest directory, its state, and the run's inputs."""

    stored: StoredRun
    state: RunState
    inputs: Mapping[str, Any]


def open_latest(plan: Plan, logs_root: Path, options: RunOptions, seams: Injected) -> tuple[DirectoryRunStore, Latest]:
    """Open the run, or the restart directory in which it continues; an end that no manifest names is named."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        store = own_directory(logs_root, options, seams)
        try:
            latest, restarted = _read_one(plan, logs_root, before, store.scan)
            _complete_manifest(store, latest, is_restarted=restarted is not None)
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            store.close()
            raise
        if restarted is None:
            return store, latest
        store.close()
        logs_root, before = restarted, latest
    raise _endless(logs_root)


def read_latest(plan: Plan, logs_root: Path) -> Latest:
    """The result that ``open_latest`` would have, read without owning the directory."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        latest, restarted = _read_one(plan, logs_root, before)
        if restarted is None:
            return latest
        logs_root, before = restarted, latest
    raise _endless(logs_root)


def _read_one(
    plan: Plan, logs_root: Path, before: Latest | None, scan: LogScan | None = None
) -> tuple[Latest, Path | None]:
    """Read one directory of a run, and where it restarted.

    What a restart directory does not say, because its first record was never written, the one before
    it does.
    """
    stored = read_run(logs_root, scan)
    _check_form(stored)
    if before is None:
        _check_begun(stored)
        state = restored_state(plan, stored)
    else:
        state = restored_state(plan, stored, before.state.restarted(before.state.restart_target))
    latest = Latest(stored, state, inputs_of(stored, before.inputs if before else {}))
    return latest, restart_directory(stored, state)


def _endless(logs_root: Path) -> RunError:
    return RunError(f"the restarts of {logs_root} have no end")


def _check_form(stored: StoredRun) -> None:
    """Refuse a run whose log says more than this version understands: it could take it wrongly."""
    unknown = next(iter(stored.events.select(UnknownEvent)), None)
    first = stored.events[0] if stored.events else None
    form = first.schema_version if isinstance(first, PipelineStarted) else LOG_FORM
    if form > LOG_FORM or unknown is not None:
        what = f"its log has form {form}, and this one knows form {LOG_FORM}"
        if form <= LOG_FORM and unknown is not None:
            what = f"record {unknown.sequence} of its log is a {unknown.type}, which this version does not know"
        raise RunError(
            f"a newer version of attractor_nb has written the run in {stored.logs_root}: {what}",
            hint="update attractor_nb to resume it; this version can read it",
        )


def _check_begun(stored: StoredRun) -> None:
    """Refuse a run of which neither log nor checkpoint says with what it began."""
    if not stored.events and not stored.manifest.get("restart_of"):
        raise RunNotFound(
            f"the run in {stored.logs_root} had not begun: its log holds no record",
            hint="no stage of it was run; start the pipeline anew",
        )
    if stored.checkpoint is None and (older := stored.manifest.get(CONTINUED_FROM)):
        raise RunError(
            f"{stored.logs_root} continued from a checkpoint of the older layout, and has no checkpoint with its state",
            hint=f"resume the older run again: attractor-nb resume {older} --graph FILE",
        )


def inputs_of(stored: StoredRun, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that the run began with, large ones read: a restart has its own directory."""
    for event in stored.events.select(PipelineStarted):
        values = StoredValues(stored.logs_root)
        return {key: values.whole(value) for key, value in event.inputs.items()}
    return inputs


def own_directory(logs_root: Path, options: RunOptions, seams: Injected) -> DirectoryRunStore:
    """Own a directory of the run."""
    try:
        return DirectoryRunStore.open(
            logs_root, durability=options.durability, clock=seams.clock, disk=seams.disk, take_over=options.take_over
        )
    except StorageError:
        _check_begun(read_run(logs_root))
        raise


# Options that a run was given before, which a resume keeps unless others are given.


def choices_of(
    logs_root: Path,
    graph: Graph,
    *,
    is_backend_given: bool,
    is_place_given: bool = False,
    is_trusted: bool = False,
    acts_unasked: bool = False,
) -> tuple[Command, ...]:
    """The choices that the directory of a run or a map would make by itself (ruling 43).

    Args:
        logs_root: The directory.
        graph: The graph that continues.
        is_backend_given: The caller names a backend, so that the recorded one is not used.
        is_place_given: The caller says where the run works.
        acts_unasked: The caller's backend may write or execute for any stage.
        is_trusted: The caller trusts the whole directory, so that its hash is not asked for.
    """
    if is_a_map := is_map(logs_root):
        facts = first = read_map(logs_root)
    else:
        check_directory(logs_root)
        facts = read_facts(logs_root)
        first = read_facts(first_directory(logs_root)) if facts.get("restart_of") else facts
    found = recorded_choices(facts, first, is_backend_given=is_backend_given)
    if is_own_directory(logs_root):
        return found
    return found + foreign_choices(
        graph,
        [] if is_place_given else [_elsewhere(first), *(_places_of_rows(logs_root) if is_a_map else ())],
        acts_unasked=acts_unasked,
        read_events=lambda: () if is_a_map else read_run(logs_root).events,
        digest=lambda: "not hashed" if is_trusted else directory_survey.directory_digest(first_directory(logs_root)),
    )


def _places_of_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The working places of a map's rows, from the manifest of each: a resume reads them there."""
    for directory in sorted(path.iterdir()):
        if directory.name.startswith("row-") and directory.is_dir():
            yield _elsewhere(read_facts(directory))


def _elsewhere(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Facts of a place without a working directory that is the current one, where a run works in any case."""
    with contextlib.suppress(OSError):
        if facts.get("workdir") and Path(str(facts["workdir"])).samefile(Path.cwd()):
            return {**facts, "workdir": None}
    return facts


def choices_for(graph: Graph, logs_root: Path, options: RunOptions) -> tuple[Command, ...]:
    """The choices that these options leave to a directory; raises as ``choices_of``."""
    is_place_given = any(value is not None for value in (options.workdir, options.isolation, options.executor))
    return choices_of(
        logs_root,
        graph,
        is_backend_given=options.backend is not None,
        is_place_given=is_place_given,
        is_trusted=options.trust is True,
        acts_unasked=options.acts_unasked,
    )


def record_options(
    store: DirectoryRunStore,
    graph: Graph,
    options: RunOptions,
    place: Mapping[str, Any],
    recorded: Sequence[Command] = (),
) -> None:
    """Keep what a later resume shall find, where it is not what the run had before.

    A simulation that was asked for is for this time alone: the backend that a later resume takes stays
    the one that answered (ruling 48).

    What the caller chooses now is noted as the caller's; what the directory chose stays as trusted as it was.

    Args:
        store: The run directory.
        graph: The graph that continues.
        options: How.
        place: What the manifest says of where it works.
        recorded: What the directory has chosen by itself, as ``choices_of`` says.
    """
    now: dict[str, Any] = {"bounds": options.recorded_bounds, **place}
    backend = describe_backend(options.backend)
    if backend != SIMULATED or store.manifest.get("backend", "") in {"", SIMULATED}:
        now |= {"backend": backend, "backend_facts": {}, **backend_facts(options.backend, graph)}
    if any(store.manifest.get(name, {}) != value for name, value in now.items()):
        first = read_facts(first_directory(store.logs_root))
        chosen = recorded_choices({**store.manifest, **now}, first, is_backend_given=False)
        if set(chosen) != set(recorded) and are_choices_known(recorded, store.logs_root):
            note_choices(chosen, store.logs_root, is_synced=options.durability == "full")
        store.save_manifest(now)


def with_recorded_plugs(options: RunOptions, logs_root: Path) -> RunOptions:
    """Options that answer prompts, and work, as and where the run did before, by default."""
    check_directory(logs_root)
    facts = read_facts(logs_root)
    first = read_facts(first_directory(logs_root)) if facts.get("restart_of") else facts
    return with_recorded_workdir(with_recorded_backend(options, facts), first)


def with_recorded_backend(options: RunOptions, manifest: Mapping[str, Any]) -> RunOptions:
    """Options that answer prompts as a manifest says, by default; raises as above."""
    if options.backend is not None or options.cassette_mode == "replay":  # a replay asks no one
        return options
    recorded = str(manifest.get("backend", ""))
    if facts := manifest.get("backend_facts"):
        again = backends.ProviderBackend.rebuilt(facts)
        is_by_name = recorded == "llm" and not facts["options"]
        return replace(options, backend=recorded if is_by_name else again)
    if recorded in {"", SIMULATED}:
        return options
    if recorded in NAMED:
        return replace(options, backend=recorded)
    raise OptionError(
        f"prompts of this run were answered by {recorded.removesuffix(' (own)')}, and no backend is given",
        hint='give the same again, backend=…, or ask for made-up answers: backend="simulated"',
    )


def with_recorded_bounds(options: RunOptions, manifest: Mapping[str, Any]) -> RunOptions:
    """Options with the earlier bounds of the run, unless the caller gives others."""
    recorded: Mapping[str, Any] = manifest.get("bounds", {})
    given = options.bounds
    return replace(options, **{name: recorded[name] for name in BOUNDS if name in recorded and name not in given})


_OWN = {
    "params": "start a new run for other values: pipeline.run(params=…)",
    "logs_root": "leave it out: a run is resumed in its own directory",
    "runs_dir": "leave it out: a run is resumed in its own directory",
}


def check_own(logs_root: Path, given: Mapping[str, Any]) -> None:
    """Refuse what is a run's own and cannot be given anew; a run of the older layout gets a new directory."""
    for name, hint in _OWN.items():
        if given.get(name) and (name == "params" or has_event_log(logs_root)):
            raise OptionError(f"{name} cannot be changed: a resume keeps the options of its run", hint=hint)
