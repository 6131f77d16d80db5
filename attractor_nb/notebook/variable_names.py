"""By which name the user has a thing: looked up in the shell's namespace, by identity."""

from __future__ import annotations

# IPython's namespace has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

LATEST: Final = "_"
"""What IPython calls the value of the latest cell."""


class Names:
    """The names in one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._displayed: object = None

    def name_of(self, thing: object, *, of_run: bool = False) -> str:
        """What the user calls a thing; empty when it has no name.

        Args:
            thing: A run, or its result.
            of_run: Ask for the run of a result.
        """
        own: dict[str, Any] = self._shell.user_ns.copy()  # a run that ends looks from a thread of its own
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
