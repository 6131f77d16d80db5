"""The calling convention of the seams."""

import asyncio
import inspect
import os
import threading
from contextvars import ContextVar

import pytest

from attractor_nb.maybe_async import call
from tests.waiting import wait_until

MAX_IDLE_THREADS = 8

NAME = ContextVar("name", default="nobody")


async def async_double(number):
    return 2 * number


def give_coroutine(number):
    return async_double(number)


def plain_double(number):
    return 2 * number


@pytest.mark.parametrize(
    "function", [async_double, plain_double, give_coroutine], ids=["async", "plain", "plain-giving-async"]
)
def test_a_function_of_either_kind_is_called(function):
    assert asyncio.run(call(function, 21)) == 42


def test_context_variables_reach_a_plain_function():
    async def ask():
        NAME.set("Ada")
        return await call(NAME.get)

    assert asyncio.run(ask()) == "Ada"


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_what_a_plain_function_raises_arrives(error):
    def fail():
        raise error

    async def ask():
        try:
            await call(fail)
        except type(error) as caught:
            return caught
        return None

    assert asyncio.run(ask()) is error


def test_a_stop_iteration_arrives_as_an_error_that_a_task_can_carry():
    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(call(next, iter(())))


def test_the_late_result_of_a_function_that_was_given_up_is_dropped():
    released, ended = threading.Event(), threading.Event()

    def late():
        released.wait(60)
        ended.set()
        return "late"

    async def give_up():
        work = asyncio.create_task(call(late))
        await asyncio.sleep(0.01)
        work.cancel()
        await asyncio.wait([work])
        released.set()
        assert await call(ended.wait, 60)
        await asyncio.sleep(0.01)
        return work.cancelled()

    assert asyncio.run(give_up())


def test_a_function_that_outlives_its_loop_hurts_nobody():
    released = threading.Event()

    async def leave():
        work = asyncio.ensure_future(call(released.wait, 10))
        await asyncio.sleep(0.01)
        work.cancel()

    asyncio.run(leave())
    released.set()
    assert asyncio.run(call(plain_double, 21)) == 42


def test_threads_are_used_again_and_only_a_few_wait():
    seen = set()

    async def many():
        for _ in range(50):
            seen.add(await call(threading.get_ident))
        gate = threading.Barrier(20)
        await asyncio.gather(*(call(gate.wait, 60) for _ in range(20)))

    asyncio.run(many())
    assert len(seen) <= 2
    wait_until(lambda: waiting_threads() <= MAX_IDLE_THREADS, "the end of the others")


def waiting_threads():
    return sum(thread.name == "attractor-call" for thread in threading.enumerate())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_makes_threads_of_its_own():
    asyncio.run(call(plain_double, 1))
    process = os.fork()
    if process == 0:
        os._exit(asyncio.run(call(plain_double, 21)))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 42


def test_a_coroutine_that_comes_too_late_is_closed():
    """A plain function that makes a coroutine, given up before it returned."""
    begun, release, made = threading.Event(), threading.Event(), []

    async def late():
        return "never"

    def make():
        begun.set()
        release.wait(60)
        made.append(late())
        return made[0]

    async def main():
        waiting = asyncio.ensure_future(call(make))
        await asyncio.to_thread(begun.wait, 60)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        release.set()
        await asyncio.to_thread(
            wait_until, lambda: made and inspect.getcoroutinestate(made[0]) == "CORO_CLOSED", "the coroutine's end"
        )

    asyncio.run(main())
    assert inspect.getcoroutinestate(made[0]) == "CORO_CLOSED"
