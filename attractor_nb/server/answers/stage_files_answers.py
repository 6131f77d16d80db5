"""What a run has left: stages, their files, artifacts, the session of its branches. Read, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.engine.system_clock import SystemClock
from attractor_nb.errors import OptionError, SessionNotFound, StorageError
from attractor_nb.server.replies import Problem
from attractor_nb.server.response_models import ArtifactLine, ArtifactList, StageFileText
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.stages.artifact_store import ArtifactStore

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.pipeline.run import Run
    from attractor_nb.server.requests import InspectionQuery, StageQuery
    from attractor_nb.studio.inspect.inspection import StageInspection

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_ARTIFACT_BYTES: Final = 16 * 1024 * 1024


def stage_of(run: Run, node: str, asked: StageQuery) -> StageInspection:
    """One attempt of one visit of a stage."""
    from attractor_nb.studio.inspect.inspect_run import inspect_stage  # noqa: PLC0415 - see serving.py

    try:
        return inspect_stage(run, node, asked.visit, asked.attempt, asked.branch)
    except OptionError as error:
        raise Problem(404, "no-such-stage", "There is no such stage", error.message, hint=error.hint) from None


def plain_stage(run: Run, node: str, asked: StageQuery) -> dict[str, Any]:
    """The same as the inspector shows it; where it lies on this machine is left out."""
    return stage_of(run, node, asked).to_plain(with_place=False)


def inspection_of(run: Run, asked: InspectionQuery) -> dict[str, Any]:
    """What a front-end's inspector is told; ``problems`` says what cannot be answered."""
    from attractor_nb.studio.inspect.inspect_run import answer_inspection  # noqa: PLC0415 - see serving.py

    return answer_inspection(run, asked.model_dump(), with_place=False)


def stage_file(run: Run, node: str, name: str, asked: StageQuery) -> StageFileText:
    """The beginning of a file of a stage, without secrets."""
    stage = stage_of(run, node, asked)
    try:
        found = stage.read(name, MAX_FILE_BYTES)
    except StorageError as error:
        raise _no_file(error.message) from None
    if found is None:
        raise _no_file(f"stage {node} has no file {name[:100]}")
    text, size = found
    return StageFileText(name=name, text=text, bytes=size, is_cut=size > MAX_FILE_BYTES)


def artifacts_of(run_id: str, logs_root: Path) -> ArtifactList:
    """The artifacts that lie in a run's directory."""
    with _Artifacts(logs_root) as store:
        lines = [ArtifactLine(id=info.id, bytes=info.size_bytes, stored_at=info.stored_at) for info in store.list()]
    return ArtifactList(id=run_id, artifacts=lines)


def artifact_of(logs_root: Path, artifact_id: str) -> Any:
    """The value of an artifact."""
    with _Artifacts(logs_root) as store:
        known = {info.id: info for info in store.list()}
        info = known.get(artifact_id)
        if info is None:
            raise Problem(
                404, "no-such-artifact", "There is no such artifact", f"there is no artifact {artifact_id[:80]}"
            )
        if info.size_bytes > MAX_ARTIFACT_BYTES:
            raise Problem(
                409,
                "artifact-too-large",
                "The artifact is too large to send",
                f"{artifact_id} has {info.size_bytes} bytes",
                hint=f"read the file: artifacts/{artifact_id}.json in the run directory",
            )
        return store.retrieve(artifact_id)


def session_of(place: Path) -> dict[str, Any]:
    """The status of a run's branches as a session of agents (status-schema)."""
    from attractor_nb.sessions.tracker import session_to_watch, stored_plain  # noqa: PLC0415 - for this alone

    plain = stored_plain(session_to_watch(None, place))
    if plain is None:
        raise SessionNotFound("this run has no session", hint='submit it with "session": true')
    return plain


class _Artifacts:
    """The artifacts of a directory that is held open meanwhile."""

    def __init__(self, logs_root: Path) -> None:
        self._logs_root = logs_root

    def __enter__(self) -> ArtifactStore:
        disk = Disk()
        self._root = RunDirectory(disk, self._logs_root)
        try:
            return ArtifactStore(SystemClock(), disk=disk, root=self._root)
        except BaseException:  # an interrupt, too: nobody else closes it
            self._root.close()
            raise

    def __exit__(self, *ended: object) -> None:
        self._root.close()


def _no_file(detail: str) -> Problem:
    return Problem(404, "no-such-file", "There is no such file", detail)
