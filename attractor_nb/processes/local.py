"""Commands on this machine: environment, start, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from msgspec import Struct

from attractor_nb.errors import TerminalError
from attractor_nb.model.shortage import is_shortage
from attractor_nb.processes.descendants import MARK_NAME, ChildProcess, Descendants, Watchdog
from attractor_nb.processes.output import Channel, OutputChannel
from attractor_nb.redaction import address_secrets, holds_secret, is_secret_name
from attractor_nb.storage.files.disk import Disk, storage_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.processes.output import OutputListener

SHELL = "/bin/sh"
GRACE_SECONDS = 1.0
"""Between TERM and KILL, after a timeout."""
CANCEL_GRACE_SECONDS = 0.3
"""Between TERM and KILL when the stage is cancelled: somebody waits for the prompt."""
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
"""What a session of an agent sets for the programs that it starts: another agent would take itself for a part of it."""
_POLL_SECONDS = 0.02
_DRAIN_SECONDS = 0.25


class CommandOutput(Struct, frozen=True):
    """How a command ended (``protocols.CommandResult``)."""

    exit_code: int  #: Its exit code; negative: the signal that ended it.
    stdout: str  #: Its output, decoded with replacement; the middle of a long one is left out.
    stderr: str  #: Its error output, likewise.
    is_timed_out: bool = False  #: The time ran out and the group was ended.


class LocalProcesses:
    """Commands on this machine (``protocols.Processes``)."""

    def __init__(
        self, *, shell: str = SHELL, environment: Mapping[str, str] | None = None, disk: Disk | None = None
    ) -> None:
        """Take a shell, and what commands inherit from: this process's environment if not given.

        Args:
            shell: Runs commands that are texts.
            environment: What commands inherit from.
            disk: Where their output is spooled; tests give their own.
        """
        self._shell = shell
        self._environment = environment
        self._disk = disk or Disk()

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
            job = await CommandJob.start(arguments, cwd, environment, stdin, channels, mark, stack)
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

    Values are looked at as well as names: the address of a server of ours contains its token, and who has that
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
        """
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
            watchdog = _watchdog(mark, until_end)
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
        descendants = Descendants(process.pid, mark, watchdog.started_ticks)
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
        except BaseException:
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


def _watchdog(mark: str, stack: contextlib.ExitStack) -> Watchdog:
    try:
        return Watchdog.start(mark, stack)
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
