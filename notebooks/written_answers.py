"""Answers for notebook 1, written by hand as a good model would give them: no key, no download, the same everywhere.

``written`` is an ordinary backend: a function of the node, the prompt and the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb import current_stage

if TYPE_CHECKING:
    from attractor_nb import Context, Node

POINTS = """\
1. Search answers in half the time, in large archives too.
2. Search works without a network connection.
3. There is nothing to set up: the index is built at the first start."""

NOTES = (
    """\
Version 2 finds your notes in half the time. Search now works without a network connection, on the train as well as
at your desk. There is nothing to set up: the index is built when you open the app for the first time.""",
    """\
Search is twice as fast in version 2, and it works offline. Open the app once, and every note that you have ever
written is a keystroke away.""",
)

SENTENCE = "Version 2 finds any note in half the time, online or offline, with nothing to set up."

UNKNOWN = 'Nobody has written an answer to this prompt. backend="local", or a model of yours, answers every prompt.'


def written(node: Node, prompt: str, context: Context) -> str:
    """The written answer to a prompt of notebook 1."""
    del context
    if "one sentence" in prompt:
        return SENTENCE
    if node.id == "plan":
        return POINTS
    return NOTES[(current_stage().visit - 1) % len(NOTES)] if node.id == "write" else UNKNOWN
