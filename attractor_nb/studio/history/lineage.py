"""The family of a run, as a value, as text and as a picture: forks, restarts and rewinds.

Forks name their parent in their manifest, so a family is found by looking at the manifests of a runs base; no
parent knows its forks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_history import counted_events
from attractor_nb.errors import RunError, RunNotFound
from attractor_nb.model.events import PipelineForked, PipelineRestarted, PipelineRewound
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.model.states import RunStatus, run_word
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.manifest_file import current_status
from attractor_nb.storage.run_directory import first_directory
from attractor_nb.storage.stored_run import has_event_log, read_facts, read_run
from attractor_nb.studio.history.history_table import mark_of
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.theme import drawing_css, drawing_rules, sheet
from attractor_nb.views.markup import element, path_data
from attractor_nb.views.metrics import shorten, text_width
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from markupsafe import Markup

    from attractor_nb.runtime.execution import Execution

MAX_SHOWN: Final = 200
"""More would not be read; the text says how many there are."""
_WIDEST: Final = 520.0
_ROW: Final = 46.0
_BOX: Final = 36.0
_INDENT: Final = 34.0
_MARGIN: Final = 14.0
_SIGNS_OF_TURNS: Final = {"rewind": "↶", "restart": "↻"}
_RULES: Final = """
& .ln-line{fill:none;stroke:var(--dim);stroke-width:1.25}
& .ln-box{fill:var(--pending-fill);stroke:var(--pending-line);stroke-width:1.25}
& .ln-success .ln-box{fill:var(--success-fill);stroke:var(--success-line)}
& .ln-fail .ln-box{fill:var(--fail-fill);stroke:var(--fail-line)}
& .ln-running .ln-box{fill:var(--running-fill);stroke:var(--running-line);stroke-dasharray:6 3}
& .ln-rewind .ln-box{stroke-dasharray:2 3}
& .ln-here .ln-box{stroke-width:3}
& text.ln-name{font-size:12px;text-anchor:start}
& text.ln-detail{font-size:10.5px;fill:var(--dim);text-anchor:start}
"""

MAX_DEPTH: Final = 50
"""Deepest chain of forks that is followed, so that a manipulated family also ends."""
MAX_RESTARTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Relative:
    """A run in a family, or a place to which one went back."""

    kind: str  #: ``run``, ``fork``, ``restart`` or ``rewind``.
    words: str  #: Its origin: ``fork before plan, visit 2``.
    status: str = ""  #: Its status, as in the list of runs; of a rewind ``set aside``.
    detail: str = ""  #: Its result, in words.
    place: str = ""  #: The name of its directory.
    run_id: str = ""
    is_here: bool = False  #: It is the run that was asked about.
    below: tuple[Relative, ...] = ()  #: Runs that descend from it.


def lineage_text(relative: Relative, *, has_places: bool = False) -> str:
    """The family as a tree.

    Args:
        relative: Where it begins.
        has_places: Name directories, which differ from machine to machine.
    """
    return "\n".join(
        f"{branch}{_line(one)}{f'   {one.place}' if has_places and one.place else ''}"
        for branch, one, _, _ in _rows(relative)
    )


def lineage_svg(relative: Relative) -> str:
    """The family as SVG; equal arguments give equal text."""
    rows = list(_rows(relative))
    count, rows = len(rows), rows[:MAX_SHOWN]
    right = max(_left(depth) + _width(one) for _, one, depth, _ in rows)
    width, height = right + _MARGIN, 2 * _MARGIN + _ROW * len(rows) - (_ROW - _BOX)
    content: list[Markup] = [_joint(rows, place, depth) for place, (_, _, depth, _) in enumerate(rows) if depth]
    content += [_box(one, depth, place) for place, (_, one, depth, _) in enumerate(rows)]
    return str(
        sheet(
            "attractor-lineage auto",
            (width, height),
            f"Lineage of {count} run{'s' * (count != 1)}",
            drawing_css() + drawing_rules(_RULES),
            *content,
        )
    )


def _line(relative: Relative) -> str:
    parts = [f"{_sign(relative)} {_clean(relative.words)}"]
    if facts := _facts(relative):
        parts.append(facts)
    if relative.is_here:
        parts.append("<- this one")
    return "   ".join(parts)


def _sign(relative: Relative) -> str:
    if sign := _SIGNS_OF_TURNS.get(relative.kind):
        return _SIGNS_OF_TURNS["rewind"] if relative.status else sign
    return mark_of(relative.status)


def _facts(relative: Relative) -> str:
    return ", ".join(_clean(part) for part in (run_word(relative.status), relative.detail) if part)


def _clean(text: str) -> str:
    return one_line(redacted(text))


def _rows(
    relative: Relative, depth: int = 0, before: str = "", *, is_last: bool = True
) -> Iterator[tuple[str, Relative, int, bool]]:
    """Each run with what is drawn before it, in the order of the lines."""
    stack = [(relative, depth, before, "", is_last)]
    while stack:
        one, depth, before, joint, is_last = stack.pop()
        yield before + joint, one, depth, is_last
        inner = before + ("" if not depth else "   " if is_last else "│  ")
        for place, child in reversed(list(enumerate(one.below))):
            is_final = place == len(one.below) - 1
            stack.append((child, depth + 1, inner, "└─ " if is_final else "├─ ", is_final))


def _left(depth: int) -> float:
    return _MARGIN + _INDENT * depth


def _width(relative: Relative) -> float:
    widest = max(text_width(_clean(relative.words), 12), text_width(_facts(relative), 10.5))
    return min(_WIDEST, 1.08 * widest + 42)


def _box(relative: Relative, depth: int, place: int) -> Markup:
    x, y = _left(depth), _MARGIN + _ROW * place
    names = ["ln-run", f"ln-{relative.kind}", f"ln-{RunStatus.of(relative.status)}"]
    room = _width(relative) - 36
    return element(
        "g",
        {"class": " ".join([*names, *(["ln-here"] if relative.is_here else [])])},
        element("title", None, _line(relative)),
        element("rect", {"class": "ln-box", "x": x, "y": y, "width": _width(relative), "height": _BOX, "rx": 8}),
        element("text", {"class": "ln-name", "x": x + 10, "y": y + 22}, _sign(relative)),
        element("text", {"class": "ln-name", "x": x + 28, "y": y + 15}, shorten(_clean(relative.words), room, 12)),
        element("text", {"class": "ln-detail", "x": x + 28, "y": y + 29}, shorten(_facts(relative), room, 10.5)),
    )


def _joint(rows: list[tuple[str, Relative, int, bool]], place: int, depth: int) -> Markup:
    """The line from a run to the one that it comes from: the last one above that is less deep."""
    parent = next(above for above in range(place - 1, -1, -1) if rows[above][2] == depth - 1)
    x = _left(depth - 1) + 14
    top, bottom = _MARGIN + _ROW * parent + _BOX, _MARGIN + _ROW * place + _BOX / 2
    return element("path", {"class": "ln-line", "d": path_data("M", x, top, "L", x, bottom, "L", _left(depth), bottom)})


@dataclass(frozen=True, slots=True, repr=False)
class Lineage(DisplayedPicture):
    """The family of a run, as a tree."""

    root: Relative  #: The run that none of them is older than.
    base: Path  #: The runs base in which it was looked for.

    def details(self) -> str:
        """The tree with the directories, which differ from run to run."""
        return lineage_text(self.root, has_places=True)

    def to_svg(self) -> str:
        """The tree as a picture."""
        return lineage_svg(self.root)

    def __str__(self) -> str:
        return lineage_text(self.root)


def lineage(run: Execution | str | Path, base: str | Path | None = None) -> Lineage:
    """The family of a run.

    Args:
        run: The run or its directory.
        base: Where its relatives are looked for; the directory around it by default.

    Raises:
        RunNotFound: There is no run, or nothing of it is stored.
        CheckpointCorrupt: Its log is damaged.
    """
    root = first_directory(as_path(getattr(run, "logs_root", run)).absolute())
    if not has_event_log(root):
        raise RunNotFound(f"{root} holds no run, so it has no lineage", hint="name the run's own directory")
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
    return Lineage(_relative(oldest, known, root, 0), place)


def parent_of(run: object) -> Path | None:
    """The run directory of a fork's parent, beside its own; None for any other run, and where the parent is gone."""
    root = first_directory(as_path(getattr(run, "logs_root", run)).absolute())
    try:
        fork_of: Mapping[str, Any] = read_facts(root).get("fork_of") or {}
        name = PurePath(str(fork_of.get("directory", ""))).name
        place = root.parent / name
        is_there = bool(name) and has_event_log(place) and read_facts(place).get("run_id") == fork_of.get("run_id")
    except RunError:
        return None
    return place if is_there else None


