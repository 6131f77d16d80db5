"""Ends the process of a test that does not end by itself, and says where it stood.

pytest-timeout looks away when a test has failed, so that a developer may debug it: what the fixtures of such a test
then wait for would be waited for without end, and with it the whole run.
"""

from __future__ import annotations

import faulthandler
import os

import pytest

GRACE_SECONDS = 60.0
"""Longer than a test's own limit: where that is kept, its report says more."""
_standard_error = -1


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error: while a test goes on, what is written there is held back for its report."""
    del config
    global _standard_error  # noqa: PLW0603 - there is one in a process
    _standard_error = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch a test from its beginning."""
    watch(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Watch it again: a failure ends the watch, too."""
    watch(item)


def watch(item: pytest.Item) -> None:
    """From now on a test has its limit and the grace; nothing where it has no limit."""
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker and marker.args else item.config.getvalue("timeout") or 0)
    if limit:
        faulthandler.dump_traceback_later(limit + GRACE_SECONDS, file=_standard_error, exit=True)


def pytest_sessionfinish() -> None:
    """End the watch."""
    faulthandler.cancel_dump_traceback_later()
