"""Everything that goes into a call, by name: what a recording and a cache know it by (rulings 26, 29).

Two calls with the same inputs may share an answer; where they differ, the names say in what. Knows
nothing of files, backends or runs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, Self

import msgspec
from msgspec.structs import force_setattr

from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.record import Record, always

MODEL_CALL: Final = "model"
COMMAND_CALL: Final = "command"
QUESTION: Final = "question"
HANDLER_CALL: Final = "handler"
AGENT_TASK_FILE: Final = "agent.prompt.md"
"""In a stage's directory: what an agent of the command line is told, written before it is started."""


def request_file(number: int) -> str:
    """In a stage's directory: its nth request of a model, written before it is made.

    >>> request_file(1), request_file(2)
    ('request.json', 'request-2.json')
    """
    return "request.json" if number == 1 else f"request-{number}.json"


def value_hashes(variables: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of each value: environment variables are inputs of a call, and may be secrets."""
    return {
        name: hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest() for name, value in variables.items()
    }


class CallInputs(msgspec.Struct, frozen=True):
    """The inputs of one call."""

    kind: str  #: ``model``, ``command``, ``handler`` or ``question``.
    node_id: str  #: The calling node. It is not an input: two nodes that ask the same share an answer.
    #: JSON values by name: ``prompt``, ``carried``, ``model``, ``temperature``, ``command``, ``stdin`` … Nothing that
    #: differs between two equal calls, such as a run's id or a path of its directory.
    values: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of kind and values, in hexadecimal digits; their order does not matter."""
        plain = json.dumps([self.kind, self.values], sort_keys=True, ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


class StageCall(msgspec.Struct, frozen=True):
    """A stage's description of the call that its handler is about to make."""

    #: Its inputs; None when the handler cannot name them, and then its result is never stored.
    inputs: CallInputs | None
    problem: str = ""  #: Reason why it cannot, or empty.
    #: The call may change more than the stage's own directory, as a command and an agent may.
    has_effects: bool = False
    #: Files that the handler writes into the stage's directory before it calls: ``prompt.md`` …
    files: Mapping[str, str] = {}


class InputChange(msgspec.Struct, frozen=True):
    """A name whose value is another one now; ``None`` where there is none."""

    name: str
    before: Any
    now: Any


def changed_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[InputChange, ...]:
    """In what two calls differ, in the order of the later one's names, then the names that are gone.

    >>> changed_inputs({"prompt": "Plan", "model": "a"}, {"prompt": "Plan it", "model": "a"})
    (InputChange(name='prompt', before='Plan', now='Plan it'),)
    """
    names = [*now, *(name for name in before if name not in now)]
    return tuple(
        InputChange(name, before.get(name), now.get(name))
        for name in names
        if (name in before) != (name in now) or before.get(name) != now.get(name)
    )


# A call on record: who made it, what went into it, what came back (docs/cassettes.md).

LEFT_OUT: Final = "left_out"
"""The key of an answer that could not be recorded, and why."""


class CallSite(msgspec.Struct, frozen=True):
    """The origin of a call: node, visit, attempt and branch."""

    node_id: str  #: The stage.
    visit: int = 1  #: Ordinal of the visit.
    attempt: int = 1  #: Ordinal of the try within the visit.
    branch: str = ""  #: Path of the branch that the stage is in, or empty.
    child_of: str = ""  #: Path of the stage whose child run makes the call, or empty.

    @property
    def stage(self) -> tuple[str, str, str]:
        """The stage, whatever the visit."""
        return self.child_of, self.branch, self.node_id

    @property
    def turn(self) -> tuple[int, int]:
        """Visit and attempt."""
        return self.visit, self.attempt

    def __str__(self) -> str:
        path = "/".join(part for part in self.stage if part)
        return f"{path}, visit {self.visit}" + (f", attempt {self.attempt}" if self.attempt > 1 else "")


class RecordedCall(msgspec.Struct, frozen=True):
    """A call and its answer."""

    place: CallSite  #: Place of the call.
    inputs: CallInputs  #: Its inputs.
    answer: Mapping[str, Any]  #: Its answer, as JSON values.
    digest: str = ""
    """That of the inputs."""

    def __post_init__(self) -> None:
        force_setattr(self, "digest", self.inputs.digest)

    @property
    def left_out(self) -> str:
        """The reason why the answer could not be recorded, or empty."""
        return str(self.answer.get(LEFT_OUT, ""))

    def __str__(self) -> str:
        return f"the {self.inputs.kind} call of {self.place}"


# A stage's result as the cache keeps it, and what is recorded of a look into the cache.

INPUTS_FILE: Final = "inputs.json"
"""File in a stage's directory with its cache lookup."""
_NO_PARTS: Final = frozenset({"", ".", "..", "visits"})


class FileBytes(Record, frozen=True):
    """The content of a binary file."""

    base64: bytes


class CachedStage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The result of a stage that succeeded."""

    schema_version: Literal[1] = 1  #: Version of this form.
    run_id: str = ""  #: The run that executed it.
    time: float = 0.0  #: When, in seconds since 1970 (UTC).
    kind: str  #: Kind of stage.
    node_id: str = msgspec.field(name="node")  #: Its node; ``node`` in the entry.
    values: Mapping[str, Any] = msgspec.field(name="inputs")  #: Its inputs, by name; ``inputs`` in the entry.
    outcome: Outcome  #: Its outcome, without usage.
    usage: Usage | None = None  #: Its usage; None when it did not say.
    changes: Mapping[str, Any] = {}  #: Context values that its handler set by itself, beside those of the outcome.
    logs: tuple[str, ...] = ()  #: Entries that it appended to the run log.
    files: Mapping[str, str | FileBytes] = {}  #: Files of its directory, by path.
    conversation: str = ""  #: Under ``full`` fidelity: what its thread had said then; empty when it saved nothing.

    def __post_init__(self) -> None:
        """Refuse files outside the stage's directory, and in that of its earlier visits."""
        for path in self.files:
            if not path or any(part in _NO_PARTS or "\0" in part for part in path.split("/")):
                raise ValueError(f"names the file {path!r}")

    @property
    def inputs(self) -> CallInputs:
        """The inputs of the call."""
        return CallInputs(self.kind, self.node_id, self.values)

    @property
    def file_contents(self) -> dict[str, bytes]:
        """The contents of the files in its directory, by path."""
        return {path: data.encode() if isinstance(data, str) else data.base64 for path, data in self.files.items()}


def file_values(contents: Mapping[str, bytes]) -> dict[str, str | FileBytes]:
    """Files as an entry has them, by path: as text where they are text."""
    return {path: _file_value(data) for path, data in contents.items()}


def _file_value(data: bytes) -> str | FileBytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return FileBytes(data)


class CacheLook(Record, frozen=True):
    """The result of a cache lookup, as the stage's directory keeps it (``inputs.json``)."""

    key: str = ""  #: Digest of the inputs; empty when the stage is not one for the cache.
    inputs: Mapping[str, str] = {}  #: The first digits of each input's digest, by name.
    is_hit: bool = always(value=False)  #: The result came from the cache.
    refused: str = ""  #: Reason why the stage is not cached, or empty.
    #: For a stage that was executed: what differs from the nearest earlier entry.
    changes: tuple[InputChange, ...] = ()
    compared_with: str = ""  #: The run of that entry, or of the one that was taken; empty when there was none.
    not_kept: str = ""  #: Reason why its result was not stored, or empty.


# The text a model answered, with what the caller should know about it.


class Response(str):
    """A response text that carries its usage, for backends that know it (spec 4.5).

    It is a ``str``, so that a backend returning it keeps the spec's interface.

    >>> Response("Done.", is_truncated=True) == "Done."
    True
    """

    __slots__ = ("is_truncated", "note", "usage")
    usage: Usage | None  #: Usage of the call, or None.
    is_truncated: bool  #: The model was cut off by a token limit: the text is not all that it had to say.
    note: str  #: Note for the user about the answer, such as a model that was asked instead of another; or empty.

    def __new__(cls, text: str, *, usage: Usage | None = None, is_truncated: bool = False, note: str = "") -> Self:
        """A text with its facts."""
        response = super().__new__(cls, text)
        response.usage = usage
        response.is_truncated = is_truncated
        response.note = note
        return response

    def behind(self, before: Response) -> Self:
        """This response, which followed another one in the same call, with what both consumed.

        >>> Response("Done.", note="b").behind(Response("Wait.", note="a")).note
        'a; b'
        """
        consumed = [usage for usage in (before.usage, self.usage) if usage is not None]
        usage = consumed[0] + consumed[1] if len(consumed) > 1 else consumed[0] if consumed else None
        note = "; ".join(dict.fromkeys(filter(None, (before.note, self.note))))
        return type(self)(str(self), usage=usage, is_truncated=self.is_truncated, note=note)


def with_text(response: str, text: str) -> str:
    """Another text in place of a response's, with what the response carries beside it.

    >>> with_text(Response("All of it.", is_truncated=True), "Of it.").is_truncated
    True
    """
    if text == response:
        return response
    if not isinstance(response, Response):
        return text
    return Response(text, usage=response.usage, is_truncated=response.is_truncated, note=response.note)


# The sections of a prompt, shared by the code that writes them and the code that splits them.
#
# Texts of several lines are in fences that no text can end: what looks like a heading within one is text.

_CONTEXT = "## Context\n\n"
_TASK = "\n\n## Task\n\n"
_INSTRUCTION = "\n\n## Instruction from the supervisor\n\n"
_MESSAGE = "\n\n## Message from a person, given while the run was under way\n\n"
_COMPLAINT = "\n\n## Your last answer was not accepted\n\n"
INPUTS_HEADING: Final = "### Inputs"
_TICKS: Final = re.compile("`+")
_FENCE: Final = re.compile("`{3,}")


def with_context(context: str, task: str) -> str:
    r"""A task with the context before it, each in a section; the task alone without one.

    >>> with_context("Earlier: a plan.\n", "Go on."), with_context("", "Go on.")
    ('## Context\n\nEarlier: a plan.\n\n## Task\n\nGo on.', 'Go on.')
    """
    return f"{_CONTEXT}{context.strip()}{_TASK}{task}" if context.strip() else task


def with_instructions(task: str, instructions: Iterable[str]) -> str:
    r"""A task with the instructions of a supervisor after it, each in a fence; the task alone without one.

    >>> with_instructions("Go on.", ["Be brief."]) == "Go on." + _INSTRUCTION + "```\nBe brief.\n```"
    True
    """
    return "".join([task, *(f"{_INSTRUCTION}{fenced(text.strip())}" for text in instructions)])


def with_messages(task: str, messages: Iterable[str]) -> str:
    r"""A task with what users said meanwhile after it, each in a fence; the task alone without that.

    >>> with_messages("Go on.", ["Be brief."]) == "Go on." + _MESSAGE + "```\nBe brief.\n```"
    True
    """
    return "".join([task, *(f"{_MESSAGE}{fenced(text.strip())}" for text in messages)])


def with_complaint(prompt: str, complaint: str) -> str:
    r"""A prompt with what was wrong with the last answer to it at its end; the prompt alone without that.

    >>> with_complaint("Go on.", "It is empty."), with_complaint("Go on.", "")
    ('Go on.\n\n## Your last answer was not accepted\n\nIt is empty.', 'Go on.')
    """
    return f"{prompt}{_COMPLAINT}{complaint}" if complaint else prompt


def split_context(prompt: str, context: str) -> tuple[str, str]:
    """The context and the task of a prompt that ``with_context`` made; a text that only looks like one is all task.

    Args:
        prompt: The prompt.
        context: What the engine put before the task (``StageScope.preamble``): no text can say that of itself.

    >>> prompt = with_context("Earlier: a plan.", "Go on.")
    >>> split_context(prompt, "Earlier: a plan."), split_context("Go on.", "")
    (('Earlier: a plan.', 'Go on.'), ('', 'Go on.'))
    >>> split_context(prompt, "") == ("", prompt)
    True
    """
    beginning = with_context(context, "")
    if not beginning or not prompt.startswith(beginning):
        return "", prompt
    return context.strip(), prompt.removeprefix(beginning)


def stable_length(prompt: str) -> int:
    r"""The number of characters of a prompt that stay the same from stage to stage: its goal and its inputs.

    >>> prompt = with_context("Goal: ship\n\n### Inputs\n\n- ticket: 1\n\n### Earlier stages\n\n- a", "Go.")
    >>> prompt[: stable_length(prompt)], stable_length("Go on.")
    ('## Context\n\nGoal: ship\n\n### Inputs\n\n- ticket: 1\n\n', 0)
    """
    if not prompt.startswith(_CONTEXT):
        return 0
    body = prompt[len(_CONTEXT) :]
    headings = (start for line, start in outside_fences(body) if line.startswith("##"))
    ends = (start for start in headings if not body.startswith(f"{INPUTS_HEADING}\n", start))
    return len(_CONTEXT) + next(ends, 0)


def fenced(text: str) -> str:
    r"""A text in a fence that is longer than any within it.

    >>> fenced("a\n```\nb")
    '````\na\n```\nb\n````'
    """
    fence = fence_for(text)
    return f"{fence}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    """A fence that nothing in a text can end.

    >>> fence_for("a ``` b")
    '````'
    """
    if "```" not in text:
        return "```"
    return "`" * (1 + max(len(run) for run in _TICKS.findall(text)))


def outside_fences(text: str) -> Iterator[tuple[str, int]]:
    r"""The lines of a text that are in no fence, each with where it begins.

    >>> list(outside_fences("a\n```\nb\n```\nc"))
    [('a', 0), ('c', 12)]
    """
    start, fence = 0, ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif _FENCE.fullmatch(line):
            fence = line
        else:
            yield line, start
        start += len(line) + 1
