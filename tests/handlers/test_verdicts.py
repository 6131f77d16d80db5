"""Where a verdict stands in a response."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.handlers.verdicts import last_json_block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no block", ""),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": 1} then {"b": {"c": 2}} end', '{"b": {"c": 2}}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('```json\n{"a": 1}\n``` later {"b": 2}', '{"b": 2}'),
        ('{"a": 1}\n```json\n{"b": \n```', '{"b":'),
        ("a set {x} of {y}", ""),
        ('{broken} then {"a": 1}', '{"a": 1}'),
        ('He said "done: {"a": 1}', '{"a": 1}'),
        ('{broken {"a": 1}', ""),
        (
            '{"outcome": "fail", "checks": [{"outcome": "success"}, {"outcome": "fail", "notes": "tests mis',
            "",
        ),
        ('{"items": [' + '{"a": 1}, ' * 10_000 + "{}]}", '{"items": [' + '{"a": 1}, ' * 10_000 + "{}]}"),
        ('[{"a": 1}]', ""),
        ('{"a": "\\"}"}', '{"a": "\\"}"}'),
        ('text with a brace in a string {"a": "}"}', '{"a": "}"}'),
    ],
    ids=[
        "none",
        "bare",
        "last-bare",
        "fenced",
        "bare-after-fence",
        "broken-fence-counts",
        "no-json",
        "after-broken",
        "after-unpaired-quote",
        "below-unbalanced",
        "cut-off",
        "over-64-kilobytes",
        "within-an-array",
        "escaped-quote",
        "brace-in-string",
    ],
)
def test_the_last_block_counts_and_a_broken_last_one_hides_no_earlier_one(text, expected):
    assert last_json_block(text) == expected


@given(st.text(alphabet='{}[]":,1ab` \n', max_size=200))
def test_any_text_is_searched_without_an_error(text):
    assert last_json_block(text) in text


@pytest.mark.parametrize(
    "text",
    ["{" * 500_000, '{"a":' * 100_000, "```\n" * 100_000, "{" + '"\\' * 30_000, "{" + '\\"' * 30_000],
    ids=["braces", "nesting", "fences", "quotes", "escaped-quotes"],
)
def test_hostile_responses_cost_no_time(text):
    started = time.process_time()
    last_json_block(text)
    assert time.process_time() - started < 0.5
