"""The two sections of a prompt that carries context: whoever writes it and whoever splits it agree here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTEXT = "## Context\n\n"
_TASK = "\n\n## Task\n\n"
_INSTRUCTION = "\n\n## Instruction from the supervisor\n\n"


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


def split_context(prompt: str) -> tuple[str, str]:
    """The context and the task of a prompt; the inverse of ``with_context``.

    >>> split_context(with_context("Earlier: a plan.", "Go on.")), split_context("Go on.")
    (('Earlier: a plan.', 'Go on.'), ('', 'Go on.'))
    """
    context, mark, task = prompt.removeprefix(_CONTEXT).partition(_TASK)
    return (context, task) if mark and prompt.startswith(_CONTEXT) else ("", prompt)
