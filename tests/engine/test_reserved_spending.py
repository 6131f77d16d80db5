"""Bounds on money and tokens hold over all that is under way at once: it is reserved first (ruling 18)."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from attractor_nb import Pipeline, Usage, current_stage
from attractor_nb.engine.attempt_spending import Spending
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded

NAMES = [f"b{number}" for number in range(10)]


def fan_out(width=10, inner="prompt=x", extra=""):
    names = NAMES[:width]
    nodes = " ".join(f"{name} [{inner}]" for name in names)
    edges = " ".join(f"fan -> {name} -> join" for name in names)
    return (
        f"digraph {{ {extra} start [shape=Mdiamond] fan [shape=component, max_parallel=10, "
        f"error_policy=continue] join [shape=tripleoctagon] done [shape=Msquare] {nodes} {edges} "
        "start -> fan join -> done }"
    )


class Counting:
    """A backend whose calls cost so much, and which counts what it was paid and how many it made at once."""

    def __init__(self, cost=3.5, tokens=1000, costs=None):
        self.cost, self.tokens, self.costs = cost, tokens, costs or {}
        self.spent, self.most_at_once, self._now = 0.0, 0, 0
        self.asked = []
        self._lock = threading.Lock()

    async def run(self, node, prompt, context):
        self.begin(node)
        await asyncio.sleep(0.005)
        return Response("done", usage=self.end(node))

    def begin(self, node):
        with self._lock:
            self.asked.append(node.id)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)

    def end(self, node):
        with self._lock:
            self._now -= 1
            cost = self.costs.get(node.id, self.cost)
            self.spent += cost
        return Usage(self.tokens, 0, cost, 1)


class Reserving(Counting):
    """One that knows what each of its requests costs at most, and makes several in a stage."""

    reserves_requests = True

    def __init__(self, requests=1, most=3.5, **options):
        super().__init__(**options)
        self.requests, self.most = requests, most

    async def run(self, node, prompt, context):
        scope = current_stage()
        for _ in range(self.requests):
            async with scope.paying(Usage(self.tokens, 0, self.most, 1)):
                self.begin(node)
                await asyncio.sleep(0.005)
                scope.announce(ModelCallEnded(**scope.place, model="m", usage=self.end(node)))
        return "done"


class Threaded(Counting):
    def run(self, node, prompt, context):
        self.begin(node)
        threading.Event().wait(0.005)
        return Response("done", usage=self.end(node))


def run(source, backend, tmp_path, **bounds):
    return Pipeline(source).run(wait=True, backend=backend, logs_root=tmp_path / "run", **bounds)


@pytest.mark.parametrize("make", [Counting, Threaded, Reserving])
def test_ruling_18_eight_dollars_at_max_parallel_ten_are_spent_to_within_one_call(tmp_path, make):
    backend = make()
    result = run(fan_out(), backend, tmp_path, max_budget_usd=8)
    assert backend.spent <= 8 + 3.5
    assert (result.status, result.bound) == ("fail", "max_budget_usd")
    assert result.usage.cost_usd == pytest.approx(backend.spent)


@pytest.mark.parametrize("make", [Counting, Reserving])
def test_ruling_18_tokens_are_reserved_as_money_is(tmp_path, make):
    backend = make(cost=0.0)
    result = run(fan_out(), backend, tmp_path, max_tokens_total=2500)
    assert len(backend.asked) == 3
    assert result.bound == "max_tokens_total"


@pytest.mark.parametrize("make", [Counting, Reserving])
def test_what_was_ended_goes_on_with_a_higher_bound_and_pays_nothing_twice(tmp_path, make):
    backend = make()
    run(fan_out(), backend, tmp_path, max_budget_usd=8)
    again = make()
    resumed = Pipeline(fan_out()).resume(tmp_path / "run", backend=again, max_budget_usd=100).result()
    assert resumed.status == "success"
    assert sorted(backend.asked + again.asked) == NAMES
    assert resumed.usage.cost_usd == pytest.approx(35)


def test_after_a_resume_what_was_spent_before_counts(tmp_path):
    backend, again = Counting(), Counting()
    run(fan_out(), backend, tmp_path, max_budget_usd=8)
    Pipeline(fan_out()).resume(tmp_path / "run", backend=again, max_budget_usd=15).result()
    assert backend.spent + again.spent <= 15 + 3.5


def test_cheap_calls_go_on_side_by_side_up_to_the_bound(tmp_path):
    backend = Reserving(cost=0.01, most=0.02)
    assert run(fan_out(), backend, tmp_path, max_budget_usd=8).status == "success"
    assert backend.most_at_once == 10


def test_a_request_that_could_cost_more_than_the_bound_is_made_alone_while_there_is_money(tmp_path):
    backend = Reserving(cost=0.1, most=50.0)
    assert run(fan_out(), backend, tmp_path, max_budget_usd=2).status == "success"
    assert backend.most_at_once == 1


def test_of_a_backend_that_tells_nothing_the_first_goes_alone_and_the_others_beside_each_other(tmp_path):
    backend = Counting(cost=0.01)
    assert run(fan_out(), backend, tmp_path, max_budget_usd=8).status == "success"
    assert 2 <= backend.most_at_once <= 9


def test_stages_of_many_requests_hold_money_for_one_of_them_at_a_time(tmp_path):
    backend = Reserving(requests=5, cost=0.5, most=0.5)
    result = run(fan_out(), backend, tmp_path, max_budget_usd=8)
    assert 8 <= backend.spent <= 8.5
    assert result.bound == "max_budget_usd"


def test_what_fails_gives_its_reservation_back(tmp_path):
    class Failing(Reserving):
        async def run(self, node, prompt, context):
            async with current_stage().paying(Usage(10, 0, 6.0, 1)):
                self.asked.append(node.id)
                raise RuntimeError("down")

    backend = Failing()
    run(fan_out(), backend, tmp_path, max_budget_usd=8)
    assert sorted(backend.asked) == NAMES


def test_what_runs_out_of_time_gives_its_reservation_back(tmp_path):
    class Hanging(Reserving):
        async def run(self, node, prompt, context):
            async with current_stage().paying(Usage(10, 0, 6.0, 1)):
                self.asked.append(node.id)
                await asyncio.Event().wait()

    backend = Hanging()
    run(fan_out(3, inner='prompt=x, timeout="50ms", max_retries=0'), backend, tmp_path, max_budget_usd=8)
    assert backend.asked


def test_a_stage_that_fails_first_is_no_measure_of_what_the_others_cost(tmp_path):
    class DownAtFirst(Counting):
        async def run(self, node, prompt, context):
            if not self.asked:
                self.asked.append(node.id)
                raise RuntimeError("down")
            return await super().run(node, prompt, context)

    backend = DownAtFirst()
    run(fan_out(), backend, tmp_path, max_budget_usd=8)
    assert backend.spent <= 8 + 3.5


def test_nested_fan_outs_share_the_bound(tmp_path):
    inner = " ".join(f"f{i} -> {name}{i} -> j{i}" for i in range(3) for name in "abc")
    nodes = " ".join(
        f"f{i} [shape=component] j{i} [shape=tripleoctagon] a{i} [prompt=x] b{i} [prompt=x] c{i} [prompt=x]"
        for i in range(3)
    )
    ends = " ".join(f"fan -> f{i} j{i} -> join" for i in range(3))
    source = (
        f"digraph {{ start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] "
        f"join [shape=tripleoctagon] {nodes} {inner} {ends} start -> fan join -> done }}"
    )
    backend = Counting()
    result = run(source, backend, tmp_path, max_budget_usd=8)
    assert (result.bound, backend.spent) == ("max_budget_usd", pytest.approx(10.5))


def test_child_runs_share_their_parents_bound(tmp_path):
    child = (
        "digraph { start [shape=Mdiamond] work [prompt=x] more [prompt=x] done [shape=Msquare] "
        "start -> work -> more -> done }"
    )
    pipeline = Pipeline(fan_out(6, inner='type=pipeline, pipeline.name="c"'), pipelines={"c": child})
    backend = Counting()
    result = pipeline.run(wait=True, backend=backend, logs_root=tmp_path / "run", max_budget_usd=8)
    assert backend.spent <= 8 + 3.5
    assert (result.status, result.bound) == ("fail", "max_budget_usd")


@pytest.mark.parametrize("make", [Counting, Reserving])
def test_children_that_the_bound_ended_are_taken_up_with_a_higher_one_and_pay_nothing_twice(tmp_path, make):
    child = (
        "digraph { start [shape=Mdiamond] work [prompt=x] more [prompt=x] done [shape=Msquare] "
        "start -> work -> more -> done }"
    )
    pipeline = Pipeline(fan_out(4, inner='type=pipeline, pipeline.name="c"'), pipelines={"c": child})
    first, second = make(), make()
    pipeline.run(wait=True, backend=first, logs_root=tmp_path / "run", max_budget_usd=8)
    resumed = pipeline.resume(tmp_path / "run", backend=second, max_budget_usd=100).result()
    assert resumed.status == "success"
    assert len(first.asked) + len(second.asked) == 8
    assert resumed.usage.cost_usd == pytest.approx(28)


def test_without_a_bound_nobody_waits(tmp_path):
    backend = Counting()
    assert run(fan_out(), backend, tmp_path).status == "success"
    assert backend.most_at_once == 10


def test_an_attempt_that_is_over_is_given_nothing_that_it_has_waited_for():
    class Slow:
        """Funds that give a claim in the moment in which the attempt is given up."""

        def __init__(self):
            self.released = []

        def beneath(self, account):
            return self

        async def claim(self, *_):
            spending.close()
            return SimpleNamespace(refused=None)

        def release(self, claim, actual=None):
            self.released.append(claim)

    async def main():
        async with spending.paying(Usage(1, 1, 1.0, 1)):
            raise AssertionError

    funds = Slow()
    spending = Spending(lambda event: None, "a", funds)
    with pytest.raises(TerminalError, match="the attempt has ended; it cannot make another paid call") as told:
        asyncio.run(main())
    assert told.value.hint == "end when the call ends"
    assert len(funds.released) == 1
