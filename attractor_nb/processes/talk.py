"""A program that communicates over stdin and stdout until it is stopped, such as an MCP server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from attractor_nb.processes.descendants import MARK_NAME
from attractor_nb.processes.local import SHELL, CommandJob, command_environment
from attractor_nb.processes.output import Channel, OutputChannel
from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

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
    """What it writes to stdout, as it comes."""

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
