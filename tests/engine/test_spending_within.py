"""A bound on money or tokens holds within an attempt: it ends between two requests (ruling 18)."""

import pytest

from attractor_nb import Pipeline, Usage, current_stage
from attractor_nb.errors import BudgetReached
from attractor_nb.model.events import ModelCallEnded

SOURCE = """digraph {
    start [shape=Mdiamond] plan [prompt=x] work [prompt=x] failed [prompt=x] done [shape=Msquare]
    start -> plan -> work
    work -> done
    work -> failed [condition="outcome=fail"]
    failed -> done
}"""


class Agent:
    """A backend that makes so many requests in one stage, and asks before each whether it may."""

    def __init__(self, requests, cost=0.1):
        self.requests, self.cost = requests, cost
        self.made = []

    def run(self, node, prompt, context):
        scope = current_stage()
        for _ in range(self.requests if node.id == "work" else 1):
            scope.check_spending()
            self.made.append(node.id)
            usage = Usage(10, 10, self.cost, 1)
            scope.announce(ModelCallEnded(**scope.place, model="m", usage=usage))
        return "done"


def run(agent, tmp_path, **bounds):
    return Pipeline(SOURCE).run(wait=True, backend=agent, logs_root=tmp_path / "run", **bounds)


@pytest.mark.parametrize(
    ("bounds", "bound", "made"),
    [({"max_budget_usd": 0.35}, "max_budget_usd", 4), ({"max_tokens_total": 60}, "max_tokens_total", 3)],
)
def test_ruling_18_a_stage_of_many_requests_ends_within_one_of_its_bound(tmp_path, bounds, bound, made):
    agent = Agent(50)
    result = run(agent, tmp_path, **bounds)
    assert (result.status, result.bound, len(agent.made)) == ("fail", bound, made)
    assert result.usage.calls == made
    assert "failed" not in agent.made
    assert "work" in result.reason


def test_with_a_higher_bound_the_stage_is_tried_again_and_nothing_that_was_spent_is_forgotten(tmp_path):
    result = run(Agent(50), tmp_path, max_budget_usd=0.35)
    assert result.next_node == "work"
    again = Agent(2)
    resumed = Pipeline(SOURCE).resume(tmp_path / "run", backend=again, max_budget_usd=5.0).result()
    assert resumed.status == "success"
    assert again.made == ["work", "work"]
    assert resumed.usage.cost_usd == pytest.approx(0.6)


def test_retries_are_not_used_up_by_it(tmp_path):
    source = SOURCE.replace("work [prompt=x]", "work [prompt=x, max_retries=3]")
    agent = Agent(50)
    result = Pipeline(source).run(wait=True, backend=agent, logs_root=tmp_path / "run", max_budget_usd=0.25)
    assert (result.bound, len(agent.made)) == ("max_budget_usd", 3)


def test_a_bound_within_a_branch_stops_the_run(tmp_path):
    source = """digraph { start [shape=Mdiamond] fan [shape=component] j [shape=tripleoctagon] done [shape=Msquare]
        work [prompt=x] other [prompt=x] start -> fan fan -> work fan -> other work -> j other -> j j -> done }"""
    agent = Agent(50)
    result = Pipeline(source).run(wait=True, backend=agent, logs_root=tmp_path / "run", max_budget_usd=0.5)
    assert (result.status, result.bound) == ("fail", "max_budget_usd")
    assert len(agent.made) <= 7


def test_without_a_bound_nothing_is_asked(tmp_path):
    assert run(Agent(9), tmp_path).status == "success"


def test_unknown_prices_are_no_price(tmp_path):
    agent = Agent(5, cost=None)
    assert run(agent, tmp_path, max_budget_usd=0.01).status == "success"


def test_an_agent_that_carries_on_regardless_succeeds_and_the_next_stage_is_not_begun(tmp_path):
    class Stubborn(Agent):
        def run(self, node, prompt, context):
            try:
                return super().run(node, prompt, context)
            except BudgetReached:
                return "done anyway"

    agent = Stubborn(50)
    result = run(agent, tmp_path, max_budget_usd=0.35)
    assert result.bound == "max_budget_usd"
    assert result.next_node == "done"
