"""``run.error()``: what the user's Python raised in a run, to be raised again and debugged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.engine.tracebacks import TRACEBACK_FILE
from attractor_nb.errors import AttractorError, OptionError, StageError
from attractor_nb.runtime.execution import failures_of
from attractor_nb.runtime.stored_execution import children_of
from attractor_nb.studio.inspect.inspect_run import inspect_stage
from attractor_nb.views.drawings.svg import CHILD_SEPARATOR

if TYPE_CHECKING:
    from attractor_nb.runtime.execution import Execution


def error_of(run: Execution, node: str = "") -> BaseException | None:
    """The latest exception of the user's Python in a run: of a handler, a backend, a tool, an interviewer.

    While it is in this process it is the exception itself, its traceback beginning in the user's code: after
    ``raise run.error()`` ``%debug`` stands in the frame that failed. A run keeps the latest few.

    Args:
        run: The run.
        node: Of this node's stages; ``node>inner`` is a stage of the node's child run.

    Returns:
        The exception. Where it is not here any more, or was raised on a worker: a ``StageError`` with the
        reason, whose hint says where the traceback can be read. None when no stage failed.

    Raises:
        OptionError: There is no such node.
    """
    inside, separator, rest = node.partition(CHILD_SEPARATOR)
    if separator:
        child = children_of(run).get(inside)
        if child is None:
            raise OptionError(f"{inside} has no child run", hint="see run.children")
        return error_of(child, rest)
    if node and node not in run.graph.nodes:
        raise OptionError(f"the pipeline has no node {node!r}", hint=f"nodes: {', '.join(run.graph.nodes)}")
    failures = failures_of(run)
    if failures is not None and (found := failures.latest(node)) is not None:
        return found.error
    failed = [name for name, outcome in run.outcomes.items() if outcome.status.is_failure]
    for name in [node] if node else reversed(failed):
        if (error := _of_stage(run, name)) is not None:
            return error
    return None


def _of_stage(run: Execution, node: str) -> StageError | None:
    """What is on record of a failure of a node's latest visit."""
    try:
        stage = inspect_stage(run, node)
    except AttractorError:
        return None
    if not stage.reason and not stage.traceback:
        return None
    if not stage.traceback:
        return StageError(f"{node} failed: {stage.reason}", hint=f'see run.inspect("{node}")')
    place = f" ({stage.directory / TRACEBACK_FILE})" if stage.directory else ""
    said = stage.reason or stage.traceback.strip().rpartition("\n")[2]
    return StageError(f"{node} failed: {said}", hint=f'where: print(run.inspect("{node}").traceback){place}')
