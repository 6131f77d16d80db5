"""Registry of presenters, which show runs: the notebook registers itself, so nothing below depends on it.

A presenter is called in the thread that called ``pipeline.run()``, just before the engine starts:
in a notebook that is the thread of the cell whose output the live view belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from attractor_nb.engine.gates import Gate


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


Presenter = Callable[[Presentable], None]
_presenters: list[Presenter] = []
_waiting_rules: list[WaitingRule] = []
_click_rules: list[ClickRule] = []
_namers: list[Namer] = []


def register_presenter(
    presenter: Presenter, waiting_rule: WaitingRule | None = None, click_rule: ClickRule | None = None
) -> Callable[[], None]:
    """Show every run that starts from now on; returns how to stop that."""
    _presenters.append(presenter)
    if waiting_rule is not None:
        _waiting_rules.append(waiting_rule)
    if click_rule is not None:
        _click_rules.append(click_rule)

    def remove() -> None:
        if presenter in _presenters:
            _presenters.remove(presenter)
        if waiting_rule in _waiting_rules:
            _waiting_rules.remove(waiting_rule)
        if click_rule in _click_rules:
            _click_rules.remove(click_rule)

    return remove


def register_namer(namer: Namer) -> Callable[[], None]:
    """Have words about runs use the names that the user has; returns how to stop that."""
    _namers.append(namer)

    def remove() -> None:
        if namer in _namers:
            _namers.remove(namer)

    return remove


def name_of(thing: object, *, of_run: bool = False) -> str:
    """The user's name for a run or a result, or for the run of a result; empty when it has none."""
    return next((name for namer in tuple(_namers) if (name := namer(thing, of_run=of_run))), "")


def are_runs_shown() -> bool:
    """True if a view shows runs, and so can take answers to gates."""
    return bool(_presenters)


def present(run: Presentable) -> None:
    """Show a run that is about to start."""
    for presenter in tuple(_presenters):
        presenter(run)


def check_wait(gates: Sequence[Gate], *, is_blocking: bool) -> None:
    """Raise GateWouldBlock when waiting for these gates here would never end."""
    for rule in tuple(_waiting_rules):
        rule(gates, is_blocking=is_blocking)


def can_be_clicked(*, is_blocking: bool) -> bool:
    """True if a user sees the runs and can click while a call waits here."""
    return any(rule(is_blocking=is_blocking) for rule in tuple(_click_rules))