def _known(base: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The runs of a base with their manifests; what cannot be read is passed over."""
    try:
        with os.scandir(base) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
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


def _relative(path: Path, known: Mapping[Path, Mapping[str, Any]], here: Path, depth: int) -> Relative:
    facts = known[path]
    run_id = str(facts.get("run_id", ""))
    forks = sorted(
        (other for other, theirs in known.items() if other != path and run_id and _parent_id(theirs) == run_id),
        key=lambda other: (_begun(other), int(known[other]["fork_of"].get("sequence", 0)), other.name),
    )
    below = [*_turns(path)]
    if depth < MAX_DEPTH:
        below += [_relative(other, known, here, depth + 1) for other in forks]
    words, kind = f"run of {facts.get('pipeline_name') or 'a pipeline'}", "run"
    if fork_of := facts.get("fork_of"):
        words, kind = f"fork before {fork_of.get('node')}, visit {fork_of.get('visit')}", "fork"
    current = current_status(path, facts)
    stages = current.manifest.get("stages")
    detail = "" if stages is None else f"{stages} stage{'s' * (stages != 1)}"
    mark = ResultMarks.of_facts(current.manifest).words
    detail = ", ".join(part for part in (detail, mark, _changes(path) if kind == "fork" else "") if part)
    return Relative(kind, words, current.status, detail, path.name, run_id, path == here, tuple(below))


def _record_of(path: Path) -> PipelineForked | None:
    """The record of a fork: its own is the last, those before are its parent's."""
    return next((event for event in reversed(_events(path)) if isinstance(event, PipelineForked)), None)


def _begun(path: Path) -> float:
    """The time when a fork began; its manifest knows the second, and several may begin in one."""
    record = _record_of(path)
    return 0.0 if record is None else record.time


def _changes(path: Path) -> str:
    """The changes of a fork, in words."""
    record = _record_of(path)
    if record is None:
        return ""
    changed = [*record.context, *(["the prompt"] if record.prompt else [])]
    return f"changed: {', '.join(changed)}" if changed else "nothing changed"


def _turns(first: Path) -> Iterator[Relative]:
    """The rewinds and restarts of a run since it is one, in their order, in all its directories."""
    place: Path | None = first
    for _ in range(MAX_RESTARTS):
        if place is None or not has_event_log(place):
            return
        here, place = place, None
        events = _events(here)
        counted = {id(event) for event in counted_events(events)}
        forks = [index for index, event in enumerate(events) if isinstance(event, PipelineForked)]
        begun = forks[-1] if forks else -1
        for event in events[begun + 1 :]:
            if isinstance(event, PipelineRewound):
                count = f"{event.stages} stage{'s' * (event.stages != 1)} set aside"
                yield Relative("rewind", f"rewound to before {event.node}, visit {event.visit}", "", count)
            elif isinstance(event, PipelineRestarted):
                name = event.logs_root.rpartition("/")[2]
                status = "" if id(event) in counted else "set aside"
                yield Relative("restart", f"restarted at {event.target}", status, place=f"{first.name}/{name}")
                place = None if status or first / name == here else first / name


def _events(path: Path) -> tuple[Any, ...]:
    try:
        return read_run(path).events
    except RunError:
        return ()
