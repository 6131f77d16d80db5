"""A server as a process: its socket, its connections, its open files, its signals, its end.

A connection that is closed while something arrives is reset, and a reset may take away what was sent just
before it: the answer. So it is closed in one direction first, and what arrives then is let go, within bounds.
What is no HTTP, or has too long a head, is refused in the words that all else is refused in.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from attractor_nb.errors import OptionError
from attractor_nb.logs import own_logger
from attractor_nb.platforms import check_posix
from attractor_nb.runtime.prepare.known_secrets import redact_also
from attractor_nb.server.asgi_app import Server
from attractor_nb.server.guard import DEFAULT_HEADERS, HEADERS
from attractor_nb.server.replies import Problem, problem_response
from attractor_nb.server.server_settings import (
    ServerSettings,
    check_bind,
    check_documents,
    check_limits,
    checked_prefix,
    hosts_of,
    shown_host,
    tokens_of,
)
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import make_runs_base

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

MOST_BYTES: Final = 64 * 1024 * 1024
"""Most bytes that are discarded after a response."""
SILENT_SECONDS: Final = 5.0
"""Longest silence before that ends."""
MOST_SECONDS: Final = 30.0
"""Time limit of all of it."""
_UNREAD: Final = (h11.SEND_BODY, h11.ERROR)
_BEFORE_AN_ANSWER: Final = (h11.IDLE, h11.SEND_RESPONSE)

GRACE_SECONDS = 3
LATE_MODULES = ("attractor_nb.pipeline.pipeline", "attractor_nb.studio.inspect.inspect_run")
"""Modules for runs and their inspection: slow to load, so they are loaded while the first requests come."""
_BACKLOG = 2048

LOGGER = own_logger(__name__)
FOR_A_RUN: Final = 5
"""The log, the directory and the lock of a run under way, and the directory of a stage or two."""
FOR_THE_REST: Final = 256


class Connection(H11Protocol):
    """One connection of uvicorn's, which ends in order whatever still arrives."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._line: asyncio.Transport | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_lingering = False
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection."""
        self._line = transport
        super().connection_made(_Line(transport, self._end))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        for timer in self._timers.values():
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrives: of what is behind its answer only note how much it is."""
        if self._is_lingering or (self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY):
            self._unread_bytes += len(data)
            if self._unread_bytes > MOST_BYTES:
                self._abort()
                return
        else:
            self._unread_bytes = 0
        if self._is_lingering:
            self._wait("silent", SILENT_SECONDS)
        else:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; called while h11's error is being handled."""
        if self.conn.our_state in _BEFORE_AN_ANSWER:
            response = problem_response(_problem_of(sys.exception(), msg))
            headers = [*response.raw_headers, *HEADERS, *DEFAULT_HEADERS, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=response.status_code, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def shutdown(self) -> None:
        """The server ends: wait no longer for answered clients."""
        if self._is_lingering:
            self._abort()
        else:
            super().shutdown()

    def _end(self) -> None:
        """Close the connection, at once when nothing more can arrive."""
        line = self._line
        assert line is not None, "it is closed after it was made"
        if self.conn.their_state not in _UNREAD or not line.can_write_eof():
            line.close()
            return
        self._is_lingering = True
        if self.cycle is not None and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] - None before the first request
            self.cycle.disconnected = True  # a body that cannot be read is not waited for
            self.cycle.message_event.set()
        line.write_eof()
        line.resume_reading()
        self._wait("silent", SILENT_SECONDS)
        self._wait("all", MOST_SECONDS)

    def _wait(self, name: str, seconds: float) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()
        self._timers[name] = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        if self._line is not None:
            self._line.abort()


