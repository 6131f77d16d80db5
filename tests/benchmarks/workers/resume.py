"""The duration of a resume, from the call to its first new stage, in a fresh process.

resume.py STORED STEPS: wall and CPU seconds. The run has STEPS committed steps and one that is left.
STORED is ``checkpoint`` for a run that has its checkpoint, or ``log`` for one that has its log alone; ``floor``
measures ``resume_floor.py`` on such a log instead.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chain import chain_text


class Count:
    """A step that notes when the first one of this process began."""

    def __init__(self):
        self.began = None

    async def execute(self, node, context, graph, logs_root):
        from attractor_nb import Outcome

        if self.began is None:
            self.began = time.perf_counter(), time.process_time()
        return Outcome.success(context_updates={"i": context.get("i", 0) + 1})


def chain_of(steps, count):
    from attractor_nb import Pipeline

    return Pipeline(chain_text(steps + 1), handlers={"count": count})


def make(folder, steps):
    run = chain_of(steps, Count()).run(wait=True, durability="fast", logs_root=folder, stop_after=steps + 1)
    assert run.status == "paused", run.reason


def resume(folder, steps):
    count = Count()
    pipeline = chain_of(steps, count)
    wall, cpu = time.perf_counter(), time.process_time()
    result = pipeline.resume(folder, durability="fast").result()
    assert result.status == "success", result.reason
    assert result.context.get("i") == steps + 1, result.context.get("i")
    return {"wall": count.began[0] - wall, "cpu": count.began[1] - cpu}


def main(stored, steps):
    folder = Path(tempfile.mkdtemp()) / "run"  # whoever started this deletes it, when all is measured
    subprocess.run([sys.executable, __file__, "make", str(folder), str(steps)], check=True)
    if stored == "floor":
        subprocess.run([sys.executable, Path(__file__).with_name("resume_floor.py"), folder], check=True)
        return
    if stored == "log":
        for file in folder.glob("checkpoint*.json"):
            file.unlink()
    print(json.dumps(resume(folder, steps)))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]))
