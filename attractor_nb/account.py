"""The account of this process: what a record names when a person has answered here."""

from __future__ import annotations

import getpass
import os

from attractor_nb.model.question import signed
from attractor_nb.model.vocabulary import environment_variables

_MAX_CHARS = 64


def signed_here(way: str) -> str:
    """A way of answering with the account of this process: ``ada (console)``; the way alone where none is known."""
    return signed(way, _account())


def _account() -> str:
    """The user of JupyterHub, else of the operating system; empty for a user without a name."""
    if name := os.environ.get(environment_variables.JUPYTERHUB_USER, ""):
        return name[:_MAX_CHARS]
    try:
        return getpass.getuser()[:_MAX_CHARS]
    except (ImportError, KeyError, OSError):
        return ""
