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

    from attractor_nb.model.instruction import InstructionReceipt
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

    def tell(self, node: str | None, text: str, *, given_by: str = "call") -> InstructionReceipt:
        """Tell the run something while it goes on; when this returns it is recorded.

        A model that works with tools receives it with its next request, an agent of the command line as its next
        turn where it keeps sessions. Otherwise the next attempt of the node, or the next prompt, carries it. It does
        until a stage that had it is committed, also after a crash. A run that stands still has it when it goes on.

        Args:
            node: The model stage that it is for; ``node>inner`` is a stage of the node's child run. None: the model
                stage under way, or the next prompt.
            text: What it says. It is data of a person in the prompt: nothing executes it.
            given_by: By what way it came, for the record.

        Returns:
            How it reaches a model: ``queued for the next attempt of plan``.

        Raises:
            OptionError: It cannot be told so: what is said, or to whom.
            RunNotFound: A child run that ``node`` names does not exist yet.
            RunError: The run has ended.
            RunLocked: It goes on in another process, which takes nothing from here.
            StorageError: It cannot be recorded, or it is unknown what became of it.
        """
        from attractor_nb.runtime.telling import tell  # noqa: PLC0415 - loads an engine

        with held_interrupts():  # else nobody knew whether it was recorded
            return tell(self, node, text, given_by)

    @classmethod
    def load(cls, logs_root: str | Path, pipeline: Definition | None = None) -> Run:
        """A run that was stored, from its directory alone; nobody needs to own it.

        Args:
            logs_root: The run directory.
            pipeline: The pipeline that ran; without it, it is read from the directory.

        Raises:
            RunNotFound: There is no run at that place.
            CheckpointCorrupt: Its log is damaged; says what is salvageable.
        """
        from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - pipelines make runs
        from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - loads an engine

        with held_interrupts():
            return of_kind(load_execution(as_path(logs_root), pipeline or Pipeline), cls)
