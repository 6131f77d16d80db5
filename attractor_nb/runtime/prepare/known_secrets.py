"""Registration of secrets: from the environment of this process, and by the user."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor_nb.errors import DotSyntaxError, OptionError
from attractor_nb.redaction import MIN_LENGTH, learn, redacted, secrets_among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.model.graph import Graph


def redact_also(*values: str) -> None:
    """Never write, log or show these values, from now on and in this whole process.

    Values of environment variables whose name says so (``…_API_KEY``, ``…_TOKEN``, ``…_PASSWORD`` …) are
    known without it, and well-known keys have a form.

    Args:
        *values: The secrets, as texts.

    Raises:
        OptionError: A value is not text, or is too short to be told from an ordinary word.
    """
    for value in values:
        if not isinstance(value, str) or len(value) < MIN_LENGTH:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            what = f"{len(value)} characters" if isinstance(value, str) else type(value).__name__  # pyright: ignore[reportUnnecessaryIsInstance] - as above
            raise OptionError(
                f"a secret must be text of at least {MIN_LENGTH} characters, not {what}",
                hint="shorter words would be removed from every text",
            )
    learn(values)


def learn_environment() -> None:
    """Make known the secrets that the environment holds now."""
    learn(secrets_among(os.environ))


def learn_for_run(secrets: Sequence[str]) -> None:
    """Make known what a run must not let out, before anything of it is written."""
    learn_environment()
    redact_also(*secrets)


def stored_source(source: str, whole: Graph) -> tuple[str, bool]:
    """The text of a pipeline as a run directory keeps it.

    Args:
        source: The text, those of files in it.
        whole: The graph that it means.

    Returns:
        The text without secrets, and whether it had any. It can still be read: where the place of a
        secret cannot be marked in the text itself, it is the canonical text of the graph.
    """
    # Every command makes secrets known, and few read a graph.
    from attractor_nb.languages.dot import parse_dot, write_dot  # noqa: PLC0415 - as said above
    from attractor_nb.model.redacted import redacted_graph  # noqa: PLC0415 - as above

    clean = redacted(source)
    if clean is source:
        return source, False
    try:
        parse_dot(clean)
    except DotSyntaxError:
        clean = write_dot(redacted_graph(whole))
    return clean, True
