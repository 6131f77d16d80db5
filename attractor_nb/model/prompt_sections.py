"""The sections of a prompt: whoever writes them and whoever splits them agree here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTEXT = "## Context\n\n"
_TASK = "\n\n## Task\n\n"
_INSTRUCTION = "\n\n## Instruction from the supervisor\n\n"
_COMPLAINT = "\n\n## Your last answer was not accepted\n\n"


def with_context(context: str, task: str) -> str:
    r"""A task with the context before it, each in a section; the task alone without one.

    >>> with_context("Earlier: a plan.\n", "Go on."), with_context("", "Go on.")
    ('## Context\n\nEarlier: a plan.\n\n## Task\n\nGo on.', 'Go on.')
    """
    return f"{_CONTEXT}{context.strip()}{_TASK}{task}" if context.strip() else task


def with_instructions(task: str, instructions: Iterable[str]) -> str:
    r"""A task with what a supervisor said meanwhile after it; the task alone without that.

    >>> with_instructions("Go on.", ["Be brief."]), with_instructions("Go on.", [])
    ('Go on.\n\n## Instruction from the supervisor\n\nBe brief.', 'Go on.')
    """
    return "".join([task, *(f"{_INSTRUCTION}{text.strip()}" for text in instructions)])


def with_complaint(prompt: str, complaint: str) -> str:
    r"""A prompt with what was wrong with the last answer to it at its end; the prompt alone without that.

    >>> with_complaint("Go on.", "It is empty."), with_complaint("Go on.", "")
    ('Go on.\n\n## Your last answer was not accepted\n\nIt is empty.', 'Go on.')
    """
    return f"{prompt}{_COMPLAINT}{complaint}" if complaint else prompt


def split_context(prompt: str) -> tuple[str, str]:
    """The context and the task of a prompt; the inverse of ``with_context``.

    >>> split_context(with_context("Earlier: a plan.", "Go on.")), split_context("Go on.")
    (('Earlier: a plan.', 'Go on.'), ('', 'Go on.'))
    """
    context, mark, task = prompt.removeprefix(_CONTEXT).partition(_TASK)
    return (context, task) if mark and prompt.startswith(_CONTEXT) else ("", prompt)
