"""An answer as it was typed, before anybody has judged it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWERED_BY: Final = "command line"


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What was typed.

    Attributes:
        gate: The gate: the asking node, or the question's id.
        choice: Key, label or target of a choice, or empty.
        text: Free text, or empty.
        fields: What is filled in, by field, where the gate has a form.
    """

    gate: str
    choice: str = ""
    text: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
