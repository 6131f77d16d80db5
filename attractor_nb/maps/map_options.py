"""How one map differs from the next: its own options, and those of ``run`` for each of its rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.limits.map_bounds import MAP_BOUNDS, MapBounds, map_bounds_of
from attractor_nb.errors import OptionError
from attractor_nb.runtime.prepare.run_options import RunOptions, as_list, as_path, check_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.runtime.prepare.run_options import DurationSpec

MAX_PARALLEL: Final = 4
SHIP: Final = ("rows", "stages")
ON_FAILURE: Final = ("continue", "stop")
NOT_OF_A_ROW: Final = {
    "logs_root": "map_dir=… is the map's own directory, runs_dir=… the place where one is made",
    "breakpoints": "a row can be debugged as a run of its own: pipeline.run(params=row, breakpoints=[…])",
    "pins": "a row can be run by itself: pipeline.run(params=row, pins={…})",
    "stop_after": "a map runs its rows to their end; max_steps=… bounds each",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """Options of one map, beside those of ``run``, which hold for each row.

    What each means is in ``model/vocabulary/option_meanings.py``.
    """

    max_parallel: int = MAX_PARALLEL
    on_failure: str = "continue"
    outputs: Sequence[str] = ()
    map_dir: str | Path | None = None
    max_budget_usd_all: float | None = None
    max_tokens_all: int | None = None
    max_duration_all: DurationSpec | None = None
    ship: str | None = None
    session: bool | str | Path = False

    @property
    def bounds(self) -> MapBounds:
        """The bounds of all rows together.

        Raises:
            OptionError: One of them is none.
        """
        return map_bounds_of({name: getattr(self, name) for name in MAP_BOUNDS})


_NAMES: Final = frozenset(entry.name for entry in fields(MapOptions))
_OF_A_RUN: Final = frozenset(entry.name for entry in fields(RunOptions))


def split_options(given: Mapping[str, Any]) -> tuple[MapOptions, dict[str, Any]]:
    """The map's own options, and those that each row is run with.

    Raises:
        OptionError: A keyword is unknown or belongs to a single run, or a value is out of its range.
    """
    for name in given:
        if name in NOT_OF_A_ROW:
            raise OptionError(f"{name} is an option of a single run, not of a map", hint=NOT_OF_A_ROW[name])
    check_names(given, _NAMES | _OF_A_RUN - NOT_OF_A_ROW.keys())
    options = MapOptions(**{name: value for name, value in given.items() if name in _NAMES})
    _check(options)
    return options, {name: value for name, value in given.items() if name not in _NAMES}


def _check(options: MapOptions) -> None:
    _ = options.bounds
    if type(options.max_parallel) is not int or options.max_parallel < 1:
        raise OptionError(f"max_parallel must be a whole number of at least 1, not {options.max_parallel!r}")
    if options.on_failure not in ON_FAILURE:
        raise OptionError(f"on_failure must be continue or stop, not {options.on_failure!r}")
    if options.ship not in (None, *SHIP):
        raise OptionError(f"ship must be rows or stages, not {options.ship!r}")
    for name in as_list("outputs", options.outputs):
        if not isinstance(name, str):
            raise OptionError(f"outputs must be keys of the context, not {name!r}", hint='outputs=["answer"]')
    if options.map_dir is not None:
        as_path(options.map_dir, "map_dir")
    if not isinstance(options.session, bool | str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"session must be True or a directory, not {type(options.session).__name__}")
