"""How one run differs from the next: everything ``pipeline.run()`` takes, checked once.

A new option is a field of ``RunOptions`` and a line of ``model/vocabulary/option_meanings.py``; ``make docs``
writes it into the signatures.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.planning.executable_surface import SHOWN_DIGITS, is_hash
from attractor_nb.errors import OptionError
from attractor_nb.model.nearest_name import did_you_mean, suggestion
from attractor_nb.model.vocabulary.duration import Duration, parse_duration
from attractor_nb.model.vocabulary.isolation import ISOLATIONS
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_RUN
from attractor_nb.protocols import Clock, CodergenBackend, Interviewer, Processes, Randomness, acts_unasked
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.tracing import read_tracing

if TYPE_CHECKING:
    from attractor_nb.model.events import EventObserver
    from attractor_nb.storage.files.disk import Disk

BackendSpec = str | CodergenBackend | Callable[..., Any] | None
InterviewerSpec = str | Interviewer | Callable[..., Any] | None
ExecutorSpec = Executor | Callable[[], Executor] | None
DurationSpec = float | str | Duration
DURABILITIES = ("full", "fast", "none")
CASSETTE_MODES = ("record", "replay", "auto")

_OPTIONS = OF_A_RUN.keys() | OF_A_MAP.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run; what each means is in ``model/vocabulary/option_meanings.py``."""

    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    backend: BackendSpec = None
    interviewer: InterviewerSpec = None
    trust: bool | str = False
    max_steps: int | None = None
    max_node_visits: int | None = None
    max_restarts: int | None = None
    max_goal_gate_redirects: int | None = None
    max_budget_usd: float | None = None
    max_tokens_total: int | None = None
    max_duration: DurationSpec | None = None
    logs_root: str | Path | None = None
    runs_dir: str | Path | None = None
    durability: str = "full"
    workdir: str | Path | None = None
    isolation: str | None = None
    workspace_from: str | Path | None = None
    cache: bool | str | Path = False
    cassette: str | Path | None = None
    cassette_mode: str | None = None
    stop_after: int | None = None
    breakpoints: Sequence[str] = ()
    pins: Mapping[str, Any] = field(default_factory=dict[str, Any])
    observers: Sequence[EventObserver] = ()
    is_shown: bool = True
    executor: ExecutorSpec = None
    worker_wait: DurationSpec = "30s"
    host: str = "thread"
    on_interrupted: str | None = None
    take_over: bool = False
    secrets: Sequence[str] = field(default=(), repr=False)
    session: bool | str | Path = False
    tracer: Any = None
    checkpoint_every_stage: bool = False
    clock: Clock | None = None
    randomness: Randomness | None = None
    processes: Processes | None = None
    disk: Disk | None = None

    @property
    def acts_unasked(self) -> bool:
        """Whether the backend may write or execute for any stage (``protocols.acts_unasked``)."""
        return acts_unasked(self.backend)

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds that were given."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    @property
    def recorded_bounds(self) -> dict[str, int | float | str]:
        """The bounds that were given, as a manifest has them."""
        plain = (int, float, str)
        return {name: value if isinstance(value, plain) else str(value) for name, value in self.bounds.items()}


BOUNDS = (
    "max_steps",
    "max_node_visits",
    "max_restarts",
    "max_goal_gate_redirects",
    "max_budget_usd",
    "max_tokens_total",
    "max_duration",
)
_NAMES = frozenset(entry.name for entry in fields(RunOptions))


