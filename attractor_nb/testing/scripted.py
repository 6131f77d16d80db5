"""Backends and interviewers that follow a script and remember what they were asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.interviewers.sequential import SequentialInterviewer
from attractor_nb.interviewers.typed_answers import AnswerLike, answer_of
from attractor_nb.model.outcome import Outcome
from attractor_nb.stage import stream_output

if TYPE_CHECKING:
    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.model.question import Answer, Question

Reply = str | Outcome | BaseException
Replies = Mapping[str, "Reply | Sequence[Reply]"]


@dataclass(frozen=True, slots=True)
class BackendCall:
    """One call of a backend: the node, the prompt, and what the context held."""

    node_id: str
    prompt: str
    context: Mapping[str, Any]


class ScriptedBackend:
    """Gives each node its scripted replies, in order; the last one is repeated.

    Args:
        replies: By node id: a text, an Outcome, an exception to raise, or a list of them.
        default: The reply of nodes that are not in the script.

    Attributes:
        calls: All calls so far.

    >>> backend = ScriptedBackend({"plan": ["first", Outcome.fail("no")]}, default="done")
    """

    takes_attachments: Final = True
    """What a stage attaches is in ``current_stage().attachments``."""

    def __init__(self, replies: Replies | None = None, *, default: Reply = "done") -> None:
        self._left = {node_id: _listed(given) for node_id, given in (replies or {}).items()}
        self._default = default
        self.calls: list[BackendCall] = []

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """The next reply of the node."""
        self.calls.append(BackendCall(node.id, prompt, context.snapshot()))
        left = self._left.get(node.id) or [self._default]
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            stream_output(reply)
        return reply

    @property
    def prompts(self) -> dict[str, list[str]]:
        """The prompts of each node, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for call in self.calls:
            found[call.node_id].append(call.prompt)
        return dict(found)


class ScriptedInterviewer(SequentialInterviewer):
    """Gives each gate its scripted answers, in order; the last one is repeated.

    A gate that is not in the script is skipped, never approved.

    Attributes:
        questions: All questions so far.
        messages: All messages so far, as ``(message, stage)``.
    """

    def __init__(self, answers: Mapping[str, AnswerLike | Iterable[AnswerLike]]) -> None:
        self._left: dict[str, list[Any]] = {stage: _listed(given) for stage, given in answers.items()}
        self.questions: list[Question] = []
        self.messages: list[tuple[str, str]] = []

    async def ask(self, question: Question) -> Answer:
        """The next answer of the gate."""
        self.questions.append(question)
        left = self._left.get(question.stage) or [None]
        return answer_of(left.pop(0) if len(left) > 1 else left[0], question, "script")

    async def inform(self, message: str, stage: str) -> None:
        """Record the message."""
        self.messages.append((message, stage))


def _listed(given: Any) -> list[Any]:
    return list(cast("list[Any]", given)) if isinstance(given, list) else [given]
