"""Sessions in a directory of the test's own, on a clock in its hands."""

import pytest

from attractor_nb.sessions import SessionTracker
from attractor_nb.testing import ManualClock

AGENTS = [
    {"id": "001", "name": "schema", "wave": 1},
    {"id": "002", "name": "writer", "wave": 2},
    {"id": "003", "name": "renderer", "wave": 2},
]


@pytest.fixture
def clock():
    return ManualClock(1_769_956_222.0)  # 2026-02-01T14:30:22Z


@pytest.fixture
def create(tmp_path, clock):
    """Begin a session of three agents in two waves."""

    def make(agents=AGENTS, waves=None, **options):
        return SessionTracker.create(tmp_path, "orchestrate", "review.dot", agents, waves, now=clock.time, **options)

    return make


@pytest.fixture
def tracker(create):
    return create()
