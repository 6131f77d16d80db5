"""Ids, paths and results of branches (ruling 22)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.branch import BranchResult, branch_ids, branch_path, enclosing, parts_of
from attractor_nb.model.outcome import StageStatus, Usage

PARTS = st.lists(st.text(min_size=1).filter(lambda text: text.encode(errors="ignore").decode() == text), max_size=6)


@pytest.mark.parametrize(
    ("starts", "ids"),
    [
        ([], ()),
        (["a"], ("a",)),
        (["b", "a"], ("b", "a")),
        (["a", "a", "a"], ("a", "a-2", "a-3")),
        (["a", "a-2", "a"], ("a", "a-2", "a-3")),
        (["a", "a", "a-2"], ("a", "a-3", "a-2")),
    ],
)
def test_a_branch_is_named_by_its_first_node_and_numbered_where_two_begin_at_the_same(starts, ids):
    assert branch_ids(starts) == ids


@given(st.lists(st.sampled_from(["a", "b", "a-2", "a-3", "b-2"]), max_size=12))
def test_ids_of_branches_differ_and_begin_with_their_first_nodes(starts):
    ids = branch_ids(starts)
    assert len(set(ids)) == len(starts)
    assert all(name == start or name.startswith(f"{start}-") for name, start in zip(ids, starts, strict=True))


@given(PARTS)
def test_paths_of_branches_are_read_back_whatever_the_ids_are(parts):
    parts = parts[: len(parts) // 2 * 2]
    path = ""
    for fan_out, branch in zip(parts[::2], parts[1::2], strict=True):
        above, path = path, branch_path(path, fan_out, branch)
        assert enclosing(path) == above
    assert parts_of(path) == tuple(parts)


def test_a_slash_in_an_id_is_no_part_of_a_path():
    assert branch_path("", "a/b", "c d%") == "a%2Fb/c%20d%25"
    assert parts_of("a%2Fb/c%20d%25") == ("a/b", "c d%")


@pytest.mark.parametrize(
    ("status", "is_success", "is_cancelled"),
    [
        (StageStatus.SUCCESS, True, False),
        (StageStatus.PARTIAL_SUCCESS, True, False),
        (StageStatus.FAIL, False, False),
        (StageStatus.SKIPPED, False, True),
    ],
)
def test_a_cancelled_branch_is_neither_a_success_nor_a_failure(status, is_success, is_cancelled):
    result = BranchResult("a", status)
    assert (result.is_success, result.is_cancelled) == (is_success, is_cancelled)


def test_ruling_22_an_entry_of_the_results_has_all_its_keys_always():
    assert list(BranchResult("a", StageStatus.FAIL).to_plain().items()) == [
        ("id", "a"),
        ("status", "fail"),
        ("notes", ""),
        ("context_updates", {}),
        ("score", 0.0),
        ("failure_reason", ""),
        ("usage", None),
    ]
    full = BranchResult("a", StageStatus.SUCCESS, "done", {"x": 1}, 0.5, "", Usage(3), "exit")
    assert full.to_plain()["usage"] == {"input_tokens": 3}
    assert full.to_plain()["context_updates"] == {"x": 1}
