"""The outcome of a fan-out: every join policy with every error policy (spec 4.8; ruling 22)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.branch_policies import (
    ERROR_POLICIES,
    JOIN_POLICIES,
    FanOutPolicy,
    continues_without,
    judged,
    kept,
    policy_of,
    settled,
)
from attractor_nb.errors import OptionError
from attractor_nb.model.branch import BranchResult
from attractor_nb.model.graph import Node
from attractor_nb.model.outcome import StageStatus

STATUS = {"S": StageStatus.SUCCESS, "P": StageStatus.PARTIAL_SUCCESS, "F": StageStatus.FAIL, "C": StageStatus.SKIPPED}


def results_of(letters):
    """Branches a, b, c …: S success, P partial success, F fail, C cancelled."""
    return [
        BranchResult(name, STATUS[letter], failure_reason=f"{name} broke" if letter == "F" else "")
        for name, letter in zip("abcdefgh", letters, strict=False)
    ]


def policy(join, error="continue", count=3, **attrs):
    return policy_of(Node("fan", {"join_policy": join, "error_policy": error, **attrs}), count)


@pytest.mark.parametrize(
    ("attrs", "count", "needed"),
    [
        ({}, 3, 3),
        ({"join_policy": "wait_all"}, 1, 1),
        ({"join_policy": "first_success"}, 3, 1),
        ({"join_policy": "k_of_n", "join_k": 1}, 3, 1),
        ({"join_policy": "k_of_n", "join_k": 3}, 3, 3),
        ({"join_policy": "quorum", "join_quorum": 1.0}, 3, 3),
        ({"join_policy": "quorum", "join_quorum": 1}, 3, 3),
        ({"join_policy": "quorum", "join_quorum": 0.5}, 3, 2),
        ({"join_policy": "quorum", "join_quorum": 0.5}, 4, 2),
        ({"join_policy": "quorum", "join_quorum": 0.51}, 4, 3),
        ({"join_policy": "quorum", "join_quorum": 1 / 3}, 3, 1),
        ({"join_policy": "quorum", "join_quorum": 0.333333333}, 3, 1),
        ({"join_policy": "quorum", "join_quorum": 0.34}, 3, 2),
        ({"join_policy": "quorum", "join_quorum": 2 / 3}, 3, 2),
        ({"join_policy": "quorum", "join_quorum": 0.001}, 3, 1),
    ],
)
def test_how_many_branches_must_succeed(attrs, count, needed):
    assert policy_of(Node("fan", attrs), count).needed == needed


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_quorum_that_is_a_fraction_of_the_branches_needs_just_these(part, count):
    part = min(part, count)
    assert policy("quorum", count=count, join_quorum=part / count).needed == part


@pytest.mark.parametrize(
    ("attrs", "count", "message"),
    [
        ({}, 0, "fan has no branches"),
        (
            {"join_policy": "some"},
            2,
            "fan: join_policy must be one of wait_all, first_success, k_of_n, quorum, not 'some'",
        ),
        ({"error_policy": "shrug"}, 2, "fan: error_policy must be one of continue, fail_fast, ignore, not 'shrug'"),
        ({"join_policy": "k_of_n"}, 2, "fan: join_policy=k_of_n needs join_k"),
        ({"join_policy": "k_of_n", "join_k": 3}, 2, "fan: join_k=3 of 2 branches cannot be reached"),
        ({"join_policy": "k_of_n", "join_k": 2}, 1, "fan: join_k=2 of 1 branch cannot be reached"),
        ({"join_policy": "k_of_n", "join_k": 0}, 2, "fan: join_k=0 of 2 branches cannot be reached"),
        ({"join_policy": "k_of_n", "join_k": -1}, 2, "fan: join_k=-1 of 2 branches cannot be reached"),
        ({"join_policy": "quorum"}, 2, "fan: join_policy=quorum needs join_quorum"),
        ({"join_policy": "quorum", "join_quorum": 0.0}, 2, "fan: join_quorum=0 is not a fraction of the branches"),
        ({"join_policy": "quorum", "join_quorum": -0.5}, 2, "fan: join_quorum=-0.5 is not a fraction of the branches"),
        ({"join_policy": "quorum", "join_quorum": 1.01}, 2, "fan: join_quorum=1.01 is not a fraction of the branches"),
    ],
)
def test_a_policy_that_cannot_be_met_is_refused(attrs, count, message):
    with pytest.raises(OptionError) as caught:
        policy_of(Node("fan", attrs), count)
    assert caught.value.message == message


WAIT_ALL = {
    #        continue   fail_fast  ignore
    "SSS": ("success", "success", "success"),
    "SPS": ("success", "success", "success"),
    "SSF": ("partial_success", "fail", "success"),
    "SFC": ("partial_success", "fail", "success"),
    "FFF": ("fail", "fail", "fail"),
    "FCC": ("fail", "fail", "fail"),
    "CCC": ("fail", "fail", "fail"),
}
COUNTED = {
    #        first_success  k_of_n (2)  quorum (2 of 3)
    "SSS": ("success", "success", "success"),
    "SPF": ("success", "success", "success"),
    "SFF": ("success", "fail", "fail"),
    "SCC": ("success", "fail", "fail"),
    "SCF": ("success", "fail", "fail"),
    "PFF": ("success", "fail", "fail"),
    "FFF": ("fail", "fail", "fail"),
    "FCC": ("fail", "fail", "fail"),
    "CCC": ("fail", "fail", "fail"),
}
TABLE = [
    (letters, "wait_all", error, status)
    for letters, row in WAIT_ALL.items()
    for error, status in zip(ERROR_POLICIES, row, strict=True)
] + [
    (letters, join, error, status)
    for letters, row in COUNTED.items()
    for join, status in zip(JOIN_POLICIES[1:], row, strict=True)
    for error in ERROR_POLICIES
]


@pytest.mark.parametrize(("letters", "join", "error", "status"), TABLE)
def test_ruling_22_the_outcome_of_a_fan_out(letters, join, error, status):
    given = policy(join, error, join_k=2, join_quorum=0.5)
    assert judged(given, results_of(letters)).status == status


def test_the_table_has_every_join_policy_with_every_error_policy():
    assert {(join, error) for _, join, error, _ in TABLE} == set(product(JOIN_POLICIES, ERROR_POLICIES))


@given(
    st.sampled_from(JOIN_POLICIES), st.sampled_from(ERROR_POLICIES), st.text("SPFC", min_size=1, max_size=8), st.data()
)
def test_no_policy_makes_a_success_of_branches_none_of_which_succeeded(join, error, letters, data):
    count = len(letters)
    needed = data.draw(st.integers(1, count))
    given = policy(join, error, count, join_k=needed, join_quorum=needed / count)
    outcome = judged(given, results_of(letters))
    succeeded = sum(letter in "SP" for letter in letters)
    if not succeeded:
        assert outcome.status is StageStatus.FAIL
    if join in {"k_of_n", "quorum"}:
        assert outcome.status.is_success == (succeeded >= needed)
    assert outcome.notes.startswith(f"{succeeded} of {count} branch")
    assert bool(outcome.failure_reason) == outcome.status.is_failure


@pytest.mark.parametrize(
    ("join", "letters", "reason"),
    [
        ("wait_all", "FFF", "0 of 3 branches succeeded (a: a broke; b: b broke; c: c broke)"),
        ("wait_all", "FFFF", "0 of 4 branches succeeded (a: a broke; b: b broke; c: c broke and 1 more)"),
        ("first_success", "FFC", "0 of 3 branches succeeded; first_success needs 1 (a: a broke; b: b broke)"),
        ("k_of_n", "SFF", "1 of 3 branches succeeded; k_of_n needs 2 (b: b broke; c: c broke)"),
        ("quorum", "C", "0 of 1 branch succeeded; quorum needs 1"),
    ],
)
def test_a_fan_out_that_failed_says_how_many_and_why(join, letters, reason):
    given = policy(join, count=len(letters), join_k=2, join_quorum=0.5)
    assert judged(given, results_of(letters)).failure_reason == reason


def test_the_exits_that_branches_came_to_are_suggested_once_each():
    results = [
        BranchResult(name, StageStatus.SUCCESS, exit_id=end) for name, end in zip("abc", ["x", "", "x"], strict=True)
    ]
    assert judged(policy("wait_all"), results).suggested_next_ids == ("x",)


@pytest.mark.parametrize(
    ("join", "error", "letters", "reason"),
    [
        ("first_success", "continue", "", ""),
        ("first_success", "continue", "F", ""),
        ("first_success", "continue", "FS", "cancelled: b succeeded first"),
        ("first_success", "continue", "P", "cancelled: a succeeded first"),
        ("first_success", "fail_fast", "FS", "cancelled: b succeeded first"),
        ("first_success", "fail_fast", "F", "cancelled: a failed"),
        ("wait_all", "continue", "SFFS", ""),
        ("wait_all", "ignore", "FF", ""),
        ("wait_all", "fail_fast", "SF", "cancelled: b failed"),
        ("wait_all", "fail_fast", "SS", ""),
        ("wait_all", "fail_fast", "C", ""),
        ("k_of_n", "continue", "SSF", ""),
        ("k_of_n", "fail_fast", "SF", "cancelled: b failed"),
        ("quorum", "continue", "SS", ""),
        ("quorum", "fail_fast", "F", "cancelled: a failed"),
    ],
)
def test_when_the_branches_that_still_run_are_cancelled(join, error, letters, reason):
    given = policy(join, error, 5, join_k=2, join_quorum=0.5)
    assert settled(given, results_of(letters)) == reason


@pytest.mark.parametrize(("error", "names"), [("continue", "abcd"), ("fail_fast", "abcd"), ("ignore", "ac")])
def test_ruling_22_ignore_hands_on_successful_results_alone(error, names):
    given = FanOutPolicy("wait_all", error, 4, 4)
    assert "".join(result.id for result in kept(given, results_of("SFPC"))) == names


RETURNS = BranchResult("b", StageStatus.FAIL, failure_reason="b broke", veto="b broke", return_target="plan")


@pytest.mark.parametrize(("join", "error"), list(product(["wait_all", "first_success", "quorum"], ERROR_POLICIES)))
def test_ruling_36_a_branch_that_leads_back_stops_the_others_and_fails_the_fan_out(join, error):
    fan = policy(join, error, count=2, join_quorum=0.5)
    assert settled(fan, [RETURNS]) == "cancelled: b leads back to plan"
    outcome = judged(fan, [*results_of("S"), RETURNS])
    assert (outcome.status, outcome.failure_reason) == (StageStatus.FAIL, "b broke")
    assert outcome.suggested_next_ids == ("plan",)
    assert outcome.is_terminal, "it is not tried again"


def test_ruling_39_a_branch_with_a_veto_fails_the_fan_out_under_each_policy():
    vetoed = BranchResult("b", StageStatus.SKIPPED, veto="nobody answered")
    for join, error in product(["wait_all", "first_success"], ERROR_POLICIES):
        outcome = judged(policy(join, error, count=2), [*results_of("S"), vetoed])
        assert (outcome.status, outcome.failure_reason) == (StageStatus.FAIL, "nobody answered")


@pytest.mark.parametrize(
    ("join", "error", "count", "attrs", "goes_on"),
    [
        ("wait_all", "continue", 2, {}, True),
        ("wait_all", "ignore", 2, {}, True),
        ("wait_all", "fail_fast", 2, {}, False),
        ("wait_all", "continue", 1, {}, False),
        ("first_success", "fail_fast", 2, {}, True),
        ("k_of_n", "continue", 2, {"join_k": 1}, True),
        ("k_of_n", "continue", 2, {"join_k": 2}, False),
        ("quorum", "continue", 2, {"join_quorum": 1.0}, False),
    ],
)
def test_ruling_39_which_fan_outs_go_on_without_a_branch(join, error, count, attrs, goes_on):
    assert continues_without(policy(join, error, count, **attrs)) is goes_on
