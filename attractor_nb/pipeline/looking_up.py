"""Finding what somebody points at: a run by its handle, result or directory; the texts of its visits."""

from __future__ import annotations

import contextlib
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.cache_keys import Place
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.events import StageStarted
from attractor_nb.pipeline.options import as_path
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.run_result import RunResult
from attractor_nb.redaction import redacted
from attractor_nb.storage.branch_directories import BranchNames, places_of
from attractor_nb.storage.run_directory import VISITS_NAME
from attractor_nb.storage.stage_directories import read_stage_text
from attractor_nb.storage.stage_names import recorded_name
from attractor_nb.storage.stored_run import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.decisions.journal import VisitRecord
    from attractor_nb.pipeline.pipeline import Pipeline


def as_run(thing: object, name: str = "the run", pipeline: Pipeline | None = None) -> Run:
    """The run that somebody points at.

    Args:
        thing: A run, its result, or its directory.
        name: What the argument is called, for the message.
        pipeline: What ran, for who has it; it is read from the directory otherwise.

    Raises:
        OptionError: It is none of these.
        RunNotFound: There is no run at that place, or nothing of it is stored.
        CheckpointCorrupt: Its log is damaged.
    """
    if isinstance(thing, Run):
        return thing
    if isinstance(thing, RunResult):
        return Run.load(thing.logs_root, pipeline)
    place: Any = getattr(thing, "logs_root", thing)  # an entry of runs(), too
    if not is_path(place):
        raise OptionError(
            f"{name} is a run, its result or its directory, not {type(thing).__name__}",
            hint='for example ".attractor/runs/first"',
        )
    return Run.load(as_path(place, name), pipeline)


def is_path(thing: object) -> bool:
    """Whether a value can name a place on the disk."""
    return isinstance(thing, str | PathLike)


TEXTS: Final = {"prompt": "prompt.md", "response": "response.md"}
"""What a comparison looks at of a visit, and the files that hold it."""


class VisitTexts:
    """Prompts and responses of the visits of one run: the latest in front, earlier ones under ``visits/``."""

    def __init__(self, run: Run) -> None:
        """Look up where the visits of a stored run lie.

        Raises:
            RunNotFound: Nothing of the run is stored.
            CheckpointCorrupt: The log is damaged.
        """
        stored = read_run(run.logs_root)
        self._root = stored.logs_root
        roots = (str(run.logs_root), str(run.logs_root.absolute()))
        self._place = Place(run.id, roots)
        self._escaped = stored.manifest.get("stage_directories", {})
        self._branches = BranchNames(places_of(stored.events))
        self._latest = {
            (event.branch, event.name): (event.visit, event.attempt)
            for event in stored.events
            if isinstance(event, StageStarted)
        }

    def of(self, visit: VisitRecord) -> dict[str, str]:
        """The texts of the last attempt of a visit, by name; what is lost or unreadable is left out.

        The run's own id and directory are marks in them, for they differ always and tell nothing.
        """
        found: dict[str, str] = {}
        directory = self._directory(visit)
        for name, file in TEXTS.items():
            with contextlib.suppress(StorageError):
                if (text := read_stage_text(directory, file)) is not None:
                    found[name] = self._place.without(redacted(text))
        return found

    def _directory(self, visit: VisitRecord) -> Path:
        place = visit.branch, visit.node_id
        if visit.branch:
            stage = self._root.joinpath(*self._branches.names_of(*place))
        else:
            stage = self._root / recorded_name(visit.node_id, self._escaped)
        attempt = visit.number, visit.attempts[-1].number
        return stage if self._latest.get(place) == attempt else stage / VISITS_NAME / "{}.{}".format(*attempt)
