"""Any program of the command line as an agent: its command, where the task goes, how its output is read."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast

from attractor_nb.backends.agents.agent_backend import AgentBackend, texts
from attractor_nb.backends.agents.agent_events import AgentEvent, Ended, TextWritten, error_at, is_said_at, plain_text
from attractor_nb.backends.agents.output_reader import MAX_ANSWER_CHARACTERS, Listener
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.call_content import AGENT_TASK_FILE
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.backends.agents.agent_failures import FailureKind
    from attractor_nb.backends.agents.dialects import AgentCall, Dialect
    from attractor_nb.protocols import Processes
    from attractor_nb.stage import StageScope

PROMPT: Final = "{prompt}"
PROMPT_FILE: Final = "{prompt_file}"
MODEL: Final = "{model}"
MAX_ARGUMENT_BYTES: Final = 100_000
"""Linux takes no longer argument than 128 KiB."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A program that is known by its command alone (``dialect.Dialect``)."""

    name: str  #: The program, as messages name it.
    words: tuple[str, ...]  #: Its arguments, with the places of task and model in them.
    title: str = "the program"
    install: str = "see its documentation"
    keys: tuple[str, ...] = ("as its documentation says",)
    own_variables: tuple[str, ...] = ()
    exit_kinds: ClassVar[Mapping[int, FailureKind]] = {}
    counts_whole_sessions: ClassVar[bool] = False
    tells_price: ClassVar[bool] = False
    price_provider: ClassVar[str] = ""
    takes_schema_file: ClassVar[bool] = False
    tool_names: ClassVar[frozenset[str]] = frozenset()

    def arguments(self, call: AgentCall) -> list[str]:
        """The words with what stands for them. One that names the model is left out by default."""
        given: list[str] = []
        for word in self.words:
            if MODEL in word and not call.model:
                continue
            file = "" if call.directory is None else str(call.directory / AGENT_TASK_FILE)
            given.append(_filled(word, {PROMPT: self._task(call), PROMPT_FILE: file, MODEL: call.model}))
            if len(given[-1].encode()) > MAX_ARGUMENT_BYTES:
                raise TerminalError(
                    f"the prompt has {len(call.task)} characters, and {self.name} gets it as an argument",
                    hint=f"write {PROMPT_FILE} in the command, or neither, to give it on stdin",
                )
        return [*given, *call.more]

    def stdin(self, call: AgentCall) -> str:
        """The task, wherever it is read from: ``agent.prompt.md`` holds the same."""
        return self._task(call)

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:  # noqa: ARG002 - the interface of dialects
        """Nothing: its output is read as a whole."""
        return []

    def _task(self, call: AgentCall) -> str:
        """System prompt and task; one that looks like a flag of the program is none."""
        text = call.whole_text
        return f"Task:\n\n{text}" if text.startswith("-") and PROMPT in self.words else text


def _filled(word: str, values: Mapping[str, str]) -> str:
    """A word with its places filled in one pass: what is put in is not looked through again."""
    places = [place for place in values if place in word]
    if not places:
        return word
    before, _, after = word.partition(min(places, key=word.index))
    place = min(places, key=word.index)
    return before + values[place] + _filled(after, values)


