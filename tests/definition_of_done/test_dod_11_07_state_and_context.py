"""Section 11.7 of the specification, row by row."""

import json

from attractor_nb import Outcome, Pipeline, load_checkpoint


def test_11_7_the_context_reaches_every_handler_and_updates_are_merged_after_each_stage(run_dot):
    seen = []

    def add(node, context, graph, logs_root):
        seen.append(context.get("total", 0))
        return Outcome.success(context_updates={"total": context.get("total", 0) + 1})

    result = run_dot(
        'a [type="add"] b [type="add"] c [type="add"] start -> a -> b -> c -> done',
        handlers={"add": add},
        params={"total": 10},
    )
    assert seen == [10, 11, 12]
    assert result.context["total"] == 13


def test_11_7_a_checkpoint_is_saved_after_each_node(dot, tmp_path):
    pipeline = Pipeline(
        dot("a b start -> a -> b -> done"),
        handlers={},
        backend=lambda prompt: Outcome.success(context_updates={"n": 1}),
    )
    root = tmp_path / "run"
    saved = []
    result = pipeline.run(wait=True, logs_root=root, stop_after=1)
    while result.status == "paused":
        saved.append(load_checkpoint(root))
        result = pipeline.resume(root, stop_after=1).result()
    assert [point.current_node for point in saved] == ["start", "a", "b"]
    assert saved[2].completed_nodes == ("start", "a", "b")
    assert saved[2].context_values["n"] == 1
    plain = json.loads((root / "checkpoint.json").read_text())
    assert {"current_node", "completed_nodes", "context", "node_retries", "timestamp", "logs"} <= plain.keys()


def test_11_7_a_run_resumes_from_its_checkpoint(dot, tmp_path):
    called = []

    def answer(node, prompt, context):
        called.append((node.id, context.get("last_stage")))
        return f"answer of {node.id}"

    pipeline = Pipeline(dot("a b c start -> a -> b -> c -> done"), backend=answer)
    stopped = pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2)
    assert (stopped.status, stopped.next_node) == ("paused", "b")
    result = pipeline.resume(tmp_path / "run").result()
    assert result.completed_nodes == ("start", "a", "b", "c", "done")
    assert called == [("a", None), ("b", "a"), ("c", "b")]


def test_11_7_artifacts_are_written_to_the_stage_directory(run_dot, tmp_path):
    run_dot("a start -> a -> done", durability="fast", logs_root=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run/a").iterdir()} == {"prompt.md", "response.md", "status.json"}
