"""The list of runs: which of them are wanted, and as a table for a terminal, a notebook, a front-end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from attractor_nb.errors import OptionError
from attractor_nb.model.states import as_result, recorded_status, row_look, run_sign, run_word
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import parse_duration
from attractor_nb.redaction import redacted
from attractor_nb.storage.manifest_file import GOES_ON, UNDER_WAY
from attractor_nb.storage.run_directory import utc_text, without_times
from attractor_nb.storage.run_listing import HALF_DELETED, KINDS, LASTING, UNREADABLE, RunSummary
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import cost_text, duration_text, price_text
from attractor_nb.views.table import Column, Table, one_line

if TYPE_CHECKING:
    from attractor_nb.model.outcome import Usage

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
    *("status", "values", "pipeline", "inputs", "note", "start_time", "took", "stages", "tokens", "price"),
    *("tags", "key", "run_id"),
)
_SORTED_BY: Final = {
    **{
        name: name
        for name in ("index", "status", "pipeline", "inputs", "note", "stages", "tokens", "cost", "tags", "key")
    },
    "started": "start_time",
    "took": "duration",
}
"""The value of a row of ``run_plain`` by which each column is sorted."""
_VOLATILE: Final = frozenset({"started", "took"})

STATUSES = tuple(sorted(UNDER_WAY | LASTING | UNREADABLE))
RowT = TypeVar("RowT", bound="RunSummary")


def history_table(
    runs: Sequence[RunSummary],
    *,
    has_times: bool = True,
    notes: Sequence[str] = (),
    place: Callable[[RunSummary], str] = lambda run: run.logs_root.name,
) -> Table:
    """The table of a list of runs; an empty column is left out.

    Args:
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
        place: How it is named in Python: its directory as a caller writes it.
    """
    usage = run.usage
    return {
        "key": run.logs_root.name,
        "place": place,
        "index": index,
        "kind": run.kind,
        "status": run_word(run.status),
        "values": _values(run.status),
        "mark": mark_of(run.status),
        "state": state_of(run.status),
        "pipeline": _shown(run.pipeline_name),
        "run_id": run.run_id,
        "inputs": redacted(run.inputs),
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
        "is_resumable": run.is_resumable and not run.is_map,
        "is_readable": run.status not in UNREADABLE,
        "is_comparable": run.status not in UNREADABLE,
        "is_deletable": not run.is_live,
    }


def has_words(row: Mapping[str, Any], words: str) -> bool:
    """True if each of some words is in a row of ``run_plain``, in capitals or not.

    >>> has_words({"pipeline": "Review", "status": "failed", "tags": ["kept"]}, "review KEPT")
    True
    """
    shown = " ".join(
        " ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
        for value in map(row.get, _SEARCHED)
        if value is not None
    )
    return holds_words(shown, words)


def holds_words(text: str, words: str) -> bool:
    """True if a text has each of some words, in capitals or not."""
    text = text.lower()
    return all(word in text for word in words.lower().split())


def sorted_rows(rows: Iterable[dict[str, Any]], column: str, *, is_descending: bool) -> list[dict[str, Any]]:
    """Rows of ``run_plain`` by a column of the list; what is unknown comes last, whichever way.

    >>> rows = [{"index": 0, "tokens": None}, {"index": 1, "tokens": 3}, {"index": 2, "tokens": 7}]
    >>> [row["index"] for row in sorted_rows(rows, "tokens", is_descending=True)]
    [2, 1, 0]
    """
    name = _SORTED_BY[column]

    def key(row: dict[str, Any]) -> Any:
        value = row[name]
        return value if isinstance(value, int | float) else str(value).casefold()

    every = list(rows)
    known = [row for row in every if row[name] not in (None, "", [])]
    unknown = [row for row in every if row[name] in (None, "", [])]
    return [*sorted(known, key=key, reverse=is_descending), *unknown]


@dataclass(frozen=True, slots=True)
class RunsQuery:
    """A query of a front-end for a part of the list."""

    words: str = ""  #: Each of them is somewhere in the row.
    sort: str = "index"  #: A column of the list.
    descending: bool = False
    limit: int = 100
    offset: int = 0

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> RunsQuery:
        """The query of a message, whatever it holds."""
        limit, sort = message.get("limit"), str(message.get("sort", ""))
        return cls(
            str(message.get("words", ""))[:500],
            sort if sort in _SORTED_BY else "index",
            message.get("descending") is True,
            max(1, min(limit, 10_000)) if isinstance(limit, int) else 100,
        )


def rows_part(every: Sequence[dict[str, Any]], query: RunsQuery) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The rows of ``run_plain`` that fit a query, as many as it asks for; and how many there are."""
    fitting = [row for row in every if has_words(row, query.words)]
    found = sorted_rows(fitting, query.sort, is_descending=query.descending)
    counts = {"total": len(every), "found": len(fitting), "under_way": sum(row["is_live"] for row in fitting)}
    return found[query.offset : query.offset + query.limit], counts


def mark_of(status: str) -> str:
    """The sign of a status, so that it is not told by colour alone."""
    return "!" if status in UNREADABLE else run_sign(status)


