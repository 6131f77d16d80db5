"""Replaces secrets by ``[redacted]`` in everything that is written, logged, shown or raised.

A secret is a value that was made known (of an environment variable whose name says so, of an address in
one that contains a token or a password, or by ``redact_also``), or a text that has the form of a well-known key.
It is replaced whole, never in part.
What was made known holds for the whole process, so that errors and drawings, which belong to no run,
keep it too. Nothing here knows an environment, a file or a run.
"""

from attractor_nb.redaction.redactor import (
    MARK,
    MIN_LENGTH,
    StreamRedactor,
    address_secrets,
    holds_secret,
    is_secret_name,
    learn,
    may_hold,
    redacted,
    redacted_value,
    secret_places,
    secrets_among,
)

__all__ = [
    "MARK",
    "MIN_LENGTH",
    "StreamRedactor",
    "address_secrets",
    "holds_secret",
    "is_secret_name",
    "learn",
    "may_hold",
    "redacted",
    "redacted_value",
    "secret_places",
    "secrets_among",
]
