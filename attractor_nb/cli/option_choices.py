"""The values of options. Separate from the commands, so that ``--help`` loads nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.model.vocabulary.option_meanings import FLAGS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.backends.llm.provider_backend import ProviderBackend


ANSWERED_BY: Final = "command line"


class GateMode(StrEnum):
    """The way in which gates are answered."""

    CONSOLE = "console"
    AUTO = "auto"
    PAUSE = "pause"
    REFUSE = "refuse"


class BackendName(StrEnum):
    """The backend that answers prompts."""

    SIMULATED = "simulated"
    LOCAL = "local"
    LLM = "llm"
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"


class GraphChange(StrEnum):
    """The response to a graph that differs from the one that ran."""

    ERROR = "error"
    WARN = "warn"
    ACCEPT = "accept"


class OnInterrupted(StrEnum):
    """The response to an interrupted stage."""

    RERUN = "rerun"
    ASK = "ask"
    FAIL = "fail"


class OnFailure(StrEnum):
    """The response to a failed row of a map."""

    CONTINUE = "continue"
    STOP = "stop"


class ExportedRows(StrEnum):
    """Rows of a map that get their own page."""

    FAILED = "failed"
    ALL = "all"


class Failed(StrEnum):
    """The treatment of failed rows when a map is resumed."""

    KEEP = "keep"
    RETRY = "retry"


class GraphFormat(StrEnum):
    """The output format of a graph."""

    TEXT = "text"
    SVG = "svg"
    DOT = "dot"
    JSON = "json"
    MERMAID = "mermaid"
    PNG = "png"
    PDF = "pdf"
    PS = "ps"
    EPS = "eps"
    JPG = "jpg"
    GIF = "gif"
    WEBP = "webp"


class Engine(StrEnum):
    """A layout engine of Graphviz."""

    DOT = "dot"
    NEATO = "neato"
    FDP = "fdp"
    SFDP = "sfdp"
    CIRCO = "circo"
    TWOPI = "twopi"
    OSAGE = "osage"
    PATCHWORK = "patchwork"


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer as typed on the command line."""

    gate: str  #: The gate: the asking node, or the question's id.
    choice: str = ""  #: Key, label or target of a choice, or empty.
    text: str = ""  #: Free text, or empty.
    #: Values of the form, by field, if the gate has one.
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


def is_url(text: str) -> bool:
    """True if a text names a server, or something on it."""
    return text.startswith(("http://", "https://"))


# Options that ``run``, ``resume``, ``fork`` and ``map`` share, for local runs and for a server.


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options, read."""

    backend: BackendName | None = None  #: Backend for prompts; by default simulated, with a notice.
    model: str | None = None  #: The model of nodes that name none.
    is_simulated: bool = False  #: No model is asked and no command is run.
    is_trusted: bool = False  #: The user trusts the commands, for this one call.
    trust_hash: str | None = None  #: Hash of the commands that the user trusts, and no others.
    gates: GateMode | None = None  #: Way to answer gates; None: the terminal if there is one, otherwise not.
    #: The options of ``FLAGS`` that were given, by name.
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cache: Path | bool = False  #: Take results from the cache: True for the usual one, or a directory.
    is_quiet: bool = False  #: No progress.
    is_verbose: bool = False  #: Responses under their stages.
    is_json: bool = False  #: The summary as JSON.

    @property
    def is_place_given(self) -> bool:
        """True if the options say where a run works, so that its directory does not."""
        return "workdir" in self.options or "isolation" in self.options

    def kept_options(self, bound: str = "") -> tuple[str, ...]:
        """The options to repeat on resume, or it would ask or allow something else than the run did.

        Args:
            bound: The bound that ended the run: it must be given anew, and higher.
        """
        kept = ("--simulate",) if self.is_simulated else ()
        if self.backend and not self.is_simulated:
            kept = ("--backend", self.backend.value, *(("--model", self.model) if self.model else ()))
        if self.cache is not False:
            kept = (*kept, *(("--cache",) if self.cache is True else ("--cache-dir", str(self.cache))))
        kept = (*kept, "--gates", self.gates.value) if self.gates is GateMode.PAUSE else kept
        options = {name: value for name, value in self.options.items() if not FLAGS[name].is_recorded}
        if bound:
            options[bound] = "TIME" if bound == "max_duration" else "N"
        flags = ((f"--{name.replace('_', '-')}", str(value)) for name, value in options.items())
        return (*kept, *(part for flag in flags for part in flag))

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.is_simulated and self.backend is BackendName.LOCAL:
            raise OptionError("--simulate and --backend local contradict each other", hint="use one of them")
        if self.model is not None and self.backend is not BackendName.LLM:
            raise OptionError(
                "--model needs --backend llm" + (f", not {self.backend}" if self.backend else ""),
                hint="a graph names the model of its nodes by llm_model, for agents, too",
            )
        if self.is_simulated and "cassette" in self.options:
            raise OptionError(
                "--simulate and --cassette contradict each other: a simulation makes no calls", hint="use one of them"
            )
        if self.is_trusted and self.trust_hash is not None:
            raise OptionError("--trust and --trust-hash contradict each other", hint="use one of them")
        if "cassette_mode" in self.options and "cassette" not in self.options:
            raise OptionError("--cassette-mode needs --cassette", hint="--cassette FILE")

    @property
    def named_backend(self) -> str | None:
        """The backend that the options name, or None: a resumed run keeps its own (ruling 48)."""
        if self.backend is not None:
            return self.backend.value
        return BackendName.SIMULATED.value if self.is_simulated else None

    @property
    def made_backend(self) -> str | ProviderBackend | None:
        """The backend that the options name, with their model."""
        if self.model is None or self.is_simulated:
            return self.named_backend
        from attractor_nb.backends.llm.client_libraries import check_installed  # noqa: PLC0415 - for this option alone
        from attractor_nb.backends.llm.provider_backend import ProviderBackend  # noqa: PLC0415 - likewise

        check_installed()
        return ProviderBackend(self.model)

    @property
    def first_backend(self) -> str | None:
        """The backend of a new run: simulated, where no option and no cassette names one."""
        return self.named_backend or (None if "cassette" in self.options else BackendName.SIMULATED.value)

    @property
    def needs_no_question(self) -> bool:
        """True if trust is not asked for: it is given for this call, or nothing is executed."""
        return self.is_trusted or self.is_simulated or self.is_replay

    @property
    def is_replay(self) -> bool:
        """True if nothing is called."""
        return self.options.get("cassette_mode") == "replay"
