"""The connection of a worker to its coordinator: what is said reaches it, however early."""

import asyncio
import socket
import sys
from types import SimpleNamespace

import pytest

from attractor_nb.workers.lifelines import DaskLifeline, Listening, SocketLifeline, TaskListener
from attractor_nb.workers.shipping import DaskCluster


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


def cut_by(lifeline):
    """The cuts seen while a lifeline was held."""
    cuts = []
    asyncio.run(lifeline.hold(lambda: cuts.append("cut")))
    return cuts


def test_a_socket_that_is_not_on_this_machine_cuts_nothing(tmp_path):
    assert cut_by(SocketLifeline(SimpleNamespace(lifeline=str(tmp_path / "none"), id="t1"))) == []


def test_a_socket_at_which_nobody_listens_any_more_cuts_the_work(tmp_path):
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(tmp_path / "s"))
    assert cut_by(SocketLifeline(SimpleNamespace(lifeline=str(tmp_path / "s"), id="t1"))) == ["cut"]


@pytest.mark.parametrize("said", [b"no json\n", b'{"task": "t1"}\n' + b"[" * 100_000 + b"\n", b"\xff\n"])
def test_what_is_no_worker_of_ours_is_hung_up_on_and_the_others_are_heard(said):
    async def speak():
        heard = asyncio.Queue()
        listening = Listening()
        await listening.open()
        listeners = [TaskListener(lambda *words: heard.put_nowait(words), lambda _: None) for _ in range(2)]
        for name, listener in zip(("t1", "t2"), listeners, strict=True):
            listening.add(name, listener)
        faults = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_unix_connection(listening.path)
            writer.write(said)
            assert await reader.read() == b""
            other, ours = await asyncio.open_unix_connection(listening.path)
            ours.write(b'{"task": "t2"}\n{"channel": "stdout", "text": "mine"}\n')
            words = await heard.get()
        was_ended = [listener.ended.is_set() for listener in listeners]
        for stream in (writer, ours):
            stream.close()
        await listeners[1].ended.wait()
        assert await other.read() == b""
        await listening.close()
        return words, was_ended, faults

    assert asyncio.run(speak()) == (("stdout", "mine"), [b"t1" in said, False], [])


def test_a_task_that_another_worker_of_dask_has_begun_is_not_claimed(monkeypatch):
    """Dask starts a task again whose worker it takes for lost."""
    taken = set()

    class Queue:
        def __init__(self, name, **options):
            self.name = name

        def put(self, address, timeout):
            if self.name in taken:
                raise TimeoutError
            taken.add(self.name)

    worker = SimpleNamespace(address="tcp://w", get_current_task=lambda: "key")
    dask = SimpleNamespace(Queue=Queue, get_client=lambda: None, get_worker=lambda: worker)
    monkeypatch.setitem(sys.modules, "distributed", dask)
    first, second = (DaskLifeline(SimpleNamespace(topic="attractor", id="t1")) for _ in range(2))
    assert (first.claim(), second.claim()) == (True, False)


@pytest.mark.parametrize(
    ("error", "words"), [(OSError("no route"), "no route"), (TimeoutError(), "TimeoutError")], ids=["words", "none"]
)
def test_a_scheduler_that_does_not_answer_is_told_with_the_reason(error, words):
    async def look():
        async def identity(**_):
            raise error

        client = SimpleNamespace(
            status="running",
            subscribe_topic=lambda *_: None,
            scheduler=SimpleNamespace(identity=identity),
            loop=SimpleNamespace(asyncio_loop=asyncio.get_running_loop()),
        )
        cluster = DaskCluster(client, lambda _: None)
        return await cluster.problem(), cluster.known_problem

    problem = f"its scheduler does not answer: {words}"
    assert asyncio.run(look()) == (problem, problem)
