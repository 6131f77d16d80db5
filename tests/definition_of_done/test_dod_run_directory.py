"""run-directory.md, "Testing Requirements" 1 to 8."""

import json

from attractor_nb import Outcome, Pipeline, load_checkpoint
from attractor_nb.testing import ScriptedBackend


def plain(path):
    return json.loads(path.read_text())


def test_run_directory_1_it_is_created_at_the_start_of_the_run(dot, tmp_path):
    seen = []

    def look(node, context, graph, logs_root):
        seen.extend(sorted(entry.name for entry in logs_root.iterdir()))
        return Outcome.success()

    Pipeline(dot('a [type="look"] start -> a -> done'), handlers={"look": look}).run(
        wait=True, logs_root=tmp_path / "deep" / "run"
    )
    assert {"manifest.json", "events.jsonl", "pipeline.dot", "checkpoint.json", "start"} <= set(seen)


def test_run_directory_1_without_a_logs_root_it_is_named_under_the_runs_base(run_dot, tmp_path):
    result = run_dot("start -> done", durability="fast")
    assert result.logs_root.parent == tmp_path / ".attractor" / "runs"
    assert result.logs_root.name.endswith(f"Z-{result.run_id}")


def test_run_directory_2_the_manifest_is_written_and_updated(dot, tmp_path):
    seen = {}

    def look(node, context, graph, logs_root):
        seen.update(plain(logs_root / "manifest.json"))
        return Outcome.success()

    pipeline = Pipeline(
        dot('goal="Fix it" llm_model=small a [type="look"] start -> a -> done'), handlers={"look": look}
    )
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert (seen["pipeline_name"], seen["goal"], seen["start_node"]) == ("demo", "Fix it", "start")
    assert (seen["node_count"], seen["model"]) == (3, "small")
    assert (seen["status"], seen["end_time"]) == ("running", None)
    after = plain(tmp_path / "run/manifest.json")
    assert after["status"] == "completed"
    assert after["start_time"] == seen["start_time"]
    assert after["end_time"].endswith("Z")


def test_run_directory_2_a_failed_run_says_so(run_dot, tmp_path):
    run_dot("a start -> a -> done", {"a": Outcome.fail("no")}, durability="fast", logs_root=tmp_path / "run")
    after = plain(tmp_path / "run/manifest.json")
    assert (after["status"], after["reason"]) == ("failed", "no")


def test_run_directory_3_the_stage_directory_exists_before_the_handler_runs(dot, tmp_path):
    seen = []

    def look(node, context, graph, logs_root):
        seen.append((logs_root / node.id).is_dir())
        return Outcome.success()

    Pipeline(dot('a [type="look"] start -> a -> done'), handlers={"look": look}).run(
        wait=True, logs_root=tmp_path / "run"
    )
    assert seen == [True]


def test_run_directory_4_there_is_one_checkpoint_that_is_overwritten(dot, tmp_path):
    seen = []

    def look(node, context, graph, logs_root):
        seen.append(
            (plain(logs_root / "checkpoint.json")["current_node"], len(list(logs_root.glob("checkpoint.json"))))
        )
        return Outcome.success()

    Pipeline(dot('a [type="look"] b [type="look"] start -> a -> b -> done'), handlers={"look": look}).run(
        wait=True, logs_root=tmp_path / "run", checkpoint_every_stage=True
    )
    assert seen == [("start", 1), ("a", 1)]
    last = plain(tmp_path / "run/checkpoint.json")
    assert (last["current_node"], last["completed_nodes"]) == ("done", ["start", "a", "b", "done"])
    assert last["pipeline_name"] == "demo"


def test_run_directory_5_prompt_and_response_are_written_as_sent_and_received(run_dot, tmp_path):
    backend = ScriptedBackend({"a": "first\nsecond", "b": "third"})
    run_dot(
        'a [prompt="One"] b [prompt="Two"] start -> a -> b -> done',
        backend=backend,
        durability="fast",
        logs_root=tmp_path / "run",
    )
    assert (tmp_path / "run/a/response.md").read_text() == "first\nsecond"
    assert [(tmp_path / "run" / call.node_id / "prompt.md").read_text() for call in backend.calls] == [
        call.prompt for call in backend.calls
    ]


def test_run_directory_6_a_value_over_100_kb_becomes_an_artifact(run_dot, tmp_path):
    large, small = "x" * (100 * 1024 + 1), "y" * 1000
    result = run_dot(
        "a b start -> a -> b -> done",
        {"a": Outcome.success(context_updates={"large": large, "small": small})},
        durability="fast",
        logs_root=tmp_path / "run",
    )
    stored = load_checkpoint(tmp_path / "run").context_values
    assert stored["small"] == small
    reference = stored["large"]
    assert reference["type"] == "artifact_ref"
    assert reference["size_bytes"] > 100 * 1024
    assert "large" in reference["summary"]
    assert plain(tmp_path / "run/artifacts" / f"{reference['artifact_id']}.json") == large
    assert result.context["large"] == large


def test_run_directory_7_resume_finds_the_checkpoint_in_the_run_directory(dot, tmp_path):
    pipeline = Pipeline(dot("a b start -> a -> b -> done"))
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2)
    assert pipeline.resume(str(tmp_path / "run")).result().completed_nodes == ("start", "a", "b", "done")


def test_run_directory_8_the_old_checkpoint_dir_is_detected_and_resumed(dot, tmp_path):
    old = tmp_path / "checkpoints"
    old.mkdir()
    for stamp, current, completed in [(1000, "start", ["start"]), (2000, "a", ["start", "a"])]:
        (old / f"checkpoint_{stamp}.json").write_text(
            json.dumps(
                {
                    "pipeline_name": "demo",
                    "current_node": current,
                    "context": {"outcome": "success", "note": "kept"},
                    "completed_nodes": completed,
                    "timestamp": 1771699200.0,
                    "node_retries": {},
                    "logs": [{"node": name, "outcome": "success", "timestamp": 1.0} for name in completed],
                }
            )
        )
    backend = ScriptedBackend()
    result = Pipeline(dot("a b start -> a -> b -> done"), backend=backend).resume(old).result()
    assert result.completed_nodes == ("start", "a", "b", "done")
    assert [call.node_id for call in backend.calls] == ["b"]
    assert result.context["note"] == "kept"
    assert sorted(path.name for path in old.iterdir()) == ["checkpoint_1000.json", "checkpoint_2000.json"]
