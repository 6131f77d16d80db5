"""Commands on this machine: environment, start, end."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import re
import secrets
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, cast

from msgspec import Struct

from attractor_nb.errors import TerminalError
from attractor_nb.model.stop import is_shortage
from attractor_nb.platforms import check_posix
from attractor_nb.processes.descendants import MARK_NAME, ChildProcess, Descendants, Watchdog
from attractor_nb.processes.process_table import PROC, process_table
from attractor_nb.redaction import StreamRedactor, address_secrets, holds_secret, is_secret_name
from attractor_nb.storage.files.disk import Disk, storage_error, write_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.processes.process_table import ProcessTable

    OutputListener = Callable[[str, str], None]


SHELL = "/bin/sh"
GRACE_SECONDS = 1.0
"""Between TERM and KILL, after a timeout."""
CANCEL_GRACE_SECONDS = 0.3
"""Between TERM and KILL when the stage is cancelled: the user waits for the prompt."""
PROVIDER_VARIABLES = re.compile(
    r"(?:OPENAI|ANTHROPIC|AZURE_OPENAI|GEMINI|VERTEX|MISTRAL|COHERE|GROQ|OPENROUTER|TOGETHER|DEEPSEEK"
    r"|XAI|FIREWORKS|PERPLEXITY|REPLICATE|HUGGINGFACE|HF|BEDROCK|WATSONX)_.*"
    r"|AWS_(?:ACCESS_KEY_ID|SESSION_TOKEN)|GOOGLE_APPLICATION_CREDENTIALS",
    re.IGNORECASE,
)
"""Environment variables that no command inherits, beside those whose name or value says that they are secret."""
NEEDED_NAMES = re.compile(r"(?i:(?:https?|ftp|all|no)_proxy)|PATH|HOME|PWD|OLDPWD|USER|LOGNAME|SHELL|TMPDIR|TERM|LANG")
"""Those that every command inherits, whatever they contain: without them it finds no program, file or network."""
SESSION_MARKS = re.compile(
    r"CLAUDECODE|CLAUDE_CODE_(?:ENTRYPOINT|SSE_PORT|(?:\w+_)?SESSION(?:_\w+)?|WEBSOCKET_AUTH_FILE_DESCRIPTOR)"
    r"|CLAUDE_AGENT_SDK_VERSION|CLAUDE_(?:ENV_FILE|PROJECT_DIR|PLUGIN_ROOT)"
    r"|CODEX_(?:THREAD_ID|INTERNAL_ORIGINATOR_OVERRIDE)|GEMINI_CLI|GEMINI_CLI_(?:IDE_\w+|NO_RELAUNCH)"
)
"""Variables that a session of an agent sets for its programs: another agent would join that session."""
_POLL_SECONDS = 0.02
_DRAIN_SECONDS = 0.25


class CommandOutput(Struct, frozen=True):
    """The result of a command: exit code and output (``protocols.CommandResult``)."""

    exit_code: int  #: Its exit code; negative: the signal that ended it.
    stdout: str  #: Its output, decoded with replacement; the middle of a long one is left out.
    stderr: str  #: Its error output, likewise.
    is_timed_out: bool = False  #: The time ran out and the group was ended.


class LocalProcesses:
    """Commands on this machine (``protocols.Processes``)."""

    def __init__(
        self,
        *,
        shell: str = SHELL,
        environment: Mapping[str, str] | None = None,
        disk: Disk | None = None,
        proc: Path = PROC,
    ) -> None:
        """Take a shell, and what commands inherit from: this process's environment if not given.

        Args:
            shell: Runs commands that are texts.
            environment: What commands inherit from.
            disk: Where their output is spooled; tests give their own.
            proc: Where the kernel shows processes as files, if it does; tests give their own.
        """
        self._shell = shell
        self._environment = environment
        self._disk = disk or Disk()
        self._proc = proc

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float | None = None,
        output_directory: Path | None = None,
        on_output: OutputListener | None = None,
    ) -> CommandOutput:
        """Run a command and wait for its end; cancelling ends it and all that it started.

        Args:
            command: Text for the shell, or an argument list.
            cwd: Working directory.
            env: Values added to a copy of the environment that has no provider keys.
            stdin: What it reads; then its input ends.
            timeout_seconds: Then the group gets TERM, a grace, and KILL.
            output_directory: Where ``stdout.txt`` and ``stderr.txt`` get the output, up to
                ``output.MAX_SPOOLED_BYTES`` each.
            on_output: Called with ``(channel, text)`` as output arrives.
        """
        arguments = [self._shell, "-c", command] if isinstance(command, str) else list(command)
        mark = secrets.token_hex(8)
        environment = {**command_environment(self._environment), **(env or {}), MARK_NAME: mark}
        with contextlib.ExitStack() as stack:
            channels = [
                stack.enter_context(OutputChannel(name, output_directory, on_output, self._disk))
                for name in ("stdout", "stderr")
            ]
            job = await CommandJob.start(arguments, cwd, environment, stdin, channels, mark, stack, self._proc)
            is_timed_out = False
            grace = CANCEL_GRACE_SECONDS
            try:
                is_timed_out = not await job.wait(timeout_seconds)
                grace = GRACE_SECONDS
            finally:
                exit_code = await job.end(grace)
        for channel in channels:
            channel.raise_failure()
        stdout, stderr = (channel.text() for channel in channels)
        return CommandOutput(exit_code, stdout, stderr, is_timed_out)


def command_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that commands inherit: without provider keys and other secrets, and marks of a session.

    Values are looked at as well as names: the address of our server contains its token, and anyone who has that
    can answer its gates (ruling 43). A session of an agent is the one that this process may run in.
    """
    inherited = os.environ if environment is None else environment
    return {name: value for name, value in inherited.items() if not _is_withheld(name, value)}


