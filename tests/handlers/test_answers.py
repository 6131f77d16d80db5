"""JSON values in an answer, and the one of them that counts (ruling 26)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.handlers.codergen import NoAnswer, json_values, read_verdict, value_that_counts
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.outcome import StageStatus

CUT = '{"outcome": "fail", "checks": [{"outcome": "success"}, {"outcome": "fail", "notes": "tests mis'
LONG = '{"items": [' + '{"a": 1}, ' * 10_000 + "{}]}"
UNCLOSED, BROKEN = "is cut off: a bracket in it is never closed", "is not JSON"


def values(text):
    """The values of an answer; for one that is none the beginning of its problem."""
    return [each.problem.partition(":")[0] if each.problem else each.value for each in json_values(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no value", []),
        ("", []),
        ('{"a": 1}', [{"a": 1}]),
        (' [1, {"a": 1}]\n', [[1, {"a": 1}]]),
        ("7", [7]),
        ('{"a": 1} then {"b": {"c": 2}} end', [{"a": 1}, {"b": {"c": 2}}]),
        ('```json\n{"a": 1}\n```', [{"a": 1}]),
        ('```json\n{"a": 1}\n``` later {"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": 1}\n```json\n{"b": \n```', [{"a": 1}, BROKEN]),
        ('```json\n{"a": "```"}\n```', [{"a": "```"}]),
        ('```json\n{"a": 1}', [{"a": 1}]),
        ("```py\nprint(1)\n```", []),
        ('```py\nx = {"a": 1}\n```', []),
        ('  ```\n  {"a": 1}\n  ```', [{"a": 1}]),
        ("a set {x} of {y}", []),
        ('{x} then {"a": 1}', [{"a": 1}]),
        ("{\"a\": 1} or {'a': 2}", [{"a": 1}, BROKEN]),
        ('{"a": 1} or {a: 2}', [{"a": 1}, BROKEN]),
        ('{"a": 1, "a": 2}', ["says the key 'a' twice"]),
        ('He said "done: {"a": 1}', [{"a": 1}]),
        ('{x {"a": 1}', []),
        ('{x\n```json\n{"a": 1}\n```', [{"a": 1}]),
        ('The `[^"]*` is wrong.\n```json\n{"a": ["b"]}\n```', [{"a": ["b"]}]),
        ('The `[^"]*` and `[^"]`:\n```json\n{"a": ["b"]}\n```', [{"a": ["b"]}]),
        ('[x\n```\n{"a": 1}\n```\nNo: {"a": 2}', [{"a": 1}, "is after a bracket that is never closed"]),
        ('[x\n```\n{"a": 1}\n```\nNo: {"a": 2', [{"a": 1}, "is cut off"]),
        ('{"a": 1} and [see', [{"a": 1}]),
        ('{"a": 1}, not {', [{"a": 1}, "is cut off"]),
        (CUT, ["is cut off"]),
        ('{"a": 1} Or: ' + CUT, [{"a": 1}, "is cut off"]),
        ('{"notes": "see\n```json\n{"a": 1}\n```\n', ["is cut off"]),
        (LONG, [{"items": [{"a": 1}] * 10_000 + [{}]}]),
        ('See: [{"a": 1}, {"a": 2}]', [[{"a": 1}, {"a": 2}]]),
        ("as said [1] and [2](x)", [[1], [2]]),
        ('{"a": "\\"}"}', [{"a": '"}'}]),
        ('a brace in a string {"a": "}"}', [{"a": "}"}]),
    ],
    ids=lambda given: given[:30] if isinstance(given, str) else "",
)
def test_the_values_of_an_answer_are_those_that_stand_in_no_other(text, expected):
    assert values(text) == expected


@given(st.text(alphabet='{}[]":,1ab` \n', max_size=200))
def test_any_text_is_searched_without_an_error(text):
    for each in json_values(text):
        assert each.problem or each.value is not None or "null" in text


def nested(opening, closing, count=100_000):
    return opening * count + closing * count


HOSTILE = {
    "braces": "{" * 500_000,
    "balanced braces": nested("{", "}"),
    "balanced arrays": nested("[", "]"),
    "prose, balanced arrays": "So: " + nested("[", "]"),
    "objects": nested('{"a":', "}"),
    "fences": "```\n" * 100_000,
    "unclosed fences": "```x\n`" * 100_000,
    "quotes": "{" + '"\\' * 30_000,
    "escaped quotes": "{" + '\\"' * 30_000,
    "blanks": "\n" + " " * 100_000 + "```",
    "brackets around fences": "[x\n```\ny\n```\n" * 30_000 + "]" * 30_000,
    "prose brackets": "{x} " * 30_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_responses_cost_no_time(text):
    started = time.process_time()
    json_values(text)
    assert time.process_time() - started < 5, "less than half a second on a machine with nothing else to do"


def counts(text):
    """The value that counts where an object with a number under ``a`` was asked for."""

    def complaint_about(value):
        is_fine = isinstance(value, dict) and isinstance(value.get("a", 0), int)
        return "" if is_fine else "is wrong"

    return value_that_counts(json_values(text), complaint_about, lambda value: isinstance(value, dict) and "a" in value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{}", {}),
        ("```\n{}\n```", {}),
        ("So:\n```\n{}\n```\nand {}", {}),
        ('So: {"a": 1}', {"a": 1}),
        ('{"a": 1} as in [1], {"b": 1}', {"a": 1}),
        ('{"b": 1} So: {"a": 1}', {"a": 1}),
        ('{"a": 1}; again {"a": 1}', {"a": 1}),
        ('Not {"a": "x"} but {"a": 1}', {"a": 1}),
        ("{'a': 2} no: {\"a\": 1}", {"a": 1}),
        ('```\n{"b": 1}\n```\n```\n{"a": 1}\n```', {"a": 1}),
    ],
)
def test_the_one_valid_value_with_the_shape_counts_and_one_alone_without_it(text, expected):
    assert counts(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("fine", "the response does not end with a JSON verdict"),
        ('[{"a": 1}]', "the JSON verdict is wrong"),
        ("So: {}", "no JSON value in the response is of the form that was asked for"),
        ("```\n{}\n```\n```\n{}\n```", "no JSON value in the response is of the form that was asked for"),
        ('{"a": 1} or {"a": 2}', "the response has several JSON verdicts that differ"),
        ('```\n{"a": 1}\n```\nNo: {"a": 2}', "the response has several JSON verdicts that differ"),
        ('```\n{}\n```\nNo: {"a": 2}', "the response has several JSON verdicts that differ"),
        ('{"a": 1} No: {"a": "x"}', "the JSON verdict is wrong"),
        ('{"a": 1} No: {"a": "x', f"the JSON verdict {UNCLOSED}"),
        ('{"a": 1} No: {"a": "he said "no""}', "the JSON verdict is not JSON"),
        (CUT, f"the JSON verdict {UNCLOSED}"),
    ],
)
def test_what_is_missing_broken_or_said_twice_is_no_answer(text, problem):
    with pytest.raises(NoAnswer) as caught:
        counts(text)
    assert str(caught.value).startswith(problem)


WORDS = st.sampled_from(["success", "fail", "a ```fence```", 'a "quote"', "}", "[", "\n"])
INNER = st.recursive(
    WORDS | st.booleans() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["outcome", "status", "checks"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(INNER, st.sampled_from(["", "So: ", "```json\n", "See [1] and:\n\n"]), st.data())
def test_no_beginning_of_a_failed_verdict_is_a_success(checks, before, data):
    whole = before + json.dumps({"outcome": "fail", "checks": checks}, indent=data.draw(st.none() | st.just(2)))
    text = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        outcome = read_verdict(Node("judge", {"verdict": "json"}), Graph("g"), text)
    except NoAnswer:
        return
    assert (outcome.status, text) == (StageStatus.FAIL, whole)
