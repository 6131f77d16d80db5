"""Mapped runs of a pipeline of five stages in one process, or the same runs without a map.

mapping.py CONTENDER RUNS: CPU and wall seconds, and by how many bytes memory grew after the first tenth.
``map:none`` and ``map:fast`` are maps; ``runs`` starts one run after the other, nothing stored.
"""

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path

TEXT = """digraph mapped {
    start [shape=Mdiamond]
    plan [prompt="Plan"]
    write [prompt="Write"]
    check [prompt="Check"]
    done [shape=Msquare]
    start -> plan -> write -> check -> done
}"""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * PAGE_BYTES


def mapped(pipeline, count, durability):
    result = pipeline.map(({"n": number} for number in range(count)), wait=True, durability=durability)
    assert result.counts["success"] == count, result
    return result


def one_by_one(pipeline, count):
    async def walk():
        for number in range(count):
            result = await pipeline.run_async(params={"n": number}, durability="none")
            assert result.is_success, result

    asyncio.run(walk())


def main(contender, count):
    from attractor_nb import Pipeline

    os.chdir(tempfile.mkdtemp())
    pipeline = Pipeline(TEXT)
    kind, _, durability = contender.partition(":")

    def work(number):
        return mapped(pipeline, number, durability) if kind == "map" else one_by_one(pipeline, number)

    work(max(1, count // 10))  # loads what is loaded late, and takes the memory that the allocator keeps
    before = resident()
    cpu, wall = time.process_time(), time.perf_counter()
    kept = work(count)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    grown = resident() - before
    assert kept is None or len(kept) == count
    print(json.dumps({"cpu": cpu, "wall": wall, "grown": max(0, grown)}))


main(sys.argv[1], int(sys.argv[2]))
