"""Finding what somebody points at: a run by its handle, result or directory; the texts of its visits."""

from __future__ import annotations

import contextlib
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.replays.cache_keys import PlaceOfCall
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.events import PipelineForked
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.handles.run_result import RunResult
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.attempt_files import read_stage_text

if TYPE_CHECKING:
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.past import KnownVisit


def as_run(thing: object, name: str = "the run", pipeline: Definition | None = None) -> Execution:
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
    from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - an engine is loaded only where a run is read

    if isinstance(thing, Execution):
        return thing
    if isinstance(thing, RunResult):
        return load_execution(thing.logs_root, pipeline)
    place: Any = getattr(thing, "logs_root", thing)  # an entry of runs(), too
    if not is_path(place):
        raise OptionError(
            f"{name} must be a run, its result or its directory, not {type(thing).__name__}",
            hint='for example ".attractor/runs/first"',
        )
    return load_execution(as_path(place, name), pipeline)


def is_path(thing: object) -> bool:
    """Whether a value can name a place on the disk."""
    return isinstance(thing, str | PathLike)


TEXTS: Final = {"prompt": "prompt.md", "response": "response.md"}
"""What a comparison looks at of a visit, and the files that hold it."""


def texts_of(run: Execution, known: KnownVisit) -> dict[str, str]:
    """Prompt and response of the last attempt of a visit, by name; what is lost or unreadable is left out.

    The run's own id and directory are marks in them, for they differ always and tell nothing. So are those of
    the runs that it was forked from: the stages that a fork has of them were asked there.
    """
    own = PlaceOfCall(run.id, (str(run.logs_root), str(run.logs_root.absolute())))
    forks = [event for event in known.journal.way if isinstance(event, PipelineForked)]
    places = [own, *(PlaceOfCall(event.parent_id, (event.parent_root,)) for event in forks)]
    directory = known.place.files_of(known.record, known.record.attempts[-1].number)
    found: dict[str, str] = {}
    for name, file in TEXTS.items():
        with contextlib.suppress(StorageError):
            if (text := read_stage_text(directory, file)) is not None:
                text = redacted(text)
                for place in places:
                    text = place.without(text)
                found[name] = text
    return found
