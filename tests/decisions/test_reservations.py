"""Reservations: what is spent ends within one claim of each bound, and everybody's turn comes (ruling 18)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb.decisions.bounds import Account, BoundReached, Claim, Reservations
from attractor_nb.model.outcome import Usage


def account(max_usd=None, above=None, max_tokens=None):
    def reached(spent, who):
        over = max_usd is not None and (spent.cost_usd or 0.0) >= max_usd
        over = over or (max_tokens is not None and spent.total_tokens >= max_tokens)
        return BoundReached("max_budget_usd", f"reached before {who}") if over else None

    return Account(above, max_usd, max_tokens, reached)


def usd(amount):
    return Usage(0, 0, amount, 1)


class Queue:
    """Makes claims, and knows how they stand."""

    def __init__(self):
        self.reservations, self.granted, self.refused = Reservations(), [], []

    def claim(self, of, most, kind=""):
        claim = Claim(of, "a", None if most is None else usd(most), kind)
        self.reservations.waiting.append(claim)
        self.decide()
        return claim

    def end(self, claim, cost):
        claim.account.charge(cost, 0)
        self.granted.remove(claim)
        self.reservations.release(claim, None if claim.ceiling else usd(cost))
        self.decide()

    def decide(self):
        for claim in self.reservations.decide():
            (self.granted if claim.refused is None else self.refused).append(claim)


def test_claims_that_fit_beside_each_other_are_granted_at_once():
    queue, bounded = Queue(), account(8.0)
    claims = [queue.claim(bounded, 3.5) for _ in range(4)]
    assert queue.granted == claims[:2]
    assert not queue.refused


def test_what_was_reserved_and_not_spent_is_there_for_others():
    queue, bounded = Queue(), account(8.0)
    first, _, third = (queue.claim(bounded, 3.5) for _ in range(3))
    queue.end(first, 0.1)
    assert third in queue.granted


def test_a_claim_that_never_fits_is_granted_when_it_is_alone():
    queue, bounded = Queue(), account(8.0)
    small, large = queue.claim(bounded, 1.0), queue.claim(bounded, 50.0)
    assert large not in queue.granted
    queue.end(small, 1.0)
    assert large in queue.granted


def test_small_claims_do_not_pass_a_large_one():
    queue, bounded = Queue(), account(8.0)
    first, large = queue.claim(bounded, 5.0), queue.claim(bounded, 7.0)
    small = queue.claim(bounded, 0.1)
    assert queue.granted == [first]
    queue.end(first, 0.5)
    assert queue.granted == [large, small]


def test_who_waits_for_an_account_of_its_own_keeps_nobody_else_waiting():
    queue, whole = Queue(), account(100.0)
    one, other = account(4.0, whole), account(4.0, whole)
    queue.claim(one, 3.0)
    waiting, free = queue.claim(one, 3.0), queue.claim(other, 3.0)
    assert waiting not in queue.granted
    assert free in queue.granted


def test_nobody_is_refused_while_somebody_else_is_paid_and_all_are_afterwards():
    queue, bounded = Queue(), account(8.0)
    first = queue.claim(bounded, 10.0)
    others = [queue.claim(bounded, 1.0) for _ in range(3)]
    assert not queue.refused
    queue.end(first, 9.0)
    assert queue.refused == others


@pytest.mark.parametrize(("cost", "at_once"), [(0.5, 8), (2.0, 1), (0.0, 9)])
def test_of_what_nobody_knows_the_first_goes_alone_and_the_next_count_twice_the_dearest(cost, at_once):
    queue, bounded = Queue(), account(8.5)
    claims = [queue.claim(bounded, None) for _ in range(10)]
    assert queue.granted == claims[:1]
    queue.end(claims[0], cost)
    assert len(queue.granted) == at_once


def test_each_kind_of_what_nobody_knows_has_a_first_one():
    queue, bounded = Queue(), account(100.0)
    queue.end(queue.claim(bounded, None, "small"), 0.001)
    queue.claim(bounded, None, "large")
    assert queue.claim(bounded, None, "large") not in queue.granted


def test_a_claim_that_is_taken_back_while_it_waits_lets_the_next_go_on():
    queue, bounded = Queue(), account(8.0)
    queue.claim(bounded, 5.0)
    large, small = queue.claim(bounded, 7.0), queue.claim(bounded, 1.0)
    queue.reservations.release(large)
    queue.decide()
    assert small in queue.granted


def test_what_an_account_is_settled_to_counts_for_all_above_it():
    whole = account(8.0)
    row = Account(whole)
    row.charge(3.0, 10)
    row.settle(Usage(4, 1, 1.0, 1))
    assert (whole.usd, whole.tokens) == (1.0, 5)


AMOUNTS = st.integers(0, 120).map(lambda cents: cents / 10)


@st.composite
def trees(draw):
    """A map with rows and their child runs, some of which have bounds of their own."""
    whole = account(draw(st.none() | AMOUNTS))
    accounts = [whole]
    for _ in range(draw(st.integers(0, 5))):
        accounts.append(account(draw(st.none() | AMOUNTS), draw(st.sampled_from(accounts))))
    return accounts


@settings(max_examples=300, deadline=None)
@given(trees(), st.data())
def test_ruling_18_whatever_the_order_each_bound_holds_within_one_claim_and_everybody_ends(accounts, data):
    queue, largest = Queue(), dict.fromkeys(accounts, 0.0)
    wishes = data.draw(st.lists(st.tuples(st.sampled_from(accounts), AMOUNTS), max_size=15))
    made = []
    while wishes or queue.granted:
        if wishes and (not queue.granted or data.draw(st.booleans())):
            made.append(queue.claim(*wishes.pop()))
            continue
        claim = data.draw(st.sampled_from(queue.granted))
        share = data.draw(st.sampled_from((0.0, 0.25, 1.0)))
        for each in claim.account.chain:
            largest[each] = max(largest[each], claim.maximum[0])
        queue.end(claim, claim.maximum[0] * share)
        for each in accounts:
            assert each.max_usd is None or each.usd <= each.max_usd + largest[each] + 1e-9
    assert not queue.reservations.waiting, "somebody waits for ever"
    assert not any(each.held for each in accounts)


@settings(max_examples=200, deadline=None)
@given(AMOUNTS.filter(bool), st.lists(AMOUNTS, max_size=12), st.data())
def test_ruling_18_what_nobody_knows_holds_the_bound_while_nothing_costs_twice_the_dearest_when_it_began(
    bound, costs, data
):
    queue, bounded = Queue(), account(bound)
    claims = [queue.claim(bounded, None) for _ in costs]
    dearest = 0.0
    while queue.granted:
        claim = data.draw(st.sampled_from(queue.granted))
        cost = min(costs[claims.index(claim)], claim.maximum[0])  # of the first, which is alone, nothing is known
        dearest = max(cost, dearest)
        queue.end(claim, cost)
    assert bounded.usd <= bound + dearest + 1e-9
    assert not queue.reservations.waiting
