"""The same fan-out in LangGraph, by Send: peer_fan_out.py langgraph BRANCHES AT_ONCE REPEATS.

Run by the interpreter of the peer's environment; measured as ``fan_out.py`` measures.
"""

import asyncio
import json
import math
import operator
import sys
import time
from typing import Annotated, TypedDict

SLEEP = 0.010


class State(TypedDict):
    results: Annotated[list, operator.add]


def langgraph(branches, at_once):
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send

    async def branch(state):
        await asyncio.sleep(SLEEP)
        return {"results": [state["k"]]}

    graph = StateGraph(State)
    graph.add_node("fan", lambda state: {})
    graph.add_node("branch", branch)
    graph.add_node("join", lambda state: {})
    graph.add_edge(START, "fan")
    sends = [Send("branch", {"k": number}) for number in range(branches)]
    graph.add_conditional_edges("fan", lambda state: sends, ["branch"])
    graph.add_edge("branch", "join")
    graph.add_edge("join", END)
    app = graph.compile()
    options = {"max_concurrency": at_once}

    def run():
        results = asyncio.run(app.ainvoke({"results": []}, options))["results"]
        assert len(results) == branches

    return run


def main(contender, branches, at_once, repeats):
    run = {"langgraph": langgraph}[contender](branches, at_once)
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
