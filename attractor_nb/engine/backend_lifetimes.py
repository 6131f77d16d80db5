"""Starts what stands behind the model stages of a run, and closes it when the run has its result.

Knows no run, and no kind of backend.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.logs import own_logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.protocols import BackendLifetime

LOGGER = own_logger(__name__)


async def open_backends(lifetimes: Iterable[BackendLifetime], begun: list[BackendLifetime]) -> str:
    """Start backends one after the other; why that failed, or empty.

    Args:
        lifetimes: What is started.
        begun: Gets each before it is started: even one that did not start must be closed.
    """
    for lifetime in lifetimes:
        begun.append(lifetime)
        try:
            await lifetime.open()
        except (OptionError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a backend that is down is a failure of the run (ruling 30)
            subject = getattr(lifetime, "subject", "the backend")
            return f"{subject} did not start: {outcome_of_exception(error).failure_reason}"
    return ""


async def closed(lifetime: BackendLifetime) -> None:
    """Close a backend; whatever that comes to, the result is there."""
    try:
        await lifetime.close()
    except asyncio.CancelledError:  # stopped twice: leave at once, with the result that there is
        LOGGER.warning("a backend was not waited for while it closed")
    except Exception:  # the run has its result; a backend that cannot close must not take it away
        LOGGER.exception("a backend did not close")
