"""What a prompt of the engine carries, as a reader sees it."""


def carried(prompt):
    """The context that a prompt begins with; empty for a task alone."""
    head, sign, _ = prompt.removeprefix("## Context\n\n").partition("\n\n## Task\n\n")
    return head if sign else ""
