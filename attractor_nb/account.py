"""The account of this process: what a record names when a person has answered here."""

from __future__ import annotations

import getpass
import os

from attractor_nb.model.question import signed
from attractor_nb.model.vocabulary import environment_variables

MAX_NAME_CHARS = 64


def signed_here(way: str) -> str:
    """A way of answering with the account of this process: ``ada (console)``; the way alone where none is known."""
    return signed(way, account_name())


def account_name() -> str:
    """The user of JupyterHub, else of the operating system; empty for a user without a name."""
    if name := os.environ.get(environment_variables.JUPYTERHUB_USER, ""):
        return name[:MAX_NAME_CHARS]
    try:
        return getpass.getuser()[:MAX_NAME_CHARS]
    except (ImportError, KeyError, OSError):
        return ""
