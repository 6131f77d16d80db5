"""``diff(a, b)``: two runs, or two maps, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.maps.compare_maps import MapComparison, compare_maps
from attractor_nb.maps.stored_map import is_a_map
from attractor_nb.studio.compare.compare_runs import Comparison, run_diff

if TYPE_CHECKING:
    from os import PathLike

    from attractor_nb.maps.map_launch import MapResult, MapRun
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import RunResult


@overload
def diff(a: MapRun | MapResult, b: MapRun | MapResult | str | PathLike[str]) -> MapComparison: ...
@overload
def diff(a: Execution | RunResult, b: Execution | RunResult | str | PathLike[str]) -> Comparison: ...
@overload
def diff(
    a: Execution | RunResult | MapRun | MapResult | str | PathLike[str],
    b: Execution | RunResult | MapRun | MapResult | str | PathLike[str],
) -> Comparison | MapComparison: ...
def diff(
    a: Execution | RunResult | MapRun | MapResult | str | PathLike[str],
    b: Execution | RunResult | MapRun | MapResult | str | PathLike[str],
) -> Comparison | MapComparison:
    """Compare two runs, or two maps: path, outcomes, texts and context, or rows and outputs; cost and time.

    They may be of the same graph or of two; an active one is compared as far as it has come. The rows of maps are
    matched by their inputs.

    Args:
        a: A run or a map, its result, or its directory.
        b: The other.

    Raises:
        OptionError: One of them is none of these, or one is a run and the other a map.
        RunNotFound: Nothing of one is stored.
        CheckpointCorrupt: The log or manifest of one is damaged.
    """
    are_maps = is_a_map(a), is_a_map(b)
    if all(are_maps):
        with held_interrupts():
            return compare_maps(a, b)
    if any(are_maps):
        word = "first" if are_maps[0] else "second"
        raise OptionError(
            f"the {word} one is a map, and the other one is not: a map is compared with a map",
            hint="a row of it is a run: name its directory, such as MAP_DIR/row-00000, or give result.run(0)",
        )
    return run_diff(a, b)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - neither is a map
