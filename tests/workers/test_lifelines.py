"""The connection of a worker to its coordinator: what is said reaches it, however early."""

import asyncio
from types import SimpleNamespace

from attractor_nb.workers.lifelines import Listening, SocketLifeline, TaskListener


def test_what_is_said_before_the_connection_is_there_is_heard_first():
    async def speak():
        heard = asyncio.Queue()
        listening = Listening()
        await listening.open()
        listener = TaskListener(on_output=lambda *said: heard.put_nowait(said), on_worker=lambda _: None)
        listening.add("t1", listener)
        lifeline = SocketLifeline(SimpleNamespace(lifeline=listening.path, id="t1"))
        lifeline.say("stdout", "begun\n")
        holding = asyncio.ensure_future(lifeline.hold(lambda: None))
        async with asyncio.timeout(60):
            first = await heard.get()
            lifeline.say("stdout", "over\n")
            second = await heard.get()
        lifeline.end()
        await holding
        await listening.close()
        return first, second

    assert asyncio.run(speak()) == (("stdout", "begun\n"), ("stdout", "over\n"))
