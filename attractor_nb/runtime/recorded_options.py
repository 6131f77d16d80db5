"""Options that a run was given before, which a resume keeps unless others are given."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb import backends
from attractor_nb.backends import NAMED
from attractor_nb.decisions.planning.recorded_choices import foreign_choices, recorded_choices
from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.begin import SIMULATED, backend_facts, describe_backend
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.runtime.prepare.trust import are_choices_known, is_own_directory, note_choices
from attractor_nb.runtime.workspace.recorded_workdir import with_recorded_workdir
from attractor_nb.storage.map_directory import is_map, read_map
from attractor_nb.storage.run_directory import first_directory
from attractor_nb.storage.stored_run import check_directory, has_event_log, read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.storage import directory_digest
    from attractor_nb.storage.run_store import DirectoryRunStore
else:
    directory_digest = later("attractor_nb.storage.directory_digest")


def choices_of(
    logs_root: Path,
    graph: Graph,
    *,
    is_backend_given: bool,
    is_place_given: bool = False,
    is_trusted: bool = False,
    acts_unasked: bool = False,
) -> tuple[Command, ...]:
    """What the directory of a run or a map would choose by itself (ruling 43).

    Args:
        logs_root: The directory.
        graph: The graph that goes on.
        is_backend_given: The caller names a backend, so that the recorded one is not used.
        is_place_given: The caller says where the run works.
        acts_unasked: The caller's backend may write or execute for any stage.
        is_trusted: The caller trusts the whole directory, so that nobody asks for its hash.
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
        digest=lambda: "not hashed" if is_trusted else directory_digest.directory_digest(first_directory(logs_root)),
    )


def _places_of_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Where the rows of a map work, as each of them says: a resume reads it there."""
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
    """What a directory would choose by itself, with what these options leave to it; raises as ``choices_of``."""
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
        graph: What goes on.
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
    """Options that answer prompts, and work, as and where the run did before, when nobody says otherwise."""
    check_directory(logs_root)
    facts = read_facts(logs_root)
    first = read_facts(first_directory(logs_root)) if facts.get("restart_of") else facts
    return with_recorded_workdir(with_recorded_backend(options, facts), first)


def with_recorded_backend(options: RunOptions, manifest: Mapping[str, Any]) -> RunOptions:
    """Options that answer prompts as a manifest says, when nobody says otherwise; raises as above."""
    if options.backend is not None or options.cassette_mode == "replay":  # a replay asks nobody
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
    """Options with the bounds that the run was given before, where nobody gives another."""
    recorded: Mapping[str, Any] = manifest.get("bounds", {})
    given = options.bounds
    return replace(options, **{name: recorded[name] for name in BOUNDS if name in recorded and name not in given})


_OWN = {
    "params": "start a new run for other values: pipeline.run(params=…)",
    "logs_root": "leave it out: a run goes on in its own directory",
    "runs_dir": "leave it out: a run goes on in its own directory",
}


def check_own(logs_root: Path, given: Mapping[str, Any]) -> None:
    """Refuse what is a run's own and cannot be given anew; a run of the older layout gets a new directory."""
    for name, hint in _OWN.items():
        if given.get(name) and (name == "params" or has_event_log(logs_root)):
            raise OptionError(f"{name} is given, and a resume keeps what its run began with", hint=hint)
