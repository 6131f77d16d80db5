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
    """What one call of an agent asks for.

    Attributes:
        task: The whole text for the agent.
        model: The model; empty for the agent's own choice.
        effort: ``low``, ``medium`` or ``high``; empty for the agent's own choice.
        system_prompt: Text for the system prompt, or empty.
        tools: Of ``read``, ``write``, ``list`` and ``run``: what it may do. Reading it always may.
        named: Its own tools by their names, such as ``Bash(git:*)``: what it may do besides.
        session: The session to go on with; empty for a fresh one.
        directory: A directory beside its working directory in which it may write, if it may write at all.
        schema: JSON Schema of the object that its answer has to be, as text; empty for none.
        schema_file: A file with a schema as OpenAI's strict mode takes it (``strict_schema``); None for none.
        is_unrestricted: It may do everything, unasked.
        more: More flags, which stand behind ours.
    """

    task: str
    model: str = ""
    effort: str = ""
    system_prompt: str = ""
    tools: frozenset[str] = field(default_factory=frozenset[str])
    named: tuple[str, ...] = ()
    session: str = ""
    directory: Path | None = None
    schema: str = ""
    schema_file: Path | None = None
    is_unrestricted: bool = False
    more: tuple[str, ...] = ()

    @property
    def may_write(self) -> bool:
        """Whether it may change files."""
        return self.is_unrestricted or "write" in self.tools

    @property
    def whole_text(self) -> str:
        """The task behind the system prompt, for an agent that takes no system prompt of its own."""
        return f"{self.system_prompt}\n\n{self.task}" if self.system_prompt else self.task


class Dialect(Protocol):
    """One agent.

    Attributes:
        name: Its name, which is that of its program, too.
        title: What its makers call it.
        install: The command that installs it.
        keys: Environment variables that can hold its key.
        own_variables: How the names of its environment variables begin. It gets these; commands inherit no
            keys and nothing of any provider.
        exit_kinds: What its documented exit codes mean.
        counts_whole_sessions: The usage that it tells is that of the session so far, and not of this call.
        tells_price: It says what a call cost.
        price_provider: Whose list prices hold for its tokens where it tells no price; empty for nobody's.
        takes_schema_file: It is told by a file what its answer has to be, in OpenAI's strict form.
        tool_names: The names of its own tools that `allowed_tools` may use, with patterns; empty for none.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    install: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    own_variables: ClassVar[tuple[str, ...]]
    exit_kinds: ClassVar[Mapping[int, FailureKind]]
    counts_whole_sessions: ClassVar[bool]
    tells_price: ClassVar[bool]
    price_provider: ClassVar[str]
    takes_schema_file: ClassVar[bool]
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
