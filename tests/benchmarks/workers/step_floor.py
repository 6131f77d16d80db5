"""The floor of a step: its hot path alone, with the same records, and nothing else of a run.

Around the same handler an intent, an outcome, a status file, a commit and a notice are made, looked through for
secrets, kept and folded into the state, as every step does it. Left out is all that decides: no graph and no edges, no
retries, gates, bounds, timeouts and budgets, no debugger, no preamble, no scope of the stage, no context of its own.
"""

import asyncio

from attractor_nb.context import Context
from attractor_nb.decisions.run_state import RunState
from attractor_nb.engine.event_stream import EventStream
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.model.events import (
    CheckpointSaved,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    StageCompleted,
    StageStarted,
)
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stages.status_file import StatusText


def stream_to(store, clock):
    stream = EventStream(store, clock, "abcd2345")
    stream.add_sink([].append)
    return stream


async def step(stream, store, state, context, handler, node, number, branch=""):
    name = node.id
    started = StageStarted(
        name=name, index=number + 1, visit=1, attempt=1, branch=branch, handler_type="count", fidelity="compact"
    )
    files = store.open_stage(name, 1, 1, branch)
    state.apply(started)
    stream.announce(started)
    outcome = await handler.execute(node, context, None, None)
    files.create_deferred("status.json", StatusText(outcome, 1, 1))
    context.apply_updates(outcome.context_updates)
    context.set("current_node", name)
    context.set("outcome", "success")
    changes, logs = context.take_changes()
    ended = StageCompleted(
        name=name,
        index=number + 1,
        visit=1,
        attempt=1,
        branch=branch,
        duration=0.0,
        outcome=outcome.without_updates(),
        context=changes,
        logs=logs,
        next_node=f"n{number + 1}",
        edge=number,
        route="default",
    )
    state.apply(ended)
    stream.announce(ended, is_synced=True)
    stream.announce(CheckpointSaved(saved_node=name))


def chain(durability, nodes, handler):
    """A chain of steps; gives what runs it in a folder."""

    async def walk(store, stream):
        state, context = RunState(nodes[0].id), Context()
        for number, node in enumerate(nodes):
            await step(stream, store, state, context, handler, node, number)
        assert context.get("i") == len(nodes)

    def run(folder):
        clock = SystemClock()
        if durability == "none":
            store = MemoryRunStore(clock=clock)
        else:
            store = DirectoryRunStore.create(
                folder / "run", durability=durability, source_text="", manifest={}, clock=clock
            )
        stream = stream_to(store, clock)
        asyncio.run(walk(store, stream))
        stream.close()
        store.close()

    return run


def fan_out(nodes, at_once, handler):
    """Branches of one step each; gives what runs them."""

    async def walk(store, stream):
        state, context, semaphore = RunState("fan"), Context(), asyncio.Semaphore(at_once)
        place = {"name": "fan"}
        results = [None] * len(nodes)

        async def branch(number, node):
            path = f"fan/{node.id}"
            async with semaphore:
                own = context.clone()
                started = ParallelBranchStarted(
                    **place, branch=path, index=number, id=node.id, start_node=node.id, edge=number
                )
                stream.announce(started)
                state.apply(started)
                await step(stream, store, state.branches.open[path].state, own, handler, node, number, path)
                ended = ParallelBranchCompleted(
                    **place, branch=path, index=number, id=node.id, success=True, status="success"
                )
                stream.announce(ended)
                state.apply(ended)
                results[number] = dict(state.branches.open[path].context)

        async with asyncio.TaskGroup() as group:
            for number, node in enumerate(nodes):
                group.create_task(branch(number, node))
        context.apply_updates({"parallel.results": results})

    def run():
        clock = SystemClock()
        store = MemoryRunStore(clock=clock)
        stream = stream_to(store, clock)
        asyncio.run(walk(store, stream))
        stream.close()
        store.close()

    return run
