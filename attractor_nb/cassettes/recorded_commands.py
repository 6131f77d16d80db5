"""Records and replays commands: command line and input, exit code, output and files."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from msgspec.structs import replace

from attractor_nb.cassettes.recorded_forms import Marks, is_recorded, place_of, plain_error, raise_recorded
from attractor_nb.cassettes.stage_files import TooMuch, look, restore, written_since
from attractor_nb.cassettes.tape import inside, is_inside
from attractor_nb.decisions.replays.cache_keys import command_call, read_values
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.recorded_call import LEFT_OUT
from attractor_nb.model.events import RunWarning
from attractor_nb.redaction import redacted_value
from attractor_nb.stage import current_stage
from attractor_nb.storage.files.strict_json import JsonProblem, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.cassettes.tape import Tape
    from attractor_nb.model.calls.call_content import CallInputs
    from attractor_nb.protocols import CommandResult, Processes
    from attractor_nb.stage import StageScope

_OUTPUTS: Final = ("stdout", "stderr")
_OUTPUT_FILES: Final = tuple(f"{channel}.txt" for channel in _OUTPUTS)
_OWN_PREFIX: Final = "ATTRACTOR_"
"""Variables that say where and in which run a command is (ruling 25)."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """How a recorded command ended (``protocols.CommandResult``)."""

    exit_code: int
    stdout: str
    stderr: str
    is_timed_out: bool = False


class NoProcesses:
    """Starts no processes, for replays, which need no trust (``protocols.Processes``)."""

    starts_nothing: ClassVar[bool] = True

    async def run(self, command: str | Sequence[str], **options: Any) -> CommandResult:
        """Refuse."""
        del options
        name = command if isinstance(command, str) else command[0]
        raise TerminalError(f"a replay runs no commands, but this stage needs: {name}")


class RecordedProcesses:
    """Gives the recorded ends of commands, or runs them and records (``protocols.Processes``)."""

    def __init__(self, tape: Tape, processes: Processes) -> None:
        self._tape = tape
        self._processes = processes
        self.starts_nothing = getattr(processes, "starts_nothing", False)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_directory: Path | None = None,
        on_output: Any = None,
        **options: Any,
    ) -> CommandResult:
        """How the command ended when it was recorded, or ends now; see ``protocols.Processes``."""

        async def started() -> CommandResult:
            return await self._processes.run(
                command,
                cwd=cwd,
                env=env,
                stdin=stdin,
                output_directory=output_directory,
                on_output=on_output,
                **options,
            )

        if is_inside():
            return await started()
        scope = current_stage()
        place = self._tape.place_of(scope)
        inputs = _inputs(scope, command, cwd, env or {}, stdin)
        answer = self._tape.find(place, inputs)
        if answer is not None:
            return _replayed(answer, scope, output_directory, on_output)
        marks, before = Marks.of(scope), look(scope.files)
        try:
            with inside():
                result = await started()
        except Exception as error:  # recorded, whatever it is, and raised again
            if is_recorded(error):
                self._tape.add(place, inputs, marks.marked(redacted_value(plain_error(error))))
            raise
        if why := self._tape.add(place, inputs, marks.marked(_plain(result, scope, before))):
            message = f"{scope.node_id} is not on the cassette: {why}"
            scope.announce(RunWarning(message=message, node=scope.node_id))
        return result


def _inputs(
    scope: StageScope, command: str | Sequence[str], cwd: Path | None, env: Mapping[str, str], stdin: bytes
) -> CallInputs:
    """Return the inputs of a command: its line, stdin, variables and directory."""
    where = place_of(scope)
    line = command if isinstance(command, str) else "\0".join(command)
    context, text = _read(stdin)
    made = command_call(scope.node_id, where.without(line), read_values(context, None), place=where)
    values = dict(made.values)
    if cwd is not None:
        values["workdir"] = where.without(_named(cwd))
    if not isinstance(command, str):
        values["command"] = where.without_in(list(command))
    if text:
        values["stdin"] = where.without(text)
    own = {name: value for name, value in env.items() if not name.startswith(_OWN_PREFIX)}
    if own:
        values["environment"] = where.without_in(own)
    return replace(made, values=values)


def _read(stdin: bytes) -> tuple[dict[str, Any], str]:
    """The context that a command gets, or another input as text."""
    try:
        plain: Any = read_json(stdin) if stdin else {}
    except JsonProblem:
        plain = None
    if isinstance(plain, dict):
        return cast("dict[str, Any]", plain), ""
    try:
        return {}, stdin.decode()
    except UnicodeDecodeError:
        return {}, base64.b64encode(stdin).decode()


def _named(cwd: Path) -> str:
    """A working directory by its way from that of the program, where there is one below it."""
    try:
        here, path = Path.cwd(), cwd.absolute()
    except FileNotFoundError:  # that of the program was removed
        return str(cwd)
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _plain(result: CommandResult, scope: StageScope, before: Mapping[str, Any]) -> dict[str, Any]:
    """How a command ended, as JSON values without secrets; an empty output is left out."""
    try:
        files = written_since(scope.files, dict(before), known=_OUTPUT_FILES)
    except TooMuch as reason:
        return {LEFT_OUT: f"it {reason}"}
    plain: dict[str, Any] = {"exit_code": result.exit_code}
    plain |= {channel: text for channel in _OUTPUTS if (text := getattr(result, channel))}
    if result.is_timed_out:
        plain["is_timed_out"] = True
    if files:
        plain["files"] = files
    return redacted_value(plain)


def _replayed(
    answer: Mapping[str, Any], scope: StageScope, output_directory: Path | None, on_output: Any
) -> CommandResult:
    """How the command ended when it was recorded, its output streamed and stored, its files there again."""
    answer = Marks.of(scope).unmarked(answer)
    raise_recorded(answer)
    if type(answer.get("exit_code")) is not int:
        raise TerminalError(f"the recorded command of {scope.node_id} has no exit code", hint="record it again")
    result = RecordedResult(
        answer["exit_code"],
        str(answer.get("stdout", "")),
        str(answer.get("stderr", "")),
        is_timed_out=bool(answer.get("is_timed_out")),
    )
    for channel in _OUTPUTS:
        text = getattr(result, channel)
        if output_directory is not None:
            scope.files.write_text(f"{channel}.txt", text)
        if text and on_output is not None:
            on_output(channel, text)
    restore(scope.files, answer.get("files", {}))
    return result
