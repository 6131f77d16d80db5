"""The options of a run and of a map: everything ``pipeline.run()`` and ``pipeline.map()`` take, checked once.

A new option is a field of ``RunOptions``, the same field of the keywords below it, and a row of
``model/vocabulary/option_meanings.py``.

A method takes ``**options: Unpack[RunKeywords]``, which type checkers read: its keywords say which options it has.
``takes`` gives it the signature and the "Args:" that ``help()``, Tab and Shift-Tab show, every option by name, with
type, default and meaning; it does not wrap the method. Jedi, which reads source alone, finds the options where a
method passes ``**options`` on, as long as nothing binds that name anew.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, cleandoc, signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, cast

from attractor_nb.decisions.planning.executable_surface import SHOWN_DIGITS, is_hash
from attractor_nb.errors import OptionError
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.isolation import ISOLATIONS
from attractor_nb.model.vocabulary.option_meanings import (
    CASSETTE_MODES,
    DURABILITIES,
    INSTEAD,
    OF_A_MAP,
    OF_A_PIPELINE,
    OF_A_RUN,
    OF_AN_EVALUATION,
    OTHER_NAMES,
)
from attractor_nb.model.vocabulary.value_forms import Duration, parse_duration
from attractor_nb.platforms import check_posix
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
        """True if the backend may write or execute for any stage (``protocols.acts_unasked``)."""
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


class BoundKeywords(TypedDict, total=False):
    """The bounds of a run."""

    max_steps: int | None
    max_node_visits: int | None
    max_restarts: int | None
    max_goal_gate_redirects: int | None
    max_budget_usd: float | None
    max_tokens_total: int | None
    max_duration: DurationSpec | None


class CommonKeywords(BoundKeywords, total=False):
    """The options that all calls have which run stages."""

    backend: BackendSpec
    interviewer: InterviewerSpec
    trust: bool | str
    runs_dir: str | Path | None
    durability: str
    workdir: str | Path | None
    isolation: str | None
    workspace_from: str | Path | None
    cache: bool | str | Path
    cassette_mode: str | None
    observers: Sequence[EventObserver]
    is_shown: bool
    executor: ExecutorSpec
    worker_wait: DurationSpec
    on_interrupted: str | None
    take_over: bool
    secrets: Sequence[str]
    session: bool | str | Path
    tracer: Any
    checkpoint_every_stage: bool
    clock: Clock | None
    randomness: Randomness | None
    processes: Processes | None
    disk: Disk | None


class _CassetteKeyword(TypedDict, total=False):
    cassette: str | Path | None


class _HostKeyword(TypedDict, total=False):
    host: str


class _SingleKeywords(CommonKeywords, total=False):
    logs_root: str | Path | None
    pins: Mapping[str, Any] | None


class _StepwiseKeywords(_HostKeyword, total=False):
    breakpoints: Sequence[str]


class _StoppedKeywords(_StepwiseKeywords, total=False):
    stop_after: int | None


class _ParamsKeyword(TypedDict, total=False):
    params: Mapping[str, Any] | None


class RerunKeywords(_SingleKeywords, _CassetteKeyword, total=False):
    """Options of ``Debugger.rerun``."""


class StepKeywords(RerunKeywords, _StepwiseKeywords, _ParamsKeyword, total=False):
    """Options of ``Pipeline.step``."""


class CheckKeywords(_SingleKeywords, _StoppedKeywords, _ParamsKeyword, total=False):
    """Options of ``Pipeline.check``."""


class ResumeKeywords(RerunKeywords, _StoppedKeywords, total=False):
    """Options of ``resume``, ``rewind``, ``fork`` and ``form``: a run has its inputs already, or they are filled in."""


class ChangeKeywords(ResumeKeywords, total=False):
    """Keywords of ``Run.rewind`` beside ``wait``."""

    on_graph_change: str
    context: Mapping[str, Any] | None
    prompt: str | None


class ContinueKeywords(ChangeKeywords, total=False):
    """Keywords of ``Run.resume`` and ``Pipeline.resume`` beside ``wait``."""

    rewind_to: str | None
    visit: int | None


class RunKeywords(ResumeKeywords, _ParamsKeyword, total=False):
    """Options of ``Pipeline.run``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions:
    """Options of one map, beside those of ``run``, which hold for each row."""

    max_parallel: int = 4
    on_failure: str = "continue"
    outputs: Sequence[str] = ()
    map_dir: str | Path | None = None
    max_budget_usd_all: float | None = None
    max_tokens_all: int | None = None
    max_duration_all: DurationSpec | None = None
    ship: str | None = None
    session: bool | str | Path = False


