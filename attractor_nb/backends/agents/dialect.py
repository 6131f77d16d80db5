"""What the house must know of one agent: how it is called, and what its lines mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.backends.agents.agent_events import AgentEvent
    from attractor_nb.backends.agents.agent_failures import FailureKind


@dataclass(frozen=True, slots=True)
class AgentCall:
    """What one call of an agent asks for."""

    task: str  #: The whole text for the agent.
    model: str = ""  #: The model; empty for the agent's own choice.
    effort: str = ""  #: ``low``, ``medium`` or ``high``; empty for the agent's own choice.
    system_prompt: str = ""  #: Text for the system prompt, or empty.
    #: Of ``read``, ``write``, ``list`` and ``run``: what it may do. Reading it always may.
    tools: frozenset[str] = field(default_factory=frozenset[str])
    named: tuple[str, ...] = ()  #: Its own tools by their names, such as ``Bash(git:*)``: what it may do besides.
    session: str = ""  #: The session to go on with; empty for a fresh one.
    #: A directory beside its working directory in which it may write, if it may write at all.
    directory: Path | None = None
    schema: str = ""  #: JSON Schema of the object that its answer has to be, as text; empty for none.
    #: A file with a schema as OpenAI's strict mode takes it (``strict_schema``); None for none.
    schema_file: Path | None = None
    is_unrestricted: bool = False  #: It may do everything, unasked.
    more: tuple[str, ...] = ()  #: More flags, which stand behind ours.

    @property
    def may_write(self) -> bool:
        """Whether it may change files."""
        return self.is_unrestricted or "write" in self.tools

    @property
    def whole_text(self) -> str:
        """The task behind the system prompt, for an agent that takes no system prompt of its own."""
        return f"{self.system_prompt}\n\n{self.task}" if self.system_prompt else self.task


class Dialect(Protocol):
    """One agent."""

    name: ClassVar[str]  #: Its name, which is that of its program, too.
    title: ClassVar[str]  #: What its makers call it.
    install: ClassVar[str]  #: The command that installs it.
    keys: ClassVar[tuple[str, ...]]  #: Environment variables that can hold its key.
    #: How the names of its environment variables begin. It gets these; commands inherit no keys and nothing of any
    #: provider.
    own_variables: ClassVar[tuple[str, ...]]
    exit_kinds: ClassVar[Mapping[int, FailureKind]]  #: What its documented exit codes mean.
    #: The usage that it tells is that of the session so far, and not of this call.
    counts_whole_sessions: ClassVar[bool]
    tells_price: ClassVar[bool]  #: It says what a call cost.
    price_provider: ClassVar[str]  #: Whose list prices hold for its tokens where it tells no price; empty for nobody's.
    takes_schema_file: ClassVar[bool]  #: It is told by a file what its answer has to be, in OpenAI's strict form.
    #: The names of its own tools that `allowed_tools` may use, with patterns; empty for none.
    tool_names: ClassVar[frozenset[str]]

    def arguments(self, call: AgentCall) -> list[str]:
        """Its command line without the program."""
        ...

    def stdin(self, call: AgentCall) -> str:
        """What it reads."""
        ...

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:
        """What a line of its stdout says; empty for what is of no concern, or unknown."""
        ...
