"""Scorers that a command names: the ready ones, and those of a module of the user."""

from __future__ import annotations

import importlib
import inspect
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.scorers import (
    Scorer,
    contains,
    cost,
    equals,
    latency,
    makes_scorer,
    matches,
    read_scorer,
    read_scorers,
    route,
    visits,
)
from attractor_nb.model.texts import did_you_mean, no_such_key
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from types import ModuleType

    from attractor_nb.runtime.definition import Definition

_NODE: Final = "NODE"
_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class ReadyScorer:
    """A ready scorer, as a command names it."""

    make: Callable[..., Scorer]
    argument: str = ""  #: Name of the argument after the colon; empty when it takes none.
    is_required: bool = False

    def usage(self, name: str) -> str:
        """Name and argument as the command takes them."""
        argument = f":{self.argument}" if self.argument else ""
        return f"{name}{argument}" if self.is_required or not argument else f"{name}[{argument}]"


IN_PYTHON: Final = ("judge", "json_schema")
"""Ready scorers whose arguments a command cannot say."""
READY: Final[Mapping[str, ReadyScorer]] = {
    "equals": ReadyScorer(equals, "COLUMN"),
    "contains": ReadyScorer(contains, "TEXT"),
    "matches": ReadyScorer(matches, "REGEX", is_required=True),
    "route": ReadyScorer(route, _NODE, is_required=True),
    "visits": ReadyScorer(visits, _NODE, is_required=True),
    "cost": ReadyScorer(cost),
    "latency": ReadyScorer(latency),
}


def named_scorers(given: Sequence[str], pipeline: Definition) -> list[Scorer]:
    """The scorers that the option names.

    Args:
        given: Its values: ``module:name``, or a ready scorer such as ``equals`` and ``contains:text``.
        pipeline: The pipeline that is evaluated.

    Raises:
        OptionError: A module, a name or an argument is unusable, or two scorers have one name.
    """
    if not given:
        raise OptionError(
            "evaluate needs scorers", hint=f"--scorers MODULE:NAME for your own; the ready ones: {_ready_names()}"
        )
    found: list[Scorer] = []
    for text in given:
        found += [_ready(text, pipeline)] if text.partition(":")[0] in READY else _of_module(text)
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError(
            f'two scorers have the name "{twice}"', hint="a dict of them in your module names each: MODULE:NAME"
        )
    return found


def _ready_names() -> str:
    return ", ".join(ready.usage(name) for name, ready in READY.items())


def _ready(text: str, pipeline: Definition) -> Scorer:
    """A ready scorer; its column has the name by which it was asked for, so that several of a kind stay apart."""
    name, colon, argument = text.partition(":")
    ready = READY[name]
    if (colon and not (argument and ready.argument)) or (ready.is_required and not colon):
        expected = "takes nothing" if not ready.argument else f"needs its {ready.argument}"
        raise OptionError(f"--scorers {text}: {name} {expected}", hint=f"--scorers {ready.usage(name)}")
    if ready.argument == _NODE and argument not in pipeline.graph.nodes:
        raise no_such_key(pipeline.name, "node", argument, pipeline.graph.nodes)
    return read_scorer(ready.make(argument) if argument else ready.make(), text)


def _of_module(text: str) -> Sequence[Scorer]:
    """The scorers that a name of a module stands for: one, a list or a dict of them."""
    module_name, colon, name = text.partition(":")
    if not colon and text in IN_PYTHON:
        raise _factory(text, text)
    if not (colon and name):
        raise OptionError(
            f'there is no scorer "{text}"{did_you_mean(text, READY)}',
            hint=f"--scorers MODULE:NAME for your own; the ready ones: {_ready_names()}",
        )
    module = _imported(module_name)
    if not hasattr(module, name):
        own = _public_names(module)
        listed = ", ".join(own[:_LISTED]) or "none"
        raise OptionError(
            f'the module {module_name} has no "{name}"{did_you_mean(name, own)}', hint=f"it has: {listed}"
        )
    given = getattr(module, name)
    if makes_scorer(given):
        raise _factory(text, name)
    try:
        return read_scorers(given)
    except OptionError as error:
        raise OptionError(f"--scorers {text}: {error.message}", hint=error.hint) from None


def _factory(text: str, name: str) -> OptionError:
    """The refusal of a function that makes a scorer."""
    return OptionError(
        f"--scorers {text}: {name} makes a scorer and is none itself",
        hint=f"call it in a module, as checks.py: scorers = [{name}(…)], and name the list: --scorers checks:scorers",
    )


def _public_names(module: ModuleType) -> list[str]:
    """Names of a module that may be scorers: functions, lists and dicts of its own."""
    kinds = (Scorer, list, dict, tuple)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and ((inspect.isfunction(value) and value.__module__ == module.__name__) or isinstance(value, kinds))
    ]


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        stem = Path(name).stem
        raise OptionError(f'"{name}" is not the name of a module', hint=f"--scorers {stem}:NAME for the file {stem}.py")
    try:
        with _working_directory_importable():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _unusable(name, error) from None
        if name in IN_PYTHON:
            raise _factory(name, name) from None
        near = did_you_mean(name, [*READY, *_modules_here()])
        raise OptionError(
            f'there is no module "{name}"{near}',
            hint=f"a module is a file {name}.py in {Path.cwd()}, or installed; the ready scorers: {_ready_names()}",
        ) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        raise _unusable(name, error) from None


def _unusable(name: str, error: BaseException) -> OptionError:
    said = one_line(f"{type(error).__name__}: {error}")
    return OptionError(
        f"the module {name} cannot be imported: {said}", hint=f'python -c "import {name}" shows where it fails'
    )


def _modules_here() -> Iterable[str]:
    with suppress(OSError):
        return [path.stem for path in Path.cwd().glob("*.py")]
    return ()


@contextmanager
def _working_directory_importable() -> Generator[None]:
    """The modules of the working directory can be imported, as of ``python -m``."""
    place = str(Path.cwd())
    path: list[Any] = sys.path
    path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with suppress(ValueError):
            path.remove(place)
