"""Maps a pipeline over rows, is killed at a durable operation, and says what became of it: of ``test_map_kills.py``.

Usage: map_worker.py FOLDER [K …]

Runs a whole map in FOLDER, and then, for each K, another one in a process of its own that kills itself at
operation K, which is led to its end here. Without a K it only counts. Prints one JSON object.
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

import kill_graphs

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import RunNotFound
from attractor_nb.model.events import StageEnd
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.map_directory import read_map
from attractor_nb.storage.stored_run import has_event_log, read_run

sys.path.append(str(Path(__file__).parents[3]))  # last: the package may be a mutated copy
from tests.disks.faulty_disk import FaultyDisk

TEXT = """digraph rows { start [shape=Mdiamond] plan [prompt="Plan"] flaky [prompt="Try", max_retries=2]
  write [prompt="Write"] done [shape=Msquare] start -> plan -> flaky -> write -> done }"""
ROWS = [{"n": number} for number in range(4)]
AT_ONCE = 2
OUTPUTS = ("n", "write.response")


class Backend:
    """Answers, and leaves a mark of each execution beside the map."""

    def __init__(self, marks):
        self._marks = marks

    async def run(self, node, prompt, context):
        with self._marks.open("ab", buffering=0) as marks:
            marks.write(f"{context['n']} {node.id}\n".encode())
        if node.id == "flaky" and not context.get("internal.retry_count.flaky"):
            return Outcome.fail("the first try fails")
        return f"{node.id} of {context['n']}"


def lead(place, do, **options):
    """Begin the map of a place, or go on with it, to its end."""
    pipeline = Pipeline(TEXT, backend=Backend(place.with_suffix(".marks")))
    own = {"max_parallel": AT_ONCE, "clock": kill_graphs.HurriedClock(), **options}
    if do == "begin":
        return pipeline.map(ROWS, map_dir=place, outputs=OUTPUTS, **own).result(60)
    return pipeline.resume_map(place, **own).result(60)


def killed(place, kill_at):
    """Begin a map in a process that is killed at an operation."""
    child = os.fork()
    if child == 0:
        try:
            lead(place, "begin", disk=FaultyDisk(kill_at=kill_at))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def executed(place):
    """Executions by row and stage, those of all attempts together."""
    path = place.with_suffix(".marks")
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(tuple(line.split()) for line in lines)


def recorded(place):
    """The stages that the rows' logs say to be committed."""
    return {
        (str(int(row.name[-5:])), event.name)
        for row in place.glob("row-*")
        if has_event_log(row)
        for event in read_run(row).events
        if isinstance(event, StageEnd) and event.is_commit
    }


def told(result):
    """The facts that two ends must agree in."""
    return [[each.row, each.status, each.outputs, each.stages] for each in result]


def judged(place, wanted):
    """The fault of a map that was killed and led to its end, and the number of repeated executions."""
    before, kept = executed(place), recorded(place)
    try:
        result = lead(place, "go on")
    except RunNotFound:  # it had not begun
        if kept:
            return "recorded stages, and no map to be resumed", 0
        result = lead(place, "begin")
    if told(result) != wanted:
        return f"another end: {told(result)}", 0
    after = executed(place)
    if again := [stage for stage in kept if after[stage] > before[stage]]:
        return f"recorded and executed again: {again}", 0
    more = sum(after.values()) - sum(executed(place.with_name("whole")).values())
    if more > AT_ONCE:
        return f"{more} executed again, and {AT_ONCE} were in flight", more
    return _left(place), more


def _left(place):
    """The untidiness that is left in the end."""
    if strays := [str(path.relative_to(place)) for path in place.rglob(f"{TEMPORARY_PREFIX}*")]:
        return f"temporary files are left: {strays}"
    if read_map(place)["status"] != "completed":
        return "map.json does not know the end"
    if unaware := [row.name for row in place.glob("row-*") if read_run(row).manifest["status"] != "completed"]:
        return f"the manifests of {unaware} do not know the end"
    return ""


def main():
    folder, kills = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    disk = FaultyDisk()
    wanted = told(lead(folder / "whole", "begin", disk=disk))
    problems, again, missed = [], 0, 0
    for kill_at in kills:
        place = folder / f"map-{kill_at}"
        if not killed(place, kill_at):
            missed += 1
            continue
        problem, more = judged(place, wanted)
        again += more
        if problem:
            problems.append(f"{kill_at} {disk.operations[kill_at - 1]}: {problem}")
    statuses = [row[1] for row in wanted]
    print(
        json.dumps(
            {
                "operations": disk.operations,
                "statuses": statuses,
                "problems": problems,
                "again": again,
                "missed": missed,
            }
        )
    )


if __name__ == "__main__":
    main()
