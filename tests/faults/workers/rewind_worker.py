"""Rewinds a run, is killed at a durable operation, and says what was left: started by ``test_rewind.py``.

Usage: rewind_worker.py GRAPH FOLDER [K …]

Makes the run of that graph in FOLDER, rewinds a copy of it unharmed, and then, for each K, another copy in
a process of its own that kills itself at operation K. Without a K it only counts. Prints one JSON object.
"""

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import kill_graphs

from attractor_nb import Pipeline, Run
from attractor_nb.model.events import PipelineRewound, StageEnd, StageStarted
from attractor_nb.stage import current_stage
from attractor_nb.storage.stored_run import read_run

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

GRAPHS = {
    "loop": (
        """digraph loop { start [shape=Mdiamond] done [shape=Msquare] a b
        gate [shape=hexagon] check [shape=parallelogram, tool_command="echo checked", idempotent=true]
        start -> a -> check -> gate
        gate -> b [label="[Y] Yes"]  gate -> done [label="[N] No"]
        b -> a [condition="context.b=1"]  b -> done [condition="context.b=2"] }""",
        ("gate", 1),
    ),
    "restart": (
        """digraph restart { start [shape=Mdiamond] done [shape=Msquare] prepare a b
        start -> prepare -> a -> b
        b -> a [condition="context.left=again", loop_restart=true]
        b -> done [condition="context.left!=again"] }""",
        ("prepare", 1),
    ),
}


def pipeline_of(name, folder, by="second"):
    """The pipeline; ``by`` tells in the context whether the first run or the rewound one visited a node."""

    def answer(node, prompt, context):
        key = current_stage().idempotency_key.partition(":")[2]
        with (folder / "calls").open("a") as calls:
            calls.write(key + "\n")
        context.set(f"by.{node.id}", by)
        if name == "restart" and node.id == "b":
            context.set("left", "again" if context.get("prepared") else "none")
        elif name == "restart" and node.id == "prepare":
            context.set("prepared", "yes")
        else:
            context.set(node.id, context.get(node.id, 0) + 1)
        return f"{node.id}: {key}"

    return Pipeline(GRAPHS[name][0], backend=answer, interviewer="auto")


def told(result):
    """The facts that two ends must agree in."""
    context = {key: value for key, value in result.context.snapshot().items() if key != "last_response"}
    return [
        result.status,
        list(result.completed_nodes),
        {node: str(status) for node, status in result.node_outcomes.items()},
        {key: value for key, value in context.items() if not key.endswith(".response")},
        dict(result.visits),
    ]


def directories(root):
    """The directories of a run, the first one first."""
    restarts = [path for path in root.glob("restart-*") if (path / "events.jsonl").exists()]
    return [root, *sorted(path for path in restarts if (path / "events.jsonl").stat().st_size)]


def rewind(name, folder, root, **options):
    """Go back in a stored run, to the end again."""
    node, visit = GRAPHS[name][1]
    clock = kill_graphs.HurriedClock()  # so that the number of each operation is the same every time
    run = pipeline_of(name, folder).resume(root, rewind_to=node, visit=visit, clock=clock, **options)
    return run.result(60)


def killed(name, folder, root, kill_at):
    """Rewind in a process that is killed at an operation."""
    child = os.fork()
    if child == 0:
        try:
            rewind(name, folder, root, disk=FaultyDisk(kill_at=kill_at))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def recorded(root):
    """All stages that the logs of a run say to be committed, those that were set aside too."""
    return {
        (place.name, event.name, event.visit)
        for place in directories(root)
        for event in read_run(place).events
        if isinstance(event, StageEnd) and event.is_commit
    }


def started(root):
    """All attempts that the logs of a run say to have begun."""
    return Counter(
        (place.name, event.name, event.visit)
        for place in directories(root)
        for event in read_run(place).events
        if isinstance(event, StageStarted)
    )


def led_to_its_end(name, folder, root, before):
    """The result of the run that the kill left: resumed if it was rewound by then, else rewound again."""
    if not is_rewound(root):
        assert told(Run.load(root).result()) == before, "neither as it was nor rewound"
        return rewind(name, folder, root)
    if Run.load(root).result().status == "success":  # killed after its end
        return Run.load(root).result()
    return pipeline_of(name, folder).resume(root).result(60)


def is_rewound(root):
    """True if the record of the rewind is in the log."""
    return any(isinstance(event, PipelineRewound) for event in read_run(root).events)


def judged(name, folder, root, before, after, *, is_log_alone):
    """The fault in the files that were left; empty when there is none."""
    if is_log_alone:
        for place in directories(root):
            for path in place.glob("checkpoint*"):
                path.unlink()
    commits = recorded(root)
    tries = {stage: count for stage, count in started(root).items() if stage in commits}
    result = led_to_its_end(name, folder, root, before)
    if told(result) != after:
        return f"another end: {told(result)}"
    if told(Run.load(root).result()) != after:
        return "another end when it is loaded"
    again = [stage for stage, count in started(root).items() if stage in tries and count > tries[stage]]
    return f"run again though it was recorded: {again}" if again else ""


def main():
    name, folder, kills = sys.argv[1], Path(sys.argv[2]), [int(word) for word in sys.argv[3:]]
    base = folder / "base"
    before = told(pipeline_of(name, folder, "first").run(wait=True, logs_root=base))
    shutil.copytree(base, folder / "whole")
    disk = FaultyDisk()
    after = told(rewind(name, folder, folder / "whole", disk=disk))
    problems, rewound, missed = [], 0, 0
    for kill_at in kills:
        root = folder / f"killed-{kill_at}"
        shutil.copytree(base, root)
        missed += not killed(name, folder, root, kill_at)
        rewound += is_rewound(root)
        problem = judged(name, folder, root, before, after, is_log_alone=kill_at % 2 == 0)
        if problem:
            problems.append(f"{kill_at} {disk.operations[kill_at - 1]}: {problem}")
        shutil.rmtree(root)
    print(
        json.dumps(
            {
                "before": before,
                "after": after,
                "operations": disk.operations,
                "problems": problems,
                "rewound": rewound,
                "missed": missed,
                "calls": (folder / "calls").read_text().split(),
            }
        )
    )


if __name__ == "__main__":
    main()
