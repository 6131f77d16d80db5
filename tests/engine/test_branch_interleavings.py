"""Stages of branches may end in any order: the same results, nothing shared, nothing run twice."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest


def _load(name):
    """The program beside this file, as a module."""
    spec = importlib.util.spec_from_file_location(f"engine_{name}", Path(__file__).with_name(f"{name}.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = _load("interleavings")
settlings, run_course, run_random = program.settlings, program.run_course, program.run_random
run_states = program.run_states
SCRIPTS, MIXED = program.SCRIPTS, program.MIXED
IS_FULL = os.environ.get("ATTRACTOR_CAMPAIGN") == "full"
"""`make interleavings` takes all scripts, a sample of the campaign one."""


def named(settling):
    return f"{settling.join}-{settling.error}"


FEW_SCRIPTS = [pytest.param(script, marks=() if script == MIXED else pytest.mark.campaign) for script in SCRIPTS]


@pytest.mark.parametrize("settling", settlings(3), ids=named)
@pytest.mark.parametrize("script", FEW_SCRIPTS)
def test_every_order_of_three_branches_of_two_stages_comes_to_what_its_policy_says(script, settling):
    assert run_course(3, 2, script, settling) > 1


@pytest.mark.parametrize(
    ("branches", "stages", "orders"),
    [(1, 3, 1), (2, 3, 20), (4, 1, 24), pytest.param(3, 3, 1680, marks=pytest.mark.campaign)],
)
def test_all_orders_are_taken_when_nothing_is_cancelled(branches, stages, orders):
    every = 1 if orders < 100 else 8
    assert run_course(branches, stages, "all succeed", settlings(branches)[0], every=every) == orders


@pytest.mark.parametrize("settling", settlings(3), ids=named)
@pytest.mark.parametrize("script", FEW_SCRIPTS)
def test_every_choice_in_every_state_comes_to_all_that_every_order_comes_to(script, settling):
    ends = set()
    orders = run_course(3, 2, script, settling, every=50, ends=ends)
    assert run_states(3, 2, script, settling, every=50)[1] == ends
    assert orders > 1


@pytest.mark.campaign
def test_where_each_order_has_its_own_end_every_one_is_found():
    """Cancelled at the first success, what each branch has done depends on the order: it is no state twice."""
    settling = next(each for each in settlings(3) if each.join == "first_success")
    ends = set()
    assert run_course(3, 3, MIXED, settling, every=200, ends=ends) > 1000
    count, found = run_states(3, 3, MIXED, settling, every=50)
    assert found == ends
    assert len(ends) > 20
    assert count < 200


@pytest.mark.campaign
@pytest.mark.parametrize("settling", settlings(4), ids=named)
@pytest.mark.parametrize("script", SCRIPTS if IS_FULL else [MIXED])
def test_every_choice_in_every_state_of_four_branches_of_three_stages(script, settling):
    count, ends = run_states(4, 3, script, settling, every=16)
    assert count >= 4
    if named(settling) == "wait_all-continue":
        assert len(ends) == 1, "nothing is cancelled, so no order may show in the end"


@pytest.mark.parametrize("settling", settlings(4), ids=named)
@pytest.mark.campaign
def test_orders_by_chance_of_four_branches_of_three_stages(settling):
    assert run_random(4, 3, MIXED, settling, seed=7, runs=40) == 40


@pytest.mark.parametrize("settling", settlings(4), ids=named)
def test_two_at_a_time_come_to_the_same(settling):
    assert run_course(4, 1, MIXED, settling, max_parallel=2) > 1