def state_of(status: str) -> str:
    """The colour of a status: ``ok``, ``warn``, ``error``, or empty."""
    if status in GOES_ON or status in {HALF_DELETED, "waiting"}:
        return "warn"
    return "error" if status in UNREADABLE else row_look(as_result(status))


def _row(index: int, run: RunSummary, place: str) -> list[str]:
    usage = run.usage
    return [
        str(index),
        f"{mark_of(run.status)} {run_word(run.status)}",
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
    return f"{run.stages} row{'s' * (run.stages != 1)}" if run.is_map else str(run.stages)


def _took(run: RunSummary) -> str:
    return "" if run.duration is None else duration_text(run.duration)


def _price(usage: Usage | None) -> str:
    if usage is None:
        return ""
    return price_text(usage) or (cost_text(usage.cost_usd) if usage.cost_usd else "")


def _note(run: RunSummary) -> str:
    what = run.kind if run.is_map else ""
    parts = [part for part in (what, run.mark, without_times(run.lineage), run.note) if part]
    return first_words(_shown("; ".join(parts)), NOTE_CHARS)


def _shown(text: str) -> str:
    return one_line(redacted(text))


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all must hold; an empty one holds for all."""

    status: tuple[str, ...] = ()  #: Words of which the status is one; ``running`` means resumed and waiting ones too.
    pipeline: str = ""  #: Name of the pipeline, whatever its case.
    tag: tuple[str, ...] = ()
    since: str = ""  #: It began then or later, ISO 8601 UTC.
    text: str = ""  #: Occurs in any column, whatever its case.
    kind: str = ""  #: ``run``, ``map`` or ``evaluation``.

    def narrowed(self, **conditions: Any) -> Filter:
        """With more conditions; one that is given again takes the place of the one before, tags are added."""
        changes: dict[str, Any] = {}
        for name, value in conditions.items():
            if name not in CONDITIONS:
                near, known = did_you_mean(name, CONDITIONS), ", ".join(CONDITIONS)
                raise OptionError(f"runs cannot be chosen by {name!r}{near}", hint=f"by {known}")
            changes[name] = _READERS[name](value)
        if "tag" in changes:
            changes["tag"] = tuple(dict.fromkeys((*self.tag, *changes["tag"])))
        return replace(self, **changes)

    def chosen(self, rows: Sequence[RowT]) -> list[RowT]:
        """The rows for which all conditions hold."""
        return [row for row in rows if self.holds(row)]

    def holds(self, row: RunSummary) -> bool:
        """True if all conditions hold for a row."""
        wanted = self.text.casefold()
        return (
            (not self.status or row.status in self.status)
            and (not self.pipeline or row.pipeline_name.casefold() == self.pipeline.casefold())
            and set(self.tag) <= set(row.tags)
            and (not self.since or row.start_time >= self.since)
            and (not self.kind or row.kind == self.kind)
            and (not wanted or any(wanted in text.casefold() for text in _texts(row)))
        )


CONDITIONS = tuple(entry.name for entry in fields(Filter))


def _values(status: str) -> list[str]:
    """The values of a status in Python, by which runs are found, too."""
    return [status, as_result(status)]


def _texts(row: RunSummary) -> tuple[str, ...]:
    return (
        *(
            row.pipeline_name,
            run_word(row.status),
            *_values(row.status),
            row.run_id,
            row.logs_root.name,
            row.note,
            row.lineage,
            row.kind,
        ),
        *(row.start_time, row.inputs, *row.tags),
    )


def _read_statuses(value: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(status for word in _words("status", value) for status in _statuses_of(word)))


def _statuses_of(word: str) -> Iterable[str]:
    """The statuses of a word: all for which people read it, or the one with that value."""
    if word == "running":
        return UNDER_WAY
    if shown := [status for status in STATUSES if run_word(status) == word]:
        return shown
    if (status := recorded_status(word)) in STATUSES:
        return [status]
    words = sorted({*map(run_word, STATUSES)})
    raise OptionError(f"there is no status {word!r}{did_you_mean(word, words)}", hint=f"one of {', '.join(words)}")


def _read_kind(value: object) -> str:
    if value not in KINDS:
        raise OptionError(f"{value!r:.60} is not a kind of run", hint="use run, map or evaluation")
    return str(value)


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{value!r:.60} is no text to look for", hint="give a str")
    return value


def _words(name: str, value: object) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if not words or not all(isinstance(word, str) and word for word in words):  # pyright: ignore[reportUnknownVariableType]
        raise OptionError(f"{value!r:.60} is no {name}", hint="give a str, or several")
    return words  # pyright: ignore[reportUnknownVariableType]


def _read_tags(value: object) -> tuple[str, ...]:
    return _words("tag", value)


def _read_since(value: object) -> str:
    """A moment as ISO 8601 UTC: of a time, a date, their text, or an age."""
    if isinstance(value, str):
        if (age := parse_duration(value)) is not None:
            return utc_text(time.time() - age.seconds)
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, timedelta):
        return utc_text(time.time() - value.total_seconds())
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return utc_text(moment.timestamp())
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    raise OptionError("since is no time", hint='an age as "24h" or "7d", a date as "2026-11-01" (UTC), or a datetime')


_READERS = {
    "status": _read_statuses,
    "pipeline": _read_text,
    "tag": _read_tags,
    "since": _read_since,
    "text": _read_text,
    "kind": _read_kind,
}
