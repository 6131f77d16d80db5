"""Runs many seeds of the simulator, or one of them for a look.

Usage: python tests/faults/simulate.py [--runs N] [--first SEED] [--jobs N]
       python tests/faults/simulate.py --seed SEED [--faults N] [--verbose]

Each seed is a random graph with random outcomes, answers, schedule and faults. One that finds something wrong
is said with the line that does it again, with the fewest faults that are enough.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attractor_nb.storage.stored_run import read_run

sys.path.append(str(Path(__file__).parents[2]))  # last: the package may be a mutated copy
from tests.faults.simulation import ALL_FAULTS, simulate

SEEDS_PER_JOB = 100
ENOUGH_WRONG = 3
MEMORY = Path("/dev/shm")
# Only a schedule that is not first come, first served can stop a task that has not begun.
warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)


def run_seed(seed, *, most_faults=ALL_FAULTS, look=None):
    """Run a seed on a disk in memory, where there is one."""
    base = MEMORY if MEMORY.is_dir() else None
    place = Path(tempfile.mkdtemp(prefix="attractor-sim-", dir=base))
    try:
        simulated = simulate(seed, place, most_faults=most_faults)
        if look is not None:
            look(simulated, place)
        return simulated
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_seeds(first, count):
    """Run seeds one after the other: what is wrong by seed, faults by kind, stages, lives."""
    wrong, faults, stages, lives = {}, Counter(), 0, 0
    for seed in range(first, first + count):
        try:
            simulated = run_seed(seed)
        except Exception as error:  # noqa: BLE001 - a simulator that breaks is a finding too
            wrong[seed] = [f"the simulator broke: {type(error).__name__}: {error}"]
            continue
        if simulated.wrong:
            wrong[seed] = simulated.wrong
        faults += simulated.faults
        stages += simulated.stages
        lives += len(simulated.lives)
    return wrong, faults, stages, lives


def run_all(first, runs, jobs):
    """Run seeds in several processes."""
    wrong, faults, stages, lives, done = {}, Counter(), 0, 0, 0
    began = time.monotonic()
    starts = range(first, first + runs, SEEDS_PER_JOB)
    counts = [min(SEEDS_PER_JOB, first + runs - start) for start in starts]
    with ProcessPoolExecutor(jobs) as pool:
        for count, found in zip(counts, pool.map(run_seeds, starts, counts), strict=True):
            wrong |= found[0]
            faults += found[1]
            stages, lives, done = stages + found[2], lives + found[3], done + count
            if len(wrong) >= ENOUGH_WRONG:
                pool.shutdown(cancel_futures=True)
                break
    seconds = time.monotonic() - began
    return {
        "runs": done,
        "wrong": wrong,
        "faults": dict(faults.most_common()),
        "stages": stages,
        "lives": lives,
        "seconds": round(seconds, 1),
        "runs_per_second": round(done / seconds, 1),
    }


def fewest_faults(seed):
    """The fewest of a seed's faults that still show the error."""
    return next((most for most in range(4) if run_seed(seed, most_faults=most).wrong), ALL_FAULTS)


def show(simulated, place):
    """Print all there is to a seed."""
    print(simulated.graph.text())
    for life in simulated.lives:
        told = life.error[1] if life.error else f"{life.result.status} {life.result.reason}".strip()
        print(f"life {life.number}: {life.fault or 'no fault'}; {life.loop_turns} turns of the loop; {told}")
        for turn in life.turns:
            print(f"    {turn.node} visit {turn.visit} attempt {turn.attempt}")
    for log in sorted(place.rglob("events.jsonl")):
        print(log.parent.relative_to(place))
        for event in read_run(log.parent).events:
            print(f"    {event.sequence:4} {event.type:20} {event.description}")


def main():
    """Run what the command line asks for; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--faults", type=int, default=ALL_FAULTS, help="with at most so many faults")
    parser.add_argument("--verbose", action="store_true", help="show graph, lives and events")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args()
    if asked.seed is not None:
        simulated = run_seed(asked.seed, most_faults=asked.faults, look=show if asked.verbose else None)
        print("\n".join(simulated.wrong) or "nothing is wrong")
        return bool(simulated.wrong)
    figures = run_all(asked.first, asked.runs, asked.jobs)
    if asked.json:
        print(json.dumps(figures))
        return bool(figures["wrong"])
    for seed, wrong in figures["wrong"].items():
        print(f"{wrong[0]:.300}")
        print(f"    python tests/faults/simulate.py --seed {seed} --faults {fewest_faults(seed)} --verbose")
    kinds = ", ".join(f"{kind} {count}" for kind, count in figures["faults"].items())
    print(
        f"{figures['runs']} runs in {figures['lives']} lives, {len(figures['wrong'])} wrong;"
        f" struck by {kinds}; {figures['runs_per_second']} runs a second"
    )
    return bool(figures["wrong"])


if __name__ == "__main__":
    sys.exit(main())
