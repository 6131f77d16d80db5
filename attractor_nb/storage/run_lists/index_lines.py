"""The form of the file that keeps lines of the list of runs: JSON lines behind a checksum.

Whoever may write into a runs base may have written it: it is read within bounds, each value is checked as
that of a manifest is, and a line that is not as it should be is as good as absent. It must not know when a
line still holds.
"""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.collector import paused_collector
from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Usage, usage_problem
from attractor_nb.model.result_marks import ResultMarks
from attractor_nb.redaction import may_hold, redacted_value
from attractor_nb.storage.files.strict_json import json_bytes, read_json
from attractor_nb.storage.run_lists.listing import ENDED_FILES, LASTING, MAP_FILES, RUN_FILES, Dependencies, RunSummary
from attractor_nb.storage.run_lists.run_tags import MAX_TAGS, checked_tag

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MAX_INDEX_BYTES: Final = 64 * 1024 * 1024
"""That of 100,000 runs; a folder of more is listed without its file."""
MAX_LINE_BYTES: Final = 64 * 1024
MAX_PLACES: Final = 16
STAMP_LENGTH: Final = 4
"""Numbers that a file is known by: inode, size, when it changed, when anything of it changed."""
SUMMARY_NAMES: Final = (
    *("run_id", "pipeline_name", "status", "start_time", "end_time", "kind", "duration", "stages", "usage"),
    *("tags", "marks", "lineage", "note"),
)
"""What is kept of a summary: all but its places, which index and dependencies know, and its owner, for it has none."""
_FORM: Final = b'{"schema_version":3,"checksum":"%b"}\n'
"""The first line. The version is another one as soon as a line of the list is made in another way."""
_TEXTS: Final = itemgetter("run_id", "pipeline_name", "start_time", "lineage", "note")
_FILES: Final[dict[str, tuple[str, ...]]] = {"ended": ENDED_FILES, "run": RUN_FILES, "map": MAP_FILES}
_WORDS: Final[dict[tuple[str, ...], str]] = {files: word for word, files in _FILES.items()}
_RESTART: Final = re.compile(r"restart-[0-9]{1,9}")


class KeptLine(msgspec.Struct, frozen=True):
    """A line that can hold for longer."""

    summary: RunSummary  #: The line.
    begun: int  #: When the directory was begun, in nanoseconds: what lines of one second are sorted by.
    dependencies: Dependencies  #: What it was made of.
    stamp: tuple[int, ...]  #: What these files were known by, ``STAMP_LENGTH`` numbers each.


def index_bytes(lines: Mapping[str, KeptLine]) -> bytes:
    """The file of these lines, by the names of their directories; a line that holds a secret is left out."""
    body = b"".join(_encoded(name, line) for name, line in lines.items())
    return _FORM % sha256(body).hexdigest().encode() + body


def read_index(data: bytes, base: Path) -> dict[str, KeptLine]:
    """The lines of a file by the names of their directories; none when it is torn, altered or foreign."""
    body = data[data.find(b"\n") + 1 :]
    if data[: len(data) - len(body)] != _FORM % sha256(body).hexdigest().encode():
        return {}
    found: dict[str, KeptLine] = {}
    with paused_collector(len(body)):
        for raw in body.split(b"\n")[:-1]:
            with contextlib.suppress(OptionError, ValueError, TypeError):
                name, line = _decoded(raw, base)
                found[name] = line
    return found


def _encoded(name: str, line: KeptLine) -> bytes:
    summary, dependencies = line.summary, line.dependencies
    values = [getattr(summary, entry) for entry in SUMMARY_NAMES]
    if summary.usage is not None:
        values[SUMMARY_NAMES.index("usage")] = summary.usage.to_plain()
    values[SUMMARY_NAMES.index("marks")] = summary.marks.to_plain()
    head = [name, _WORDS[dependencies.names], dependencies.places, dependencies.asks_lock, line.begun, line.stamp]
    plain: list[Any] = [*head, *values]
    raw = json_bytes(plain) + b"\n"
    if len(raw) > MAX_LINE_BYTES or (may_hold(raw) and redacted_value(values) is not values):
        return b""
    return raw


def _decoded(raw: bytes, base: Path) -> tuple[str, KeptLine]:
    """A line and the name of its directory."""
    name, word, places, asks_lock, begun, stamp, *values = read_json(raw, max_bytes=MAX_LINE_BYTES)
    plain: dict[str, Any] = dict(zip(SUMMARY_NAMES, values, strict=True))
    _check(type(name) is str and "/" not in name and "\0" not in name and name not in {"", ".", ".."})
    dependencies = _dependencies(word, tuple(places), asks_lock)
    count = len(dependencies.places) * (1 + len(dependencies.names)) * STAMP_LENGTH
    _check(len(stamp) == count and {*map(type, (begun, *stamp))} == {int})
    return name, KeptLine(_summary(base / name, dependencies, plain), begun, dependencies, tuple(stamp))


@lru_cache(maxsize=1024)
def _dependencies(word: str, places: tuple[str, ...], asks_lock: object) -> Dependencies:
    _check(type(asks_lock) is bool and 0 < len(places) <= MAX_PLACES and places[0] == "")
    _check(all(_RESTART.fullmatch(place) for place in places[1:]))
    _check(word in _FILES)
    return Dependencies(places, _FILES[word], asks_lock is True)


def _summary(path: Path, dependencies: Dependencies, plain: dict[str, Any]) -> RunSummary:
    _check({*map(type, _TEXTS(plain))} == {str})
    _check(plain["status"] in LASTING and plain["kind"] in {"run", "map"})
    _check(plain["end_time"] is None or type(plain["end_time"]) is str)
    plain["marks"] = ResultMarks.from_plain(plain["marks"])
    duration, stages, usage = plain["duration"], plain["stages"], plain["usage"]
    _check(duration is None or (type(duration) in {int, float} and duration >= 0))
    _check(stages is None or (type(stages) is int and stages >= 0))
    tags: list[object] = plain["tags"]
    _check(type(tags) is list and len(tags) <= MAX_TAGS)
    plain["tags"] = tuple([checked_tag(tag) for tag in tags])
    if usage is not None:
        _check(type(usage) is dict)
        plain["usage"] = Usage.from_plain(usage)
        _check(not usage_problem(plain["usage"]))
    return RunSummary(path, **plain, restart_root=path / dependencies.places[-1] if dependencies.places[-1] else None)


def _check(is_so: object) -> None:
    if not is_so:
        raise ValueError
