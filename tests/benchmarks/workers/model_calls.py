"""Calls of a model that answers at once, one after the other: all that is left is what is around a call.

model_calls.py CONTENDERS CALLS ROUNDS: CPU and wall seconds of each round, in which all take turns. The model
is the same function for everybody, streamed by pydantic-ai. The first round is not counted, nor is building
a graph.

CONTENDERS are separated by commas: ``direct`` (one bare request, streamed as ours is), ``bare`` (an agent of
pydantic-ai, streamed), ``bare:whole`` (the same without streaming), ``ours:DURABILITY``, or, by the interpreter of that environment, ``langgraph:DURABILITY``.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

ANSWER = "The plan is good. " * 20
PROMPT = "Review the plan, and say what is missing in it."


def model():
    """A model that answers at once, in pieces where it is streamed."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    def whole(messages, info):
        return ModelResponse(parts=[TextPart(ANSWER)])

    async def streamed(messages, info):
        for place in range(0, len(ANSWER), 60):
            yield ANSWER[place : place + 60]

    class Ending(FunctionModel):
        """One that says why its answer ends, as models of providers do."""

        @asynccontextmanager
        async def request_stream(self, *arguments, **options):
            async with super().request_stream(*arguments, **options) as response:
                response.finish_reason = "stop"
                yield response

    return Ending(whole, stream_function=streamed)


def bare(kind, calls, folder):
    from pydantic_ai import Agent

    agent = Agent(model())

    async def ask():
        for _ in range(calls):
            if kind == "whole":
                text = (await agent.run(PROMPT)).output
            else:
                async with agent.run_stream(PROMPT) as result:
                    text = await result.get_output()
            assert text == ANSWER

    return lambda number: asyncio.run(ask())


def direct(kind, calls, folder):
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest

    answering = model()

    async def ask():
        for _ in range(calls):
            async with model_request_stream(answering, [ModelRequest.user_text_prompt(PROMPT)]) as stream:
                async for _ in stream:
                    pass
                assert stream.get().text == ANSWER

    return lambda number: asyncio.run(ask())


def ours(durability, calls, folder):
    from attractor_nb import Pipeline
    from attractor_nb.backends.llm import ProviderBackend
    from attractor_nb.backends.llm.clients import Clients

    answering = model()
    Clients.model = lambda self, target: answering  # the provider backend, without a provider
    names = [f"n{number}" for number in range(calls)]
    lines = ["digraph calls {", f"  graph [max_steps={calls + 10}, default_fidelity=truncate]"]
    lines += ["  start [shape=Mdiamond]", "  exit [shape=Msquare]"]
    lines += [f'  {name} [prompt="{PROMPT}"]' for name in names]
    lines += [f"  {source} -> {target}" for source, target in pairwise(["start", *names, "exit"])]
    pipeline = Pipeline("\n".join([*lines, "}"]), backend=ProviderBackend("openai:gpt-4o"))

    def run(number):
        place = {} if durability == "none" else {"logs_root": folder / str(number)}
        result = pipeline.run(wait=True, durability=durability, **place)
        assert (result.status, result.usage.calls) == ("success", calls), result.reason

    return run


def langgraph(durability, calls, folder):
    from typing import TypedDict

    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph
    from pydantic_ai import Agent

    class State(TypedDict):
        response: str

    agent = Agent(model())

    async def ask(state):
        async with agent.run_stream(PROMPT) as result:
            return {"response": await result.get_output()}

    graph = StateGraph(State)
    names = [f"n{number}" for number in range(calls)]
    for name in names:
        graph.add_node(name, ask)
    for source, target in pairwise([START, *names, END]):
        graph.add_edge(source, target)

    async def walk(number):
        config = {"recursion_limit": calls + 10, "configurable": {"thread_id": str(number)}}
        async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
            app = graph.compile(checkpointer=saver)
            before = time.process_time(), time.perf_counter()
            state = await app.ainvoke({"response": ""}, config, durability=durability)
            assert state["response"] == ANSWER
            return before

    return lambda number: asyncio.run(walk(number))


def main(contenders, calls, rounds):
    made = {"direct": direct, "bare": bare, "ours": ours, "langgraph": langgraph}
    folder = Path(tempfile.mkdtemp())  # whoever started this deletes it, when all is measured
    runs, figures = {}, {}
    for name in contenders:
        kind, _, how = name.partition(":")
        place = folder / name.replace(":", "-")
        place.mkdir()
        runs[name], figures[name] = made[kind](how, calls, place), {"cpu": [], "wall": []}
    for number in range(rounds + 1):
        for name, run in runs.items():
            gc.collect()
            before = time.process_time(), time.perf_counter()
            before = run(number) or before
            wall, cpu = time.perf_counter() - before[1], time.process_time() - before[0]
            if number:
                figures[name]["wall"].append(wall)
                figures[name]["cpu"].append(cpu)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]))
