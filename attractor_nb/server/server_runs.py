"""Which directory an id of a request means: one of the runs base, and nothing else on this machine."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import RunNotFound
from attractor_nb.server.requests import RUN_ID
from attractor_nb.storage.files.disk import storage_error

if TYPE_CHECKING:
    from pathlib import Path

_ID: Final = re.compile(RUN_ID)


def run_place(root: Path, run_id: str) -> Path:
    """The directory of a run.

    Raises:
        RunNotFound: The id is none, or there is no such directory; a link is none.
        StorageError: There is no telling.
    """
    missing = RunNotFound(f"there is no pipeline {run_id[:80]!r}", hint="GET /pipelines lists them")
    if _ID.fullmatch(run_id) is None:
        raise missing
    place = root / run_id
    try:
        if stat.S_ISDIR(place.lstat().st_mode):
            return place
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise storage_error(error, "read", place) from error
    raise missing
