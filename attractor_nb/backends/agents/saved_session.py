"""What a thread keeps of an agent: the session that the next stage goes on with (spec 5.4)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs

from attractor_nb.backends.agents.agent_events import Tokens, count_at, is_session
from attractor_nb.errors import TerminalError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from attractor_nb.backends.agents.agent_events import Ended


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as a thread keeps it."""

    agent: str  #: Whose it is.
    session: str = ""  #: Its id.
    input_tokens: int = 0  #: Tokens sent in it so far, for an agent that tells no other count.
    output_tokens: int = 0  #: Tokens received in it so far, likewise.
    cache_read_tokens: int = 0  #: How many of those sent the cache held, likewise.

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
        """What the thread keeps."""
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
        """What one call consumed, of an agent that tells what the session has consumed.

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