def read_options(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> RunOptions:
    """Options from keywords.

    Raises:
        OptionError: A keyword is unknown, or a value is out of its range.
    """
    check_names(given)
    merged = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    options = RunOptions(**merged)
    if options.durability not in DURABILITIES:
        raise OptionError(f"unknown durability {options.durability!r}", hint=f"use one of {', '.join(DURABILITIES)}")
    if options.on_interrupted not in (None, "rerun", "ask", "fail"):
        raise OptionError(f"on_interrupted must be rerun, ask or fail, not {options.on_interrupted!r}")
    if options.stop_after is not None and (type(options.stop_after) is not int or options.stop_after < 1):
        raise OptionError(f"stop_after must be a whole number of at least 1, not {options.stop_after!r}")
    worker_wait_seconds(options.worker_wait)
    checked_trust(options.trust)
    as_dict("params", options.params, hint='params={"ticket": "42"}')
    for observer in as_list("observers", options.observers):
        check_observer(observer)
    as_list("breakpoints", options.breakpoints)
    as_dict("pins", options.pins, hint='pins={"plan": "the text of its response"}')
    read_tracing(options.tracer)
    return _with_places(options)


_OTHER_NAMES: Final = {
    **dict.fromkeys(("inputs", "input", "parameters", "variables", "kwargs"), "params"),
    **dict.fromkeys(("timeout", "time_limit", "deadline"), "max_duration"),
    **dict.fromkeys(("budget", "max_cost", "max_budget"), "max_budget_usd"),
    **dict.fromkeys(("max_tokens", "token_limit"), "max_tokens_total"),
    **dict.fromkeys(("directory", "run_dir", "output_dir", "path"), "logs_root"),
    **dict.fromkeys(("cwd", "working_directory"), "workdir"),
    **dict.fromkeys(("callbacks", "on_event"), "observers"),
    "recursion_limit": "max_steps",
}
"""Options by the names that other tools have for them."""
_HINTS: Final = {"model": 'name it in the graph, graph [llm_model="…"], or pass backend="llm"'}


def check_names(given: Iterable[str], known: Collection[str] = _NAMES) -> None:
    """Refuse a keyword that is no option.

    Raises:
        OptionError: One is none; names the nearest.
    """
    for name in given:
        if name not in known:
            meant = _OTHER_NAMES.get(name, "")
            near = suggestion(meant) if meant in known else did_you_mean(name, known)
            hint = _HINTS.get(name, f"options: {', '.join(sorted(known))}")
            raise OptionError(f"unknown option {name!r}{near}", hint=hint)


def _with_places(options: RunOptions) -> RunOptions:
    """The options with the places that they name checked, each with the home directory for a leading ``~``."""
    places: dict[str, Any] = {
        name: as_path(place, name)
        for name in ("logs_root", "runs_dir", "workspace_from", "cache", "session")
        if not isinstance(place := getattr(options, name), bool | None) and place != ""
    }
    if options.isolation not in (None, *ISOLATIONS):
        raise OptionError(f"unknown isolation {options.isolation!r}", hint=f"use one of {', '.join(ISOLATIONS)}")
    _check_cassette(options)
    if options.workdir is not None:
        places["workdir"] = checked_workdir(options.workdir)
    return replace(options, **places) if places else options


def _check_cassette(options: RunOptions) -> None:
    if options.cassette_mode not in (None, *CASSETTE_MODES):
        raise OptionError(
            f"unknown cassette_mode {options.cassette_mode!r}", hint=f"use one of {', '.join(CASSETTE_MODES)}"
        )
    if options.cassette is not None:
        as_path(options.cassette, "cassette")
    elif options.cassette_mode is not None:
        raise OptionError("cassette_mode is given, and no cassette", hint='cassette="review.json"')


def checked_workdir(value: object) -> Path:
    """The directory that ``workdir`` names, absolute.

    Raises:
        OptionError: There is no such directory.
    """
    path = as_path(value, "workdir")
    if not path.is_dir():
        raise OptionError(f"workdir {path} is not a directory", hint="make it first, or name another")
    return path.resolve()


def worker_wait_seconds(value: object) -> float:
    """The seconds that ``worker_wait`` means.

    Raises:
        OptionError: It is no duration above zero.
    """
    duration = parse_duration(value) if isinstance(value, str) else value
    seconds = duration.seconds if isinstance(duration, Duration) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise OptionError(f"worker_wait must be a duration above zero, not {value!r}", hint='worker_wait="30s"')
    return float(seconds)


def as_dict(name: str, value: object, *, hint: str = "") -> dict[Any, Any]:
    """An argument that is a dict, as a copy of the caller's.

    Raises:
        OptionError: It is something else.
    """
    if not isinstance(value, Mapping):
        raise OptionError(f"{name} must be a dict, not {type(value).__name__}", hint=hint)
    return dict(cast("Mapping[Any, Any]", value))


def as_list(name: str, value: object) -> list[Any]:
    """An argument that is a sequence, as a copy of the caller's.

    Raises:
        OptionError: It is something else.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"{name} must be a list, not {type(value).__name__}", hint=f"{name}=[…]")
    return list(cast("Iterable[Any]", value))


def as_path(value: object, name: str = "the run directory") -> Path:
    """An argument that names a place on the disk; ``~`` is the home directory (ruling 49).

    Raises:
        OptionError: It can name none, or is relative to a directory that was removed.
    """
    if not isinstance(value, str | PathLike):
        raise OptionError(f"{name} must be a path, not {type(value).__name__}", hint='for example "runs/first"')
    text: str = os.path.expanduser(os.fspath(cast("PathLike[str]", value)))  # noqa: PTH111 - "./~" is no home
    if "\0" in text:
        raise OptionError(f"{name} {text!r} contains a NUL character")
    if text == "~" or text.startswith("~/"):
        raise OptionError(f"{name} {text!r} names a home directory, and this user has none", hint="write the path out")
    path = Path(text)
    if not path.is_absolute():
        here()
    return path


def check_observer(observer: object) -> None:
    """Check what shall be called with events.

    Raises:
        OptionError: It cannot be called.
    """
    if not callable(observer):
        raise OptionError(
            f"an observer must be a function of an event, not {type(observer).__name__}",
            hint="pipeline.on_event(lambda event: print(event.description))",
        )


def checked_trust(value: object) -> bool | str:
    """The value of the option ``trust``.

    Raises:
        OptionError: It is neither a truth value nor a hash.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and is_hash(value):
        return value
    raise OptionError(
        f"trust must be True or the hash of the commands, not {value!r}",
        hint=f"a hash has at least {SHOWN_DIGITS} hexadecimal digits; `attractor-nb commands FILE` prints it",
    )


def given_options(
    scope: Mapping[str, Any], *, own: Collection[str] = (), of: Collection[str] = _OPTIONS
) -> dict[str, Any]:
    """The options among a method's locals, with the keywords that are none; None stands for not given.

    Args:
        scope: ``locals()`` of the method, asked for in its first line.
        own: Parameters of the method that have the name of an option and are none.
        of: The names of the options.
    """
    options = {name: value for name, value in scope.items() if name in of and name not in own and value is not None}
    return {**options, **scope["unknown"]}
