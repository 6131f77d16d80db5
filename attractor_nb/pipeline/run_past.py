"""What can be asked of a run's past: each a thin call, the work is elsewhere.

Everything here reads the run directory and needs no engine, so it works for a live run,
for one that has ended, and for one that was loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.runtime.execution import Execution

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from attractor_nb.studio.debug.debugger import Debugger
    from attractor_nb.studio.explain.explanation import Explanation, LoopExplanation, PathExplanation
    from attractor_nb.studio.inspect.inspection import EdgeInspection, StageInspection
    from attractor_nb.studio.replay.replay_run import Replay
    from attractor_nb.studio.timeline.heat_map import HeatMap
    from attractor_nb.studio.timeline.run_timeline import RunTimeline


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

        ``raise run.error()`` shows its traceback, and ``%debug`` after it stands in the frame that failed.

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
        from attractor_nb.studio.explain.explanation import explain  # noqa: PLC0415 - as above

        return explain(self, node, visit)

    def explain_loop(self, node: str, branch: str = "") -> LoopExplanation:
        """The reasons why a node was visited again and again.

        Args:
            node: The node.
            branch: The branch in which it was visited; none by default.
        """
        from attractor_nb.studio.explain.explanation import explain_loop  # noqa: PLC0415 - as above

        return explain_loop(self, node, branch)

    def replay(self) -> Replay:
        """All that happened, moment by moment."""
        from attractor_nb.studio.replay.replay_run import replay_run  # noqa: PLC0415 - as above

        return replay_run(self)

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, and changes while the run stands."""
        from attractor_nb.studio.debug.debugger import Debugger  # noqa: PLC0415 - most runs are not debugged

        return Debugger(self, self._debugging, self._work)

    def timeline(self, by: str = "node") -> RunTimeline:
        """What each node did when, with retries, waits for people and calls; ``by`` is node or branch.

        Args:
            by: A line for each ``node``, or each ``branch``.
        """
        from attractor_nb.studio.timeline.run_timeline import RunTimeline  # noqa: PLC0415 - as above

        return RunTimeline(self, by)

    def heat(self, by: str = "time") -> HeatMap:
        """The graph tinted by ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.

        Args:
            by: ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.
        """
        from attractor_nb.studio.timeline.heat_map import heat  # noqa: PLC0415 - as above

        return heat(self, by)

    def export_html(self, path: str | PathLike[str] | None = None) -> Path:
        """Write the run as one page that opens without kernel and network.

        Args:
            path: The file; ``run-<id>.html`` in the current directory by default.
        """
        from attractor_nb.studio.share.export_page import export_html  # noqa: PLC0415 - as above

        return export_html(self, path)

    def to_png(self, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
        """Write the drawing as PNG, with the extra ``png``.

        Args:
            path: The file.
            theme: ``light`` or ``dark``.
            scale: Pixels for each unit of the drawing.
        """
        from attractor_nb.studio.share.png import write_png  # noqa: PLC0415 - as above

        return write_png(self.to_svg(), path, theme=theme, scale=scale)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart with its present states; edges taken are thick."""
        from attractor_nb.views.mermaid import to_mermaid  # noqa: PLC0415 - as above

        return to_mermaid(self.graph, self.view)
