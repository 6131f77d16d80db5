"""The common part of the rows of the checklists: a short way to run DOT text with scripted replies."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.testing import ManualClock, ScriptedBackend, SeededRandomness

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"


@pytest.fixture
def dot():
    """A pipeline text with a start, an exit ``done`` and the given statements."""

    def make(body):
        return FRAME.format(body=body)

    return make


@pytest.fixture
def run_dot(dot):
    """Run statements with scripted replies by node; waits between attempts take no time."""

    def run(body, replies=None, *, handlers=None, **options):
        options = {
            "durability": "none",
            "clock": ManualClock(),
            "randomness": SeededRandomness(),
            "backend": ScriptedBackend(replies or {}),
            **options,
        }
        return Pipeline(dot(body), handlers=handlers).run(wait=True, **options)

    return run
