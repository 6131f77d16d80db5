"""What options may say. Apart from the commands, so that ``--help`` loads nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWERED_BY: Final = "command line"

SERVER_VARIABLE: Final = "ATTRACTOR_SERVER"
TOKEN_VARIABLE: Final = "ATTRACTOR_TOKEN"  # noqa: S105 - the name of a variable


class GateMode(StrEnum):
    """Who answers gates."""

    CONSOLE = "console"
    AUTO = "auto"
    PAUSE = "pause"
    REFUSE = "refuse"


class BackendName(StrEnum):
    """What answers prompts."""

    SIMULATED = "simulated"
    LOCAL = "local"
    LLM = "llm"
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"


class GraphChange(StrEnum):
    """What to do when the graph is not the one that ran."""

    ERROR = "error"
    WARN = "warn"
    ACCEPT = "accept"


class OnInterrupted(StrEnum):
    """What to do with a stage that was cut off."""

    RERUN = "rerun"
    ASK = "ask"
    FAIL = "fail"


class OnFailure(StrEnum):
    """What to do after a row of a map has failed."""

    CONTINUE = "continue"
    STOP = "stop"


class ExportedRows(StrEnum):
    """Rows of a map that get a page of their own."""

    FAILED = "failed"
    ALL = "all"


class Failed(StrEnum):
    """What a resume of a map does with the rows that failed."""

    KEEP = "keep"
    RETRY = "retry"


class GraphFormat(StrEnum):
    """How a graph is shown."""

    TEXT = "text"
    SVG = "svg"
    DOT = "dot"
    JSON = "json"
    MERMAID = "mermaid"
    PNG = "png"


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What was typed."""

    gate: str  #: The gate: the asking node, or the question's id.
    choice: str = ""  #: Key, label or target of a choice, or empty.
    text: str = ""  #: Free text, or empty.
    #: What is filled in, by field, where the gate has a form.
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def is_url(text: str) -> bool:
    """Whether a text names a server, or something on it."""
    return text.startswith(("http://", "https://"))
