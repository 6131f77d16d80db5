"""The sections of a prompt, shared by the code that writes them and the code that splits them.

Texts of several lines stand in fences that no text can end: what looks like a heading within one is text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CONTEXT = "## Context\n\n"
_TASK = "\n\n## Task\n\n"
_INSTRUCTION = "\n\n## Instruction from the supervisor\n\n"
_MESSAGE = "\n\n## Message from a person, given while the run was under way\n\n"
_COMPLAINT = "\n\n## Your last answer was not accepted\n\n"
INPUTS_HEADING: Final = "### Inputs"
_TICKS: Final = re.compile("`+")
_FENCE: Final = re.compile("`{3,}")


def with_context(context: str, task: str) -> str:
    r"""A task with the context before it, each in a section; the task alone without one.

    >>> with_context("Earlier: a plan.\n", "Go on."), with_context("", "Go on.")
    ('## Context\n\nEarlier: a plan.\n\n## Task\n\nGo on.', 'Go on.')
    """
    return f"{_CONTEXT}{context.strip()}{_TASK}{task}" if context.strip() else task


def with_instructions(task: str, instructions: Iterable[str]) -> str:
    r"""A task with the instructions of a supervisor after it, each in a fence; the task alone without one.

    >>> with_instructions("Go on.", ["Be brief."]) == "Go on." + _INSTRUCTION + "```\nBe brief.\n```"
    True
    """
    return "".join([task, *(f"{_INSTRUCTION}{fenced(text.strip())}" for text in instructions)])


def with_messages(task: str, messages: Iterable[str]) -> str:
    r"""A task with what people said meanwhile after it, each in a fence; the task alone without that.

    >>> with_messages("Go on.", ["Be brief."]) == "Go on." + _MESSAGE + "```\nBe brief.\n```"
    True
    """
    return "".join([task, *(f"{_MESSAGE}{fenced(text.strip())}" for text in messages)])


def with_complaint(prompt: str, complaint: str) -> str:
    r"""A prompt with what was wrong with the last answer to it at its end; the prompt alone without that.

    >>> with_complaint("Go on.", "It is empty."), with_complaint("Go on.", "")
    ('Go on.\n\n## Your last answer was not accepted\n\nIt is empty.', 'Go on.')
    """
    return f"{prompt}{_COMPLAINT}{complaint}" if complaint else prompt


def split_context(prompt: str, context: str) -> tuple[str, str]:
    """The context and the task of a prompt that ``with_context`` made; a text that only looks like one is all task.

    Args:
        prompt: The prompt.
        context: What the engine put before the task (``StageScope.preamble``): no text can say that of itself.

    >>> prompt = with_context("Earlier: a plan.", "Go on.")
    >>> split_context(prompt, "Earlier: a plan."), split_context("Go on.", "")
    (('Earlier: a plan.', 'Go on.'), ('', 'Go on.'))
    >>> split_context(prompt, "") == ("", prompt)
    True
    """
    beginning = with_context(context, "")
    if not beginning or not prompt.startswith(beginning):
        return "", prompt
    return context.strip(), prompt.removeprefix(beginning)


def stable_length(prompt: str) -> int:
    r"""The number of characters of a prompt that stay the same from stage to stage: its goal and its inputs.

    >>> prompt = with_context("Goal: ship\n\n### Inputs\n\n- ticket: 1\n\n### Earlier stages\n\n- a", "Go.")
    >>> prompt[: stable_length(prompt)], stable_length("Go on.")
    ('## Context\n\nGoal: ship\n\n### Inputs\n\n- ticket: 1\n\n', 0)
    """
    if not prompt.startswith(_CONTEXT):
        return 0
    body = prompt[len(_CONTEXT) :]
    headings = (start for line, start in outside_fences(body) if line.startswith("##"))
    ends = (start for start in headings if not body.startswith(f"{INPUTS_HEADING}\n", start))
    return len(_CONTEXT) + next(ends, 0)


def fenced(text: str) -> str:
    r"""A text in a fence that is longer than any within it.

    >>> fenced("a\n```\nb")
    '````\na\n```\nb\n````'
    """
    fence = fence_for(text)
    return f"{fence}\n{text}\n{fence}"


def fence_for(text: str) -> str:
    """A fence that nothing in a text can end.

    >>> fence_for("a ``` b")
    '````'
    """
    if "```" not in text:
        return "```"
    return "`" * (1 + max(len(run) for run in _TICKS.findall(text)))


def outside_fences(text: str) -> Iterator[tuple[str, int]]:
    r"""The lines of a text that are in no fence, each with where it begins.

    >>> list(outside_fences("a\n```\nb\n```\nc"))
    [('a', 0), ('c', 12)]
    """
    start, fence = 0, ""
    for line in text.split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif _FENCE.fullmatch(line):
            fence = line
        else:
            yield line, start
        start += len(line) + 1
