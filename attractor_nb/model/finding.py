"""A finding of a preflight: what was looked at, how it is, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingState = Literal["ok", "warn", "error", "note"]
"""``note``: a fact that matters to other pipelines than the one that was looked at."""


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """One thing that was looked at.

    Attributes:
        state: ``ok``; ``warn``: it runs, perhaps not as meant; ``error``: it cannot run; or ``note``.
        subject: What was looked at.
        message: How it is. Never the value of a key.
        remedy: What to do, or empty.
    """

    state: FindingState
    subject: str
    message: str
    remedy: str = ""
