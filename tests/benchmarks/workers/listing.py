"""A worker: a runs base of real run directories, and what it costs to list them.

``python listing.py FEW MANY ROUNDS`` runs one pipeline, copies its directory so many times, and lists the copies:
every eighth failed, every sixteenth stands still, every tenth has tags.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from attractor_nb.storage.run_directory import utc_text

SOURCE = """digraph Review {
    start [shape=Mdiamond]
    plan [prompt="Plan it"]
    write [prompt="Write it"]
    check [prompt="Check it"]
    done [shape=Msquare]
    start -> plan -> write -> check -> done
}"""
BEGAN = 1_760_000_000
MOST_READ = 5000


def make(base: Path, count: int) -> None:
    """Fill a runs base."""
    from attractor_nb import Pipeline
    from attractor_nb.storage.run_listing import change_tags
    from attractor_nb.storage.sealed_file import seal, unseal

    model = base.parent / f"{base.name}-model"
    Pipeline(SOURCE).run(wait=True, backend="simulated", logs_root=model, durability="fast")
    plain = unseal((model / "manifest.json").read_bytes())
    for number in range(count):
        name = f"{time.strftime('%Y-%m-%dT%H-%M-%SZ', time.gmtime(BEGAN + number))}-{number:08}"
        shutil.copytree(model, base / name)
        status = "failed" if number % 8 == 7 else "paused" if number % 16 == 3 else "completed"
        facts = {**plain, "start_time": utc_text(BEGAN + number), "status": status}
        (base / name / "manifest.json").write_bytes(seal(facts))
        if number % 10 == 0:
            change_tags(base / name, add=["kept"])


def measure(base: Path, rounds: int) -> dict[str, float]:
    """CPU seconds of a list: of every run read, of a new process with the index, and of one asked again.

    That every run is read is measured once where it takes many seconds.
    """
    from attractor_nb.storage import run_index
    from attractor_nb.storage.run_listing import summarize

    def best(work: Callable[[], object], times: int = rounds) -> float:
        taken: list[float] = []
        for _ in range(times):
            begin = time.process_time()
            work()
            taken.append(time.process_time() - begin)
        return min(taken)

    def of_a_new_process() -> None:
        run_index.forget_lists()
        run_index.list_runs(base)

    places = [path for path in base.iterdir() if path.is_dir()]
    summarize(places[0])  # loads what reads manifests
    read = best(lambda: [summarize(path) for path in places], rounds if len(places) <= MOST_READ else 1)
    of_a_new_process()
    return {"read": read, "new": best(of_a_new_process), "again": best(lambda: run_index.list_runs(base))}


if __name__ == "__main__":
    folder, sizes, rounds = Path(tempfile.mkdtemp()), [int(size) for size in sys.argv[1:3]], int(sys.argv[3])
    for size in sizes:
        make(folder / str(size), size)
    time.sleep(2.5)  # what changed a moment ago is not kept
    print(json.dumps({str(size): measure(folder / str(size), rounds) for size in sizes}))
