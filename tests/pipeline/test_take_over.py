"""Taking a run from its owner: a refused caller leaves it with its owner."""

import pytest

from attractor_nb.errors import GraphChanged, RunError, RunLocked, RunNotFound
from attractor_nb.storage.log.lock import read_owner
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.testing import ManualClock

GATED = 'g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]'


@pytest.fixture
def waiting(make, tmp_path):
    """A run that waits at its gate."""
    run = make(GATED, interviewer="deferred").run(logs_root=tmp_path / "run")
    run.wait_for_gate("g", 60)
    yield run
    run.cancel()


REFUSED = {
    "another_graph": ("a start -> a -> done", {}, GraphChanged),
    "no_such_visit": (GATED, {"rewind_to": "g", "visit": 7}, RunError),
    "never_visited": (GATED, {"rewind_to": "done"}, RunError),
}


@pytest.mark.parametrize(("body", "options", "error"), REFUSED.values(), ids=REFUSED)
def test_a_take_over_that_is_refused_leaves_the_run_to_its_owner(make, tmp_path, waiting, body, options, error):
    before = read_owner(tmp_path / "run")
    with pytest.raises(error):
        make(body).resume(tmp_path / "run", take_over=True, **options)
    assert read_owner(tmp_path / "run") == before
    waiting.answer("g", "Y")
    assert waiting.result(60).status == "success"


def test_a_take_over_of_a_run_that_is_only_beginning_leaves_it_to_its_owner(make, tmp_path):
    store = DirectoryRunStore.create(
        tmp_path / "run", durability="fast", source_text="", manifest={"run_id": "a"}, clock=ManualClock()
    )
    with pytest.raises(RunNotFound, match="had not begun"):
        make(GATED).resume(tmp_path / "run", take_over=True)
    store.check_owner()
    store.save_manifest({"goal": "still mine"})
    store.close()


def test_a_take_over_that_may_go_on_takes_the_run(make, tmp_path, waiting):
    result = make(GATED, interviewer="auto").resume(tmp_path / "run", take_over=True).result(60)
    assert result.status == "success"
    with pytest.raises(RunLocked):
        waiting.result(60)
