"""A run: one execution of a pipeline, with all that can be asked of it and done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.interrupts import held_interrupts
from attractor_nb.pipeline.methods.fork_run import Forking
from attractor_nb.pipeline.methods.resume_run import ResumingRun
from attractor_nb.pipeline.run_past import RunPast
from attractor_nb.runtime.execution import of_kind
from attractor_nb.runtime.prepare.run_options import as_path

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.runtime.definition import Definition


class Run(ResumingRun, Forking, RunPast):
    """One execution of a pipeline.

    Attributes:
        id: The run's id.
        pipeline: What is executed.
        graph: The graph that runs, whatever is registered with the pipeline meanwhile.
        logs_root: Its run directory.
    """

    @property
    def children(self) -> dict[str, Run]:
        """The child runs of its stages by node, in a branch by ``branch/node``; of each stage the latest.

        Those that run here are live: ``run.children["boss"].events()``. The others are read from their
        directories; one that cannot be read is left out.
        """
        from attractor_nb.runtime.stored_execution import children_of  # noqa: PLC0415 - loads an engine

        return children_of(self)

    @classmethod
    def load(cls, logs_root: str | Path, pipeline: Definition | None = None) -> Run:
        """A run that was stored, from its directory alone; nobody needs to own it.

        Args:
            logs_root: The run directory.
            pipeline: What ran, for who has it; it is read from the directory otherwise.

        Raises:
            RunNotFound: There is no run at that place.
            CheckpointCorrupt: Its log is damaged; says what is salvageable.
        """
        from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - pipelines make runs
        from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - loads an engine

        with held_interrupts():
            return of_kind(load_execution(as_path(logs_root), pipeline or Pipeline), cls)
