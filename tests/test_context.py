"""The context keeps what survives JSON, and nothing can change it behind its back."""

import json
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.context import AttemptContext, Context
from attractor_nb.errors import ContextValueError, TerminalError

ARTIFACT_THRESHOLD_BYTES = 100 * 1024

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(lambda k: k != "artifact_id"), inner, max_size=4)
    ),
    max_leaves=12,
)


class Shelf:
    def __init__(self):
        self.kept = []

    def externalize(self, key, value):
        self.kept.append(value)
        return {"type": "artifact_ref", "artifact_id": str(len(self.kept) - 1), "size_bytes": 0, "summary": key}

    def resolve(self, reference):
        return self.kept[int(reference["artifact_id"])]


@given(VALUES)
def test_ruling_31_a_value_survives_a_json_round_trip_unchanged(value):
    context = Context()
    context.set("key", value)
    assert json.loads(json.dumps(context.snapshot()))["key"] == value
    assert context.get("key") == value


CYCLE: list = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((1, 2), "tuple values do not survive"),
        ({1, 2}, "set values do not survive"),
        (b"x", "bytes values do not survive"),
        (math.nan, "has no JSON form"),
        (math.inf, "has no JSON form"),
        (2**64, "more than 64 bits"),
        ("\ud800", "lone surrogate"),
        ({1: 2}, "dict keys must be text, not int"),
        (CYCLE, "nested deeper"),
        ({"a": [{"b": object()}]}, "object values do not survive"),
        ({"type": "artifact_ref", "artifact_id": "1"}, "stand for stored artifacts"),
    ],
    ids=["tuple", "set", "bytes", "nan", "inf", "huge", "surrogate", "int key", "cycle", "deep object", "reference"],
)
def test_ruling_31_other_values_are_refused_naming_the_key(value, says):
    context = Context({"plan.result": 1})
    with pytest.raises(ContextValueError, match=says) as refused:
        context.set("plan.result", value)
    assert "'plan.result'" in str(refused.value)
    assert context.get("plan.result") == 1


@pytest.mark.parametrize("key", ["", 3, None, "\udfff"], ids=["empty", "int", "none", "surrogate"])
def test_a_key_is_text(key):
    with pytest.raises(ContextValueError, match="context keys must be non-empty text"):
        Context().set(key, 1)


def test_nobody_changes_a_stored_value_from_outside():
    given_list = [{"n": 1}]
    context = Context({"items": given_list})
    given_list[0]["n"] = 2
    context.get("items").append("more")
    context.snapshot()["items"][0]["n"] = 3
    assert context.get("items") == [{"n": 1}]


def test_a_clone_is_isolated_however_deep_the_value():
    parent = Context({"tree": {"leaf": [1]}})
    branch = parent.clone()
    branch.set("tree", {"leaf": [2]})
    branch.append_log("in the branch")
    assert parent.get("tree") == {"leaf": [1]}
    assert parent.logs == ()


def test_updates_are_all_or_nothing():
    context = Context({"a": 1})
    with pytest.raises(ContextValueError):
        context.apply_updates({"a": 2, "b": {3}})
    assert context.snapshot() == {"a": 1}


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (None, "-"), (3, "3"), (1.5, "1.5"), ("x", "x")]
)
def test_get_string_spells_as_json_does(value, text):
    context = Context()
    context.set("key", value)
    assert context.get_string("key", "-") == text


def test_changes_are_taken_once():
    context = Context()
    context.set("a", 1)
    context.append_log("one")
    assert context.take_changes() == ({"a": 1}, ("one",))
    assert context.take_changes() == ({}, ())


def test_large_values_live_outside_and_read_back_transparently():
    shelf, big = Shelf(), "x" * (ARTIFACT_THRESHOLD_BYTES + 1)
    context = Context(store=shelf)
    context.set("plan.response", big)
    assert context.get("plan.response") == big
    assert context.snapshot()["plan.response"]["type"] == "artifact_ref"
    assert context.take_changes()[0]["plan.response"]["artifact_id"] == "0"
    resumed = Context(store=shelf)
    resumed.restore(context.snapshot())
    assert resumed["plan.response"] == big


def test_small_values_stay_inside():
    shelf = Shelf()
    context = Context(store=shelf)
    context.set("small", "x" * 1000)
    assert shelf.kept == []


def test_threads_may_write_at_the_same_time():
    context = Context()
    threads = [threading.Thread(target=lambda n=n: [context.set(f"{n}.{i}", i) for i in range(200)]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(context) == 1600
    assert len(context.take_changes()[0]) == 1600


def test_it_reads_like_a_mapping():
    context = Context({"a": 1})
    assert "a" in context
    assert list(context) == ["a"]
    assert context["a"] == 1
    with pytest.raises(KeyError):
        context["b"]


def test_a_context_is_a_mapping():
    context = Context({"a": 1, "b": [2]})
    assert dict(context) == {"a": 1, "b": [2]} == dict(context.items())
    assert (list(context.keys()), list(context.values())) == (["a", "b"], [1, [2]])
    assert {**context} == context


@pytest.mark.parametrize(
    "act",
    [
        lambda context: context.set("a", 2),
        lambda context: context.apply_updates({"a": 2, "b": 3}),
        lambda context: context.append_log("late"),
    ],
    ids=["set", "updates", "log"],
)
def test_an_attempt_that_is_over_changes_nothing_of_the_run_any_more(act):
    shared = Context({"a": 1})
    attempt = AttemptContext(shared)
    attempt.set("a", 1)
    attempt.close()
    with pytest.raises(TerminalError, match="the attempt is over, and its context takes no more values") as caught:
        act(attempt)
    assert caught.value.hint == "end when the call ends"
    assert (shared.snapshot(), attempt.own_changes, attempt.own_logs) == ({"a": 1}, {"a": 1}, ())
    assert attempt["a"] == 1
