"""What of a response is read: not its secrets, and not its reasoning (ruling 46)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.calls.reasoning import part_reasoning
from attractor_nb.model.calls.response import with_text
from attractor_nb.model.redacted import redacted_response

if TYPE_CHECKING:
    from attractor_nb.stage import StageFiles

RESPONSE_FILE: Final = "response.md"
EXCERPT_CHARACTERS: Final = 200
"""Length of ``last_response`` (spec 4.5); the whole text is in response.md and ``<node>.response``."""
ONLY_REASONING = "the response is only reasoning, without an answer"
EMPTY = "the response is empty"


def answer_in(
    response: str, files: StageFiles, reasoning_name: str = "reasoning.md", *, is_decision: bool = False
) -> str:
    """The answer in a response, with what the response carries beside its text.

    Args:
        response: What the backend returned.
        files: Take the reasoning, when there is some.
        reasoning_name: The file that it becomes.
        is_decision: A verdict or a choice is read from the answer: reasoning without an end leaves none.
    """
    clean = redacted_response(response)  # before it is cut: half a secret has no form
    answer, reasoning = part_reasoning(clean, is_decision=is_decision)
    if reasoning:
        files.write_text(reasoning_name, reasoning)
    return with_text(clean, answer)


def no_answer(response: str) -> str:
    """Why a response has no answer in it."""
    return ONLY_REASONING if response.strip() else EMPTY


def response_updates(node_id: str, response: str) -> dict[str, str]:
    """The context values that a stage leaves of its response (spec 4.5)."""
    return {"last_stage": node_id, "last_response": response[:EXCERPT_CHARACTERS], f"{node_id}.response": str(response)}
