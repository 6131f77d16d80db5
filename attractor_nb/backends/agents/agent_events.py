"""Events of an agent's stream, the same for all agents, and defensive reading of its JSON.

A line may hold anything: a value of another type than the documented one counts as missing. What an agent reports
against itself counts whatever its type is (``words_at``, ``is_said_at``; ruling 47).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import structs

from attractor_nb.errors import TerminalError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.outcome import MAX_COST_USD, MAX_COUNT, Usage
from attractor_nb.model.record import no_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.agents.agent_failures import FailureKind


_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")


@dataclass(frozen=True, slots=True)
class Began:
    """The agent has a session."""

    session: str = ""  #: Its id, by which it can be continued; empty when it has none that is one.
    model: str = ""  #: The model, when it is told.


@dataclass(frozen=True, slots=True)
class TextWritten:
    """The agent wrote text."""

    text: str
    is_whole: bool = True  #: A separate message; else it continues the one before.


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The agent calls its own tool."""

    call_id: str  #: The agent's name of the call.
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=no_values)
    is_background: bool = False  #: It starts work that is active behind the call.
    ends_work: str = ""  #: The id of the background work that it ends, or empty.


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A call has ended."""

    call_id: str  #: The agent's name of the call.
    result: str = ""  #: Result that the agent received.
    error: str = ""  #: Reason of the failure or refusal, or empty.
    called: ToolCalled | None = None  #: The call itself, where the stream tells it only now.
    is_denied: bool = False  #: It was not made: the agent may not call this tool.


@dataclass(frozen=True, slots=True)
class WorkBegan:
    """Work began that may continue when the agent has said its last word."""

    work_id: str  #: The agent's name of the work.
    what: str = ""  #: Description for the user.
    call_id: str = ""  #: The call that started it, or empty.
    is_background: bool = False  #: It continues after its call; else the call itself says so, or it ends with the call.


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """Work has ended."""

    work_id: str  #: The agent's name of the work.
    is_stopped: bool = False  #: It was stopped before it was done.
    what: str = ""  #: Description for the user.


@dataclass(frozen=True, slots=True)
class Complained:
    """Something went wrong. The agent may still fix it; when it does not, this is why."""

    message: str
    status: int = 0  #: HTTP status that the model's server gave, or 0.
    is_final: bool = False  #: The agent has failed, whatever it says after this (ruling 47).
    kind: FailureKind | None = None  #: Kind of failure, where the text need not be searched.


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one model, from an agent that reports no price."""

    model: str = ""  #: The model; empty where the agent does not say.
    input_tokens: int = 0  #: Tokens sent, those of the cache among them.
    output_tokens: int = 0  #: Tokens received.
    cache_read_tokens: int = 0  #: Number of these input tokens that came from the cache.


@dataclass(frozen=True, slots=True)
class Consumed:
    """The tokens that one message of a model has consumed so far."""

    message: str  #: The message's id; empty for the one that was named last.
    tokens: Tokens  #: All of it so far.


@dataclass(frozen=True, slots=True)
class Ended:
    """The agent's own word on how it ended."""

    text: str | None = None  #: Its answer; None: what it said last.
    is_failure: bool = False  #: It failed, whatever it said before.
    error: str = ""  #: Reason of the failure; empty when it gives none.
    status: int = 0  #: HTTP status that the model's server gave, or 0.
    usage: Usage | None = None  #: Its usage; None when it does not say.
    is_truncated: bool = False  #: A limit cut the answer off.
    tokens: tuple[Tokens, ...] = ()  #: Tokens to price by a price list, for an agent that reports no price.
    #: Tools that the agent wanted to call and was not allowed to, each as often as it tried.
    denied: tuple[str, ...] = ()
    kind: FailureKind | None = None  #: Kind of failure, where the text need not be searched.


AgentEvent = Began | TextWritten | ToolCalled | ToolAnswered | WorkBegan | WorkEnded | Consumed | Complained | Ended


def plain_text(text: str) -> str:
    r"""A text without the escape sequences of terminals, and without half characters.

    >>> plain_text("\x1b[1;31mred\x1b[0m \ud800")
    'red ?'
    """
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return text.encode("utf-8", "replace").decode()


def text_at(values: Mapping[str, Any], name: str) -> str:
    """The text under a name, as users may see it; empty when there is none."""
    value = values.get(name)
    return plain_text(value) if isinstance(value, str) else ""


