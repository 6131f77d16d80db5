"""Records and replays commands: command line and input, exit code, output and files."""

from __future__ import annotations

import base64
import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from msgspec.structs import replace

from attractor_nb.cassettes.tape import (
    Placeholders,
    Tape,
    inside,
    is_inside,
    is_recorded,
    place_of,
    plain_error,
    raise_recorded,
)
from attractor_nb.decisions.commits import COST_KEY
from attractor_nb.decisions.replays.cache_keys import command_call, read_values
from attractor_nb.errors import StorageError, TerminalError
from attractor_nb.model.calls.call_content import LEFT_OUT, CallInputs
from attractor_nb.model.events import RunWarning
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.stage import StageFiles, StageScope, current_stage
from attractor_nb.storage.files.atomic import entries_below, read_plain_file
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import STATUS_NAME, VISITS_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.protocols import CommandResult, Processes


_OUTPUTS: Final = ("stdout", "stderr")
_OUTPUT_FILES: Final = tuple(f"{channel}.txt" for channel in _OUTPUTS)
_OWN_PREFIX: Final = environment_variables.OWN_BEGINNING
"""Variables that say where and in which run a command is (ruling 25)."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """The result of a recorded command (``protocols.CommandResult``)."""

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
        """The result of the command, recorded or new; see ``protocols.Processes``."""

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
        marks, before = Placeholders.of(scope), look(scope.files)
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
    """The result of a command, as JSON values without secrets; an empty output is left out."""
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
    """The recorded result of the command, with its output streamed and stored and its files restored."""
    answer = Placeholders.of(scope).unmarked(answer)
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


# The files that a call leaves in its stage's directory: found, recorded, and put there again.

MAX_FILES: Final = 50
MAX_FILE_BYTES: Final = 1024 * 1024
FREE: Final[Mapping[str, float]] = {"cost_usd": 0.0}
"""The usage of what was replayed: it is known to cost nothing."""

Found = dict[str, Any]
"""Facts that show whether a file was written again: its content in memory, size and times on the disk."""


class TooMuch(Exception):
    """The reason the files of a call cannot be recorded, in words that complete "it …"."""


def look(files: StageFiles) -> Found:
    """The files of a stage as they are now."""
    texts = _texts_in_memory(files)
    if texts is not None:
        return dict(texts)
    return {
        name: (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        for name, facts in entries_below(files.directory, is_left_out=VISITS_NAME.__eq__)
        if stat.S_ISREG(facts.st_mode)
    }


def written_since(files: StageFiles, before: Found, *, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """The files written since a look, as JSON values: ``text`` or ``base64`` by name.

    Args:
        files: The stage's.
        before: The look.
        known: Names of files that are recorded otherwise.
    """
    now = look(files)
    contents: dict[str, bytes] = {}
    for name, facts in now.items():
        if name in known or before.get(name) == facts:
            continue
        data = _content(files, name, facts)
        if data is None or before.get(name) == data.decode("utf-8", "replace"):
            continue
        contents[name] = data
    if len(contents) > MAX_FILES:
        raise TooMuch(f"wrote {len(contents)} files, more than the {MAX_FILES} that a cassette accepts")
    return {name: _plain_file(data) for name, data in sorted(contents.items())}


def restore(files: StageFiles, recorded: Mapping[str, Any]) -> None:
    """Put recorded files into the directory of a stage; what they say of costs was paid before."""
    for name, plain in recorded.items():
        data = _data(name, plain)
        files.write_bytes(name, _at_no_cost(data) if name == STATUS_NAME else data)


def _texts_in_memory(files: StageFiles) -> Mapping[str, str] | None:
    """The files of a run that keeps nothing, while its directory was not asked for; else None."""
    if getattr(files, "is_on_disk", True):
        return None
    return cast("Mapping[str, str]", getattr(files, "texts", {}))


def _content(files: StageFiles, name: str, facts: Any) -> bytes | None:
    if isinstance(facts, str):
        return facts.encode("utf-8", "backslashreplace")
    try:
        return read_plain_file(files.directory / name, max_bytes=MAX_FILE_BYTES)
    except StorageError as error:
        raise TooMuch(f"wrote a file that a cassette cannot store ({error.message})") from None


def _plain_file(data: bytes) -> dict[str, str]:
    clean = redacted(data.decode("latin-1")).encode("latin-1")
    try:
        text = clean.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(clean).decode()}
    return {"base64": base64.b64encode(clean).decode()} if "\0" in text else {"text": text}


def _data(name: str, plain: Any) -> bytes:
    try:
        if "text" in plain:
            return plain["text"].encode("utf-8", "surrogatepass")
        return base64.b64decode(plain["base64"], validate=True)
    except (KeyError, TypeError, AttributeError, ValueError):  # ValueError: no base64
        raise TerminalError(
            f"the recording of the file {name!r} is damaged", hint="record again, or repair the cassette"
        ) from None


def _at_no_cost(data: bytes) -> bytes:
    """A status.json that says that it cost nothing, if it said anything of that."""
    try:
        plain = read_json(data)
    except JsonProblem:
        return data
    if not isinstance(plain, dict):
        return data
    entries = cast("dict[str, Any]", plain)
    updates = entries.get("context_updates")
    has_price = "usage" in entries or (isinstance(updates, dict) and COST_KEY in updates)
    return json.dumps({**entries, "usage": dict(FREE)}, indent=2).encode() if has_price else data
