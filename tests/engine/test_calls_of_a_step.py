"""The cost of a step, counted: calls of Python functions, which no busy machine changes (issue 18).

Counted is what one more stage adds to a run whose graph was compiled before, with 40 stages behind it or more: the
difference between a run of 80 and one of 40. No view is open meanwhile, so nothing is drawn. A figure here is
what was measured when it was set, and a hundredth more; lower it when a step gets cheaper, and give a reason in the
change that raises one.
"""

import asyncio
import gc
import sys
from itertools import pairwise, repeat

import pytest

from attractor_nb import Outcome, Pipeline

FEW, MANY = 40, 80


def chain_of(stages, attributes):
    names = ["start", *(f"n{number}" for number in range(stages)), "done"]
    lines = [f"n{number} [{attributes}]" for number in range(stages)]
    lines += [f"{source} -> {target}" for source, target in pairwise(names)]
    return f"digraph chain {{ graph [max_steps=1000] start [shape=Mdiamond] done [shape=Msquare] {' '.join(lines)} }}"


def fan_of(branches):
    lines = [f'b{number} [prompt="Do it."] fan -> b{number} -> join' for number in range(branches)]
    return f"""digraph fan {{ graph [max_steps=1000] start [shape=Mdiamond] done [shape=Msquare]
      fan [shape=component, max_parallel=8] join [shape=tripleoctagon] start -> fan join -> done {" ".join(lines)} }}"""


class StandingClock:
    """Time stands still, and asking it is no call of Python: nothing is due because the machine was slow."""

    time = repeat(1_700_000_000.0).__next__
    monotonic = repeat(5.0).__next__
    sleep = staticmethod(asyncio.sleep)


class Count:
    """Does nothing but count."""

    async def execute(self, node, context, graph, logs_root):
        return Outcome.success(context_updates={"i": context.get("i", 0) + 1})


class Quick:
    """Answers at once."""

    async def run(self, node, prompt, context):
        return "done it"


def no_op(stages):
    return Pipeline(chain_of(stages, "type=count"), handlers={"count": Count()})


def model(stages):
    return Pipeline(chain_of(stages, 'prompt="Do it."'), backend=Quick())


def branch(stages):
    return Pipeline(fan_of(stages), backend=Quick())


def calls_of(pipeline, durability, place):
    """The number of Python functions that a run calls; all of it happens in one loop of this thread."""
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event == "call"

    async def go():
        where = {} if durability == "none" else {"logs_root": place}
        result = await pipeline.run(host="kernel", durability=durability, clock=StandingClock(), **where)
        assert result.status == "success", result.reason  # and not the result, which asyncio would look at

    gc.collect()
    gc.disable()  # it calls what ends the objects of earlier tests
    sys.setprofile(counted)
    try:
        asyncio.run(go())
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.parametrize(
    ("make", "durability", "most"),
    [
        pytest.param(no_op, "none", 173, id="no_op"),
        pytest.param(no_op, "fast", 223, id="no_op_on_disk", marks=pytest.mark.campaign),
        pytest.param(model, "none", 264, id="model", marks=pytest.mark.campaign),
        pytest.param(model, "fast", 340, id="model_on_disk"),
        pytest.param(branch, "none", 358, id="branch", marks=pytest.mark.campaign),
    ],
)
def test_a_step_calls_no_more_functions_than_this(make, durability, most, tmp_path):
    totals = []
    for stages in (FEW, MANY):
        pipeline = make(stages)
        calls_of(pipeline, durability, tmp_path / f"first-{stages}")  # compiles the graph
        totals.append(calls_of(pipeline, durability, tmp_path / f"second-{stages}"))
    assert (totals[1] - totals[0]) / (MANY - FEW) <= most
