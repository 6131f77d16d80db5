"""Everything that goes into a call, by name: what a recording and a cache know it by (rulings 26, 29).

Two calls with the same inputs may share an answer; where they differ, the names say in what. Knows
nothing of files, backends or runs.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class CallInputs(msgspec.Struct, frozen=True):
    """What goes into one call."""

    kind: str  #: ``model``, ``command``, ``handler`` or ``question``.
    node_id: str  #: Who calls. It is no input: two nodes that ask the same share an answer.
    #: JSON values by name: ``prompt``, ``carried``, ``model``, ``temperature``, ``command``, ``stdin`` … Nothing that
    #: differs between two equal calls, such as a run's id or a path of its directory.
    values: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of kind and values, in hexadecimal digits; their order does not matter."""
        plain = json.dumps([self.kind, self.values], sort_keys=True, ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


class StageCall(msgspec.Struct, frozen=True):
    """What a stage's handler says of the call that it is going to make."""

    #: What goes into it; None when the handler cannot say, and then nothing of it may be kept.
    inputs: CallInputs | None
    problem: str = ""  #: Why it cannot, or empty.
    #: The call may change more than the stage's own directory, as a command and an agent may.
    has_effects: bool = False
    #: What the handler writes into the stage's directory before it calls: ``prompt.md`` …
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
