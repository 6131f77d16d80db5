"""Choosing the best branch, reading a model's choice, and what of a branch reaches the run (spec 4.9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.fan_in_choice import (
    Candidate,
    UnreadableResults,
    candidates_of,
    eligible,
    merged,
    output_of,
    ranked,
    ranking_request,
    read_choice,
    winner_updates,
)
from attractor_nb.handlers.codergen import json_values
from attractor_nb.model.branch import BranchResult
from attractor_nb.model.outcome import StageStatus

MAX_OUTPUTS_CHARACTERS = 64_000

SUCCESS, PARTIAL, FAIL, SKIPPED = (
    StageStatus.SUCCESS,
    StageStatus.PARTIAL_SUCCESS,
    StageStatus.FAIL,
    StageStatus.SKIPPED,
)


def candidate(name, status=SUCCESS, score=0.0, **updates):
    return Candidate(name, status, score, context_updates=updates)


def choose(text, ids=("a", "b", "draft-2", "_x", "best")):
    return read_choice(text, [each.value for each in json_values(text)], ids)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("b", PARTIAL, 9), ("a", SUCCESS, 0)], ["a", "b"]),
        ([("a", FAIL, 9), ("b", StageStatus.RETRY, 0), ("c", PARTIAL, 0)], ["c", "b", "a"]),
        ([("a", SUCCESS, 0.1), ("b", SUCCESS, 0.9)], ["b", "a"]),
        ([("a", SUCCESS, -1), ("b", SUCCESS, 0)], ["b", "a"]),
        ([("c", SUCCESS, 1), ("a", SUCCESS, 1), ("b", SUCCESS, 1)], ["a", "b", "c"]),
    ],
    ids=["status", "all-ranks", "score", "negative-score", "id"],
)
def test_the_heuristic_ranks_by_status_then_score_then_id(given, expected):
    assert [each.id for each in ranked(candidate(*each) for each in given)] == expected


@given(st.permutations([("a", SUCCESS, 1), ("b", PARTIAL, 5), ("c", SUCCESS, 1), ("d", FAIL, 9)]))
def test_the_order_of_the_branches_does_not_matter_to_the_heuristic(given):
    assert [each.id for each in ranked(candidate(*each) for each in given)] == ["a", "c", "b", "d"]


def test_what_a_fan_out_writes_is_read_back_and_cancelled_branches_are_no_candidates():
    results = [
        BranchResult("a", SUCCESS, "fine", {"x": 1}, 0.5),
        BranchResult("b", SKIPPED, failure_reason="cancelled: a succeeded first"),
        BranchResult("c", FAIL, failure_reason="boom"),
    ]
    read = candidates_of([result.to_plain() for result in results])
    assert read == (Candidate("a", SUCCESS, 0.5, "fine", "", {"x": 1}), Candidate("c", FAIL, 0.0, "", "boom"))
    assert [each.id for each in eligible(read)] == ["a"]


@pytest.mark.parametrize("nothing", [None, [], "", {}], ids=repr)
def test_nothing_is_no_candidate(nothing):
    assert candidates_of(nothing) == ()


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ("text", "is a str, not a list"),
        ({"a": 1}, "is a dict, not a list"),
        ([1], "entry 0 of parallel.results has no id and status"),
        ([{"id": "a", "status": "success"}, {"id": "b"}], "entry 1 of parallel.results has no id and status"),
        ([{"id": "", "status": "success"}], "entry 0"),
        ([{"id": "a", "status": "splendid"}], "entry 0"),
        ([{"id": "a", "status": "success"}] * 2, "has 'a' 2 times"),
    ],
)
def test_results_that_no_fan_out_wrote_are_refused(results, problem):
    with pytest.raises(UnreadableResults, match=problem):
        candidates_of(results)


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("b", "b"),
        ("  B\n", "b"),
        ("**b**", "b"),
        ("`b`", "b"),
        ('"b".', "b"),
        ("“b”", "b"),
        ("- b", "b"),
        ("_b_", "b"),
        ("_x", "_x"),
        ("**_X**", "_x"),
        ("```\nb\n```", "b"),
        ("Best: b", "b"),
        ("**Best candidate:** `draft-2`", "draft-2"),
        ("The best candidate is b.", "b"),
        ("best", "best"),
        ("Best: best", "best"),
        ("It is a hard choice between a and draft-2.\n\ndraft-2", "draft-2"),
        ("b\n\nBecause it is better.\n\nb", "b"),
        ('{"best_id": "b", "notes": "shorter"}', "b"),
        ('Well.\n```json\n{"best": "B"}\n```', "b"),
        ('a\n{"id": "draft-2"}', "draft-2"),
    ],
)
def test_exactly_one_named_candidate_is_a_choice(text, best):
    assert choose(text).best_id == best


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("c", "it names none of the candidates on a line of its own"),
        ("This is a tie.", "it names none of the candidates on a line of its own"),
        ("I reject b.", "it names none of the candidates on a line of its own"),
        ("a\nb", "it names a and b; exactly one was asked for"),
        ("Best: a\nBest: b", "it names a and b; exactly one was asked for"),
        ('{"best_id": "a", "id": "b"}', "it names a and b; exactly one was asked for"),
        ('{"best_id": "c"}', "it names none of the candidates on a line of its own"),
        ('{"best_id": ["a"]}', "it names none of the candidates on a line of its own"),
        ("[Simulated] Response for stage: join", "it names none of the candidates on a line of its own"),
    ],
)
def test_ties_and_nonsense_are_no_choice(text, problem):
    assert (choose(text).best_id, choose(text).problem) == ("", problem)


def test_an_id_that_differs_from_another_in_case_alone_is_read_as_written():
    assert choose("A", ("a", "A")).best_id == "A"
    assert choose("AB", ("ab", "Ab")).best_id == ""


def test_a_json_answer_carries_its_reason():
    assert choose('{"best_id": "a", "notes": "shorter"}').notes == "shorter"


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, unique=True))
def test_any_answer_is_either_a_choice_of_a_candidate_or_has_a_problem(text, ids):
    found = choose(text, ids)
    assert (found.best_id in ids) != bool(found.problem)


def test_the_output_of_a_candidate_is_its_last_whole_response_and_its_commands():
    each = Candidate(
        "a",
        SUCCESS,
        context_updates={
            "plan.response": "a plan",
            "code.response": "w" * 300,
            "last_response": "w" * 200,
            "tool.output": "12 passed\n",
        },
    )
    assert output_of(each) == "w" * 300 + "\n\n12 passed"
    assert output_of(candidate("a", last_response="short")) == "short"
    assert output_of(candidate("a")) == ""


def test_a_request_names_each_candidate_with_status_notes_and_output_and_how_to_answer():
    able = [
        Candidate("a", SUCCESS, 0.75, "fast", "", {"last_response": "text of a"}),
        Candidate("b", PARTIAL, context_updates={"tool.output": "```\nfenced"}),
    ]
    text = ranking_request("Which is shorter?", able, [Candidate("c", FAIL, failure_reason="boom")])
    assert text == (
        "Which is shorter?\n\n## Candidates\n\n"
        "### a\n\nStatus: success\nScore: 0.75\nNotes: fast\n\nOutput:\n\n```\ntext of a\n```\n\n"
        "### b\n\nStatus: partial_success\n\nOutput:\n\n````\n```\nfenced\n````\n\n"
        "These branches failed and cannot be chosen:\n\n- c: boom\n\n"
        "## Response format\n\nAnswer with the id of the best candidate alone, on one line. It is one of: a, b.\n"
        'A JSON object will do, too: {"best_id": "…", "notes": "why, in one sentence"}'
    )


@pytest.mark.parametrize("count", [1, 10, 200])
def test_a_request_is_bounded_however_much_the_branches_said(count):
    able = [candidate(f"b{number}", last_response="x" * 1_000_000) for number in range(count)]
    bound = max(MAX_OUTPUTS_CHARACTERS, 200 * count) + 200 * count + 1_000
    assert len(ranking_request("Choose.", able)) < bound
    assert len(output_of(able[0])) < MAX_OUTPUTS_CHARACTERS + 60


def test_a_candidate_that_said_little_leaves_its_room_to_the_others():
    able = [candidate("short", last_response="x"), candidate("long", last_response="y" * 60_000)]
    assert "y" * 60_000 in ranking_request("Choose.", able)


def test_a_winners_updates_stand_under_the_fan_ins_own_keys_and_replace_earlier_ones():
    best = Candidate(
        "a",
        PARTIAL,
        context_updates={
            "design": "round",
            "best_id": "mine",
            "outcome": "fail",
            "internal.x": 1,
            "graph.goal": "other",
            "parallel.results": [],
        },
    )
    assert winner_updates(best, ["parallel.fan_in.colour", "parallel.results", "design"]) == {
        "parallel.fan_in.colour": None,
        "parallel.fan_in.design": "round",
        "parallel.fan_in.best_id": "a",
        "parallel.fan_in.best_outcome": "partial_success",
    }


@pytest.mark.parametrize(
    ("merge", "updates", "conflicts"),
    [
        ("none", {}, []),
        ("best", {"x": 2, "y": 2}, []),
        (
            "all",
            {"x": 3, "y": 2, "z": 1, "same": 0},
            ["x: the value of b replaces that of a", "x: the value of c replaces that of b"],
        ),
    ],
)
def test_merge_says_whose_changes_reach_the_run_and_later_branches_win(merge, updates, conflicts):
    a = candidate("a", x=1, z=1, same=0, outcome="fail")
    b = candidate("b", x=2, y=2)
    c = candidate("c", x=3, same=0)
    assert merged(merge, [a, b, c], b) == (updates, conflicts)