class ResumeMapKeywords(CommonKeywords, _CassetteKeyword, _HostKeyword, total=False):
    """Options of ``Pipeline.resume_map``."""

    max_parallel: int
    on_failure: str
    outputs: Sequence[str]
    max_budget_usd_all: float | None
    max_tokens_all: int | None
    max_duration_all: DurationSpec | None
    ship: str | None


class MapKeywords(ResumeMapKeywords, total=False):
    """Options of ``Pipeline.map``."""

    map_dir: str | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """Options of one evaluation, beside those of its map."""

    repeat: int = 1
    output: str | Callable[..., Any] | None = None
    inputs: Sequence[str] | None = None
    only: str | None = None


class EvaluationKeywords(MapKeywords, total=False):
    """Options of ``Pipeline.evaluate`` and ``compare``."""

    repeat: int
    output: str | Callable[..., Any] | None
    inputs: Sequence[str] | None
    only: str | None


BOUNDS = tuple(BoundKeywords.__annotations__)
_NAMES = frozenset(entry.name for entry in fields(RunOptions))


def read_options(defaults: Mapping[str, Any], /, **given: Any) -> RunOptions:
    """Options from keywords; None means not given."""
    check_names(given)
    drop_unset(given)
    given.update({**defaults, **given})
    options = RunOptions(**given)
    if options.durability not in DURABILITIES:
        raise OptionError(f"unknown durability {options.durability!r}", hint=f"use one of {', '.join(DURABILITIES)}")
    if options.durability != "none" or (options.cassette and options.cassette_mode != "replay"):
        check_posix()
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


_MEANING_OF: Final = {**OF_A_PIPELINE, **OF_A_MAP, **OF_A_RUN}
_OFTEN: Final = ("params", "backend", "interviewer", "logs_root", "max_duration", "max_budget_usd", "cache", "trust")


def check_names(given: Iterable[str], known: Collection[str] = _NAMES) -> None:
    """Refuse a keyword that is no option."""
    for name in given:
        if name not in known:
            hint, meant = INSTEAD.get(name, ""), OTHER_NAMES.get(name, "")
            meant = "" if hint else meant if meant in known else nearest(name, known)
            raise OptionError(f"unknown option {name!r}{suggestion(meant)}", hint=hint or _meaning(meant, known))


def _meaning(option: str, known: Collection[str]) -> str:
    """The meaning of the option that was meant, or the options that most calls need."""
    if option:
        words = _MEANING_OF.get(option, "").partition(";")[0].rstrip(".")
        return f"{option}: {words[:1].lower()}{words[1:]}" if words else f"pass {option}="
    often = [name for name in _OFTEN if name in known]
    return f"often used: {', '.join(often)}; the docstring of the call explains all {len(known)}"


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
    """The directory that ``workdir`` names, absolute."""
    path = as_path(value, "workdir")
    if not path.is_dir():
        raise OptionError(f"workdir {path} is not a directory", hint="make it first, or name another")
    return path.resolve()


def worker_wait_seconds(value: object) -> float:
    """The seconds that ``worker_wait`` means."""
    duration = parse_duration(value) if isinstance(value, str) else value
    seconds = duration.seconds if isinstance(duration, Duration) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise OptionError(f"worker_wait must be a duration above zero, not {value!r}", hint='worker_wait="30s"')
    return float(seconds)


def as_dict(name: str, value: object, *, hint: str = "") -> dict[Any, Any]:
    """An argument that is a dict, as a copy of the caller's."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{name} must be a dict, not {type(value).__name__}", hint=hint)
    return dict(cast("Mapping[Any, Any]", value))


def as_list(name: str, value: object) -> list[Any]:
    """An argument that is a sequence, as a copy of the caller's."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(f"{name} must be a list, not {type(value).__name__}", hint=f"{name}=[…]")
    return list(cast("Iterable[Any]", value))


def as_path(value: object, name: str = "the run directory") -> Path:
    """An argument that names a place on the disk; ``~`` is the home directory (ruling 49)."""
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
    """Check what shall be called with events."""
    if not callable(observer):
        raise OptionError(
            f"an observer must be a function of an event, not {type(observer).__name__}",
            hint="pipeline.on_event(lambda event: print(event.description))",
        )


