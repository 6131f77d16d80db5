"""The lines of an inspection: visits, attempts, keys of the context; and texts without secrets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.model.outcome import Usage


_REACHES: Final = {
    "prompt": "in the prompt",
    "request": "with a later request",
    "turn": "as a turn of the agent",
    "waits": "not received yet",
}


@dataclass(frozen=True, slots=True)
class VisitLine:
    """A visit of the node."""

    number: int  #: Its number.
    branch: str  #: Path of the branch that it is in, or empty.
    status: str  #: How it ended, or ``running``, ``cut off``.
    attempts: int  #: How many there were.
    is_set_aside: bool = False  #: A rewind went behind it.
    is_cached: bool = False  #: Its result came from the cache.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "number": self.number,
            "branch": self.branch,
            "status": self.status,
            "attempts": self.attempts,
            "is_set_aside": self.is_set_aside,
            "is_cached": self.is_cached,
        }


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """A try of the visit."""

    number: int  #: Its number.
    status: str  #: How it ended, or ``running``, ``cut off``.
    reason: str = ""  #: Why it failed, or empty.
    seconds: float | None = None  #: How long it took; None while it goes on, and when nobody knows.
    usage: Usage | None = None  #: What it consumed; None when it did not say.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "number": self.number,
            "status": self.status,
            "reason": redacted(self.reason),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "usage": None if self.usage is None else self.usage.to_plain(),
        }


@dataclass(frozen=True, slots=True)
class MessageLine:
    """What an attempt was told."""

    text: str  #: What it says.
    given_by: str = ""  #: Who gave it, or by what way.
    #: ``prompt``, ``request`` or ``turn``: how the attempt received it; ``waits`` while it may yet; empty when it did
    #: not.
    reach: str = ""

    @property
    def words(self) -> str:
        """How the attempt received it."""
        return _REACHES.get(self.reach, "not received in this attempt")

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values."""
        return {
            "text": cut_text(self.text, limit),
            "given_by": redacted(self.given_by),
            "reach": self.reach,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item of a stage with `for_each`."""

    index: int  #: Its place in the list, from 0.
    value: Any = ""  #: What it is; an empty text where that is not known.
    status: str = "not started"  #: How its run ended, ``running``, ``cut off``, or ``not started``.
    reason: str = ""  #: Why it failed, or empty.
    run_id: str = ""  #: Its run, or empty.
    directory: Path | None = None  #: The directory of that; None where there is none.

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values; the item as a text."""
        return {
            "index": self.index,
            "value": cut_text(_value_text(self.value), limit),
            "status": self.status,
            "reason": redacted(self.reason),
            "run_id": self.run_id,
        }


@dataclass(frozen=True, slots=True)
class ContextChange:
    """A key of the context around a visit."""

    key: str  #: The key.
    change: str  #: ``added``, ``changed``, ``removed`` or ``same``.
    before: Any = None  #: Its value before the visit; None when it had none.
    after: Any = None  #: Its value behind it; None when it has none.

    def to_plain(self, limit: int) -> dict[str, Any]:
        """JSON values: both as texts, None for no value."""
        before = None if self.change == "added" else _value_text(self.before)
        after = None if self.change == "removed" else _value_text(self.after)
        if self.change == "changed" and before == after:  # 1 became "1"
            before, after = _json_text(self.before), _json_text(self.after)
        return {"key": redacted(self.key), "change": self.change} | {
            name: None if text is None else cut_text(text, limit)
            for name, text in (("before", before), ("after", after))
        }


def cut_text(text: str, limit: int) -> str:
    """The beginning of a text without secrets; they go before it is cut: half of one has no form."""
    return redacted(text)[:limit]


def cleaned(value: Any) -> Any:
    """A plain form without secrets; its keys are ours."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: cleaned(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType] - of JSON values
    return [cleaned(one) for one in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType] - as above


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1 if isinstance(value, dict | list) else None, default=str)
