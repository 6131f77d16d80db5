"""The list of runs as a table: text for a terminal, HTML for a notebook, plain values for a front-end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.redaction import redacted
from attractor_nb.storage.run_lists.listing import HALF_DELETED, LIVE, UNREADABLE
from attractor_nb.storage.run_status import GOES_ON
from attractor_nb.views.columns import one_line
from attractor_nb.views.drawings.marks import RUN_LETTERS
from attractor_nb.views.state import RunStatus, first_words
from attractor_nb.views.summary_line import cost_text, duration_text, price_text
from attractor_nb.views.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.outcome import Usage
    from attractor_nb.storage.run_lists.listing import RunSummary

NOTE_CHARS: Final = 110
UNKNOWN: Final = "\N{EN DASH}"
_COLUMNS: Final = (
    Column("#", "number"),
    Column("status", "state"),
    Column("pipeline"),
    Column("started"),
    Column("took", "number"),
    Column("stages", "number"),
    Column("tokens", "number"),
    Column("cost", "number"),
    Column("tags"),
    Column("run directory", "place"),
    Column("note"),
)
_SEARCHED: Final = (
    "status",
    "pipeline",
    "note",
    "start_time",
    "took",
    "stages",
    "tokens",
    "price",
    "tags",
    "key",
)
_VOLATILE: Final = frozenset({"started", "took"})
_MARKS: Final = {"completed": RUN_LETTERS[RunStatus.SUCCESS], "failed": RUN_LETTERS[RunStatus.FAIL]}


def history_table(
    runs: Sequence[RunSummary],
    *,
    has_times: bool = True,
    notes: Sequence[str] = (),
    place: Callable[[RunSummary], str] = lambda run: run.logs_root.name,
) -> Table:
    """The table of a list of runs; a column in which nothing stands is left out.

    Args:
        runs: The runs.
        has_times: Show when they began and how long they took, which differs from time to time.
        notes: Lines below.
        place: How a run directory is named.
    """
    rows = [_row(index, run, place(run)) for index, run in enumerate(runs)]
    kept = [
        index
        for index, column in enumerate(_COLUMNS)
        if (has_times or column.title not in _VOLATILE)
        and (column.title in {"#", "status"} or any(row[index] not in {"", UNKNOWN} for row in rows))
    ]
    return Table(
        "Runs",
        tuple(_COLUMNS[index] for index in kept),
        [[row[index] for index in kept] for row in rows],
        states=[state_of(run.status) for run in runs],
        notes=notes if rows else ["no runs"],
    )


def run_plain(index: int, run: RunSummary, place: str) -> dict[str, Any]:
    """A run as JSON values, for a front-end: shown texts, and beside them what they are sorted by.

    Args:
        index: Its number in the list.
        run: The run.
        place: How it is named in Python: its directory as a caller writes it.
    """
    usage = run.usage
    return {
        "key": run.logs_root.name,
        "place": place,
        "index": index,
        "kind": run.kind,
        "status": run.status,
        "mark": mark_of(run.status),
        "state": state_of(run.status),
        "pipeline": _shown(run.pipeline_name),
        "start_time": run.start_time,
        "duration": run.duration,
        "took": _took(run),
        "stages": run.stages,
        "tokens": usage.total_tokens if usage else None,
        "cost": usage.cost_usd if usage else None,
        "price": _price(usage),
        "tags": list(run.tags),
        "note": _note(run),
        "is_live": run.is_live,
        "is_resumable": run.is_resumable and run.kind == "run",
        "is_readable": run.status not in UNREADABLE,
        "is_comparable": run.status not in UNREADABLE and run.kind == "run",
        "is_deletable": not run.is_live,
    }


def has_words(row: Mapping[str, Any], words: str) -> bool:
    """Whether each of some words stands in a row of ``run_plain``, in capitals or not.

    >>> has_words({"pipeline": "Review", "status": "failed", "tags": ["kept"]}, "review KEPT")
    True
    """
    shown = " ".join(
        " ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
        for value in map(row.get, _SEARCHED)
        if value is not None
    ).lower()
    return all(word in shown for word in words.lower().split())


def mark_of(status: str) -> str:
    """The sign of a status, so that it is not told by colour alone."""
    if status in LIVE:
        return RUN_LETTERS[RunStatus.RUNNING]
    if status in GOES_ON:
        return RUN_LETTERS[RunStatus.INTERRUPTED]
    return _MARKS.get(status, "!")


def state_of(status: str) -> str:
    """How a status is coloured: ``ok``, ``warn``, ``error``, or not at all."""
    if status == "completed":
        return "ok"
    if status == "failed" or status in UNREADABLE:
        return "error" if status != HALF_DELETED else "warn"
    return "warn" if status in GOES_ON else ""


def _row(index: int, run: RunSummary, place: str) -> list[str]:
    usage = run.usage
    return [
        str(index),
        f"{mark_of(run.status)} {run.status}",
        _shown(run.pipeline_name) or UNKNOWN,
        run.start_time.replace("T", " ").removesuffix("Z") or UNKNOWN,
        _took(run) or UNKNOWN,
        _stages(run),
        UNKNOWN if usage is None else f"{usage.total_tokens:,}" if usage.total_tokens else "",
        UNKNOWN if usage is None else _price(usage),
        ", ".join(run.tags),
        place,
        _note(run),
    ]


def _stages(run: RunSummary) -> str:
    if run.stages is None:
        return UNKNOWN
    return f"{run.stages} row{'s' * (run.stages != 1)}" if run.kind == "map" else str(run.stages)


def _took(run: RunSummary) -> str:
    return "" if run.duration is None else duration_text(run.duration)


def _price(usage: Usage | None) -> str:
    if usage is None:
        return ""
    return price_text(usage) or (cost_text(usage.cost_usd) if usage.cost_usd else "")


def _note(run: RunSummary) -> str:
    what = "map" if run.kind == "map" else ""
    made_up = "simulated" if run.is_simulated else ""
    parts = [part for part in (what, made_up, run.lineage, run.note) if part]
    return first_words(_shown("; ".join(parts)), NOTE_CHARS)


def _shown(text: str) -> str:
    return one_line(redacted(text))
