"""The stages that may be cached, and the changes that are named."""

import pytest

from attractor_nb.decisions.replays.cache_keys import UNCACHED_TYPES, is_declared, nearest, refusal
from attractor_nb.model.calls.call_content import CallInputs, InputChange, StageCall
from attractor_nb.model.graph import Node
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES

SHOWN_CHARACTERS = 160

MODEL = StageCall(CallInputs("model", "a", {}))
COMMAND = StageCall(CallInputs("command", "a", {}), has_effects=True)
AGENT = StageCall(CallInputs("model", "a", {}), has_effects=True)
SILENT = StageCall(None, "it says nothing")


@pytest.mark.parametrize(
    ("handler_type", "attrs", "call", "fidelity", "word"),
    [
        ("codergen", {}, MODEL, "compact", ""),
        ("codergen", {}, MODEL, "full", ""),
        ("codergen", {"cache": True}, MODEL, "compact", ""),
        ("codergen", {"cache": False}, MODEL, "compact", "cache=false"),
        ("codergen", {}, SILENT, "compact", "it says nothing"),
        ("codergen", {"cache": True}, SILENT, "compact", "it says nothing"),
        ("codergen", {}, AGENT, "compact", "an agent with tools"),
        ("codergen", {"cache": True}, AGENT, "compact", ""),
        ("codergen", {"cache": True}, AGENT, "full", "session"),
        ("tool", {}, COMMAND, "", "a command"),
        ("tool", {"cache": True}, COMMAND, "", ""),
        ("tool", {"idempotent": True}, COMMAND, "", ""),
        ("tool", {"idempotent": True, "cache": False}, COMMAND, "", "cache=false"),
        ("tool", {"idempotent": False}, COMMAND, "", "a command"),
        *[(handler_type, {"cache": True}, MODEL, "", why) for handler_type, why in UNCACHED_TYPES.items()],
    ],
)
def test_who_may_be_cached(handler_type, attrs, call, fidelity, word):
    refused = refusal(Node("a", attrs), handler_type, call, fidelity)
    assert (not refused) if not word else word in refused


def test_every_built_in_type_is_ruled():
    assert BUILT_IN_TYPES - UNCACHED_TYPES.keys() == {"codergen", "tool", "parallel.fan_in"}


def test_a_default_declares_nothing():
    assert not is_declared(Node("a", {}))


def test_the_nearest_earlier_entry_is_the_one_with_the_fewest_changes():
    now = {"prompt": "b", "model": "m"}
    earlier = [
        ({"prompt": "x", "model": "n"}, "r3"),
        ({"prompt": "a", "model": "m"}, "r2"),
        ({"prompt": "c", "model": "m"}, "r1"),
    ]
    found = nearest(earlier, now)
    assert (found.run_id, found.changes) == ("r2", (InputChange("prompt", "a", "b"),))
    assert nearest([], now).run_id == ""


def test_values_with_names_are_compared_name_by_name():
    found = nearest([({"files": {"a": "1", "b": "1"}}, "r")], {"files": {"a": "2", "c": "1"}})
    assert found.changes == (
        InputChange("files.a", "1", "2"),
        InputChange("files.c", None, "1"),
        InputChange("files.b", "1", None),
    )


def test_a_long_value_is_shown_around_the_place_where_it_differs():
    before, now = "x" * 5000 + "a" + "y" * 5000, "x" * 5000 + "b" + "y" * 5000
    (change,) = nearest([({"prompt": before}, "r")], {"prompt": now}).changes
    assert "xa" in change.before
    assert "xb" in change.now
    assert len(change.now) <= SHOWN_CHARACTERS + 2
