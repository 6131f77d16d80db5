"""Calls of one function on a Dask worker, bare and as stages of a run; prints wall seconds as JSON.

python dask_stage.py CONTENDER CALLS WORK_MILLISECONDS
"""

from __future__ import annotations

import json
import sys
import time


def function_of(milliseconds: float):
    """The function of both: it works for so long."""

    def work(prompt: str) -> str:
        import time

        time.sleep(milliseconds / 1000)
        return prompt.upper()

    return work


def bare(client, calls: int, work) -> float:
    began = time.perf_counter()
    for number in range(calls):
        client.submit(work, f"Call {number}", pure=False).result()
    return time.perf_counter() - began


def stages(client, calls: int, work) -> float:
    from attractor_nb import Pipeline

    nodes = "\n".join(f'n{number} [prompt="Call {number}"]' for number in range(calls))
    way = " -> ".join(f"n{number}" for number in range(calls))
    source = f"digraph d {{ start [shape=Mdiamond] done [shape=Msquare] {nodes} start -> {way} -> done }}"
    pipeline = Pipeline(source, backend=work, executor=client.get_executor())
    began = time.perf_counter()
    result = pipeline.run(wait=True, durability="none")
    took = time.perf_counter() - began
    assert result.status == "success", result.reason
    return took


def main(calls: int, milliseconds: float, rounds: int) -> None:
    from distributed import Client, LocalCluster

    contenders = {"bare": bare, "stages": stages}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        work = function_of(milliseconds)
        for run in contenders.values():
            run(client, 3, work)  # what is imported there is no part of a call
        for _ in range(rounds):
            for name, run in contenders.items():
                times[name].append(run(client, calls, work))
    print(json.dumps(times))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
