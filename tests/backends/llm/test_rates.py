"""Rates of providers: requests wait for their turn, whichever run of the process makes them."""

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb import Pipeline, ProviderBackend
from attractor_nb.backends.llm.model_requests import RequestDefaults, read_request
from attractor_nb.backends.llm.rate_gates import RateGate, RateGates, _Waiting
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError
from attractor_nb.model.calls.providers import Rates
from attractor_nb.model.events import ModelCallWaiting
from attractor_nb.testing import ManualClock

MINUTE_SECONDS = 60.0

FRAME = """digraph talk {{
    graph [{graph}]
    start [shape=Mdiamond]  done [shape=Msquare]
    a [prompt="A"]  b [prompt="B"]  c [prompt="C"]
    start -> a -> b -> c -> done
}}"""


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-openai-0123456789")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def gate_of(clock):
    return RateGate(clock.monotonic, clock.sleep)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30)), min_size=1, max_size=25),
    st.integers(1, 5),
    st.integers(50, 100),
)
def test_no_minute_has_more_than_its_rates(asked, requests, tokens):
    async def walk():
        clock = ManualClock()
        gate = gate_of(clock)
        passed = []
        for size, pause in asked:
            clock.advance(pause)
            passage = await gate.enter(Rates(requests, tokens), size, lambda _: None)
            passed.append((passage.at, size))
        return passed

    passed = asyncio.run(walk())
    for at, _ in passed:
        minute = [size for when, size in passed if at - MINUTE_SECONDS < when <= at]
        assert len(minute) <= requests
        assert sum(minute) <= tokens


def test_who_comes_first_goes_first():
    """A small request does not slip past a large one that waits for tokens."""

    async def walk():
        gate, order = gate_of(ManualClock()), []

        async def ask(name, size):
            await gate.enter(Rates(None, 100), size, lambda _: None)
            order.append(name)

        await asyncio.gather(*(ask(name, size) for name, size in [("first", 80), ("large", 90), ("small", 5)]))
        return order

    assert asyncio.run(walk()) == ["first", "large", "small"]


