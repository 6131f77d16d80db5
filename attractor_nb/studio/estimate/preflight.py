"""Preflight checks of everything a run needs: `pipeline.doctor()`. Nothing is run, nothing is asked."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, overload
from urllib.parse import urlsplit

from attractor_nb.backends import LocalModelBackend, ProviderBackend, resolve_backend
from attractor_nb.backends.agents import installed_agents
from attractor_nb.backends.llm.addresses import address_of, key_variables, needs_key, public_address_of, set_key, unset
from attractor_nb.backends.llm.client_libraries import check_client
from attractor_nb.backends.local_model import check_server, find_model
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.extras import EXTRAS, install_command, missing_packages
from attractor_nb.model.calls.providers import PROVIDERS, Provider
from attractor_nb.model.states import NodeStatus
from attractor_nb.platforms import check_posix
from attractor_nb.protocols import ChecksGraphs, CodergenBackend
from attractor_nb.runtime.begin import describe_backend
from attractor_nb.runtime.prepare.budget import check_budget
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE
from attractor_nb.views.table import Column, DisplayedTable, Table

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.backends.agents.installed import InstalledAgent
    from attractor_nb.backends.llm.model_requests import Target
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.prepare.run_options import BackendSpec


# Checks of this machine: packages, keys, programs, disk, loopback. Nothing is changed.
#
# For keys they report the variables that are set, never their values.

FEW_BYTES: Final = 100 * 1024 * 1024
"""Free space below which a run is likely to fail."""
ENOUGH_BYTES: Final = 1024 * 1024 * 1024
CONNECT_SECONDS: Final = 5.0

FindingState = Literal["ok", "warn", "error", "note"]
"""``note``: a fact that matters to other pipelines than the one that was looked at."""


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """One checked item."""

    state: FindingState  #: ``ok``; ``warn``: it runs, perhaps not as meant; ``error``: it cannot run; or ``note``.
    subject: str  #: The checked item.
    message: str  #: The finding. Never the value of a key.
    remedy: str = ""  #: The remedy, or empty.


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
    """True if runs can be kept where they would be; nothing is made."""
    subject = "runs directory"
    try:
        existing = refuse_linked(place).absolute()
    except StorageError as error:
        yield PreflightFinding("error", subject, error.message, error.hint)
        return
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        yield PreflightFinding("error", subject, f"{existing} is not a directory", "choose another runs_dir")
        return
    try:
        check_posix()
    except OptionError as error:
        yield PreflightFinding("warn", subject, error.message, error.hint)
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
    """True if a server can be opened on this machine for itself, as the local model is."""
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return PreflightFinding("ok", "loopback", "a port on 127.0.0.1 can be opened")
    except OSError as error:
        message = f"no port on 127.0.0.1 can be opened: {error.strerror}"
        return PreflightFinding(missing, "loopback", message, "the local model needs one")


def connection(subject: str, host: str, port: int) -> PreflightFinding:
    """True if a server can be reached; nothing is sent to it."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return PreflightFinding("ok", subject, f"{host}:{port} answers")
    except OSError as error:
        message = f"{host}:{port} cannot be reached: {error.strerror or error}"
        return PreflightFinding("error", subject, message, "check the address, the network and its proxy")


def _found_agents() -> tuple[InstalledAgent, ...]:
    """The agents; in its own thread, for the caller may be in a running loop."""
    with ThreadPoolExecutor(1, thread_name_prefix="attractor-doctor") as threads:
        return threads.submit(lambda: asyncio.run(installed_agents())).result()