class _Line(asyncio.Transport):
    """The transport that uvicorn receives: closing it asks its connection to."""

    def __init__(self, line: asyncio.Transport, end: Callable[[], None]) -> None:
        super().__init__()
        self._line = line
        self._end = end
        self._is_closing = False

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._end()

    def is_closing(self) -> bool:
        return self._is_closing or self._line.is_closing()

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._line.write(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._line.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._line.pause_reading()

    def resume_reading(self) -> None:
        self._line.resume_reading()


def _problem_of(error: BaseException | None, words: str) -> Problem:
    status = getattr(error, "error_status_hint", 400)
    if status == 431:
        return Problem(431, "head-too-large", "The head of the request is too long", hint="send fewer headers")
    return Problem(400, "http", "The request is not HTTP", str(error or words))


def run_server(
    root: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    users: Sequence[str],
    prefix: str,
    on_ready: Callable[[str], None] | None,
    allow_remote: bool,
    allowed_hosts: Sequence[str],
    documents: Path | None,
    edit: bool,
    recover: bool,
    max_runs: int,
    max_streams: int,
    version: str,
) -> None:
    """Serve until the process is told to end; see ``attractor_nb.server.serve``."""
    check_posix()
    check_bind(host, is_remote_allowed=allow_remote)
    prefix, tokens = checked_prefix(prefix), tokens_of(users, token)
    check_limits(max_runs=max_runs, max_streams=max_streams)
    check_documents(documents, is_editing=edit)
    for secret in filter(None, (token, *tokens.values())):
        redact_also(secret)  # no stage can print it
    make_runs_base(Disk(), refuse_linked(root), is_synced=False)
    make_room(max_runs, max_streams)
    listening = listen(host, port)
    with contextlib.closing(listening):
        port = listening.getsockname()[1]
        settings = ServerSettings(
            root=root.absolute(),
            tokens=tokens,
            hosts=hosts_of(host, port, allowed_hosts),
            prefix=prefix,
            documents=documents.absolute() if documents is not None else None,
            is_editing=edit,
            is_recovering=recover,
            max_runs=max_runs,
            max_streams=max_streams,
        )
        # Behind the #: a browser keeps it to itself, so that it is in no log and in no Referer.
        urls = [f"http://{shown_host(host)}:{port}{prefix}/#token={each}" for each in tokens.values()]

        def announce() -> None:
            if on_ready is not None:
                for url in urls:
                    on_ready(url)

        process = ServerProcess(Server(settings, version=version), announce)
        process.run(sockets=[listening])


class ServerProcess(uvicorn.Server):
    """Uvicorn, which also says when it listens, and ends streams before it waits for connections to end."""

    def __init__(self, server: Server, on_ready: Callable[[], Any]) -> None:
        super().__init__(
            uvicorn.Config(
                server.app,
                log_config=None,
                access_log=False,
                lifespan="on",
                server_header=False,
                date_header=False,
                proxy_headers=False,
                http=Connection,  # whatever is installed beside it: its bound on a head is the one below
                ws="none",
                timeout_graceful_shutdown=GRACE_SECONDS,
                h11_max_incomplete_event_size=64 * 1024,
                backlog=_BACKLOG,
            )
        )
        self._server = server
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests, and say so."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()
            asyncio.get_running_loop().run_in_executor(None, _load_late)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, which would keep their connections open, and then all else."""
        self._server.end_streams()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """A signal ends the server in order; then ``serve`` returns, and its caller continues."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()  # it would raise them again, for a caller who never gets to know


def _load_late() -> None:
    for name in LATE_MODULES:
        import_module(name)


def listen(host: str, port: int) -> socket.socket:
    """The socket, before anything is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP: asyncio then sends each piece at once; the kernel would hold a body back for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the signature is the standard library's
    except (OSError, OverflowError) as error:
        listening.close()
        raise OptionError(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}",
            hint="name another port, or 0 for any that is free",
        ) from None
    return listening


def make_room(max_runs: int, max_streams: int) -> None:
    """Let this process open what it may need, as far as the system lets it."""
    needed = needed_files(max_runs, max_streams)
    if (allowed := raise_limit(needed)) < needed:
        LOGGER.info(
            "%d runs and %d streams may need %d open files, and this process may have %d",
            max_runs,
            max_streams,
            needed,
            allowed,
        )


def needed_files(max_runs: int, max_streams: int) -> int:
    """The maximum number of files that a server has open at a time.

    >>> needed_files(1_000, 2_000)
    7256
    """
    return FOR_A_RUN * max_runs + max_streams + FOR_THE_REST


def raise_limit(needed: int) -> int:
    """Raise how many files this process may open, up to what it may raise it to; how many it may open then.

    Many systems begin with a soft limit of 1,024, which everybody may raise up to the hard one.
    """
    import resource  # noqa: PLC0415 - Windows has none

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        with contextlib.suppress(ValueError, OSError):  # macOS has a limit beside the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return needed if soft == resource.RLIM_INFINITY else soft
