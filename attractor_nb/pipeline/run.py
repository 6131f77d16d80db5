"""A run: one execution of a pipeline, with all that can be asked of it and done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.interrupts import held_interrupts
from attractor_nb.pipeline.methods.resume_and_fork import Forking, ResumingRun
from attractor_nb.runtime.execution import Execution, cast_run
from attractor_nb.runtime.handles.presenters import widget_of
from attractor_nb.runtime.prepare.run_options import as_path

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from attractor_nb.model.instruction import InstructionReceipt
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.studio.debugger import Debugger
    from attractor_nb.studio.explanation import Explanation, LoopExplanation, PathExplanation
    from attractor_nb.studio.inspect.inspection import EdgeInspection, StageInspection
    from attractor_nb.studio.replay_frames import Replay
    from attractor_nb.studio.timeline.heat_view import HeatMap
    from attractor_nb.studio.timeline.run_timeline import RunTimeline


# The past of a run: thin calls; the work is elsewhere.
#
# They read the run directory and need no engine, so they work for a live run, for one that has ended, and for one
# that was loaded.


class RunPast(Execution):
    """The past of a run."""

    def inspect(
        self, what: str | int, visit: int | None = None, attempt: int | None = None
    ) -> StageInspection | EdgeInspection:
        """Everything known of a stage, by its node's id, or of an edge, by ``"a -> b"``.

        Args:
            what: A node (``node>inner``: of a child run), an edge as ``a -> b``, or an edge's number.
            visit: Which visit of the node, by number; the latest by default.
            attempt: Which attempt of the visit, by number; the last by default.
        """
        from attractor_nb.studio.inspect.inspect_run import inspect  # noqa: PLC0415 - most runs are not looked into

        return inspect(self, what, visit, attempt)

    def error(self, node: str = "") -> BaseException | None:
        """The latest exception of the run's Python.

        ``raise run.error()`` shows its traceback, and ``%debug`` after it is in the frame that failed.

        Args:
            node: Of this node's stages; ``node>inner`` is a stage of the node's child run.
        """
        from attractor_nb.studio.inspect.inspect_run import error_of  # noqa: PLC0415 - most runs succeed

        return error_of(self, node)

    def explain(self, node: str | None = None, visit: int | None = None) -> Explanation | PathExplanation:
        """The reasons why a stage was reached and left as it was; without a node the whole path.

        Args:
            node: The node; the whole path by default.
            visit: Which of its visits, by number; the latest by default.
        """
        from attractor_nb.studio.explanation import explain  # noqa: PLC0415 - as above

        return explain(self, node, visit)

    def explain_loop(self, node: str, branch: str = "") -> LoopExplanation:
        """The reasons why a node was visited again and again.

        Args:
            node: The node.
            branch: The branch in which it was visited; none by default.
        """
        from attractor_nb.studio.explanation import explain_loop  # noqa: PLC0415 - as above

        return explain_loop(self, node, branch)

    def replay(self) -> Replay:
        """All that happened, moment by moment."""
        from attractor_nb.studio.replay_frames import replay_run  # noqa: PLC0415 - as above

        return replay_run(self)

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, and changes while the run is paused."""
        from attractor_nb.studio.debugger import Debugger  # noqa: PLC0415 - most runs are not debugged

        return Debugger(self, self._debugging, self._work)

    def timeline(self, by: str = "node") -> RunTimeline:
        """The activity of each node over time, with retries, waits for users and calls; ``by`` is node or branch.

        Args:
            by: A line for each ``node``, or each ``branch``.
        """
        from attractor_nb.studio.timeline.run_timeline import RunTimeline  # noqa: PLC0415 - as above

        return RunTimeline(self, by)

    def heat(self, by: str = "time", *, waits: bool = True) -> HeatMap:
        """The graph tinted by ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.

        Args:
            by: ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.
            waits: Of time, count the waits for people too.
        """
        from attractor_nb.studio.timeline.heat_view import heat  # noqa: PLC0415 - as above

        return heat(self, by, waits=waits)

    def widget(self) -> Any:
        """The run as one box of ipywidgets: status, drawing, a slider over its steps, and questions.

        It follows the run, and can be put wherever a widget can: a tab, a page of Voila, a dashboard.

        Raises:
            OptionError: No notebook's extension is loaded.
        """
        return widget_of(self)

    def _display_(self) -> Any:
        """The live view, by marimo's protocol for the value of a cell."""
        return self.widget()

    def export_html(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the run as one page that opens without kernel and network.

        Args:
            path: The file; ``run-<id>.html`` in the current directory by default.
        """
        from attractor_nb.studio.export_page import export_html  # noqa: PLC0415 - as above

        return export_html(self, path)

    def to_png(self, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
        """Write the drawing as PNG, with the extra ``png``.

        Args:
            path: The file.
            theme: ``light`` or ``dark``.
            scale: Pixels for each unit of the drawing.
        """
        from attractor_nb.studio.export_page import write_png  # noqa: PLC0415 - as above

        return write_png(self.to_svg(), path, theme=theme, scale=scale)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart with its present states; edges taken are thick."""
        from attractor_nb.views.mermaid import to_mermaid  # noqa: PLC0415 - as above

        return to_mermaid(self.graph, self.view)


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
        """Tell the run something while it is active; when this returns it is recorded.

        A model that works with tools receives it with its next request, an agent of the command line as its next
        turn where it keeps sessions. Otherwise the next attempt of the node, or the next prompt, carries it. It does
        until a stage that had it is committed, also after a crash. A run that is inactive has it when it continues.

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
            RunLocked: It is active in another process, which takes nothing from here.
            StorageError: It cannot be recorded, or it is unknown what became of it.
        """
        from attractor_nb.runtime.telling import tell  # noqa: PLC0415 - loads an engine

        with held_interrupts():  # else it would be unknown whether it was recorded
            return tell(self, node, text, given_by)

    @classmethod
    def load(cls, logs_root: str | Path, pipeline: Definition | None = None) -> Run:
        """A run, from its directory alone; it needs no owner.

        A run that is under way in this process is returned itself: its gates can be answered, and it can be waited for.

        Args:
            logs_root: The run directory.
            pipeline: The pipeline that ran; without it, it is read from the directory.

        Raises:
            RunNotFound: There is no run at that place.
            CheckpointCorrupt: Its log is damaged; says what is salvageable.
        """
        from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - pipelines make runs
        from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - loads an engine
        from attractor_nb.runtime.wired_run import run_under_way  # noqa: PLC0415 - as above

        place = as_path(logs_root)
        with held_interrupts():
            return cast_run(run_under_way(place) or load_execution(place, pipeline or Pipeline), cls)
