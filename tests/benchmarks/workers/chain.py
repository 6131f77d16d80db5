"""One chain of no-op steps in this project, or what its durable step costs the bare system.

chain.py CONTENDER STEPS REPEATS: the least CPU and wall seconds and bytes written of its repeats.
The first run is not counted: it compiles the graph, as building a graph does in other engines.
CONTENDER is ours:DURABILITY, floor:DURABILITY (``step_floor.py``), model:DURABILITY (each stage asks a model that
answers at once), memory:DURABILITY (what ours holds, and nothing else), await, files or sequence.
"""

import json
import os
import sys
import tempfile
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path

STATUS = b'{\n  "outcome": "success",\n  "context_updates": {"i":1},\n  "notes": "",\n  "visit": 1\n}\n'
LINE = b'{"type":"StageCompleted","sequence":100,"name":"n1","outcome":{"outcome":"success"},"next_node":"n2"}'
LINE += b" " * (330 - len(LINE)) + b"\n"
PREALLOCATED_BYTES = 64 * 1024 * 1024


def chain_text(steps, attributes='type="count"'):
    lines = ["digraph chain {", f"  graph [max_steps={steps + 10}]"]
    lines += ["  start [shape=Mdiamond]", "  exit [shape=Msquare]"]
    lines += [f"  n{number} [{attributes}]" for number in range(steps)]
    names = ["start", *(f"n{number}" for number in range(steps)), "exit"]
    lines += [f"  {source} -> {target}" for source, target in pairwise(names)]
    return "\n".join([*lines, "}"])


def counter():
    from attractor_nb import Outcome

    class Count:
        async def execute(self, node, context, graph, logs_root):
            return Outcome.success(context_updates={"i": context.get("i", 0) + 1})

    return Count()


def ours(durability, steps):
    from attractor_nb import Pipeline

    pipeline = Pipeline(chain_text(steps), handlers={"count": counter()})

    def run(folder):
        place = {} if durability == "none" else {"logs_root": folder / "run"}
        result = pipeline.run(wait=True, durability=durability, **place)
        assert result.context.get("i") == steps, result.reason

    return run


def floor(durability, steps):
    from step_floor import chain

    from attractor_nb.model.graph import Node

    return chain(durability, [Node(f"n{number}") for number in range(steps)], counter())


def model(durability, steps):
    from attractor_nb import Pipeline

    class Quick:
        async def run(self, node, prompt, context):
            return "done it"

    pipeline = Pipeline(chain_text(steps, 'prompt="Do it."'), backend=Quick())

    def run(folder):
        result = pipeline.run(wait=True, durability=durability, logs_root=folder / "run")
        assert result.status == "success", result.reason

    return run


def bare_await(steps):
    """One awaited coroutine a step: what Python itself costs."""
    import asyncio

    async def step(state):
        return {"i": state["i"] + 1}

    async def walk():
        state = {"i": 0}
        for _ in range(steps):
            state.update(await step(state))
        assert state["i"] == steps

    return lambda folder: asyncio.run(walk())


def bare_files(steps):
    """A folder and a status.json for each step: the least that a durable step of the spec is."""

    def run(folder):
        for number in range(steps):
            place = f"{folder}/n{number}"
            os.mkdir(place)  # noqa: PTH102 - the bare call is what is measured
            descriptor = os.open(f"{place}/status.json", os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(descriptor, STATUS)
            os.close(descriptor)

    return run


def bare_sequence(steps):
    """The same durable operations, bare: folder, file by rename, two lines of a log, one flush."""

    def run(folder):
        log = os.open(f"{folder}/events.jsonl", os.O_RDWR | os.O_CREAT, 0o600)
        os.write(log, bytes(PREALLOCATED_BYTES // 16))
        os.fsync(log)
        os.lseek(log, 0, os.SEEK_SET)
        for number in range(steps):
            place = f"{folder}/n{number}"
            os.mkdir(place)  # noqa: PTH102 - the bare call is what is measured
            os.write(log, LINE)
            descriptor = os.open(f"{place}/.new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, STATUS)
            os.close(descriptor)
            os.rename(f"{place}/.new", f"{place}/status.json")  # noqa: PTH104 - likewise
            os.write(log, LINE)
            os.fdatasync(log)
        os.close(log)

    return run


def memory(durability, steps):
    """Bytes that a run holds at most, beside its compiled graph: a run before it has compiled that."""
    run, folder = ours(durability, steps), Path(tempfile.mkdtemp())
    run(folder / "first")
    tracemalloc.start()
    run(folder / "second")
    return tracemalloc.get_traced_memory()[1]


def bytes_written():
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    return int(dict(line.split(": ") for line in counters.read_text().splitlines())["wchar"])


def main(contender, steps, repeats):
    kind, _, durability = contender.partition(":")
    if kind == "memory":
        print(json.dumps({"grown": memory(durability, steps)}))
        return
    bare = {"await": bare_await, "files": bare_files, "sequence": bare_sequence}
    own = {"ours": ours, "floor": floor, "model": model}
    run = own[kind](durability, steps) if kind in own else bare[kind](steps)
    cpu, wall, written = [], [], []
    folder = Path(tempfile.mkdtemp())  # whoever started this deletes it, when all is measured
    for number in range(repeats + 1):
        place = folder / str(number)
        place.mkdir()
        bytes_before, cpu_before, wall_before = bytes_written(), time.process_time(), time.perf_counter()
        run(place)
        if number == 0:
            continue
        wall.append(time.perf_counter() - wall_before)
        cpu.append(time.process_time() - cpu_before)
        written.append(bytes_written() - bytes_before)
    print(json.dumps({"cpu": min(cpu), "wall": min(wall), "written": min(written)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
