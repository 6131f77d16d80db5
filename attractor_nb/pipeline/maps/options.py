"""How one map differs from the next: its own options, and those of ``run`` for each of its rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.map_bounds import MAP_BOUNDS, MapBounds, map_bounds_of
from attractor_nb.errors import OptionError
from attractor_nb.model.spelling import did_you_mean
from attractor_nb.pipeline.options import RunOptions, as_list, as_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MAX_PARALLEL: Final = 4
SHIP: Final = ("rows", "stages")
ON_FAILURE: Final = ("continue", "stop")
_NOT_OF_A_ROW: Final = {
    "logs_root": "map_dir=… is the map's own directory, runs_dir=… the place where one is made",
    "breakpoints": "a row can be debugged as a run of its own: pipeline.run(params=row, breakpoints=[…])",
    "stop_after": "a map runs its rows to their end; max_steps=… bounds each",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """Options of one map, beside those of ``run``, which hold for each row.

    Attributes:
        max_parallel: How many rows run at the same time.
        on_failure: ``continue``, or ``stop``: after a failed row no further one is started.
        ship: What travels to the workers of ``executor=``: whole ``rows``, or their ``stages``. None: rows
            where they can be run there and all their stages may be run again; else stages.
        outputs: Context values that the result keeps of each row; nothing else of it stays in memory.
        map_dir: The map's own directory; it must be new or empty. Without it one is made in ``runs_dir``.
        max_budget_usd_all, max_tokens_all, max_duration_all: Bounds of all rows together, at which no
            further row is started.
        session: Keep the status of the rows in ``.founder-mode/status`` of this directory (status-schema);
            True: of the working directory.
    """

    max_parallel: int = MAX_PARALLEL
    on_failure: str = "continue"
    ship: str | None = None
    outputs: Sequence[str] = ()
    map_dir: str | Path | None = None
    max_budget_usd_all: float | None = None
    max_tokens_all: int | None = None
    max_duration_all: Any = None
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
        if name in _NOT_OF_A_ROW:
            raise OptionError(f"{name} is an option of a single run, not of a map", hint=_NOT_OF_A_ROW[name])
        if name not in _NAMES | _OF_A_RUN:
            known = _NAMES | _OF_A_RUN - _NOT_OF_A_ROW.keys()
            hint = f"options: {', '.join(sorted(known))}"
            raise OptionError(f"unknown option {name!r}{did_you_mean(name, known)}", hint=hint)
    options = MapOptions(**{name: value for name, value in given.items() if name in _NAMES})
    _check(options)
    return options, {name: value for name, value in given.items() if name not in _NAMES}


def _check(options: MapOptions) -> None:
    _ = options.bounds
    if type(options.max_parallel) is not int or options.max_parallel < 1:
        raise OptionError(f"max_parallel is a whole number of at least 1, not {options.max_parallel!r}")
    if options.on_failure not in ON_FAILURE:
        raise OptionError(f"on_failure is continue or stop, not {options.on_failure!r}")
    if options.ship not in (None, *SHIP):
        raise OptionError(f"ship is rows or stages, not {options.ship!r}")
    for name in as_list("outputs", options.outputs):
        if not isinstance(name, str):
            raise OptionError(f"outputs are keys of the context, not {name!r}", hint='outputs=["answer"]')
    if options.map_dir is not None:
        as_path(options.map_dir, "map_dir")
    if not isinstance(options.session, bool | str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"session is True or a directory, not {type(options.session).__name__}")