def test_runs_in_other_threads_wait_in_the_same_queue():
    """Each with a loop of its own; together they make no more requests than one may."""
    gate, at, lock = RateGate(), [], threading.Lock()
    gate._sleep = lambda seconds: asyncio.sleep(0)
    now = iter(range(10**9))
    gate._monotonic = lambda: next(now) / 4

    async def ask():
        passage = await gate.enter(Rates(3), 1, lambda _: None)
        with lock:
            at.append(passage.at)

    async def run():
        await asyncio.gather(*(ask() for _ in range(4)))

    threads = [threading.Thread(target=asyncio.run, args=(run(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    at.sort()
    assert len(at) == 16
    assert all(later - earlier >= MINUTE_SECONDS for earlier, later in zip(at, at[3:], strict=False))


def test_who_is_cancelled_leaves_the_queue_and_the_next_goes_on():
    async def walk():
        clock = ManualClock()
        gate = gate_of(clock)
        await gate.enter(Rates(1), 1, lambda _: None)
        held = asyncio.Event()

        async def hang(_seconds):
            await held.wait()

        gate._sleep = hang
        first = asyncio.create_task(gate.enter(Rates(1), 1, lambda _: None))
        second = asyncio.create_task(gate.enter(Rates(1), 1, lambda _: None))
        for _ in range(3):
            await asyncio.sleep(0)
        gate._sleep = clock.sleep
        first.cancel()
        await asyncio.wait_for(second, 60)
        assert first.cancelled()
        assert not gate._queue
        return second.result().at

    assert asyncio.run(walk()) == pytest.approx(MINUTE_SECONDS)


def test_what_is_settled_lower_lets_others_through_sooner():
    async def walk():
        clock = ManualClock()
        gate = gate_of(clock)
        passage = await gate.enter(Rates(None, 100), 90, lambda _: None)
        passage.settle(10)
        return (await gate.enter(Rates(None, 100), 90, lambda _: None)).at

    assert asyncio.run(walk()) == 0


def test_a_request_over_the_rate_by_itself_goes_alone():
    async def walk():
        gate = gate_of(ManualClock())
        await gate.enter(Rates(None, 100), 10, lambda _: None)
        return (await gate.enter(Rates(None, 100), 500, lambda _: None)).at

    assert asyncio.run(walk()) == pytest.approx(MINUTE_SECONDS)


@pytest.mark.parametrize("length", ["over", "under"])
def test_a_wait_is_told_once_when_it_is_over_a_second(length):
    async def walk():
        clock, told = ManualClock(), []
        gate = gate_of(clock)
        await gate.enter(Rates(1), 1, told.append)
        clock.advance(20 if length == "over" else 59.5)
        await gate.enter(Rates(1), 1, told.append)
        return told

    assert asyncio.run(walk()) == ([40.0] if length == "over" else [])


@pytest.mark.parametrize("where", ["graph", "python", "file"])
def test_requests_of_a_run_wait_and_say_so(where, serve, reply, tmp_path):
    """Over HTTP: three requests at two a minute; the third waits a minute of the clock, and is answered."""
    server, clock = serve(reply("Hello")), ManualClock()
    url, graph, options = server.base_url("openai"), 'llm_model="local:m"', {}
    if where == "graph":
        graph += f', endpoint.local.url="{url}", endpoint.local.requests_per_minute=2'
    elif where == "python":
        options["endpoints"] = {"local": {"url": url, "requests_per_minute": 2}}
    else:
        (tmp_path / "config").mkdir()
        text = f'[local]\nurl = "{url}"\nrequests_per_minute = 2\n'
        (tmp_path / "config" / "endpoints.toml").write_text(text)
    backend = ProviderBackend(**options)
    backend._gates = RateGates(lambda: gate_of(clock))
    events = []
    run = Pipeline(FRAME.format(graph=graph)).run(
        wait=True, logs_root=tmp_path / "run", backend=backend, observers=[events.append]
    )
    assert run.status == "success", run.reason
    assert len(server.asked) == 3
    waits = [event for event in events if isinstance(event, ModelCallWaiting)]
    assert [(wait.name, wait.model, wait.rates) for wait in waits] == [("c", "local:m", "2 requests a minute")]
    assert sum(clock.sleeps) == pytest.approx(MINUTE_SECONDS)


def test_tokens_are_settled_with_what_the_server_said(serve, reply, tmp_path):
    """18 tokens a call; the reservation of an answer without a bound would let no second one through."""
    server, clock = serve(reply("Hello")), ManualClock()
    text = f'llm_model="local:m", endpoint.local.url="{server.base_url("openai")}", '
    backend = ProviderBackend()
    backend._gates = RateGates(lambda: gate_of(clock))
    graph = FRAME.format(graph=text + "endpoint.local.tokens_per_minute=1100")
    run = Pipeline(graph).run(wait=True, logs_root=tmp_path / "run", backend=backend)
    assert run.status == "success", run.reason
    assert clock.sleeps == []


@pytest.mark.parametrize("name", ["openai", "open_ai"])
def test_rates_of_a_provider_hold_at_its_own_place(name):
    graph = Pipeline(FRAME.format(graph=f'llm_model="gpt-5.2", endpoint.{name}.requests_per_minute=500')).graph
    (target,) = read_request(graph.nodes["a"], RequestDefaults()).targets
    assert (target.provider, target.endpoint, target.rates) == ("openai", None, Rates(500))
    elsewhere = RequestDefaults(model="gpt-5.2", base_url="http://127.0.0.1:1/v1")
    plain = Pipeline(FRAME.format(graph=f"endpoint.{name}.requests_per_minute=500")).graph
    (target,) = read_request(plain.nodes["a"], elsewhere).targets
    assert target.rates == Rates()


def test_all_backends_of_a_process_share_their_gates():
    assert ProviderBackend()._gates is ProviderBackend("gpt-5.2")._gates


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many", "1e3"])
def test_a_rate_that_is_no_count_is_refused(value):
    with pytest.raises(OptionError, match=r"requests_per_minute .* is not a count"):
        ProviderBackend(endpoints={"openai": {"requests_per_minute": value}})


def test_a_provider_has_no_address_of_this_kind():
    with pytest.raises(OptionError, match="of a provider only its requests_per_minute"):
        ProviderBackend(endpoints={"openai": {"url": "http://127.0.0.1/v1"}})


@pytest.mark.parametrize("value", ["0", '"many"', "1.5", "-3"])
def test_lint_sees_a_rate_that_is_no_count(value):
    found = Pipeline(FRAME.format(graph=f"llm_model=o3, endpoint.openai.tokens_per_minute={value}")).lint()
    assert [each for each in found if each.rule == "endpoint_valid" and "is not a count" in each.message]


def test_a_rate_is_no_command():
    graph = Pipeline(FRAME.format(graph="llm_model=o3, endpoint.openai.requests_per_minute=5")).graph
    assert not executable_surface(graph).commands


def test_who_waited_in_a_loop_that_is_gone_holds_nobody_up():
    async def leave_behind():
        gate._queue.append(waits_for_ever := _Waiting(Rates(1), 1))
        return waits_for_ever

    async def walk():
        first = asyncio.create_task(gate.enter(Rates(1), 1, lambda _: None))
        second = asyncio.create_task(gate.enter(Rates(1), 1, lambda _: None))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not second.done()
        gate._queue.rotate(-1)  # whoever was first has gone
        gate._queue.remove(dead)
        gate._queue.appendleft(dead)
        first.cancel()
        await asyncio.wait_for(second, 60)
        return dead in gate._queue

    clock = ManualClock()
    gate = gate_of(clock)
    dead = asyncio.run(leave_behind())
    assert asyncio.run(walk()) is False
