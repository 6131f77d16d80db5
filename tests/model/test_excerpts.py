"""Parts of texts, and how a room is shared out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.texts import fair_shares, first_lines, last_lines

NEEDS = st.lists(st.integers(0, 500), max_size=12)


@given(st.integers(-5, 2000), NEEDS)
def test_nobody_gets_more_than_it_needs_and_all_together_no_more_than_there_is(room, needs):
    shares = fair_shares(room, needs)
    assert all(0 <= share <= need for share, need in zip(shares, needs, strict=True))
    assert sum(shares) <= max(0, room)


@given(st.integers(0, 2000), NEEDS)
def test_who_is_cut_has_as_much_as_anybody(room, needs):
    shares = fair_shares(room, needs)
    cut = [share for share, need in zip(shares, needs, strict=True) if share < need]
    assert all(share >= max(shares, default=0) - len(needs) for share in cut)


@given(st.integers(0, 2000), NEEDS)
def test_nothing_is_left_while_somebody_is_cut(room, needs):
    shares = fair_shares(room, needs)
    if shares != needs:
        assert sum(shares) >= room - len(needs)


@given(st.text("ab\n", max_size=60), st.integers(0, 70))
def test_an_excerpt_is_a_part_within_its_limit(text, limit):
    assert text.endswith(last_lines(text, limit))
    assert text.startswith(first_lines(text, limit))
    assert max(len(last_lines(text, limit)), len(first_lines(text, limit))) <= limit or len(text) <= limit


def test_lines_are_not_torn_where_one_fits():
    assert last_lines("first\nsecond\nthird", 14) == "second\nthird"[-12:]
    assert last_lines("first\nsecond\nthird", 12) == "second\nthird"
    assert first_lines("first\nsecond\nthird", 9) == "first"
