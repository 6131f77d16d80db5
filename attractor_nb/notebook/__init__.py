"""The notebook edge: magics, the live graph, gate cards, completion.

It is loaded by ``%load_ext attractor_nb`` and by nothing else, and imports widgets only when the
first live view is made, so that loading it costs next to nothing. No other package of the house
may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register magics, completion and the live view with a shell; loading twice changes nothing."""
    from attractor_nb.notebook.extension import load  # noqa: PLC0415 - the door stays light

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take out what ``load_ipython_extension`` put in."""
    from attractor_nb.notebook.extension import unload  # noqa: PLC0415 - the door stays light

    unload(shell)
