"""The text that an agent is given: the prompt, and how it may report (spec 4.5, status-file contract)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STATUS_NAME = "status.json"


def task_text(prompt: str, directory: Path | None) -> str:
    """The prompt, with the offer to report in a file.

    Args:
        prompt: What the stage asks.
        directory: Where the file would be; None for no such offer.
    """
    if prompt.lstrip().startswith("/"):  # agents take it for a command of their own
        prompt = f"Task:\n\n{prompt}"
    return prompt if directory is None else f"{prompt}\n\n{status_offer(directory)}"


def with_attached_files(prompt: str, files: Sequence[Path]) -> str:
    """The prompt, and where what it names as attached is."""
    if not files:
        return prompt
    listed = "\n".join(f"- {place}" for place in files)
    return f"{prompt}\n\nThe attached files are here; look at them first:\n\n{listed}"


def status_offer(directory: Path) -> str:
    """The section of the prompt that offers the status file."""
    return (
        "## Reporting\n\n"
        f"When the task is done you may report how it went in the file {directory / STATUS_NAME}, as one "
        "JSON object:\n\n"
        '{"outcome": "success | partial_success | retry | fail", "notes": "what you did, in one sentence", '
        '"failure_reason": "why, unless it is a success", '
        '"preferred_next_label": "the way to go on, if the task names ways", '
        '"context_updates": {"key": "a JSON value for later stages"}}\n\n'
        "Only outcome is required. Without the file your last message is the result and counts as a success. "
        "Write nothing else into that directory."
    )
