"""status-file-contract.md, "Testing Requirements" 1 to 6."""

import json

import pytest

from attractor_nb import Outcome, StageStatus


@pytest.fixture
def run_handler(run_dot, tmp_path):
    """Run ``handler`` as stage ``a``, which can go to ``left`` or ``right``; result and status.json."""

    def run(handler, attrs=""):
        result = run_dot(
            f'a [type="own"{attrs}] left right start -> a a -> left [label="Left"] a -> right [label="Right"]'
            " left -> done right -> done",
            handlers={"own": handler},
            durability="fast",
            logs_root=tmp_path / "run",
        )
        return result, json.loads((tmp_path / "run/a/status.json").read_text())

    return run


def test_status_file_1_a_crash_leaves_a_synthesized_failure(run_handler):
    def crash(node, context, graph, logs_root):
        raise ValueError("out of cheese")

    result, status = run_handler(crash)
    assert status["outcome"] == "fail"
    assert "out of cheese" in status["failure_reason"]
    assert result.status == "fail"


def test_status_file_2_auto_status_stands_in_for_a_silent_handler(run_handler):
    result, status = run_handler(lambda node, context, graph, logs_root: None, ", auto_status=true")
    assert status["outcome"] == "success"
    assert status["notes"] == "auto-status: handler completed without writing status"
    assert result.status == "success"


def test_status_file_2_without_auto_status_silence_is_no_success(run_handler):
    result, status = run_handler(lambda node, context, graph, logs_root: None)
    assert status["outcome"] == "fail"
    assert "no status" in result.reason


def write_right(node, context, graph, logs_root):
    (logs_root / node.id / "status.json").write_text(
        json.dumps(
            {
                "outcome": "success",
                "preferred_next_label": "Right",
                "suggested_next_ids": ["right"],
                "context_updates": {"review.score": 8.5},
                "notes": "from the file",
            }
        )
    )


def test_status_file_3_routing_uses_the_file_of_the_handler(run_handler):
    result, status = run_handler(write_right)
    assert result.completed_nodes == ("start", "a", "right", "done")
    assert result.context["review.score"] == 8.5
    assert result.outcomes["a"].notes == status["notes"] == "from the file"


def test_status_file_4_an_outcome_and_its_status_file_say_the_same(run_handler):
    outcome = Outcome(
        StageStatus.PARTIAL_SUCCESS,
        preferred_label="Right",
        suggested_next_ids=("right", "left"),
        context_updates={"key": [1, {"deep": None}]},
        notes="mostly",
    )
    result, status = run_handler(lambda node, context, graph, logs_root: outcome)
    names = ("outcome", "preferred_next_label", "suggested_next_ids", "context_updates", "notes")
    assert {name: status[name] for name in names} == {
        "outcome": "partial_success",
        "preferred_next_label": "Right",
        "suggested_next_ids": ["right", "left"],
        "context_updates": {"key": [1, {"deep": None}]},
        "notes": "mostly",
    }
    assert result.outcomes["a"].status is StageStatus.PARTIAL_SUCCESS


def test_status_file_5_the_file_takes_precedence_over_the_returned_outcome(run_handler):
    def both(node, context, graph, logs_root):
        write_right(node, context, graph, logs_root)
        return Outcome(StageStatus.SUCCESS, preferred_label="Left")

    result, _ = run_handler(both)
    assert result.completed_nodes == ("start", "a", "right", "done")


def test_status_file_6_the_stage_directory_exists_before_the_handler_runs(run_handler):
    seen = []

    def look(node, context, graph, logs_root):
        seen.append(sorted((logs_root / node.id).iterdir()))
        return Outcome.success()

    run_handler(look)
    assert seen == [[]]
