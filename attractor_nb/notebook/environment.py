"""The environment of a cell: its kernel, whether a user can look and click, the user's own names.

Facts are probed once per question and are plain values, so that every decision upon them is a table
that tests can read. The module knows nothing of runs and widgets.
"""

from __future__ import annotations

# IPython's namespace has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.model.vocabulary import environment_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from IPython.core.interactiveshell import InteractiveShell
    from pydantic import BaseModel

LIVE_MODES: Final = ("auto", "on", "inline", "off")

VS_CODE_MARK: Final = "__vsc_ipynb_file__"
"""A variable that VS Code sets in the kernel."""
VOILA_MARK: Final = "VOILA_PREHEAT"
"""An environment variable that Voila sets for each kernel."""
LATEST: Final = "_"
"""Variable of IPython for the value of the latest cell."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts that decide how a run is shown and how it may be waited for."""

    has_kernel: bool = False  #: The shell is a Jupyter kernel's, so that widgets have a way to a browser.
    #: A person can click. nbclient, nbval, papermill and nbconvert say that no one answers (``allow_stdin`` is false in
    #: their requests); an interactive front-end says yes.
    is_attended: bool = False
    kernel_version: tuple[int, ...] = ()  #: Of ipykernel, such as (7, 4); empty for another kernel.
    subshell_count: int = 0  #: Subshells that the front-end has opened (ipykernel 7).
    #: The front-end cuts its outputs off from one another (VS Code: shadow trees, Colab: frames): a widget can be shown
    #: in its own output only.
    has_closed_outputs: bool = False
    is_page_last: bool = False  #: The page appears when all cells have ended (Voila).


def probe(shell: Any, environment: Mapping[str, str] = os.environ) -> Surroundings:
    """The facts about a shell (an ``InteractiveShell`` or None)."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return Surroundings()
    return Surroundings(
        has_kernel=True,
        # Kernels other than ipykernel (JupyterLite's) have no such mark; a person started them.
        is_attended=bool(getattr(kernel, "_allow_stdin", True)),
        kernel_version=_version(getattr(sys.modules.get("ipykernel"), "__version__", "")),
        subshell_count=_subshell_count(kernel),
        has_closed_outputs="google.colab" in sys.modules or VS_CODE_MARK in getattr(shell, "user_ns", {}),
        is_page_last=VOILA_MARK in environment,
    )


def is_live(around: Surroundings, mode: str = "", environment: Mapping[str, str] = os.environ) -> bool:
    """True if a run is shown by a widget.

    Args:
        around: The facts.
        mode: One of ``LIVE_MODES``; empty asks the environment variable, then means ``auto``.
        environment: Where the variable is looked up.

    Raises:
        OptionError: The mode is not known.
    """
    mode = _live_mode(mode, environment)
    if mode == "auto":
        return around.has_kernel and around.is_attended
    return mode != "off" and around.has_kernel


def is_inline(around: Surroundings, mode: str = "", environment: Mapping[str, str] = os.environ) -> bool:
    """True if the widget of a run is a part of the run's output, and does not stand in for a part of it.

    Args:
        around: The facts.
        mode: As in ``is_live``.
        environment: As there.

    Raises:
        OptionError: The mode is not known.
    """
    mode = _live_mode(mode, environment)
    return mode == "inline" or (mode != "off" and around.has_closed_outputs)


def _live_mode(mode: str, environment: Mapping[str, str]) -> str:
    mode = (mode or environment.get(environment_variables.LIVE, "") or "auto").strip().lower()
    if mode not in LIVE_MODES:
        raise OptionError(
            f"live mode {mode!r} is not known",
            hint=f"use one of {', '.join(LIVE_MODES)} ({environment_variables.LIVE})",
        )
    return mode


def models_in(names: Mapping[str, Any], wanted: Iterable[str]) -> dict[str, type[BaseModel]]:
    """The pydantic models among the names of a notebook, of those that are wanted."""
    found = {name: names.get(name) for name in wanted}
    return {name: one for name, one in found.items() if isinstance(one, type) and hasattr(one, "model_json_schema")}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _subshell_count(kernel: Any) -> int:
    thread = getattr(kernel, "shell_channel_thread", None)
    # ``manager`` would be made by the mere question; the private name tells whether it is there.
    manager = getattr(thread, "_manager", None)
    return 0 if manager is None else len(manager.list_subshell())


class Names:
    """The names in one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._displayed: object = None

    def name_of(self, thing: object, *, of_run: bool = False) -> str:
        """The user's name for a thing; empty if it has none.

        Args:
            thing: A run, or its result.
            of_run: Ask for the run of a result.
        """
        own: dict[str, Any] = self._shell.user_ns.copy()  # a run that ends looks from its own thread
        run_type = getattr(sys.modules.get("attractor_nb.pipeline.run"), "Run", None)

        view = getattr(thing, "view", None) if of_run else None  # a result has that of its run

        def is_it(value: Any) -> bool:
            if of_run:
                return run_type is not None and type(value) is run_type and value.view is view
            return value is thing

        names = [name for name, value in own.items() if not name.startswith("_") and is_it(value)]
        if names:
            return names[0]
        return LATEST if is_it(own.get(LATEST)) or (not of_run and self._is_displayed(thing)) else ""

    def note(self, thing: object) -> None:
        """A thing is about to be shown, most often as the value of a cell."""
        self._displayed = thing

    def _is_displayed(self, thing: object) -> bool:
        is_value = bool(getattr(self._shell.displayhook, "is_active", False))  # not by display(thing)
        return is_value and thing is self._displayed
