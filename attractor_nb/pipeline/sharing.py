"""What a pipeline gives away without being run: pictures for other programs, verdicts on past runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.hindsight import Hindsight


class Sharing:
    """The part of a pipeline that looks at its graph and at past runs only."""

    graph: Graph

    def refuse_errors(self) -> None:
        """Raise where lint found errors."""
        raise NotImplementedError

    def to_svg(self) -> str:
        """The graph as a picture."""
        raise NotImplementedError

    def hindsight(self, runs: object) -> Hindsight:
        """Which past runs would go elsewhere on this graph; no model is called and nothing is run.

        Args:
            runs: Runs, results or directories: one, or several, such as ``runs()`` gives.

        Raises:
            ValidationError: Lint found errors.
            OptionError: Something among them can be no run.
        """
        from attractor_nb.pipeline.hindsight import hindsight  # noqa: PLC0415 - few pipelines look back

        self.refuse_errors()
        return hindsight(self.graph, runs)

    def to_png(self, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
        """Write the drawing as PNG, with the extra ``png``; see ``picturing``.

        Args:
            path: The file.
            theme: ``light`` or ``dark``.
            scale: Pixels for each unit of the drawing.
        """
        from attractor_nb.pipeline.picturing import write_png  # noqa: PLC0415 - as above

        return write_png(self.to_svg(), path, theme=theme, scale=scale)
