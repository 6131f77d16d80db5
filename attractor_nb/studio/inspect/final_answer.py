"""The final answer of a run: the response of the stage that spoke last."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from attractor_nb.errors import AttractorError
from attractor_nb.redaction import redacted
from attractor_nb.views.texts.prose import prose_of

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph
    from attractor_nb.views.state import RunView

MAX_ANSWER_CHARS: Final = 4000
WHOLE_IN_PYTHON: Final = 'run["{node}"].response'
SPEAKING_TYPES: Final = frozenset({"codergen", "tool"})
"""Handler types whose output streams."""


class AnsweringRun(Protocol):
    """The part of a run that is needed here; the public ``Run`` implements it."""

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        ...

    def __getitem__(self, what: str, /) -> Any:
        """A stage of it."""
        ...


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The final answer of a run."""

    node: str  #: The node.
    text: str  #: The text; without secrets, and not longer than is shown.

    def to_plain(self) -> dict[str, Any]:
        """JSON values for a front-end, with the text as prose."""
        return {"node": self.node, "text": self.text, "shown": prose_of(self.text)}


def final_answer(run: AnsweringRun, view: RunView, whole: str = WHOLE_IN_PYTHON) -> FinalAnswer | None:
    """The final answer of a run; None without one that can be read.

    Args:
        view: Its current view.
        whole: Where the whole of a long answer is found, with ``{node}`` for the node.
    """
    node = _last_speaker(view, run.graph)
    with suppress(AttractorError):
        if node and (response := run[node].response):
            text = redacted(response)
            more, where = len(text) - MAX_ANSWER_CHARS, whole.replace("{node}", node)
            words = f"{text[:MAX_ANSWER_CHARS]}\n… {more:,} more characters: {where}"
            return FinalAnswer(node, words if more > 0 else text)
    return None


def _last_speaker(view: RunView, graph: Graph) -> str:
    """The node that spoke last, of those whose handlers do; empty when none has."""
    spoken = [
        (state.since, name)
        for name, state in view.nodes.copy().items()
        if name in graph.nodes and graph.handler_types[name] in SPEAKING_TYPES and not state.status.is_active
    ]
    return max(spoken)[1] if spoken else ""