def _is_withheld(name: str, value: str) -> bool:
    if NEEDED_NAMES.fullmatch(name):
        return False
    if is_secret_name(name) or PROVIDER_VARIABLES.fullmatch(name) or SESSION_MARKS.fullmatch(name):
        return True
    return bool(address_secrets(value)) or holds_secret(value)


class CommandJob:
    """A command that runs."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def __init__(
        self, process: ChildProcess, watchdog: Watchdog, channels: Sequence[Channel], descendants: Descendants
    ) -> None:
        self._process = process
        self._watchdog = watchdog
        self._channels = channels
        self._descendants = descendants

    @classmethod
    async def start(
        cls,
        arguments: Sequence[str],
        cwd: Path | None,
        environment: Mapping[str, str],
        stdin: bytes | int,
        channels: Sequence[Channel],
        mark: str,
        until_end: contextlib.ExitStack,
        proc: Path = PROC,
    ) -> CommandJob:
        """Start a command.

        Args:
            arguments: The program and its arguments.
            cwd: Working directory.
            environment: All that it gets.
            stdin: What it reads, or a descriptor that it reads from.
            channels: What take its stdout and its stderr.
            mark: By which its descendants are found.
            until_end: What has to last as long as it does.
            proc: Where the kernel shows processes as files, if it does.
        """
        check_posix()
        table = process_table(proc)
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as stack:
            source = stdin if isinstance(stdin, int) else stack.enter_context(_input_file(stdin))
            writers: list[int] = []
            for channel in channels:
                reader, writer = os.pipe()
                stack.callback(os.close, writer)
                writers.append(writer)
                pipe = os.fdopen(reader, "rb", buffering=0)
                await loop.connect_read_pipe(lambda channel=channel: channel, pipe)
            watchdog = _watchdog(mark, until_end, table, proc)
            try:
                process = ChildProcess(
                    arguments,
                    stdin=source,
                    stdout=writers[0],
                    stderr=writers[1],
                    cwd=cwd,
                    env=environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                await watchdog.dismiss()
                raise _cannot_start(arguments, cwd, error) from error
            except BaseException:  # cancelled: the command may have started all the same
                await watchdog.end_all()
                raise
            watchdog.watch(process.pid)
        descendants = Descendants(process.pid, mark, watchdog.started_ticks, table)
        return cls(process, watchdog, channels, descendants)

    async def wait(self, timeout_seconds: float | None) -> bool:
        """Wait for the command's end; False when the time ran out first."""
        ended = asyncio.ensure_future(self._process.wait())
        waited: set[asyncio.Future[Any]] = {ended, *(channel.failed for channel in self._channels)}
        try:
            done, _ = await asyncio.wait(waited, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        return bool(done)

    async def end(self, grace_seconds: float) -> int:
        """End whatever is left of the command, at the latest after the grace; its exit code."""
        try:
            if self._descendants.is_alive():
                await self._end_gently(grace_seconds)
        except BaseException:  # an interrupt, too, must leave no command behind
            self._descendants.kill()  # interrupted before it was known whether anything is alive
            raise
        finally:
            # Whatever interrupts us: nothing of the group is alive by now, so this does not wait long.
            exit_code = await self._process.wait()
            await self._watchdog.dismiss()
        await asyncio.wait([channel.ended for channel in self._channels], timeout=_DRAIN_SECONDS)
        return exit_code

    async def _end_gently(self, grace_seconds: float) -> None:
        """TERM, wait, KILL; the last one also when waiting is interrupted."""
        now = asyncio.get_running_loop().time
        deadline = now() + grace_seconds
        try:
            self._descendants.end_gently()
            while now() < deadline and self._descendants.is_alive():  # noqa: ASYNC110 - the end of a stranger's process is no event
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._descendants.kill()


def _watchdog(mark: str, stack: contextlib.ExitStack, table: ProcessTable, proc: Path) -> Watchdog:
    try:
        return Watchdog.start(mark, stack, table, proc)
    except OSError as error:
        raise _cannot_start([SHELL], None, error) from error


def _input_file(data: bytes) -> BinaryIO:
    """A file that a command reads to its end; unlike a pipe it never blocks us."""
    try:
        file = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's with closes it
        file.write(data)
        file.seek(0)
    except OSError as error:
        raise storage_error(error, "write", tempfile.gettempdir()) from error
    return file


def _cannot_start(arguments: Sequence[str], cwd: Path | None, error: Exception) -> TerminalError:
    if cwd is not None and not cwd.is_dir():
        return TerminalError(f"the working directory {cwd} does not exist", hint="create it, or name another")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return TerminalError(
        f"{arguments[0]!r} cannot be started: {reason.lower()}",
        hint="check that it is installed and on the PATH" if isinstance(error, FileNotFoundError) else "",
        is_unmeasured=is_shortage(error),
    )


# The output of a command: kept in part, spooled to a file, passed on as it arrives.
#
# However much a command writes, memory and disk stay bounded; what is over the bounds is read and
# dropped, so that the command never blocks.

MAX_KEPT_BYTES = 1024 * 1024
"""Of each output, in memory: its first and its last half."""
MAX_SPOOLED_BYTES = 64 * 1024 * 1024
"""Of each output, on disk and to the listener."""


class Channel(asyncio.Protocol):
    """A receiver of one output of a command.

    Attributes:
        failed: Done when it can take no more: the command is then ended.
        ended: Done when the last writer has closed the pipe, or this side has.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipe."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface of asyncio
        """The last writer closed the pipe, or we did."""
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Close the pipe."""
        if self._transport is not None:
            self._transport.close()


class OutputChannel(Channel):
    """One output of a command: kept in part, spooled, and passed on as it arrives."""

    def __init__(self, name: str, directory: Path | None, listener: OutputListener | None, disk: Disk) -> None:
        super().__init__()
        self._name = name
        self._path = None if directory is None else directory / f"{name}.txt"
        self._listener = listener
        self._redactor = StreamRedactor()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._disk = disk
        self._file = -1
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                parent = self._disk.open_directory(self._path.parent)
                try:
                    self._file = self._disk.open_update(self._path.name, parent)
                finally:
                    self._disk.close(parent)
                self._disk.truncate(self._file, 0)
            except OSError as error:
                self.__exit__()
                raise storage_error(error, "write", self._path) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._failure is None and (rest := self._redactor.finish()):
            self._take(rest.encode("latin-1"))
        if self._file >= 0:
            self._disk.close(self._file)
            self._file = -1

    def data_received(self, data: bytes) -> None:
        """Take a piece of output; a failure here ends the command."""
        if self._failure is None:
            # Bytes as Latin-1 come back as they were, whatever the command's encoding is.
            self._take(self._redactor.feed(data.decode("latin-1")).encode("latin-1"))

    def _take(self, data: bytes) -> None:
        self._keep(data)
        room = MAX_SPOOLED_BYTES - self._size
        self._size += len(data)
        piece = data[: max(room, 0)]
        try:
            if piece and self._file >= 0:
                self._spool(piece)
            if piece and self._listener is not None and (text := self._decoder.decode(piece)):
                self._listener(self._name, text)
        except Exception as error:  # noqa: BLE001 - kept, and raised where the command is awaited
            self._failure = error
            if not self.failed.done():
                self.failed.set_result(None)

    def _keep(self, data: bytes) -> None:
        half = MAX_KEPT_BYTES // 2
        if room := half - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * half:
            del self._tail[:-half]

    def _spool(self, piece: bytes) -> None:
        assert self._path is not None, "only a channel with a path has a file"
        try:
            write_all(self._disk, self._file, piece)
        except OSError as error:
            raise storage_error(error, "write", self._path) from error

    def text(self) -> str:
        """The output as far as it was kept."""
        tail = bytes(self._tail[-(MAX_KEPT_BYTES // 2) :])
        left_out = self._size - len(self._head) - len(tail)
        gap = f"\n[… {left_out} bytes left out …]\n" if left_out else ""
        if not left_out:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")

    def raise_failure(self) -> None:
        """Raise what went wrong while output was taken."""
        if self._failure is not None:
            raise self._failure


# A program that communicates over stdin and stdout until it is stopped, such as an MCP server.

END_GRACE_SECONDS: Final = 2.0
"""Between the end of its input and TERM, and between TERM and KILL."""


class Talk:
    """A program that runs.

    Attributes:
        pid: Its process id, which is that of its group, too.
        ended: Done when its stdout has ended: it has no more to say.
        exit_code: Its exit code, once it was stopped or has ended and was waited for; else None.
    """

    def __init__(self, job: CommandJob, writer: asyncio.StreamWriter, stdout: _Stdout, stderr: OutputChannel) -> None:
        self.pid = job.pid
        self.ended = stdout.ended
        self.exit_code: int | None = None
        self._job = job
        self._writer = writer
        self._stderr = stderr

    async def write(self, data: bytes) -> None:
        """Write to its stdin."""
        self._writer.write(data)
        await self._writer.drain()

    def last_words(self, lines: int = 5) -> str:
        """The last lines that it wrote to stderr."""
        return "\n".join(self._stderr.text().strip().splitlines()[-lines:])

    async def stop(self) -> None:
        """Close its input, wait for it to exit, and kill the remaining processes."""
        self._writer.close()
        try:
            await self._job.wait(END_GRACE_SECONDS)
        finally:
            self.exit_code = await self._job.end(END_GRACE_SECONDS)


class _Stdout(Channel):
    """The receiver of a program's stdout, which passes each piece on as it arrives."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        super().__init__()
        self._take = take

    def data_received(self, data: bytes) -> None:
        """Take a piece."""
        self._take(data)


@asynccontextmanager
async def talk(
    command: str,
    take: Callable[[bytes], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    disk: Disk | None = None,
) -> AsyncGenerator[Talk]:
    """Start a program; when the block is left, however that is, it and all that it started are ended.

    Args:
        command: Text for the shell.
        take: Called with what it writes to stdout, as it comes.
        cwd: Working directory.
        env: Values added to a copy of the environment that has no provider keys.
        disk: What its outputs are made with; tests give their own.
    """
    mark = secrets.token_hex(8)
    environment = {**command_environment(), **(env or {}), MARK_NAME: mark}
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        reading, writing = os.pipe()
        pipe = stack.enter_context(os.fdopen(writing, "wb", buffering=0))
        stdout = _Stdout(take)
        stack.callback(stdout.close)
        stderr = stack.enter_context(OutputChannel("stderr", None, None, disk or Disk()))
        try:
            job = await CommandJob.start(
                [SHELL, "-c", command], cwd, environment, reading, [stdout, stderr], mark, stack
            )
        finally:
            os.close(reading)
        transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), pipe)
        stack.callback(transport.close)
        talking = Talk(job, asyncio.StreamWriter(transport, protocol, None, loop), stdout, stderr)
        try:
            yield talking
        finally:
            await talking.stop()
