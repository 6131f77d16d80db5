"""What a run's handle can do with the run's past: each a thin call, the work is elsewhere.

``Run`` inherits it. Everything here reads the run directory and needs no engine, so it works for a live run,
for one that has ended, and for one that was loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attractor_nb.decisions.journal import Journal
from attractor_nb.errors import RunNotFound
from attractor_nb.storage.stored_run import has_event_log, read_run

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from attractor_nb.engine.debugging import Debugging
    from attractor_nb.engine.tracebacks import Failures
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.stop import Stop
    from attractor_nb.pipeline.debugger import Debugger
    from attractor_nb.pipeline.explained import Explanation, LoopExplanation, WayExplanation
    from attractor_nb.pipeline.handle import Work
    from attractor_nb.pipeline.heating import HeatMap
    from attractor_nb.pipeline.inspection import EdgeInspection, StageInspection
    from attractor_nb.pipeline.replaying import Replay
    from attractor_nb.pipeline.run import Run
    from attractor_nb.pipeline.run_result import RunResult
    from attractor_nb.pipeline.timing import RunTimeline


class Past:
    """The past of a run."""

    id: str
    graph: Graph
    logs_root: Path
    _debugging: Debugging | None = None
    _failures: Failures | None = None
    _work: Work[RunResult]

    def journal(self) -> Journal:
        """Each visit with its attempts, and the context at any moment, as the log has them now.

        Raises:
            RunNotFound: Nothing of the run is stored (``durability="none"``), or it is gone.
            CheckpointCorrupt: The log is damaged.
        """
        if not has_event_log(self.logs_root):
            raise RunNotFound(
                f"nothing of run {self.id} is stored, so its past cannot be looked at",
                hint='run it with durability="fast" or "full"',
            )
        return Journal(read_run(self.logs_root).events, self.graph.mirrored())

    def inspect(
        self, what: str | int, visit: int | None = None, attempt: int | None = None
    ) -> StageInspection | EdgeInspection:
        """What is known of a stage, by its node's id, or of an edge, by ``"a -> b"``; see ``inspecting``.

        Args:
            what: A node (``node>inner``: of a child run), an edge as ``a -> b``, or an edge's number.
            visit: Which visit of the node, by number; the latest by default.
            attempt: Which attempt of the visit, by number; the last by default.
        """
        from attractor_nb.pipeline.inspecting import inspect  # noqa: PLC0415 - most runs are not looked into

        return inspect(cast("Run", self), what, visit, attempt)

    def error(self, node: str = "") -> BaseException | None:
        """The latest exception of the run's Python; see ``failing.error_of``.

        ``raise run.error()`` shows its traceback, and ``%debug`` after it stands in the frame that failed.

        Args:
            node: Of this node's stages; ``node>inner`` is a stage of the node's child run.
        """
        from attractor_nb.pipeline.failing import error_of  # noqa: PLC0415 - most runs succeed

        return error_of(cast("Run", self), self._failures, node)

    def explain(self, node: str | None = None, visit: int | None = None) -> Explanation | WayExplanation:
        """Why a stage was reached and left as it was; without a node the whole way; see ``explained``.

        Args:
            node: The node; the whole way by default.
            visit: Which of its visits, by number; the latest by default.
        """
        from attractor_nb.pipeline.explained import explain  # noqa: PLC0415 - as above

        return explain(cast("Run", self), node, visit)

    def explain_loop(self, node: str, branch: str = "") -> LoopExplanation:
        """Why a node was visited again and again; see ``explained.explain_loop``.

        Args:
            node: The node.
            branch: The branch in which it was visited; none by default.
        """
        from attractor_nb.pipeline.explained import explain_loop  # noqa: PLC0415 - as above

        return explain_loop(cast("Run", self), node, branch)

    def replay(self) -> Replay:
        """All that happened, moment by moment; see ``replaying``."""
        from attractor_nb.pipeline.replaying import replay_run  # noqa: PLC0415 - as above

        return replay_run(cast("Run", self))

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, and changes while the run stands."""
        from attractor_nb.pipeline.debugger import Debugger  # noqa: PLC0415 - most runs are not debugged

        return Debugger(cast("Run", self), self._debugging, self._work)

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Where the run stands at breakpoints, the longest first."""
        return () if self._debugging is None else self._debugging.desk.stops

    def timeline(self, by: str = "node") -> RunTimeline:
        """What each node did when, with retries, waits for people and calls; ``by`` is node or branch.

        Args:
            by: A line for each ``node``, or each ``branch``.
        """
        from attractor_nb.pipeline.timing import RunTimeline  # noqa: PLC0415 - as above

        return RunTimeline(cast("Run", self), by)

    def heat(self, by: str = "time") -> HeatMap:
        """The graph tinted by ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``; see ``heating``.

        Args:
            by: ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.
        """
        from attractor_nb.pipeline.heating import heat  # noqa: PLC0415 - as above

        return heat(self, by)

    def export_html(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the run as one page that opens without kernel and network; see ``exporting``.

        Args:
            path: The file; ``run-<id>.html`` in the current directory by default.
        """
        from attractor_nb.pipeline.exporting import export_html  # noqa: PLC0415 - as above

        return export_html(cast("Run", self), path)

    def to_png(self, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
        """Write the drawing as PNG, with the extra ``png``; see ``picturing``.

        Args:
            path: The file.
            theme: ``light`` or ``dark``.
            scale: Pixels for each unit of the drawing.
        """
        from attractor_nb.pipeline.picturing import write_png  # noqa: PLC0415 - as above

        return write_png(cast("Run", self).to_svg(), path, theme=theme, scale=scale)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart with its present states; edges taken are thick."""
        from attractor_nb.views.mermaid import to_mermaid  # noqa: PLC0415 - as above

        return to_mermaid(self.graph, cast("Run", self).view)
