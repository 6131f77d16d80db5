"""The directory in which a program works, which may be gone: it is asked for here alone, with our own error."""

from __future__ import annotations

from pathlib import Path

from attractor_nb.errors import OptionError


def here() -> Path:
    """The directory in which the program works."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise OptionError(
            "the current directory was removed", hint="change to another; a run can name one: workdir=, --workdir DIR"
        ) from None
