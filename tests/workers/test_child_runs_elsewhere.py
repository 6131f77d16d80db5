"""Child runs of a run with executor=: of sub-pipelines, and of the items of a list."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Pipeline, Run

FRAME = "digraph top {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}"
WORKER = """digraph worker { start [shape=Mdiamond] done [shape=Msquare]
    hello [shape=parallelogram, tool_command="echo hello"] start -> hello -> done }"""
BODIES = {
    "sub-pipeline": """sub [type=pipeline, pipeline.name=worker, pipeline.outputs="said=context.tool.output"]
        start -> sub -> done""",
    "items": """sub [shape=parallelogram, for_each="item in files", tool_command="echo $ATTRACTOR_ITEM"]
        start -> sub -> done""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_commands_of_child_runs_are_done_by_the_workers_of_the_run(body, tmp_path):
    made = []

    def make():
        made.append(ThreadPoolExecutor(2, thread_name_prefix="worker"))
        return made[-1]

    pipeline = Pipeline(FRAME.format(body=body), pipelines={"worker": WORKER})
    result = pipeline.run(
        wait=True, logs_root=tmp_path / "run", executor=make, durability="fast", params={"files": ["a", "b", "c"]}
    )
    assert (result.status, result.reason) == ("success", "")
    assert len(made) == 1, "all child runs use the workers of their parent"
    assert any(thread.name.startswith("worker") for thread in threading.enumerate())
    made[0].shutdown()
    said = result.context.get("said") or "".join(result.context["sub.outputs"])
    assert said == ("hello\n" if "said" in result.context else "a\nb\nc\n")
    assert all(child.status == "completed" for child in Run.load(tmp_path / "run").children.values())
