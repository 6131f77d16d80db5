"""Forks a run, is killed at a durable operation, and says what was left: started by ``test_fork.py``.

Usage: fork_worker.py FOLDER [K …]

Makes a run in FOLDER, forks it unharmed, and then, for each K, in a process of its own that kills itself at
operation K. Without a K it only counts. Prints one JSON object.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import kill_graphs

from attractor_nb import Pipeline, Run, runs
from attractor_nb.model.events import PipelineForked, StageEnd
from attractor_nb.storage.stored_run import has_event_log, read_run

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

GRAPH = """digraph loop { start [shape=Mdiamond] done [shape=Msquare] a b
start -> a -> b  b -> a [condition="context.b=1"]  b -> done [condition="context.b!=1"] }"""
EXPECTED = ["start", "a", "b", "done"]


def answer(node, prompt, context):
    context.set(node.id, context.get(node.id, 0) + 1)
    context.set("book", "x" * 200_000)  # an artifact
    return f"{node.id} {context.get(node.id)}"


def pipeline():
    return Pipeline(GRAPH, backend=answer)


def content(root):
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def fork(parent, place, **options):
    run = Run.load(parent, pipeline())
    options["clock"] = kill_graphs.HurriedClock()  # each operation has the same number every time
    return run.fork("b", visit=1, context={"b": 4}, prompt="other", logs_root=place, **options).result(60)


def killed(parent, place, kill_at):
    child = os.fork()
    if child == 0:
        try:
            fork(parent, place, disk=FaultyDisk(kill_at=kill_at))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def judged(parent, place, before, found):
    """The fault in the files that a kill left; empty when there is none."""
    if content(parent) != before:
        return "the parent was changed"
    strangers = [row.logs_root.name for row in runs(parent.parent) if row.logs_root.name.startswith(".")]
    if strangers:
        return f"listed as runs: {strangers}"
    if not has_event_log(place):
        found["nothing"] += 1
        return "an empty shell was left" if place.exists() else ""
    found["runs"] += 1
    events = read_run(place).events
    if not any(isinstance(event, PipelineForked) for event in events):
        return "a log without the record of the fork"
    committed = [(event.name, event.visit) for event in events if isinstance(event, StageEnd)]
    result = Run.load(place).result()
    if result.status != "success":
        result = pipeline().resume(place).result(60)
    if list(result.completed_nodes) != EXPECTED or result.context["b"] != 5:
        return f"another end: {result.completed_nodes}, {result.context['b']}"
    ended = [(event.name, event.visit) for event in read_run(place).events if isinstance(event, StageEnd)]
    return "" if ended[: len(committed)] == committed else "a recorded stage was run again"


def main():
    folder, kills = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    parent = folder / "parent"
    pipeline().run(wait=True, logs_root=parent)
    before, disk = content(parent), FaultyDisk()
    result = fork(parent, folder / "whole", disk=disk)
    assert list(result.completed_nodes) == EXPECTED, result
    found, problems = {"nothing": 0, "runs": 0, "missed": 0}, []
    for kill_at in kills:
        place = folder / f"fork-{kill_at}"
        if not killed(parent, place, kill_at):
            found["missed"] += 1
        elif problem := judged(parent, place, before, found):
            problems.append(f"{kill_at} {disk.operations[kill_at - 1]}: {problem}")
    print(json.dumps({"operations": disk.operations, "problems": problems, **found}))


if __name__ == "__main__":
    main()
