"""Registry of what a front-end has for runs: presenters, which show them, and interviewers.

The notebook registers itself, so nothing below depends on it.

A presenter is called in the thread that called ``pipeline.run()``, just before the engine starts:
in a notebook that is the thread of the cell whose output the live view belongs to.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.engine.gates import Gate
    from attractor_nb.protocols import Interviewer


class Presentable(Protocol):
    """A run, as presenters see it: the public ``Run``."""

    @property
    def id(self) -> str:
        """The run's id."""
        ...


class WaitingRule(Protocol):
    """Says whether it makes sense to wait for gates here."""

    def __call__(self, gates: Sequence[Gate], *, is_blocking: bool) -> None:
        """Return, or raise GateWouldBlock when the wait would never end."""
        ...


class ClickRule(Protocol):
    """True if a user can click while a call waits here."""

    def __call__(self, *, is_blocking: bool) -> bool:
        """True if a click arrives."""
        ...


class Namer(Protocol):
    """Says what the user calls a thing."""

    def __call__(self, thing: object, *, of_run: bool = False) -> str:
        """Its name, or that of the run of a result; empty when it has none here."""
        ...


HOSTS: Final = {"marimo": "attractor_nb.notebook.marimo_host"}
"""Hosts that load no extension: by the host's module, ours whose ``register()`` returns whether it could."""

T = TypeVar("T")
Presenter = Callable[[Presentable], None]
WidgetMaker = Callable[[Any], Any]
ReviewMaker = Callable[[Any, "Path"], Any]
_presenters: list[Presenter] = []
_waiting_rules: list[WaitingRule] = []
_click_rules: list[ClickRule] = []
_namers: list[Namer] = []
_widget_makers: list[WidgetMaker] = []
_review_makers: list[ReviewMaker] = []
_interviewers: dict[str, Callable[[], Interviewer]] = {}
_registered_hosts: set[str] = set()
_registering = threading.Lock()


def _registered(registry: list[T], thing: T) -> Callable[[], None]:
    """Add a thing; returns how to remove it, once."""
    registry.append(thing)

    def remove() -> None:
        if thing in registry:
            registry.remove(thing)

    return remove


def register_presenter(
    presenter: Presenter, waiting_rule: WaitingRule | None = None, click_rule: ClickRule | None = None
) -> Callable[[], None]:
    """Show every run that starts from now on; returns how to stop that."""
    removals = [_registered(_presenters, presenter)]
    if waiting_rule is not None:
        removals.append(_registered(_waiting_rules, waiting_rule))
    if click_rule is not None:
        removals.append(_registered(_click_rules, click_rule))

    def remove() -> None:
        for each in removals:
            each()

    return remove


def register_widget(make: WidgetMaker) -> Callable[[], None]:
    """Make runs widgets (``run.widget()``); returns how to stop that."""
    return _registered(_widget_makers, make)


def widget_of(run: Presentable) -> Any:
    """A run as a widget of the front-end.

    Raises:
        OptionError: No front-end is here that has widgets.
    """
    _register_hosts()
    if not _widget_makers:
        raise OptionError(
            "run.widget() belongs to notebooks, and no notebook's extension is loaded here",
            hint="%load_ext attractor_nb, or from attractor_nb.notebook.run_box import RunBox: RunBox(run)",
        )
    return _widget_makers[-1](run)


def register_review(make: ReviewMaker) -> Callable[[], None]:
    """Make evaluations boxes for a review (``evaluation.review()``); returns how to stop that.

    Args:
        make: Takes the evaluation and the file that gets the answers.
    """
    return _registered(_review_makers, make)


def review_of(evaluation: Any, path: Path) -> Any:
    """A box in which a person answers for each row of an evaluation.

    Raises:
        OptionError: No front-end is here that has widgets.
    """
    _register_hosts()
    if not _review_makers:
        raise OptionError(
            "evaluation.review() belongs to notebooks, and no notebook's extension is loaded here",
            hint="%load_ext attractor_nb, or from attractor_nb.notebook.review_box import ReviewBox: ReviewBox(…)",
        )
    return _review_makers[-1](evaluation, path)


def register_interviewer(name: str, make: Callable[[], Interviewer]) -> Callable[[], None]:
    """Give an interviewer a name for options; returns how to stop that.

    Args:
        name: The name.
        make: Makes it, cheaply: an option is resolved more often than a question is asked.
    """
    _interviewers[name] = make

    def remove() -> None:
        if _interviewers.get(name) is make:
            del _interviewers[name]

    return remove


def registered_interviewer(name: object) -> Interviewer | None:
    """A new interviewer of a name that a front-end has registered; None for every other option."""
    make = _interviewers.get(name) if isinstance(name, str) else None
    return None if make is None else make()


def register_namer(namer: Namer) -> Callable[[], None]:
    """Have words about runs use the names that the user has; returns how to stop that."""
    return _registered(_namers, namer)


def name_of(thing: object, *, of_run: bool = False) -> str:
    """The user's name for a run or a result, or for the run of a result; empty when it has none."""
    return next((name for namer in tuple(_namers) if (name := namer(thing, of_run=of_run))), "")


def are_runs_shown() -> bool:
    """True if a view shows runs, and so can take answers to gates."""
    _register_hosts()
    return bool(_presenters)


def present(run: Presentable) -> None:
    """Show a run that is about to start."""
    _register_hosts()
    for presenter in tuple(_presenters):
        presenter(run)


def _register_hosts() -> None:
    """Have the front-ends of hosts register themselves that run here."""
    for host, ours in HOSTS.items():
        if host in sys.modules and host not in _registered_hosts:
            with _registering:
                if host not in _registered_hosts and import_module(ours).register():
                    _registered_hosts.add(host)


def check_wait(gates: Sequence[Gate], *, is_blocking: bool) -> None:
    """Raise GateWouldBlock when waiting for these gates here would never end."""
    for rule in tuple(_waiting_rules):
        rule(gates, is_blocking=is_blocking)


def can_be_clicked(*, is_blocking: bool) -> bool:
    """True if a user sees the runs and can click while a call waits here."""
    return any(rule(is_blocking=is_blocking) for rule in tuple(_click_rules))
