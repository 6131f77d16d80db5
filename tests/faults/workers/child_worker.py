"""A parent with a child run, killed in the middle of the child: ``child_worker.py RUN_DIR new|again KIND``.

Each model stage writes its name to ``calls`` beside the run directory. The first life kills itself, with
SIGKILL, inside the child's stage ``build``.
"""

import os
import signal
import sys
from pathlib import Path

from attractor_nb import Pipeline

WORKER = """digraph worker { start [shape=Mdiamond] plan [prompt="Plan"] build [prompt="Build"] check [prompt="Check"]
  done [shape=Msquare] start -> plan -> build -> check -> done }"""
KINDS = {
    "manager": "[shape=house, stack.child_pipeline=worker]",
    "pipeline": '[type=pipeline, pipeline.name=worker, pipeline.outputs="made=context.last_response"]',
}


def main() -> None:
    """One life."""
    root, life, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    text = f"""digraph top {{ start [shape=Mdiamond] before [prompt="Before"] sub {KINDS[kind]} after [prompt="After"]
      done [shape=Msquare] start -> before -> sub -> after -> done }}"""

    def backend(node, prompt, context):
        with (root.parent / "calls").open("a") as calls:
            calls.write(node.id + "\n")
        if node.id == "build" and life == "new":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{node.id} is done"

    pipeline = Pipeline(text, pipelines={"worker": WORKER})
    run = pipeline.run(logs_root=root, backend=backend) if life == "new" else pipeline.resume(root, backend=backend)
    result = run.result(60)
    print(result.status, *result.completed_nodes)


if __name__ == "__main__":
    main()