class CommandLineBackend(AgentBackend):
    """Run each stage with a command-line program: any that takes a task and prints an answer.

    It works, is recorded and is ended as the agents that are known by name. What it may do is what its own
    flags say: ``allowed_tools`` of a node cannot restrict it, so the prompts of another's file are asked about
    before a run. It keeps no sessions and tells no tokens.

    >>> CommandLineBackend(["cat"])
    CommandLineBackend(['cat'])

    Args:
        command: The program and its arguments, without a shell. ``{prompt}`` in one stands for the task,
            ``{prompt_file}`` for the path of a file that holds it, ``{model}`` for the node's ``llm_model``
            (without one the argument is left out). Where neither of the first two is named, the task comes
            on stdin.
        output: ``text``: all that it writes to stdout is the answer, streamed as it comes. ``json``: it
            writes a JSON object, alone or as its last line, and the answer is in it.
        answer: For ``json``: where, as names with dots between, such as ``result.text``.
        variables: Environment variables that it gets beside those of every command, by name, such as the
            one that holds its key.
        processes: Starts it; by default what starts the run's commands.

    Raises:
        OptionError: There is no such program, or an argument is something else than described.
    """

    keeps_sessions: ClassVar[bool] = False
    works_in_turns: ClassVar[bool] = False

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Literal["text", "json"] = "text",
        answer: str = "result",
        variables: Sequence[str] = (),
        processes: Processes | None = None,
    ) -> None:
        example = 'CommandLineBackend(["aider", "--yes", "--message-file={prompt_file}"])'
        self._words = texts("command", command, example)
        if not self._words:
            raise OptionError("command is empty", hint=example)
        if output not in ("text", "json"):
            raise OptionError(f"output is {output!r}", hint='"text" or "json"')
        self._output = output
        self._path = tuple(answer.split(".")) if output == "json" else ()
        dialect = CommandLine(self._words[0].rpartition("/")[2], self._words[1:])
        self.dialect = cast("Dialect", dialect)  # its name is the object's and not the class's
        super().__init__(executable=self._words[0], variables=variables, processes=processes)

    @property
    def acts_unasked(self) -> bool:
        """True: its program's own flags decide what it may do (``protocols.acts_unasked``)."""
        return True

    def _listener(self, scope: StageScope | None) -> Listener:
        return _WholeOutput(self.dialect, scope, asyncio.get_running_loop().time, self._path)

    def _call_facts(self) -> dict[str, Any]:
        return {"command": list(self._words), "output": self._output, "answer": ".".join(self._path)}

    def __repr__(self) -> str:
        return f"CommandLineBackend({list(self._words)!r})"


class _WholeOutput(Listener):
    """Listens to a program whose output is an answer and no stream of events."""

    def __init__(self, dialect: Dialect, scope: StageScope | None, now: Any, path: tuple[str, ...]) -> None:
        super().__init__(dialect, scope, now)
        self._path = path
        self._pieces: list[str] = []
        self._length = 0

    def take(self, channel: str, text: str) -> None:
        if channel != "stdout":
            super().take(channel, text)
            return
        self._log(text)
        self._pieces.append(text[: max(0, MAX_ANSWER_CHARACTERS - self._length)])
        self._length += len(text)
        if not self._path:
            self._tell(TextWritten(plain_text(text), is_whole=False))

    def finish(self) -> None:
        super().finish()
        text = plain_text("".join(self._pieces))
        usage = Usage(calls=1)
        if self._path:
            answer, error = _answer_in(text, self._path)
            if error:
                self.transcript.take(Ended(is_failure=True, error=error, usage=usage), 0.0)
            if error or answer is None:
                return  # without an answer it has not said how it ended
            self._tell(TextWritten(answer))
        else:
            answer = text.strip()
        is_truncated = self._length > MAX_ANSWER_CHARACTERS
        self.transcript.take(Ended(answer, usage=usage, is_truncated=is_truncated), 0.0)


def _answer_in(text: str, path: tuple[str, ...]) -> tuple[str | None, str]:
    """The text at a path in a JSON object that is all of a text, or the last line of it that has one.

    Only a line break that no JSON text can hold ends a line: others, such as U+2028, may be in an answer.

    Returns:
        The answer, or None; and what the object says of an error, which goes before its answer (ruling 47).
    """
    for candidate in (text, *reversed(re.split(r"[\r\n]+", text))):
        try:
            value: Any = read_bounded_json(candidate)
        except ValueError:
            continue
        error = ""
        for name in path:
            values = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            value = values.get(name)
            error = error or error_at(values, "error") or ("an error" if is_said_at(values, "is_error") else "")
        if isinstance(value, str) or error:
            answer = value if isinstance(value, str) else None
            return answer, f"{error}: {plain_text(answer)}" if answer and error == "an error" else error
    return None, ""
