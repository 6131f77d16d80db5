"""Going on from the checkpoints of another engine (run-directory, Migration Path)."""

import json

import pytest

from attractor_nb.errors import CheckpointCorrupt, GraphChanged, RunError
from attractor_nb.testing import ScriptedBackend

BODY = """a b mend start -> a a -> b [condition="outcome=success"] a -> mend [condition="outcome=fail"]
mend -> b b -> done"""


@pytest.fixture
def checkpoint(tmp_path):
    """Write a run directory with nothing but a plain checkpoint.json."""

    def write(current, completed, **more):
        folder = tmp_path / "old"
        folder.mkdir()
        plain = {
            "pipeline_name": "demo",
            "current_node": current,
            "context": {},
            "completed_nodes": completed,
            "timestamp": 1771699200.0,
            "node_retries": {},
            "logs": [],
            **more,
        }
        (folder / "checkpoint.json").write_text(json.dumps(plain))
        return folder

    return write


@pytest.mark.parametrize(
    ("current", "completed", "context", "path"),
    [
        pytest.param("a", ["start"], {"outcome": "success"}, ("start", "a", "b", "done"), id="not_completed"),
        pytest.param("a", ["start", "a"], {"outcome": "success"}, ("start", "a", "b", "done"), id="completed"),
        pytest.param("a", ["start", "a"], {"outcome": "fail"}, ("start", "a", "mend", "b", "done"), id="failed"),
        pytest.param("a", ["start", "a"], {}, ("start", "a", "a", "b", "done"), id="outcome_unknown"),
    ],
)
def test_an_older_run_goes_on_where_it_stood(make, checkpoint, current, completed, context, path):
    old = checkpoint(current, completed, context=context)
    result = make(BODY).resume(old).result(60)
    assert (result.status, result.completed_nodes) == ("success", path)
    assert result.logs_root != old


def test_its_outcomes_and_visits_are_taken_over(make, checkpoint):
    old = checkpoint(
        "a",
        ["start", "a"],
        context={"outcome": "success"},
        logs=[{"node": "a", "outcome": "partial_success", "timestamp": 1.0}],
    )
    result = make(BODY).resume(old).result(60)
    assert result.node_outcomes["a"] == "partial_success"
    assert result.visits["a"] == 1


def test_a_dead_end_of_an_older_run_fails_in_words(make, checkpoint):
    old = checkpoint("a", ["start", "a"], context={"outcome": "partial_success"})
    result = make(BODY.replace("outcome=success", "context.go=yes")).resume(old).result(60)
    assert result.status == "fail"
    assert "no matching edge from a" in result.reason


def test_an_older_run_of_another_graph_is_refused(make, checkpoint):
    with pytest.raises(GraphChanged, match="stopped at other"):
        make(BODY).resume(checkpoint("other", ["start"]))


def test_an_older_run_goes_on_in_a_named_directory(make, checkpoint, tmp_path):
    backend = ScriptedBackend()
    result = make(BODY, backend=backend).resume(checkpoint("b", ["start", "a"]), logs_root=tmp_path / "new").result(60)
    assert result.logs_root == tmp_path / "new"
    assert [call.node_id for call in backend.calls] == ["b"]


def test_a_damaged_older_checkpoint_is_named(make, tmp_path):
    (tmp_path / "checkpoint.json").write_text("{")
    with pytest.raises(CheckpointCorrupt, match=r"checkpoint\.json"):
        make(BODY).resume(tmp_path)


@pytest.mark.parametrize("current", ["start", "b"])
def test_a_run_that_lost_what_the_older_one_had_is_not_gone_on_with_as_if_it_had_nothing(make, checkpoint, current):
    old = checkpoint(current, [], context={"ticket": "42"})
    pipeline = make(BODY)
    root = pipeline.resume(old, stop_after=1, durability="fast").result(60).logs_root
    with pytest.raises(RunError, match="no log contains its state"):
        pipeline.resume(root, rewind_to=current)
    for path in root.glob("checkpoint*"):
        path.unlink()
    with pytest.raises(RunError, match="no checkpoint with its state") as caught:
        pipeline.resume(root)
    assert str(old) in caught.value.hint
    assert pipeline.resume(old).result(60).context["ticket"] == "42"


def test_a_restart_of_a_run_that_went_on_from_an_older_one_stands_for_itself(make, checkpoint):
    old = checkpoint("a", [], context={"ticket": "42"})
    pipeline = make('a b start -> a -> b b -> a [condition="outcome=success", loop_restart=true] b -> done')
    root = pipeline.resume(old, stop_after=3, durability="fast").result(60).logs_root
    assert root.name == "restart-1"
    for path in root.glob("checkpoint*"):
        path.unlink()
    result = pipeline.resume(root, max_restarts=1, durability="fast").result(60)
    assert "max_restarts=1" in result.reason
    assert "ticket" not in result.context
