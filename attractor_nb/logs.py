"""Our loggers: what a logging handler gets of them holds no secrets, tracebacks of plug-ins included."""

from __future__ import annotations

import logging
import traceback

from attractor_nb.redaction import redacted


class _Redaction(logging.Filter):
    """Makes a record final: its message and traceback as text, so that no handler renders them anew."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redacted(record.getMessage())
        record.args = None
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = redacted("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
            record.exc_info = None
        return True


def own_logger(name: str) -> logging.Logger:
    """The logger of a module of the package."""
    logger = logging.getLogger(name)
    # A filter of a parent sees nothing that was logged to its children.
    if not any(isinstance(present, _Redaction) for present in logger.filters):
        logger.addFilter(_Redaction())
    return logger
