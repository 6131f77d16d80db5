"""Open files of this process: as many as the server needs for all that it says it takes."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

from attractor_nb.logs import own_logger

LOGGER = own_logger(__name__)
FOR_A_RUN: Final = 5
"""The log, the directory and the lock of a run under way, and the directory of a stage or two."""
FOR_THE_REST: Final = 256


def make_room(max_runs: int, max_streams: int) -> None:
    """Let this process open what it may come to need, as far as the system lets it."""
    needed = needed_files(max_runs, max_streams)
    if (allowed := raise_limit(needed)) < needed:
        LOGGER.info(
            "%d runs and %d streams may need %d open files, and this process may have %d",
            max_runs,
            max_streams,
            needed,
            allowed,
        )


def needed_files(max_runs: int, max_streams: int) -> int:
    """How many files a server may have open at a time.

    >>> needed_files(1_000, 2_000)
    7256
    """
    return FOR_A_RUN * max_runs + max_streams + FOR_THE_REST


def raise_limit(needed: int) -> int:
    """Raise how many files this process may open, up to what it may raise it to; how many it may open then.

    Many systems begin with a soft limit of 1,024, which everybody may raise up to the hard one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        with contextlib.suppress(ValueError, OSError):  # macOS has a limit beside the hard one
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return needed if soft == resource.RLIM_INFINITY else soft