def mapping_at(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under a name; empty when there is none."""
    value = values.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def mappings_at(values: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects of the list under a name."""
    value = values.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def texts_at(values: Mapping[str, Any], name: str) -> list[str]:
    """The texts of the list under a name."""
    value = values.get(name)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [plain_text(item) for item in items if isinstance(item, str)]


def count_at(values: Mapping[str, Any], name: str) -> int:
    """The whole number under a name; 0 when there is none, or none that counts anything."""
    value = values.get(name)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else 0


def error_at(values: Mapping[str, Any], name: str) -> str:
    """The error under a name: a text, an object with a message, or anything else that is not empty."""
    value = values.get(name)
    if not value or value is True:
        return "an error" if value else ""
    return text_at(values, name) or text_at(mapping_at(values, name), "message") or plain_text(str(value))


def words_at(values: Mapping[str, Any], name: str) -> str:
    """The value under a name in lower case, whatever its type: a text, or the JSON of anything else.

    >>> words_at({"stop_reason": ["Refusal"]}, "stop_reason"), words_at({}, "stop_reason")
    ('["refusal"]', '')
    """
    value = values.get(name)
    if value is None or isinstance(value, str):
        return text_at(values, name).strip().lower()
    try:
        return plain_text(json.dumps(value, ensure_ascii=False)).lower()
    except (ValueError, RecursionError):
        return ""


def is_said_at(values: Mapping[str, Any], name: str) -> bool:
    """True if the value under a name says yes: anything but null, false, 0 and what is empty.

    >>> [is_said_at({"is_error": value}, "is_error") for value in (True, 1, "true", [0], False, "false", None, {})]
    [True, True, True, True, False, False, False, False]
    """
    return bool(values.get(name)) and words_at(values, name) not in {"false", "0", "no", "null", "none"}


def cost_at(values: Mapping[str, Any], name: str) -> float | None:
    """The price in USD under a name; None when there is none."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= MAX_COST_USD else None


def session_at(values: Mapping[str, Any], name: str) -> str:
    """The id of a session under a name; empty for what could be anything else on a command line."""
    value = values.get(name)
    return value if isinstance(value, str) and is_session(value) else ""


def is_session(text: str) -> bool:
    """True if a text can be the id of a session.

    >>> is_session("0199a213-81c0-7800-8aa1-bbab2a035a53"), is_session("--yolo"), is_session("a b")
    (True, False, False)
    """
    return _SESSION.match(text) is not None


# The saved session of an agent, which the next stage of the thread continues (spec 5.4).


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as a thread keeps it."""

    agent: str  #: The agent that it belongs to.
    session: str = ""  #: Its id.
    input_tokens: int = 0  #: Tokens sent in it so far, for an agent that tells no other count.
    output_tokens: int = 0  #: Tokens received in it so far, likewise.
    cache_read_tokens: int = 0  #: Number of these input tokens that came from the cache.

    @classmethod
    def read(cls, text: str, agent: str, thread: str) -> SavedSession:
        """The session that a thread has kept; one without an id at the thread's beginning."""
        if not text:
            return cls(agent)
        try:
            value: Any = read_bounded_json(text)
        except ValueError:
            value = None
        kept = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        session = kept.get("session")
        if kept.get("agent") != agent or not isinstance(session, str) or not is_session(session):
            whose = kept.get("agent")
            owner = f"{whose}'s" if isinstance(whose, str) else "another backend's"
            raise TerminalError(
                f"the thread {thread!r} is {owner}: {agent} cannot continue it",
                hint="give the stage another thread_id, or another fidelity than full",
            )
        counts = [count_at(kept, name) for name in ("input_tokens", "output_tokens", "cache_read_tokens")]
        return cls(agent, session, *counts)

    def text(self) -> str:
        """The text that the thread stores."""
        return json.dumps(asdict(self))

    def gone_on(self, session: str, ended: Ended | None) -> SavedSession:
        """The session after a call that ended with these words."""
        if ended is None or ended.usage is None:
            return replace(self, session=session)
        return SavedSession(
            self.agent,
            session,
            ended.usage.input_tokens,
            ended.usage.output_tokens,
            sum(part.cache_read_tokens for part in ended.tokens),
        )

    def own_part(self, ended: Ended) -> tuple[Usage, tuple[Tokens, ...]]:
        """The usage of one call, from an agent that reports the usage of the whole session.

        A count below the one before is of a session that counts anew.
        """
        reported = ended.usage or Usage()
        is_sum = reported.input_tokens >= self.input_tokens and reported.output_tokens >= self.output_tokens
        if not self.session or not is_sum:
            return reported, ended.tokens
        usage = structs.replace(
            reported,
            input_tokens=reported.input_tokens - self.input_tokens,
            output_tokens=reported.output_tokens - self.output_tokens,
        )
        read = sum(part.cache_read_tokens for part in ended.tokens) - self.cache_read_tokens
        read = min(max(0, read), usage.input_tokens)
        models = {part.model for part in ended.tokens}
        model = models.pop() if len(models) == 1 else ""
        return usage, (Tokens(model, usage.input_tokens, usage.output_tokens, read),) if ended.tokens else ()
