"""Whether a directory is a run of ours, may become one, or holds what no run wrote (ruling 37).

It looks, and writes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor_nb.errors import RunNotFound
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME
from attractor_nb.storage.child_directories import CHILDREN_NAME
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME
from attractor_nb.storage.log.ownership import check_free, has_content, holds_one
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.run_directory import SOURCE_NAME, THREADS_NAME
from attractor_nb.storage.sealed_file import previous_name
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME

if TYPE_CHECKING:
    from pathlib import Path

_WHOLE = (EVENT_LOG_NAME, CHECKPOINT_NAME)
_BEGAN = frozenset(
    {
        *(OWNER_NAME, SOURCE_NAME, EVENT_LOG_NAME, MANIFEST_NAME, previous_name(MANIFEST_NAME)),
        *(CHILDREN_NAME, ARTIFACTS_NAME, THREADS_NAME),
    }
)
"""What is in a run directory before the first record."""


def check_may_become_run(path: Path) -> None:
    """Look before it is owned.

    Raises:
        StorageError: It holds a run already, or what no run wrote.
    """
    check_free(path, began=_BEGAN, whole=_WHOLE)


def check_became_no_run(path: Path) -> None:
    """Look again, now that it is owned: another run may have begun and ended here meanwhile.

    Raises:
        StorageError: One has.
    """
    for name in _WHOLE:
        if has_content(path, name):
            raise holds_one(path, name)


def check_is_run(path: Path) -> None:
    """Look before anything is written: many programs have an ``events.jsonl``.

    A run that was copied or salvaged has no lock file; its log then says whether it is one.

    Raises:
        RunNotFound: There is no run of ours.
        CheckpointCorrupt: There is no lock file, and the log is damaged or somebody else's.
    """
    if not os.path.lexists(path / EVENT_LOG_NAME):
        reason = f"it has no {EVENT_LOG_NAME}"
    elif not os.path.lexists(path / LOCK_NAME) and not read_log(path).events:
        reason = f"its {EVENT_LOG_NAME} has no record of ours"
    else:
        return
    raise RunNotFound(f"{path} holds no run: {reason}", hint="name the run's own directory")
