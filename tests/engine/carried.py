"""The contents of a prompt of the engine, as a reader sees them."""


def carried(prompt):
    """The context that a prompt begins with; empty for a task alone."""
    head, sign, _ = prompt.removeprefix("## Context\n\n").partition("\n\n## Task\n\n")
    return head if sign else ""
