"""Selects the tests of a run, and names at its end the kinds that ran and the tests that were left out.

``make test`` runs all tests but those marked ``campaign``; ``make test-all`` runs both, and CI one share of the
campaign. ``--share K/N`` keeps share K of N: a test belongs to a share by its name, so N shares are all tests.
A test marked ``kind`` represents a kind of protection in ``make test``: a kill, a browser, a Dask worker. Without that
mark, the tests of ``CAMPAIGN_FOLDERS`` and those with a mark of ``CAMPAIGN_MARKS`` belong to the campaign.
"""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CAMPAIGN_FOLDERS = (HERE / "benchmarks", HERE / "browser")
CAMPAIGN_MARKS = ("campaign", "installs", "old_kernels")
LEFT_OUT = pytest.StashKey[int]()


def parse_share(text: str) -> tuple[int, int]:
    """The number of a share, and the number of shares.

    Raises:
        pytest.UsageError: The text is not ``K/N`` with 0 <= K < N.
    """
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and int(number) < int(count):
        return int(number), int(count)
    raise pytest.UsageError(f'--share is K/N with 0 <= K < N, for example "3/8", not "{text}"')


def is_in_share(name: str, number: int, count: int) -> bool:
    """True if the test of that name belongs to the share."""
    return zlib.crc32(name.encode()) % count == number


def kinds_of(item: pytest.Item) -> list[str]:
    """The kinds of protection that a test represents in ``make test``."""
    return [mark.args[0] for mark in item.iter_markers("kind")]


def is_in_campaign(item: pytest.Item) -> bool:
    """True if `make test` leaves the test to the campaign."""
    if kinds_of(item):
        return False
    return any(map(item.get_closest_marker, CAMPAIGN_MARKS)) or any(map(item.path.is_relative_to, CAMPAIGN_FOLDERS))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--share``."""
    parser.addoption("--share", default="0/1", metavar="K/N", help="run share K of N, 0 <= K < N, chosen by test name")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the share, and count those of the campaign before ``-m`` takes them away."""
    number, count = parse_share(config.getoption("--share"))
    if count > 1:
        kept = [item for item in items if is_in_share(item.nodeid, number, count)]
        config.hook.pytest_deselected(items=[item for item in items if not is_in_share(item.nodeid, number, count)])
        items[:] = kept
    if both := [item.nodeid for item in items if item.get_closest_marker("campaign") and kinds_of(item)]:
        raise pytest.UsageError(f"a test has one of the marks campaign and kind: {both[0]}")
    campaign = [item for item in items if is_in_campaign(item)]
    for item in campaign:
        item.add_marker("campaign")
    config.stash[LEFT_OUT] = len(campaign) if config.getoption("-m") == "not campaign" else 0
    for item in items:
        item.user_properties += [("kind", kind) for kind in kinds_of(item)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the count of a worker to the process that prints the summary."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of a worker; each has collected the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the kinds of protection that passed, and how many tests `make test-all` adds."""
    passed = terminalreporter.stats.get("passed", [])
    kinds = Counter(value for report in passed for name, value in report.user_properties if name == "kind")
    if kinds:
        terminalreporter.write_line("protections: " + ", ".join(f"{kind} {kinds[kind]}" for kind in sorted(kinds)))
    if left := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{left:,} tests of the campaign were left out: make test-all runs them")
