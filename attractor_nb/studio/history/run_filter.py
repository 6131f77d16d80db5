"""Which runs of a list are wanted (pure but for the present time, which an age is counted from)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from attractor_nb.errors import OptionError
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.vocabulary.duration import parse_duration
from attractor_nb.storage.run_directory import utc_text
from attractor_nb.storage.run_lists.listing import LIVE, UNREADABLE
from attractor_nb.storage.run_status import GOES_ON

if TYPE_CHECKING:
    from attractor_nb.storage.run_lists.listing import RunSummary

STATUSES = tuple(sorted({*LIVE, *GOES_ON, *UNREADABLE, "completed", "failed"}))
KINDS = ("run", "map")
RowT = TypeVar("RowT", bound="RunSummary")


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all must hold; an empty one holds for all.

    Attributes:
        status: Words of which the status is one; ``running`` means resumed ones too.
        pipeline: Name of the pipeline, whatever its case.
        tag: Tags that it has.
        since: It began then or later, ISO 8601 UTC.
        text: Occurs in any column, whatever its case.
        kind: ``run`` or ``map``.
    """

    status: tuple[str, ...] = ()
    pipeline: str = ""
    tag: tuple[str, ...] = ()
    since: str = ""
    text: str = ""
    kind: str = ""

    def narrowed(self, **conditions: Any) -> Filter:
        """With more conditions; one that is given again takes the place of the one before, tags are added.

        Raises:
            OptionError: There is no such condition, or its value means nothing.
        """
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
        """Whether all conditions hold for a row."""
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


def _texts(row: RunSummary) -> tuple[str, ...]:
    return (
        *(row.pipeline_name, row.status, row.run_id, row.logs_root.name, row.note, row.lineage, row.kind),
        *(row.start_time, *row.tags),
    )


def _read_statuses(value: object) -> tuple[str, ...]:
    words = _words("status", value)
    for word in words:
        if word not in STATUSES:
            near = did_you_mean(word, STATUSES)
            raise OptionError(f"there is no status {word!r}{near}", hint=f"one of {', '.join(STATUSES)}")
    return (*words, *(LIVE - {*words} if "running" in words else ()))


def _read_kind(value: object) -> str:
    if value not in KINDS:
        raise OptionError(f"{value!r:.60} is not a kind of run", hint="use run or map")
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
    raise OptionError(
        "since is no time", hint='an age as "24h" or "7d", a date as "2026-11-01" (UTC), or a datetime'
    )


_READERS = {
    "status": _read_statuses,
    "pipeline": _read_text,
    "tag": _read_tags,
    "since": _read_since,
    "text": _read_text,
    "kind": _read_kind,
}
