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
        import time  # noqa: PLC0415 - it travels by value

        time.sleep(milliseconds / 1000)
        return prompt.upper()

    return work


def bare(client, calls: int, work) -> float:
    began = time.perf_counter()
    for number in range(calls):
        client.submit(work, f"Call {number}", pure=False).result()
    return time.perf_counter() - began


def stages(client, calls: int, work) -> float:
    from attractor_nb import Pipeline  # noqa: PLC0415 - not a part of the other contender

    nodes = "\n".join(f'n{number} [prompt="Call {number}"]' for number in range(calls))
    way = " -> ".join(f"n{number}" for number in range(calls))
    source = f"digraph d {{ start [shape=Mdiamond] done [shape=Msquare] {nodes} start -> {way} -> done }}"
    pipeline = Pipeline(source, backend=work, executor=client.get_executor())
    began = time.perf_counter()
    result = pipeline.run(wait=True, durability="none")
    took = time.perf_counter() - began
    assert result.status == "success", result.reason
    return took


def main(contender: str, calls: int, milliseconds: float) -> None:
    from distributed import Client, LocalCluster  # noqa: PLC0415 - processes that are spawned import this file

    run = {"bare": bare, "stages": stages}[contender]
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        work = function_of(milliseconds)
        run(client, 3, work)  # what is imported there is no part of a call
        print(json.dumps({"wall": run(client, calls, work)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
