"""The options ``breakpoints`` and ``pins`` of a run, read and checked before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.breakpoints import read_breakpoint
from attractor_nb.errors import OptionError
from attractor_nb.runtime.pins import read_pins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.breakpoints import Breakpoint
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.prepare.run_options import RunOptions


def read_breakpoints(texts: Sequence[object], graph: Graph) -> list[Breakpoint]:
    """Breakpoints from their texts.

    Raises:
        OptionError: One is none, or names what the graph does not have.
        ConditionSyntaxError: A condition is outside the language.
    """
    return [read_breakpoint(text, graph) for text in texts]


def check_debugging(options: RunOptions, graph: Graph, *, is_waited_for: bool) -> None:
    """Refuse pins and breakpoints that are none, and breakpoints at which nobody could have the run go on.

    Raises:
        OptionError, ConditionSyntaxError: As ``read_breakpoints`` and ``read_pins`` do; or the caller waits
            for the end.
        RunError: A pinned node came to nothing in the run that is named.
    """
    read_pins(options.pins, graph)
    if not options.breakpoints:
        return
    read_breakpoints(options.breakpoints, graph)
    if is_waited_for:
        raise OptionError(
            "breakpoints are given, and this call waits for the end: nobody could have the run go on",
            hint="run = pipeline.run(breakpoints=[…]), then run.debugger.wait_for_stop() and continue_()",
        )
