"""One row of a map from plain data alone: what an executor's worker runs, wherever it is.

The worker is stateless; what it returns is plain data, too, and the files are in the row's directory.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.pipeline.maps.rows import RowTask, run_row
from attractor_nb.pipeline.options import read_options
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Mapping


def run_plain_row(work: Mapping[str, Any]) -> dict[str, Any]:
    """Run a row from plain data, in whatever process and thread this is called; blocks until its end.

    Args:
        work: ``source`` (DOT text), ``name`` (of that text, for messages), ``row``, ``inputs``,
            ``directory`` (a path, or None), ``outputs`` and ``options`` of ``run`` by name. The caller has
            vouched for the pipeline's commands.

    Returns:
        ``RowResult.to_plain()``.

    Raises:
        DotSyntaxError, ValidationError, OptionError: The data makes no run.
    """
    pipeline = Pipeline(SourceText(work["source"], work.get("name", "<map>")))
    pipeline.refuse_errors()
    options = read_options({"interviewer": "refuse"}, work.get("options", {}))
    directory = work.get("directory")
    task = RowTask(
        work["row"], work["inputs"], Path(directory) if directory else None, work.get("outputs", ())
    )
    return asyncio.run(run_row(pipeline, task, options)).to_plain()
