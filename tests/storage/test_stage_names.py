"""Stage directories have names that every file system takes and that no two nodes share (ruling 32)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.storage.stages.stage_directories import StageNames, escaped_name, recorded_name

MAX_NAME_LENGTH = 100

HOSTILE = [
    "artifacts", "visits", "checkpoint.json", "manifest.json", "checkpoint.previous.json", "events.jsonl",
    "pipeline.dot", "owner.lock", "owner.json", "restart-1", "CON", "nul", "Aux.txt", "COM1", "lpt9", ".", "..",
    "", "a/b", "a\\b", "a\0b", "-rf", ".hidden", "dot.", "x" * 101, "x" * 300, "naïve", "\ud800", "a~b", "a b",
]  # fmt: skip


@pytest.mark.parametrize("node_id", ["plan", "Plan_2", "a.b-c", "x" * MAX_NAME_LENGTH, "restart_1", "_"])
def test_ruling_32_a_safe_id_is_the_name_of_its_directory(node_id):
    assert StageNames({}).name_of(node_id) == node_id


@pytest.mark.parametrize("node_id", HOSTILE, ids=ascii)
def test_ruling_32_a_hostile_id_gets_an_escaped_name(node_id):
    name = StageNames({}).name_of(node_id)
    assert name != node_id
    assert name == escaped_name(node_id)
    assert len(name) <= MAX_NAME_LENGTH
    assert re.fullmatch(r"(?!-)[A-Za-z0-9_-]*~[0-9a-f]{16}", name)


def test_ruling_32_ids_that_differ_in_case_alone_do_not_share_a_directory():
    names = StageNames({})
    assert names.name_of("Plan") == "Plan"
    assert names.name_of("plan") == escaped_name("plan")
    assert names.escaped == {"plan": escaped_name("plan")}


@given(st.lists(st.text(max_size=120) | st.sampled_from(HOSTILE), unique=True, max_size=30))
def test_ruling_32_names_are_collision_free_even_where_case_does_not_count(ids):
    names = StageNames({})
    folded = [names.name_of(node_id).casefold() for node_id in ids]
    assert len(set(folded)) == len(ids)


@given(st.lists(st.sampled_from([*HOSTILE, "plan", "Plan", "PLAN", "x"]), unique=True))
def test_a_resumed_run_finds_the_same_names(ids):
    names = StageNames({})
    before = [names.name_of(node_id) for node_id in ids]
    again = StageNames(names.escaped, ids)
    assert [again.name_of(node_id) for node_id in reversed(ids)] == before[::-1]
    assert [recorded_name(node_id, names.escaped) for node_id in ids] == before


def test_a_recorded_name_that_is_not_ours_is_not_used():
    assert recorded_name("plan", {"plan": "../../etc"}) == "plan"
    assert recorded_name("a/b", {"a/b": "../../etc"}) == escaped_name("a/b")
