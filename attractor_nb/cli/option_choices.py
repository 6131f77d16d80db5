"""What options may say. Apart from the commands, so that ``--help`` loads nothing else."""

from __future__ import annotations

from enum import StrEnum


class GateMode(StrEnum):
    """Who answers gates."""

    CONSOLE = "console"
    AUTO = "auto"
    REFUSE = "refuse"


class Isolation(StrEnum):
    """The place of a run's own, or none whatever the graph says."""

    NONE = "none"
    WORKSPACE = "workspace"
    WORKTREE = "worktree"


class BackendName(StrEnum):
    """What answers prompts."""

    SIMULATED = "simulated"
    LOCAL = "local"
    LLM = "llm"
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"


class CassetteMode(StrEnum):
    """What is done with a cassette."""

    RECORD = "record"
    REPLAY = "replay"
    AUTO = "auto"


class Durability(StrEnum):
    """What survives what."""

    FULL = "full"
    FAST = "fast"
    NONE = "none"


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


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