def checked_trust(value: object) -> bool | str:
    """The value of the option ``trust``."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and is_hash(value):
        return value
    raise OptionError(
        f"trust must be True or the hash of the commands, not {value!r}",
        hint=f"a hash has at least {SHOWN_DIGITS} hexadecimal digits; `attractor-nb commands FILE` prints it",
    )


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; None means not given."""
    return {name: value for name, value in options.items() if value is not None}


def drop_unset(given: dict[str, Any]) -> None:
    """Remove the options that were not given, in place: Jedi does not follow a name that is bound anew."""
    for name in given.keys() - given_options(given).keys():
        given.pop(name)


# -- signatures -----------------------------------------------------------------------------------------

_Method = TypeVar("_Method", bound="Callable[..., Any]")

_WIDTH: Final = 112
_UNKNOWN: Final = Parameter("unknown", Parameter.VAR_KEYWORD, annotation="Never")
_MEANINGS: Final = {RunOptions: OF_A_RUN, MapOptions: OF_A_MAP, EvaluationOptions: OF_AN_EVALUATION}
_NULLABLE: Final = ("None", "Any", "BackendSpec", "ExecutorSpec", "InterviewerSpec")
"""Ends of annotations that allow None."""


def takes(keywords: type[Any], *kinds: type[Any], **defaults: object) -> Callable[[_Method], _Method]:
    """Give a method the signature and the docstring of its options.

    Args:
        keywords: The TypedDict of its ``**options``.
        kinds: The classes whose fields they are; RunOptions by default.
        **defaults: Defaults of this method alone.
    """
    names: Mapping[str, Any] = keywords.__annotations__
    options: dict[str, tuple[Parameter, str]] = {}
    for kind in kinds or (RunOptions,):
        for name, option in _OPTIONS[kind].items():
            if name in names and name not in options:
                options[name] = _with_default(option[0], defaults[name]) if name in defaults else option[0], option[1]

    def compose(method: _Method) -> _Method:
        declared = signature(method)
        own = [each for each in declared.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        parameters = [*own, *(parameter for parameter, _ in options.values()), _UNKNOWN]
        method.__signature__ = declared.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess] - inspect asks for it
        method.__doc__ = _told(method.__doc__ or "", (entry for _, entry in options.values()))
        return method

    return compose


def tells_options(method: _Method) -> _Method:
    """Give a function whose parameters are options of a pipeline their meanings."""
    own = signature(method).parameters
    entries = (_entry(name, meaning) for name, meaning in OF_A_PIPELINE.items() if name in own)
    method.__doc__ = _told(method.__doc__ or "", entries)
    return method


def _options_of(kind: type[Any]) -> dict[str, tuple[Parameter, str]]:
    """Parameter and entry of each option of a class."""
    meanings = _MEANINGS[kind]
    return {
        name: (_plain_default(parameter), _entry(name, meanings[name]))
        for name, parameter in signature(kind).parameters.items()
    }


def _plain_default(parameter: Parameter) -> Parameter:
    """The parameter as a caller reads it: None in place of a factory."""
    is_made = not isinstance(parameter.default, bool | int | float | str | tuple | None)
    return _with_default(parameter, None) if is_made else parameter


def _with_default(parameter: Parameter, default: object) -> Parameter:
    annotation = parameter.annotation
    if default is None and not annotation.endswith(_NULLABLE):
        annotation = f"{annotation} | None"
    return parameter.replace(default=default, annotation=annotation)


def _entry(name: str, meaning: str) -> str:
    return textwrap.fill(
        f"{name}: {meaning}",
        _WIDTH,
        initial_indent="    ",
        subsequent_indent="        ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _told(docstring: str, entries: Iterable[str]) -> str:
    """A docstring with the options at the end of its "Args:"."""
    head, raises, rest = cleandoc(docstring).partition("\n\nRaises:\n")
    if "\n\nArgs:\n" not in head:
        head += "\n\nArgs:"
    return "\n".join([head, *entries, _UNKNOWN_ENTRY]) + raises + rest


_UNKNOWN_ENTRY: Final = _entry("**unknown", "Any other keyword: an error that names the nearest option.")
_OPTIONS: Final = {kind: _options_of(kind) for kind in _MEANINGS}
