"""What this machine has that runs may need: packages, keys, programs, disk, loopback. Nothing is changed.

Of keys it says which variables are set, never what they hold.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from attractor_nb.backends.agents import installed_agents
from attractor_nb.backends.model_file import check_server, find_model
from attractor_nb.errors import OptionError
from attractor_nb.extras import EXTRAS, install_command, missing_packages
from attractor_nb.model.calls.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attractor_nb.backends.agents.installed import InstalledAgent
    from attractor_nb.model.calls.providers import Provider

FEW_BYTES: Final = 100 * 1024 * 1024
"""Free space below which a run is likely to fail."""
ENOUGH_BYTES: Final = 1024 * 1024 * 1024
CONNECT_SECONDS: Final = 5.0

FindingState = Literal["ok", "warn", "error", "note"]
"""``note``: a fact that matters to other pipelines than the one that was looked at."""


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """One thing that was looked at."""

    state: FindingState  #: ``ok``; ``warn``: it runs, perhaps not as meant; ``error``: it cannot run; or ``note``.
    subject: str  #: What was looked at.
    message: str  #: How it is. Never the value of a key.
    remedy: str = ""  #: What to do, or empty.


def extras() -> Iterator[PreflightFinding]:
    """The optional parts of this package."""
    for name, extra in EXTRAS.items():
        if missing := missing_packages(name):
            message = f"not installed ({', '.join(missing)}): for {extra.purpose}"
            yield PreflightFinding("note", f"extra {name}", message, install_command(name))
        else:
            yield PreflightFinding("ok", f"extra {name}", f"installed, for {extra.purpose}")


def key_of(provider: Provider) -> str:
    """The variable that holds a provider's key; empty when none of its variables is set."""
    return next((name for name in provider.keys if os.environ.get(name, "").strip()), "")


def keys() -> Iterator[PreflightFinding]:
    """The keys of all known providers."""
    for provider in PROVIDERS:
        if not provider.keys:
            continue
        if found := key_of(provider):
            yield PreflightFinding("ok", f"key of {provider.name}", f"{found} is set")
        else:
            names = " or ".join(provider.keys)
            yield PreflightFinding("note", f"key of {provider.name}", f"{names} is not set")


def agents() -> Iterator[PreflightFinding]:
    """The command-line agents, each asked for its version."""
    for agent in _found_agents():
        subject = f"agent {agent.name}"
        if agent.is_installed:
            version = agent.version or f"of an unknown version ({agent.problem})"
            yield PreflightFinding("ok" if agent.version else "note", subject, f"{version}, {agent.executable}")
        else:
            yield PreflightFinding("note", subject, "not installed", agent.install)


def local_model(missing: FindingState = "note") -> PreflightFinding:
    """The model that runs on this machine; ``missing`` is how bad it is when it is not there."""
    try:
        check_server()
        path = find_model()
    except OptionError as error:
        return PreflightFinding(missing, "local model", error.message, error.hint)
    return PreflightFinding("ok", "local model", path.name)


def runs_directory(place: Path) -> Iterator[PreflightFinding]:
    """Whether runs can be kept where they would be; nothing is made."""
    existing = place.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    subject = "runs directory"
    if not existing.is_dir():
        yield PreflightFinding("error", subject, f"{existing} is not a directory", "choose another runs_dir")
        return
    if os.access(existing, os.W_OK | os.X_OK):
        what = "writable" if existing == place.absolute() else f"can be made below {existing}"
        yield PreflightFinding("ok", subject, f"{place}: {what}")
    else:
        message = f"{existing} cannot be written to"
        yield PreflightFinding("error", subject, message, "give runs_dir= a place of your own")
    yield disk(existing)


def disk(place: Path) -> PreflightFinding:
    """The free space of a place."""
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return PreflightFinding("warn", "disk", f"{place}: {error.strerror}")
    message = f"{free / 1024**3:,.1f} GB free"
    if free >= ENOUGH_BYTES:
        return PreflightFinding("ok", "disk", message)
    return PreflightFinding(
        "error" if free < FEW_BYTES else "warn", "disk", message, "make room, or give runs_dir= another disk"
    )


def loopback(missing: FindingState = "warn") -> PreflightFinding:
    """Whether a server can be opened on this machine for itself, as the local model is."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return PreflightFinding("ok", "loopback", "a port on 127.0.0.1 can be opened")
    except OSError as error:
        message = f"no port on 127.0.0.1 can be opened: {error.strerror}"
        return PreflightFinding(missing, "loopback", message, "the local model needs one")


def connection(subject: str, host: str, port: int) -> PreflightFinding:
    """Whether a server can be reached; nothing is sent to it."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return PreflightFinding("ok", subject, f"{host}:{port} answers")
    except OSError as error:
        message = f"{host}:{port} cannot be reached: {error.strerror or error}"
        return PreflightFinding("error", subject, message, "check the address, the network and its proxy")


def _found_agents() -> tuple[InstalledAgent, ...]:
    """The agents; in a thread of its own, for the caller may be in a running loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="attractor-doctor") as threads:
        return threads.submit(lambda: asyncio.run(installed_agents())).result()
