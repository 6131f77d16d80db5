"""Tags that people put on runs: a file of its own in the run directory, beside what the owner writes.

The manifest is rewritten by the run's owner, so a word of somebody else would be lost there. Tagging needs no
ownership; of two who tag at the same moment the later one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from attractor_nb.errors import OptionError, StorageError
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.atomic import read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TAGS_NAME: Final = ".tags.json"
"""No directory of a stage begins with a dot."""
MAX_TAGS: Final = 50
MAX_TAG_CHARS: Final = 60
_MAX_BYTES: Final = 64 * 1024
_SCHEMA_VERSION: Final = 1


def checked_tag(tag: object) -> str:
    """A tag as it is kept: one line, no blanks around it."""
    text = redacted(tag).strip() if isinstance(tag, str) else ""
    if not text or len(text) > MAX_TAG_CHARS or not text.isprintable() or "," in text:
        raise OptionError(f"{tag!r:.80} is not a tag", hint=f"1 to {MAX_TAG_CHARS} visible characters, without a comma")
    return text


def read_tags(logs_root: Path) -> tuple[tuple[str, ...], str]:
    """The tags of a run, and what is wrong with their file, or empty."""
    try:
        data = read_plain_file(logs_root / TAGS_NAME, max_bytes=_MAX_BYTES)
        if data is None:
            return (), ""
        plain = read_json(data)
    except (JsonProblem, StorageError) as error:
        return (), f"{TAGS_NAME}: {error}"
    found = cast("dict[str, object]", plain).get("tags") if isinstance(plain, dict) else None
    if not isinstance(found, list):
        return (), f"{TAGS_NAME} has no list of tags"
    tags: list[str] = []
    for tag in cast("list[object]", found)[:MAX_TAGS]:
        try:
            tags.append(checked_tag(tag))
        except OptionError:
            return tuple(tags), f"{TAGS_NAME} holds something that is not a tag"
    return tuple(dict.fromkeys(tags)), ""


def change_tags(
    logs_root: Path, *, add: Iterable[str] = (), remove: Iterable[str] = (), disk: Disk | None = None
) -> tuple[str, ...]:
    """Put tags on a run, and take some away; those that it has then."""
    added = [checked_tag(tag) for tag in add]
    removed = {checked_tag(tag) for tag in remove}
    disk = disk or Disk()
    root = RunDirectory(disk, logs_root)
    try:
        before, _ = read_tags(logs_root)
        tags = tuple(dict.fromkeys(tag for tag in (*before, *added) if tag not in removed))
        if len(tags) > MAX_TAGS:
            raise OptionError(f"a run has at most {MAX_TAGS} tags", hint="untag some of them first")
        if tags != before:
            data = json_bytes({"schema_version": _SCHEMA_VERSION, "tags": list(tags)}) + b"\n"
            write_whole(disk, root.descriptor, TAGS_NAME, data, directory=root.path, is_synced=False)
    finally:
        root.close()
    return tags
