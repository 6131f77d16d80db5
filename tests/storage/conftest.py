"""Values that the tests of the store share."""

import pytest

from attractor_nb.model.events import PipelineStarted, StageCompleted, StageStarted
from attractor_nb.model.outcome import Outcome
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def event_of():
    """The event with a number of a run over plan, implement, plan, implement …"""

    def make(sequence):
        if sequence == 1:
            return PipelineStarted(sequence=1, run_id="abcdefgh", name="review", id="abcdefgh", start_node="plan")
        visit, kind = divmod(sequence - 2, 4)
        node = "plan" if kind < 2 else "implement"
        if kind % 2 == 0:
            return StageStarted(sequence=sequence, name=node, visit=visit + 1)
        return StageCompleted(
            sequence=sequence,
            name=node,
            visit=visit + 1,
            duration=0.25,
            outcome=Outcome.success("fine"),
            context={"outcome": "success", "count": sequence},
            next_node="implement",
        )

    return make


@pytest.fixture
def create(tmp_path, clock):
    """Make a store in a fresh run directory; it is closed at the end of the test."""
    stores = []

    def make(name="run", *, durability="fast", disk=None, **manifest):
        facts = {"run_id": "abcdefgh", "pipeline_name": "review", **manifest}
        store = DirectoryRunStore.create(
            tmp_path / name, durability=durability, source_text="digraph {}", manifest=facts, clock=clock, disk=disk
        )
        stores.append(store)
        return store

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def reopen(clock):
    """Take over a run directory; the store is closed at the end of the test."""
    stores = []

    def take(path, *, durability="fast", disk=None):
        store = DirectoryRunStore.open(path, durability=durability, clock=clock, disk=disk)
        stores.append(store)
        return store

    yield take
    for store in stores:
        store.close()


@pytest.fixture
def checkpoint():
    """A minimal checkpoint as the engine hands it over."""
    return {
        "current_node": "plan",
        "next_node": "implement",
        "completed_nodes": ["plan"],
        "context": {"outcome": "success"},
    }
