"""The bounds of a map hold over all of its rows, whatever is under way at once (ruling 18)."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Pipeline, Usage, current_stage
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded

ONE = "digraph { start [shape=Mdiamond] work [prompt=x] done [shape=Msquare] start -> work -> done }"
FAN = """digraph { start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] j [shape=tripleoctagon]
    a [prompt=x] b [prompt=x] c [prompt=x] start -> fan fan -> a fan -> b fan -> c a -> j b -> j c -> j j -> done }"""
ROWS = [{"n": number} for number in range(10)]


class Paid:
    """A backend whose stages cost so much."""

    def __init__(self, cost=2.8):
        self.cost, self.spent, self.calls = cost, 0.0, 0

    async def run(self, node, prompt, context):
        await asyncio.sleep(0.005)
        self.spent, self.calls = self.spent + self.cost, self.calls + 1
        return Response("done", usage=Usage(100, 0, self.cost, 1))


class PaidByRequest(Paid):
    reserves_requests = True

    async def run(self, node, prompt, context):
        scope = current_stage()
        async with scope.paying(Usage(100, 0, self.cost, 1)):
            answer = await super().run(node, prompt, context)
            scope.announce(ModelCallEnded(**scope.place, model="m", usage=answer.usage))
        return "done"


def run_map(source, backend, tmp_path, **options):
    options = {"max_parallel": 10, "map_dir": tmp_path / "map", **options}
    return Pipeline(source).map(ROWS, wait=True, backend=backend, **options)


@pytest.mark.parametrize("make", [Paid, PaidByRequest])
@pytest.mark.parametrize("source", [ONE, FAN])
def test_ruling_18_fifteen_dollars_of_a_map_are_spent_to_within_one_call(tmp_path, source, make):
    backend = make()
    result = run_map(source, backend, tmp_path, max_budget_usd_all=15)
    assert 15 <= backend.spent <= 15 + 2.8
    assert result.status == "fail"
    assert "max_budget_usd_all=15 reached" in result.reason


def test_rows_that_the_bound_of_all_ended_are_unfinished_and_no_failures(tmp_path):
    result = run_map(ONE, Paid(), tmp_path, max_budget_usd_all=15)
    assert not result.failures
    assert result.counts["success"] == 6
    assert result.counts["interrupted"] + result.counts["not_started"] == 4


def test_with_a_higher_bound_it_goes_on_and_pays_for_nothing_twice(tmp_path):
    first, second = Paid(), Paid()
    run_map(ONE, first, tmp_path, max_budget_usd_all=15)
    resumed = Pipeline(ONE).resume_map(tmp_path / "map", backend=second, max_budget_usd_all=100).result()
    assert resumed.status == "success"
    assert first.calls + second.calls == 10


def test_a_resume_counts_what_later_rows_have_spent_before_earlier_ones_spend_more(tmp_path):
    first, second = Paid(), Paid()
    run_map(ONE, first, tmp_path, max_budget_usd_all=15)
    resumed = Pipeline(ONE).resume_map(tmp_path / "map", backend=second, max_budget_usd_all=18, max_parallel=10)
    assert resumed.result().status == "fail"
    assert first.spent + second.spent <= 18 + 2.8


def test_tokens_of_all_rows_are_bounded_the_same(tmp_path):
    backend = Paid(0.0)
    result = run_map(ONE, backend, tmp_path, max_tokens_all=550)
    assert backend.calls == 6
    assert "max_tokens_all=550 reached" in result.reason


def test_a_bound_of_each_row_and_one_of_all_hold_together(tmp_path):
    backend = Paid(1.0)
    run_map(FAN, backend, tmp_path, max_budget_usd=2, max_budget_usd_all=7)
    assert backend.spent <= 8


def test_nothing_that_is_kept_in_memory_is_bounded_any_other_way(tmp_path):
    backend = Paid()
    run_map(ONE, backend, tmp_path, max_budget_usd_all=15, map_dir=None, durability="none")
    assert backend.spent <= 15 + 2.8


@pytest.mark.parametrize("ship", ["rows", "stages"])
def test_rows_and_stages_on_workers_are_reserved_for_as_a_whole(tmp_path, ship):
    with ThreadPoolExecutor(10) as executor:
        result = run_map(ONE, Paid(), tmp_path, max_budget_usd_all=15, executor=executor, ship=ship)
    assert 15 <= result.usage.cost_usd <= 15 + 2.8
    assert "max_budget_usd_all=15 reached" in result.reason
