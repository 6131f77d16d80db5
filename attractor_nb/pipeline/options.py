"""How one run differs from the next: everything ``pipeline.run()`` takes, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import OptionError
from attractor_nb.model.duration import Duration, parse_duration
from attractor_nb.model.isolation import ISOLATIONS
from attractor_nb.model.spelling import did_you_mean
from attractor_nb.pipeline.trust import checked_trust
from attractor_nb.protocols import Clock, CodergenBackend, Interviewer, Processes, Randomness
from attractor_nb.tracing import read_tracing

if TYPE_CHECKING:
    from attractor_nb.model.events import EventObserver
    from attractor_nb.storage.disk import Disk

BackendSpec = str | CodergenBackend | Callable[..., Any] | None
InterviewerSpec = str | Interviewer | Callable[..., Any] | None
ExecutorSpec = Executor | Callable[[], Executor] | None
DURABILITIES = ("full", "fast", "none")
CASSETTE_MODES = ("record", "replay", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run.

    Attributes:
        params: Values put into the context before the first stage.
        logs_root: The run's own directory (spec 5.6); it must be new or empty.
        runs_dir: Where a named directory is made when there is no ``logs_root``.
        backend: What answers prompts: ``simulated``, ``local``, ``llm``, ``claude``, ``codex``, ``gemini``, a
            callable, or a backend.
        executor: Where tool and model stages are done: a ``concurrent.futures.Executor``, or a function that
            makes one and is called again when it broke. None: here.
        worker_wait: How long an executor is waited for that does not answer or has no workers: seconds, a
            Duration, or its text.
        interviewer: Who answers gates: ``auto``, ``console``, ``deferred`` (``run.answer``), a
            callable, or an interviewer. None: whoever shows the run; else the terminal.
        max_steps, max_node_visits, max_restarts, max_goal_gate_redirects, max_budget_usd,
            max_tokens_total, max_duration: Bounds in place of the graph's own (ruling 18).
        durability: ``full``: commits survive a power loss, though the newest files of stages, which are
            evidence beside them, may not; ``fast``: all survives a killed process; ``none``: nothing
            is stored.
        checkpoint_every_stage: Write checkpoint.json after every stage (the letter of spec 5.3).
        host: ``thread``, or ``kernel``: a task in the running loop.
        stop_after: Pause after that many stages.
        on_interrupted: For a resume: ``rerun``, ``ask`` or ``fail`` in place of the node's own rule.
        take_over: For a resume: take the run from an owner that is frozen, or gone with its machine. Should
            it go on after all, it loses.
        secrets: Values that nothing of ours may let out (``redact_also``).
        observers: Called with every event.
        trust: Vouches for the commands of a pipeline from elsewhere: True, or their hash, which then decides
            alone. For this one call.
        workdir: Where the commands of the graph, agents and the tools of models work: a directory that is
            there. None: the current directory when the run begins; a resume works where the run did.
        isolation: ``workspace``: a fresh folder in the run directory instead; ``worktree``: a git worktree
            and a branch of the run, with a commit for each stage; ``none``: neither, whatever the graph says.
        workspace_from: A folder, or a pattern of files below the current directory: the workspace begins with
            copies of them.
        cache: Take results of stages from a cache, and keep them there: True for ``cache`` beside the runs
            base (``.attractor/cache``), or a directory.
        cassette: The file in which the calls of models, commands and people are recorded, or from which they
            are replayed.
        cassette_mode: ``replay``: call nothing; ``record``: call everything, and write the file anew;
            ``auto``, the default: replay what is there, and record the rest.
        session: Keep the status of the branches of fan-outs in ``.founder-mode/status`` of this directory
            (status-schema); True: of the working directory.
        tracer: Make an OpenTelemetry trace of the run: True for the global provider, a TracerProvider, a
            Tracer, or a ``Tracing`` of one of them.
        breakpoints: Where the run stands until ``run.debugger`` has it go on: ``plan``, ``plan->review``,
            ``after:plan``, ``on:error``, a condition, ``review>draft`` in a child run.
        is_shown: Whether presenters (the notebook) show the run.
        clock, randomness, processes, disk: The seams that tests replace.
    """

    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    logs_root: str | Path | None = None
    runs_dir: str | Path | None = None
    backend: BackendSpec = None
    executor: ExecutorSpec = None
    worker_wait: Any = "30s"
    interviewer: InterviewerSpec = None
    max_steps: int | None = None
    max_node_visits: int | None = None
    max_restarts: int | None = None
    max_goal_gate_redirects: int | None = None
    max_budget_usd: float | None = None
    max_tokens_total: int | None = None
    max_duration: Any = None
    durability: str = "full"
    checkpoint_every_stage: bool = False
    host: str = "thread"
    stop_after: int | None = None
    on_interrupted: str | None = None
    take_over: bool = False
    secrets: Sequence[str] = field(default=(), repr=False)
    observers: Sequence[EventObserver] = ()
    trust: bool | str = False
    workdir: str | Path | None = None
    isolation: str | None = None
    workspace_from: str | Path | None = None
    cache: bool | str | Path = False
    cassette: str | Path | None = None
    cassette_mode: str | None = None
    session: bool | str | Path = False
    tracer: Any = None
    breakpoints: Sequence[str] = ()
    is_shown: bool = True
    clock: Clock | None = None
    randomness: Randomness | None = None
    processes: Processes | None = None
    disk: Disk | None = None

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds that were given."""
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    @property
    def recorded_bounds(self) -> dict[str, int | float | str]:
        """The bounds that were given, as a manifest has them."""
        plain = (int, float, str)
        return {
            name: value if isinstance(value, plain) else str(value) for name, value in self.bounds.items()
        }


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
    for name in given:
        if name not in _NAMES:
            hint = f"options: {', '.join(sorted(_NAMES))}"
            raise OptionError(f"unknown option {name!r}{did_you_mean(name, _NAMES)}", hint=hint)
    merged = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    options = RunOptions(**merged)
    if options.durability not in DURABILITIES:
        raise OptionError(
            f"unknown durability {options.durability!r}", hint=f"use one of {', '.join(DURABILITIES)}"
        )
    if options.on_interrupted not in (None, "rerun", "ask", "fail"):
        raise OptionError(f"on_interrupted is rerun, ask or fail, not {options.on_interrupted!r}")
    if options.stop_after is not None and (type(options.stop_after) is not int or options.stop_after < 1):
        raise OptionError(f"stop_after is a whole number of at least 1, not {options.stop_after!r}")
    worker_wait_seconds(options.worker_wait)
    checked_trust(options.trust)
    as_dict("params", options.params, hint='params={"ticket": "42"}')
    for observer in as_list("observers", options.observers):
        check_observer(observer)
    as_list("breakpoints", options.breakpoints)
    if options.session not in (True, False):
        as_path(options.session, "session")
    read_tracing(options.tracer)
    return _with_places(options)


def _with_places(options: RunOptions) -> RunOptions:
    """The options with the places that they name checked."""
    for name in ("logs_root", "runs_dir"):
        if (place := getattr(options, name)) is not None:
            as_path(place, name)
    if options.cache not in (True, False):
        as_path(options.cache, "cache")
    if options.isolation not in (None, *ISOLATIONS):
        raise OptionError(
            f"unknown isolation {options.isolation!r}", hint=f"use one of {', '.join(ISOLATIONS)}"
        )
    _check_cassette(options)
    if options.workdir is None:
        return options
    return replace(options, workdir=checked_workdir(options.workdir))


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
        raise OptionError(f"workdir {path} is no directory", hint="make it first, or name another")
    return path.resolve()


def worker_wait_seconds(value: object) -> float:
    """The seconds that ``worker_wait`` means.

    Raises:
        OptionError: It is no duration above zero.
    """
    duration = parse_duration(value) if isinstance(value, str) else value
    seconds = duration.seconds if isinstance(duration, Duration) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise OptionError(f"worker_wait is a duration above zero, not {value!r}", hint='worker_wait="30s"')
    return float(seconds)


def as_dict(name: str, value: object, *, hint: str = "") -> dict[Any, Any]:
    """An argument that is a dict, as a copy of the caller's.

    Raises:
        OptionError: It is something else.
    """
    if not isinstance(value, Mapping):
        raise OptionError(f"{name} is a dict, not {type(value).__name__}", hint=hint)
    return dict(cast("Mapping[Any, Any]", value))


def as_list(name: str, value: object) -> list[Any]:
    """An argument that is a sequence, as a copy of the caller's.

    Raises:
        OptionError: It is something else.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"{name} is a list, not {type(value).__name__}", hint=f"{name}=[…]")
    return list(cast("Iterable[Any]", value))


def as_path(value: object, name: str = "the run directory") -> Path:
    """An argument that names a place on the disk.

    Raises:
        OptionError: It can name none.
    """
    if not isinstance(value, str | PathLike):
        raise OptionError(f"{name} is a path, not {type(value).__name__}", hint='for example "runs/first"')
    path = Path(cast("str | PathLike[str]", value))
    if "\0" in str(path):
        raise OptionError(f"{name} {str(path)!r} holds a NUL character, which no path can")
    return path


def check_observer(observer: object) -> None:
    """Check what shall be called with events.

    Raises:
        OptionError: It cannot be called.
    """
    if not callable(observer):
        raise OptionError(
            f"an observer is a function of an event, not {type(observer).__name__}",
            hint="pipeline.on_event(lambda event: print(event.description))",
        )
