"""The files that a call leaves in its stage's directory: found, recorded, and put there again."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.outcome_checks import COST_KEY
from attractor_nb.errors import StorageError, TerminalError
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import STATUS_NAME, VISITS_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.stage import StageFiles

MAX_FILES: Final = 50
MAX_FILE_BYTES: Final = 1024 * 1024
FREE: Final[Mapping[str, float]] = {"cost_usd": 0.0}
"""The usage of what was replayed: it is known to cost nothing."""

Found = dict[str, Any]
"""What tells whether a file was written again: its content in memory, size and times on the disk."""


class TooMuch(Exception):
    """Why the files of a call cannot be recorded, in words that complete "it …"."""


def look(files: StageFiles) -> Found:
    """The files of a stage as they are now."""
    texts = _texts_in_memory(files)
    if texts is not None:
        return dict(texts)
    found: Found = {}
    for path in _paths(files.directory):
        facts = path.lstat()
        found[_name(files, path)] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
    return found


def written_since(files: StageFiles, before: Found, *, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """What was written since a look, as JSON values: ``text`` or ``base64`` by name.

    Args:
        files: The stage's.
        before: The look.
        known: Names of files that are recorded otherwise.
    """
    now = look(files)
    contents: dict[str, bytes] = {}
    for name, facts in now.items():
        if name in known or before.get(name) == facts:
            continue
        data = _content(files, name, facts)
        if data is None or before.get(name) == data.decode("utf-8", "replace"):
            continue
        contents[name] = data
    if len(contents) > MAX_FILES:
        raise TooMuch(f"wrote {len(contents)} files, more than the {MAX_FILES} that a cassette accepts")
    return {name: _plain(data) for name, data in sorted(contents.items())}


def restore(files: StageFiles, recorded: Mapping[str, Any]) -> None:
    """Put recorded files into the directory of a stage; what they say of costs was paid before."""
    for name, plain in recorded.items():
        data = _data(name, plain)
        files.write_bytes(name, _at_no_cost(data) if name == STATUS_NAME else data)


def _texts_in_memory(files: StageFiles) -> Mapping[str, str] | None:
    """The files of a run that keeps nothing, while nobody asked for its directory; else None."""
    if getattr(files, "is_on_disk", True):
        return None
    return cast("Mapping[str, str]", getattr(files, "texts", {}))


def _content(files: StageFiles, name: str, facts: Any) -> bytes | None:
    if isinstance(facts, str):
        return facts.encode("utf-8", "backslashreplace")
    try:
        return read_plain_file(files.directory / name, max_bytes=MAX_FILE_BYTES)
    except StorageError as error:
        raise TooMuch(f"wrote a file that a cassette cannot store ({error.message})") from None


def _paths(root: Path) -> Iterator[Path]:
    """The plain files of a stage; those of earlier visits and of our own making left out."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        if here == root and VISITS_NAME in folders:
            folders.remove(VISITS_NAME)
        for name in names:
            path = here / name
            if not name.startswith(TEMPORARY_PREFIX) and stat.S_ISREG(path.lstat().st_mode):
                yield path


def _name(files: StageFiles, path: Path) -> str:
    return path.relative_to(files.directory).as_posix()


def _plain(data: bytes) -> dict[str, str]:
    clean = redacted(data.decode("latin-1")).encode("latin-1")
    try:
        text = clean.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(clean).decode()}
    return {"base64": base64.b64encode(clean).decode()} if "\0" in text else {"text": text}


def _data(name: str, plain: Any) -> bytes:
    try:
        if "text" in plain:
            return plain["text"].encode("utf-8", "surrogatepass")
        return base64.b64decode(plain["base64"], validate=True)
    except (KeyError, TypeError, AttributeError, ValueError):  # ValueError: no base64
        raise TerminalError(
            f"the recording of the file {name!r} is damaged", hint="record again, or repair the cassette"
        ) from None


def _at_no_cost(data: bytes) -> bytes:
    """A status.json that says that it cost nothing, if it said anything of that."""
    try:
        plain = read_json(data)
    except JsonProblem:
        return data
    if not isinstance(plain, dict):
        return data
    entries = cast("dict[str, Any]", plain)
    updates = entries.get("context_updates")
    has_price = "usage" in entries or (isinstance(updates, dict) and COST_KEY in updates)
    return json.dumps({**entries, "usage": dict(FREE)}, indent=2).encode() if has_price else data
