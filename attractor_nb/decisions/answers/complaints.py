"""What the next attempt of a stage tells its model of an answer that was not accepted (ruling 26)."""

from __future__ import annotations

from typing import Final

from attractor_nb.model.calls.prompt_sections import fenced
from attractor_nb.model.excerpts import excerpt

MAX_ANSWER_CHARACTERS: Final = 2_000
"""Of an answer that a model is shown again: its beginning and its end."""
_REMEDY: Final = "Answer the task again, and put this right."
SHORTER: Final = "Answer the task again, so briefly that the whole answer fits."


def complaint_about(answer: str, problem: str, remedy: str = _REMEDY) -> str:
    r"""What was wrong with an answer, what it was, and what is to be done.

    The same answer makes the same complaint in any run, so that recordings and the cache know the prompt.

    >>> print(complaint_about('{"score": 11}', "11 is more than 10"))
    It could not be used: 11 is more than 10.
    <BLANKLINE>
    You answered:
    <BLANKLINE>
    ```
    {"score": 11}
    ```
    <BLANKLINE>
    Answer the task again, and put this right.
    """
    parts = [f"It could not be used: {' '.join(problem.split())}."]
    if given := answer.strip():
        parts += ["You answered:", fenced(excerpt(given, MAX_ANSWER_CHARACTERS))]
    return "\n\n".join([*parts, remedy])
