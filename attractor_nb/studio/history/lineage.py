"""The family of a run: what it was forked from, what was forked from it, its restarts and rewinds.

Forks name their parent in their manifest, so a family is found by looking at the manifests of a runs base; no
parent knows its forks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_history import way_taken
from attractor_nb.errors import RunError, RunNotFound
from attractor_nb.model.events import PipelineForked, PipelineRestarted, PipelineRewound
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.run_directory import first_directory
from attractor_nb.storage.run_status import standing_of
from attractor_nb.storage.stored_run import has_event_log, read_facts, read_run
from attractor_nb.studio.history.lineage_view import Kin, lineage_svg, lineage_text
from attractor_nb.views.drawings.still import picture_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from attractor_nb.runtime.execution import Execution

MAX_DEPTH: Final = 50
"""How many forks of forks are followed: a family that was tampered with has an end, too."""
MAX_RESTARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Lineage:
    """The family of a run, as a tree.

    Attributes:
        root: The run that none of them is older than.
        base: The runs base in which it was looked for.
    """

    root: Kin
    base: Path

    def details(self) -> str:
        """The tree with the directories, which differ from run to run."""
        return lineage_text(self.root, has_places=True)

    def to_svg(self) -> str:
        """The tree as a picture."""
        return lineage_svg(self.root)

    def __str__(self) -> str:
        return lineage_text(self.root)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(self.to_svg(), str(self))


def lineage(run: Execution | str | Path, base: str | Path | None = None) -> Lineage:
    """The family of a run.

    Args:
        run: The run or its directory.
        base: Where its kin are looked for; the directory around it by default.

    Raises:
        RunNotFound: There is no run, or nothing of it is stored.
        CheckpointCorrupt: Its log is damaged.
    """
    root = first_directory(as_path(getattr(run, "logs_root", run)).absolute())
    if not has_event_log(root):
        raise RunNotFound(f"{root} holds no run, so it has no kin", hint="name the run's own directory")
    place = as_path(base, "base") if base is not None else root.parent
    known = dict(_known(place))
    known.setdefault(root, read_facts(root))
    by_id = {run_id: path for path, facts in known.items() if (run_id := str(facts.get("run_id", "")))}
    oldest = root
    for _ in range(MAX_DEPTH):
        parent = by_id.get(_parent_id(known[oldest]))
        if parent is None or parent == oldest:
            break
        oldest = parent
    return Lineage(_kin(oldest, known, root, 0), place)


def _known(base: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The runs of a base with their manifests; what cannot be read is passed over."""
    try:
        names = sorted(entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        path = base.absolute() / name
        try:
            if not name.startswith(TEMPORARY_PREFIX) and has_event_log(path):
                yield path, read_facts(path)
        except RunError:
            continue


def _parent_id(facts: Mapping[str, Any]) -> str:
    fork_of: Mapping[str, Any] = facts.get("fork_of") or {}
    return str(fork_of.get("run_id", ""))


def _kin(path: Path, known: Mapping[Path, Mapping[str, Any]], here: Path, depth: int) -> Kin:
    facts = known[path]
    run_id = str(facts.get("run_id", ""))
    forks = sorted(
        (
            other
            for other, theirs in known.items()
            if other != path and run_id and _parent_id(theirs) == run_id
        ),
        key=lambda other: (_begun(other), int(known[other]["fork_of"].get("sequence", 0)), other.name),
    )
    below = [*_turns(path)]
    if depth < MAX_DEPTH:
        below += [_kin(other, known, here, depth + 1) for other in forks]
    words, kind = f"run of {facts.get('pipeline_name') or 'a pipeline'}", "run"
    if fork_of := facts.get("fork_of"):
        words, kind = f"fork before {fork_of.get('node')}, visit {fork_of.get('visit')}", "fork"
    standing = standing_of(path, facts)
    stages = standing.manifest.get("stages")
    detail = "" if stages is None else f"{stages} stage{'s' * (stages != 1)}"
    detail = ", ".join(part for part in (detail, _changes(path) if kind == "fork" else "") if part)
    return Kin(kind, words, standing.status, detail, path.name, run_id, path == here, tuple(below))


def _record_of(path: Path) -> PipelineForked | None:
    """The record of a fork: its own is the last, those before are its parent's."""
    return next((event for event in reversed(_events(path)) if isinstance(event, PipelineForked)), None)


def _begun(path: Path) -> float:
    """When a fork began; its manifest knows the second, and several may begin in one."""
    record = _record_of(path)
    return 0.0 if record is None else record.time


def _changes(path: Path) -> str:
    """What a fork changed, in words."""
    record = _record_of(path)
    if record is None:
        return ""
    changed = [*record.context, *(["the prompt"] if record.prompt else [])]
    return f"changed: {', '.join(changed)}" if changed else "nothing changed"


def _turns(first: Path) -> Iterator[Kin]:
    """The rewinds and restarts of a run since it is one, in their order, in all its directories."""
    place: Path | None = first
    for _ in range(MAX_RESTARTS):
        if place is None or not has_event_log(place):
            return
        here, place = place, None
        events = _events(here)
        counted = {id(event) for event in way_taken(events)}
        forks = [index for index, event in enumerate(events) if isinstance(event, PipelineForked)]
        begun = forks[-1] if forks else -1
        for event in events[begun + 1 :]:
            if isinstance(event, PipelineRewound):
                count = f"{event.stages} stage{'s' * (event.stages != 1)} set aside"
                yield Kin("rewind", f"rewound to before {event.node}, visit {event.visit}", "", count)
            elif isinstance(event, PipelineRestarted):
                name = event.logs_root.rpartition("/")[2]
                status = "" if id(event) in counted else "set aside"
                yield Kin("restart", f"restarted at {event.target}", status, place=f"{first.name}/{name}")
                place = None if status or first / name == here else first / name


def _events(path: Path) -> tuple[Any, ...]:
    try:
        return read_run(path).events
    except RunError:
        return ()
