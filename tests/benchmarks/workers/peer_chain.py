"""The same chain of no-op steps in another engine: peer_chain.py CONTENDER STEPS REPEATS.

Run by the interpreter of the peer's environment. As with ours, building the graph is not counted, nor
is the first run.
"""

import json
import logging
import sqlite3
import sys
import tempfile
import time
from pathlib import Path


def langgraph(store, steps, folder):
    from typing import TypedDict

    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        i: int
        status: str

    graph = StateGraph(State)
    for number in range(steps):
        graph.add_node(f"n{number}", lambda state: {"i": state["i"] + 1, "status": "success"})
    graph.add_edge(START, "n0")
    for number in range(steps - 1):
        graph.add_edge(f"n{number}", f"n{number + 1}")
    graph.add_edge(f"n{steps - 1}", END)
    if not store:
        app, options = graph.compile(), {}
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        connection = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
        app, options = graph.compile(checkpointer=SqliteSaver(connection)), {"durability": store}

    def run(number):
        config = {"recursion_limit": steps + 10, "configurable": {"thread_id": str(number)}}
        return app.invoke({"i": 0, "status": ""}, config, **options)["i"]

    return lambda number: lambda: run(number)


def burr(store, steps, folder):
    from burr.core import ApplicationBuilder, State, action

    logging.disable(logging.WARNING)

    @action(reads=["i"], writes=["i", "status"])
    def step(state: State) -> State:
        return state.update(i=state["i"] + 1, status="success")

    def prepared(number):
        builder = (
            ApplicationBuilder()
            .with_actions(**{f"n{node}": step for node in range(steps)})
            .with_transitions(*[(f"n{node}", f"n{node + 1}") for node in range(steps - 1)])
            .with_state(i=0, status="")
            .with_entrypoint("n0")
            .with_identifiers(app_id=f"run{number}")
        )
        if store == "sqlite":
            from burr.core.persistence import SQLitePersister

            persister = SQLitePersister(str(folder / "burr.db"))
            persister.initialize()
            builder = builder.with_state_persister(persister)
        app = builder.build()  # an application is used once
        return lambda: app.run(halt_after=[f"n{steps - 1}"])[2]["i"]

    return prepared


def main(contender, steps, repeats):
    kind, _, store = contender.partition(":")
    cpu, wall = [], []
    folder = Path(tempfile.mkdtemp())  # whoever started this deletes it, when all is measured
    prepared = {"langgraph": langgraph, "burr": burr}[kind](store, steps, folder)
    for number in range(repeats + 1):
        run = prepared(number)
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        assert run() == steps
        if number:
            wall.append(time.perf_counter() - wall_before)
            cpu.append(time.process_time() - cpu_before)
    print(json.dumps({"cpu": min(cpu), "wall": min(wall)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
