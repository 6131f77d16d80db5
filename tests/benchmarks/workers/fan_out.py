"""One fan-out whose branches sleep 10 ms each, in this project or bare: fan_out.py CONTENDER BRANCHES AT_ONCE REPEATS.

Overhead is what the whole takes beyond the least: as many rounds of sleeping as there must be. The first run is
not counted.
"""

import asyncio
import json
import math
import sys
import time

SLEEP = 0.010


def fan_out_text(branches, at_once):
    lines = ["digraph fan_out {", f"  graph [max_steps={branches + 10}]", "  start [shape=Mdiamond]"]
    lines += [f"  fan [shape=component, max_parallel={at_once}]", "  join [shape=tripleoctagon]"]
    lines += ["  exit [shape=Msquare]", "  start -> fan", "  join -> exit"]
    lines += [f'  b{number} [type="nap"]' for number in range(branches)]
    lines += [f"  fan -> b{number} -> join" for number in range(branches)]
    return "\n".join([*lines, "}"])


def napper():
    from attractor_nb import Outcome

    class Nap:
        async def execute(self, node, context, graph, logs_root):
            await asyncio.sleep(SLEEP)
            return Outcome.success(context_updates={"k": node.id})

    return Nap()


def ours(branches, at_once):
    from attractor_nb import Pipeline

    pipeline = Pipeline(fan_out_text(branches, at_once), handlers={"nap": napper()})

    def run():
        result = pipeline.run(wait=True, durability="none")
        assert result.context.get("parallel.success_count") == branches, result.reason

    return run


def floor(branches, at_once):
    from step_floor import fan_out

    from attractor_nb.model.graph import Node

    return fan_out([Node(f"b{number}") for number in range(branches)], at_once, napper())


def bare(branches, at_once):
    """A task for each branch and a semaphore: what Python itself costs."""

    async def all_of_them():
        semaphore, results = asyncio.Semaphore(at_once), [None] * branches

        async def branch(number):
            async with semaphore:
                await asyncio.sleep(SLEEP)
                results[number] = {"k": number, "status": "success"}

        async with asyncio.TaskGroup() as group:
            for number in range(branches):
                group.create_task(branch(number))
        assert None not in results

    return lambda: asyncio.run(all_of_them())


def main(contender, branches, at_once, repeats):
    run = {"ours": ours, "floor": floor, "bare": bare}[contender](branches, at_once)
    least = math.ceil(branches / at_once) * SLEEP
    cpu, overhead = [], []
    for number in range(repeats + 1):
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        run()
        if number:
            overhead.append(time.perf_counter() - wall_before - least)
            cpu.append(time.process_time() - cpu_before)
    print(json.dumps({"cpu": min(cpu), "overhead": min(overhead)}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