_COLUMNS: Final = (Column("", "state"), Column("what", "place"), Column("how it is"), Column("what to do"))
_MARKS: Final[dict[FindingState, str]] = {
    "ok": NodeStatus.SUCCESS.letter,
    "warn": "!",
    "error": NodeStatus.FAIL.letter,
    "note": NodeStatus.PENDING.letter,
}
_SHELL_WORDS: Final = frozenset(
    """alias break case cd command continue echo eval exec exit export false fg for getopts hash if jobs kill
    printf pwd read readonly return set shift source test times trap true type ulimit umask unset until wait
    while""".split()  # noqa: SIM905 - forty quoted words would be read by nobody
)
"""Commands that a shell knows itself."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+/-")


class Preflight(DisplayedTable, Sequence[PreflightFinding]):
    """The findings of a preflight check. ``is_ready`` is true if a run can begin."""

    def __init__(self, name: str, findings: Sequence[PreflightFinding]) -> None:
        self.name = name
        self._findings = tuple(findings)

    @overload
    def __getitem__(self, index: int) -> PreflightFinding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PreflightFinding, ...]: ...
    def __getitem__(self, index: int | slice) -> PreflightFinding | tuple[PreflightFinding, ...]:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def of(self, state: FindingState) -> tuple[PreflightFinding, ...]:
        """The findings of one state."""
        return tuple(found for found in self._findings if found.state == state)

    @property
    def is_ready(self) -> bool:
        """True if nothing was found that keeps a run from beginning or a stage from being done."""
        return not self.of("error")

    @property
    def headline(self) -> str:
        """The overall result in one line."""
        errors, warnings = len(self.of("error")), len(self.of("warn"))
        if not errors and not warnings:
            return f"{_MARKS['ok']} {self.name} is ready"
        counts = [f"{count} {word}{'s' * (count != 1)}" for count, word in ((errors, "error"), (warnings, "warning"))]
        listed = ", ".join(words for words in counts if not words.startswith("0 "))
        return (
            f"{_MARKS['error']} {self.name} is not ready: {listed}"
            if errors
            else f"! {self.name} is ready, with {listed}"
        )

    @property
    def table(self) -> Table:
        """The same as a table."""
        rows = [
            [f"{_MARKS[found.state]} {found.state}", found.subject, found.message, found.remedy]
            for found in self._findings
        ]
        states = ["" if found.state == "note" else found.state for found in self._findings]
        return Table(f"Preflight of {self.name}", _COLUMNS, rows, states=states, headline=self.headline)

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "name": self.name,
            "is_ready": self.is_ready,
            "findings": [
                {
                    "state": found.state,
                    "subject": found.subject,
                    "message": found.message,
                    "remedy": found.remedy or None,
                }
                for found in self._findings
            ],
        }


def examine_machine(runs_dir: Path | None = None) -> Preflight:
    """Check this machine, independent of any pipeline."""
    findings = [
        *extras(),
        *keys(),
        *agents(),
        local_model(),
        loopback(),
        *runs_directory(runs_dir or DEFAULT_RUNS_BASE),
    ]
    return Preflight("this machine", findings)


def examine(
    graph: Graph,
    *,
    name: str,
    diagnostics: Sequence[Diagnostic],
    backend: BackendSpec,
    runs_dir: Path | None,
    is_online: bool,
) -> Preflight:
    """Check that everything a pipeline needs is there.

    Args:
        graph: The graph as it will run.
        name: The pipeline's name.
        diagnostics: What lint found in it.
        backend: What would answer its prompts.
        runs_dir: Where its runs would be kept.
        is_online: Look whether the servers of its models can be reached, too.
    """
    findings = [
        *_lint(diagnostics),
        *_answering(graph, backend, is_online=is_online),
        *_commands(graph),
        *runs_directory(runs_dir or DEFAULT_RUNS_BASE),
    ]
    return Preflight(name, findings)


def _lint(diagnostics: Sequence[Diagnostic]) -> Iterator[PreflightFinding]:
    errors = [found for found in diagnostics if found.is_error]
    if errors:
        message = f"{errors[0].message}" + (f", and {len(errors) - 1} more" if len(errors) > 1 else "")
        yield PreflightFinding("error", "lint", message, "pipeline.lint() shows all, with fixes")
    else:
        yield PreflightFinding("ok", "lint", "no errors")


def _answering(graph: Graph, spec: BackendSpec, *, is_online: bool) -> Iterator[PreflightFinding]:
    """The backend that answers the prompts, and everything it needs."""
    try:
        backend = resolve_backend(spec)
    except OptionError as error:
        yield PreflightFinding("error", "backend", error.message, error.hint)
        return
    word = describe_backend(spec) or "simulated"
    if spec is None or spec == "simulated":
        message = "simulated: no model is asked"
        yield PreflightFinding("warn", "backend", message, 'give one: backend="llm", "local", "claude" …')
        return
    yield PreflightFinding("ok", "backend", word)
    if isinstance(backend, LocalModelBackend):
        yield local_model("error")
        yield loopback("error")
    if isinstance(backend, ProviderBackend):
        yield from _providers(graph, backend, is_online=is_online)
    elif isinstance(backend, ChecksGraphs):
        yield from _checked(graph, backend)


def _checked(graph: Graph, backend: ChecksGraphs) -> Iterator[PreflightFinding]:
    try:
        backend.check_graph(graph)
    except OptionError as error:
        yield PreflightFinding("error", "models", error.message, error.hint)


def _providers(graph: Graph, backend: ProviderBackend, *, is_online: bool) -> Iterator[PreflightFinding]:
    """True if the models that the nodes name can be asked."""
    if missing_packages("llm"):
        yield PreflightFinding("error", "extra llm", "not installed", install_command("llm"))
    wanted: dict[Target, tuple[str, bool]] = {}
    for node_id, targets, problem in _targets(graph, backend):
        if problem is not None:
            yield PreflightFinding("error", f"model of {node_id}", problem.message, problem.hint)
        for index, target in enumerate(targets):
            first, is_fallback = wanted.get(target, (node_id, True))
            wanted[target] = (first, is_fallback and index > 0)
    for target, (node_id, is_fallback) in wanted.items():
        missing: FindingState = "warn" if is_fallback else "error"
        yield _key(target, node_id, missing)
        try:
            check_client(target)
        except OptionError as error:
            yield PreflightFinding(missing, f"client for {target}", error.message, error.hint)
    if is_online:
        yield from _connections(wanted)
    yield from _budget(graph, backend)


def _targets(graph: Graph, backend: ProviderBackend) -> Iterator[tuple[str, tuple[Target, ...], TerminalError | None]]:
    for node in nodes_that_ask(graph):
        try:
            yield node.id, backend.targets_of(node), None
        except TerminalError as error:
            yield node.id, (), error
    for child in graph.children.values():
        yield from _targets(child, backend)


def _key(target: Target, node_id: str, missing: FindingState) -> PreflightFinding:
    subject, names = f"key for {target}", key_variables(target)
    if lacking := unset(target):
        verb = "is" if len(lacking) == 1 else "are"
        message = f"{' and '.join(lacking)} {verb} not set, and {node_id} asks {target}"
        return PreflightFinding(missing, subject, message, f"set {lacking[0]} in the environment")
    if found := set_key(target):
        return PreflightFinding("ok", subject, f"{found[0]} is set")
    if not needs_key(target, address_of(target)):
        return PreflightFinding("ok", subject, "none is needed at an address of its own")
    message = f"{' or '.join(names)} is not set, and {node_id} asks {target}"
    return PreflightFinding(missing, subject, message, f"set {names[0]} in the environment")


def _connections(targets: Iterable[Target]) -> Iterator[PreflightFinding]:
    for address in dict.fromkeys(public_address_of(target) for target in targets):
        parts = urlsplit(address)
        if parts.hostname:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            yield connection(f"server {parts.hostname}", parts.hostname, port)


def _budget(graph: Graph, backend: CodergenBackend) -> Iterator[PreflightFinding]:
    try:
        check_budget(graph, {}, backend)
    except OptionError as error:
        yield PreflightFinding("error", "budget", error.message, error.hint)
    except TerminalError:
        return  # said of its node


def _commands(graph: Graph) -> Iterator[PreflightFinding]:
    """The programs that the tools of a graph begin with, as far as they can be told without a shell."""
    seen: set[str] = set()
    for node in graph.nodes.values():
        word = _program(node.tool_command) if node.handler_type == "tool" else ""
        if not word or word in seen:
            continue
        seen.add(word)
        if found := shutil.which(word):
            yield PreflightFinding("ok", f"program {word}", found)
        else:
            message = f"not found, and {node.id} begins with it"
            yield PreflightFinding("warn", f"program {word}", message, "install it, or give its path")


def _program(command: str) -> str:
    """The program that a command begins with; empty when only a shell could tell."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return ""
    first = next((word for word in words if "=" not in word), "")
    return first if first and set(first) <= _PLAIN and first not in _SHELL_WORDS else ""
