"""Small pipelines."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.testing import ScriptedBackend

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"


@pytest.fixture
def dot():
    """A pipeline text with a start, an exit ``done`` and the given statements."""
    return lambda body: FRAME.format(body=body)


@pytest.fixture
def make(dot):
    """A pipeline of the given statements with scripted replies."""

    def build(body, replies=None, **options):
        return Pipeline(dot(body), **{"backend": ScriptedBackend(replies or {}), **options})

    return build
