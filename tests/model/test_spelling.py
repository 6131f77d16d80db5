"""The known name that a slip most likely meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.texts import did_you_mean, edit_distance, nearest


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("implment", ["plan", "implement"], "implement"),
        ("Prompt", ["prompt"], "prompt"),
        ("tyep", ["type"], "type"),
        ("a", ["b"], ""),
        ("zebra", ["plan"], ""),
        ("plan", [], ""),
        ("cat", ["bat", "cats"], "bat"),
    ],
)
def test_the_nearest_name_is_offered(word, known, expected):
    assert nearest(word, known) == expected
    assert did_you_mean(word, known) == (f'; did you mean "{expected}"?' if expected else "")


def _full_distance(left, right):
    if not left or not right:
        return len(left) + len(right)
    return min(
        _full_distance(left[1:], right) + 1,
        _full_distance(left, right[1:]) + 1,
        _full_distance(left[1:], right[1:]) + (left[0] != right[0]),
    )


@given(st.text("ab", max_size=5), st.text("ab", max_size=5), st.integers(0, 4))
def test_the_distance_is_exact_up_to_its_limit(left, right, limit):
    assert edit_distance(left, right, limit) == min(_full_distance(left, right), limit + 1)
