"""On a worker: one row of a map from plain data alone, wherever that is.

It keeps nothing but what pipelines it has read, and what it returns is plain data, the files of the row's
run directory among them.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.engine.system_clock import SystemRandomness
from attractor_nb.errors import StorageError
from attractor_nb.maps.row_run import RowPlugs, RowTask, run_row
from attractor_nb.model.row_result import RowResult
from attractor_nb.processes import LocalProcesses
from attractor_nb.runtime.prepare.run_options import read_options
from attractor_nb.source import SourceText
from attractor_nb.storage.map_directory import row_name
from attractor_nb.storage.returned_rows import read_tree
from attractor_nb.workers.lifelines import worker_name
from attractor_nb.workers.perform import opened, perform_as
from attractor_nb.workers.task import StageReport
from attractor_nb.workers.worker_loop import named_backend

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from attractor_nb.processes import CommandOutput
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.workers.lifelines import Lifeline
    from attractor_nb.workers.task import StageTask

NAME = "<map>"
"""Of the source, in messages."""


def perform_row(plain: Mapping[str, Any], plug: bytes = b"") -> dict[str, Any]:
    """Run the row of a task in a temporary directory and report. Blocks; called by an executor.

    Args:
        plain: The task, as plain values. Its work: ``source`` (DOT text), ``row``, ``inputs``, ``run_id``,
            ``outputs``, ``options`` of ``run`` by name, ``backend`` (a name, or empty when it travels
            beside the task) and ``has_directory``. The caller has trusted the pipeline's commands.
        plug: Pickled: the class of the pipeline, the backend or None, and the handlers by type.

    Returns:
        The report, as plain values; its value is the row's result, its files are its run directory.
    """
    return perform_as(_row, plain, plug)


async def _row(task: StageTask, plug: bytes, lifeline: Lifeline) -> StageReport:  # noqa: ARG001 - nothing is said meanwhile
    work = task.work
    make, backend, handlers = pickle.loads(plug)  # noqa: S301 - made by the coordinator, brought by the user's executor
    source = work["source"]
    pipeline = make(SourceText(source, NAME), handlers=handlers) if handlers else _pipeline(make, source)
    with tempfile.TemporaryDirectory(prefix="attractor-row-") as folder:
        directory = Path(folder) / row_name(work["row"]) if work["has_directory"] else None
        given = {
            **work["options"],
            "backend": work["backend"] or backend,
            "randomness": _GivenId(work["run_id"]),
            "processes": _InStageDirectory(),
            "isolation": "workspace",
        }
        options = read_options({"interviewer": "refuse"}, **given)
        row = RowTask(work["row"], work["inputs"], directory, work["outputs"])
        async with _answering(work["backend"], backend) as answering:
            result = await run_row(pipeline, row, options, RowPlugs(answering))
        if directory is None or not directory.exists():
            return StageReport(worker_name(), value=result.to_plain())
        try:
            files, others = read_tree(directory)
        except StorageError as error:
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            failed = RowResult(result.row, "fail", reason=reason, usage=result.usage)
            return StageReport(worker_name(), value=failed.to_plain())
    return StageReport(worker_name(), value=result.to_plain(), files=files, left_out=others)


@contextlib.asynccontextmanager
async def _answering(name: str, backend: Any) -> AsyncGenerator[Any]:
    """What answers the row's prompts, started: once per process if it has a name, else for this row."""
    if name:
        async with named_backend(name) as kept:
            yield kept
    else:
        async with opened(backend):
            yield backend


@functools.lru_cache(maxsize=8)
def _pipeline(make: Callable[..., Definition], source: str) -> Definition:
    """The pipeline of a source, once for many rows."""
    return make(SourceText(source, NAME))


class _GivenId(SystemRandomness):
    """Chance, but for the id of the run: that of a row is the same each time that it is begun."""

    def __init__(self, run_id: str) -> None:
        self._ids = [run_id]

    def new_id(self) -> str:
        """The given one; then random ones, for restarts."""
        return self._ids.pop() if self._ids else super().new_id()


class _InStageDirectory(LocalProcesses):
    """Commands in the directory of their stage, as those of shipped stages: no project is there."""

    async def run(self, command: Any, *, output_directory: Any = None, **options: Any) -> CommandOutput:
        """Run a command there."""
        there = {**options, "cwd": output_directory}
        return await super().run(command, output_directory=output_directory, **there)
