"""Scorers and gates that would end an evaluation, change one another's scores, or let everything pass."""

import asyncio
import sys

import numpy as np
import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation import (
    Scorer,
    compare_scored,
    contains,
    equals,
    json_schema,
    judge,
    matches,
    read_baseline,
    route,
    visits,
)
from attractor_nb.evaluation.evaluated_row import short_text

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="$ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ROWS = [{"id": str(number), "ticket": f"t{number}", "expected": [3, 1, 2]} for number in range(2)]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path_factory.mktemp("runs"))
    return pipeline.evaluate(ROWS, {"ok": lambda output: True}, wait=True, durability="fast")


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no words")


def ends(output):
    sys.exit(3)


async def ends_in_the_loop(output):
    sys.exit(3)


async def is_cancelled(output):
    raise asyncio.CancelledError


def skips(output):
    pytest.fail("an assertion of a test")


def is_unprintable(output):
    raise Unprintable


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (ends, "SystemExit: 3"),
        (ends_in_the_loop, "SystemExit: 3"),
        (is_cancelled, "CancelledError"),
        (skips, "Failed: an assertion of a test"),
        (is_unprintable, "Unprintable"),
        (lambda output: 10**400, "it returned a number above 1e+100; "),
        (lambda output: np.array([1, 2]), "it returned ndarray; "),
        (lambda output: {1: True, "1": False}, "it returned a dict with the keys [1, '1']"),
        (lambda output: {" ": True}, "it returned a dict with the keys [' ']"),
        (lambda output: {str(key): 1 for key in range(51)}, "it returned a dict of 51 values, and 50 are the most"),
    ],
)
def test_the_fault_of_a_scorer_leaves_its_rows_unmeasured_and_the_others_scored(evaluation, scorer, reason):
    again = evaluation.rescore({"odd": scorer, "steady": lambda output: True})
    assert [score.state for row in again for score in row.scores["odd"]] == ["unmeasured"] * 2
    assert again[0].scores["odd"][0].reason.startswith(reason)
    assert again.scores["steady"].estimate.value == 1.0


def test_an_output_function_that_exits_leaves_the_rows_unmeasured(evaluation):
    again = evaluation.rescore({"odd": lambda output: True}, output=lambda run: sys.exit(3))
    assert again[0].scores["odd"][0].reason == "output raised SystemExit: 3"


def test_an_output_function_that_is_interrupted_ends_the_scoring(evaluation):
    def interrupted(run):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluation.rescore({"odd": lambda output: True}, output=interrupted)


def test_a_scorer_that_changes_what_it_is_given_changes_it_for_itself(evaluation):
    def sorts(output, expected, row):
        expected.sort()
        row["expected"].append(9)
        return True

    again = evaluation.rescore({"sorts": sorts, "seen": lambda expected: f"{expected}"})
    assert again.scores["seen"].classes == {"[3, 1, 2]": 2}
    assert again.rows[0].expected == [3, 1, 2]


def test_a_scorer_has_no_name_that_a_dict_of_another_one_may_give(evaluation):
    with pytest.raises(OptionError, match=r'"a\.b" has the name of a column of the scorer "a"'):
        evaluation.rescore({"a": lambda output: {"b": False}, "a.b": lambda output: True})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "0.8", None, True])
def test_a_gate_compares_with_numbers_alone(evaluation, number):
    worse = evaluation.rescore({"ok": lambda output: False})
    comparison = compare_scored(evaluation.scored("a"), [worse.scored("b")])
    with pytest.raises(OptionError, match=r'at_least\["ok"\] must be a number, not'):
        worse.check(at_least={"ok": number})
    with pytest.raises(OptionError, match="max_unmeasured must be a number of 0 or more, not"):
        worse.check(max_unmeasured=number)
    with pytest.raises(OptionError, match="at_most_worse_by must be a number of 0 or more, not"):
        comparison.check(at_most_worse_by=number)
    with pytest.raises(OptionError, match=r'at_most_worse_by\["ok"\] must be a number of 0 or more, not'):
        comparison.check(at_most_worse_by={"ok": number})


def test_true_beside_a_number_is_not_compared_and_says_so(evaluation):
    numbers = evaluation.rescore({"ok": lambda output: len(output) + 1})
    comparison = compare_scored(evaluation.scored("a"), [numbers.scored("b")])
    assert not comparison.differences
    assert "ok: b is not compared: it is pass/fail in a, and number in b" in str(comparison)
    assert comparison.check(at_most_worse_by=0.5) == ["ok: no row of b can be compared with a"]


def test_groups_count_that_an_old_baseline_does_not_know(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    rows = [{"id": str(number), "ticket": f"t{number}"} for number in range(12)]
    old = pipeline.evaluate(rows, {"ok": lambda output: False}, wait=True, durability="fast")
    grouped = [{**row, "group": f"g{number % 2}"} for number, row in enumerate(rows)]
    new = pipeline.evaluate(grouped, {"ok": lambda output: True}, wait=True, durability="fast")
    comparison = compare_scored(old.scored("a"), [new.scored("b")])
    assert comparison["b"]["ok"].test == "sign flips of groups"
    assert comparison["b"]["ok"].verdict == "not decided"


def test_the_interval_of_a_share_ends_at_100_percent(evaluation):
    from attractor_nb.evaluation import Score
    from attractor_nb.evaluation.columns import checked_column

    cells = [[Score("ok", value) for value in row] for row in [[True] * 3, [True] * 3, [True, True, False]]]
    estimate = checked_column("ok", cells, is_lower_better=False, groups=None).estimate
    assert 0 < estimate.low < estimate.value < estimate.high == 1.0


def test_a_row_without_an_id_has_its_number(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    rows = [{"id": None, "ticket": "a"}, {"id": "", "ticket": "b"}, {"ticket": "c"}]
    assert [row.id for row in pipeline.evaluate(rows, {"ok": lambda output: True}, wait=True)] == ["0", "1", "2"]
    rows = [{"id": 1.0, "group": 7.0, "ticket": "a"}, {"id": 2.5, "group": "7", "ticket": "b"}]
    found = pipeline.evaluate(rows, {"ok": lambda output: True}, wait=True)
    assert [(row.id, row.row.group) for row in found] == [("1", "7"), ("2.5", "7")], "as pandas reads 1 beside a gap"
    with pytest.raises(OptionError, match=r"row 0: its id is \[1\]"):
        pipeline.evaluate([{"id": [1], "ticket": "a"}], {"ok": lambda output: True})


def test_a_baseline_with_two_rows_of_one_id_is_refused(evaluation, tmp_path):
    path = evaluation.save_baseline(tmp_path / "baseline.jsonl")
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    with pytest.raises(OptionError, match='line 4 is a second row of the id "1"'):
        read_baseline(path)


def test_a_plain_false_has_a_reason_that_says_so(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    scorers = {"correct": lambda output: False, "kind": lambda output: (False, "it is rude")}
    evaluation = pipeline.evaluate([{"ticket": "a"}], scorers, wait=True)
    assert evaluation[0].reasons() == ["correct is false", "kind: it is rude"]
    assert "correct is false; kind: it is rude" in str(evaluation)
    alone = pipeline.evaluate([{"ticket": "a"}], {"correct": lambda output: False}, wait=True)
    assert "correct is false" in alone.export_html(tmp_path / "page.html").read_text()


def test_a_secret_across_the_end_of_what_is_shown_is_hidden():
    key = "sk-proj-" + "aB3" * 30
    assert "sk-proj" not in short_text("x" * 40 + " " + key + " y" * 3_000_000)


def test_a_function_that_makes_a_scorer_is_no_scorer(tmp_path):
    def undeclared():
        return equals()

    def declared() -> Scorer:
        return equals()

    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    for factory in (equals, judge, declared):
        with pytest.raises(OptionError, match=f"{factory.__name__} makes a scorer and is none itself"):
            pipeline.evaluate([{"ticket": "a"}], factory)
    score = pipeline.evaluate([{"ticket": "a"}], undeclared, wait=True)[0].scores["undeclared"][0]
    assert (score.state, "it made a scorer: call it" in score.reason) == ("unmeasured", True)


@pytest.mark.parametrize("scorer", [visits("clasify"), route("clasify")])
def test_a_scorer_of_a_node_that_is_not_there_measures_nothing(evaluation, scorer):
    again = evaluation.rescore(scorer)
    score = again[0].scores[scorer.name][0]
    assert (score.state, score.reason) == (
        "unmeasured",
        "the pipeline has no node 'clasify'; did you mean \"classify\"?",
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda evaluation: matches(3), r"matches\(3\) is no regular expression"),
        (lambda evaluation: json_schema({"type": {1}}), "json_schema: the schema is not JSON"),
        (
            lambda evaluation: json_schema({"type": "objekt"}),
            r"^json_schema: 'objekt' is not valid .* \(at \$\.type\)\n hint: json_schema\({",
        ),
        (
            lambda evaluation: evaluation.rescore({"ok": lambda output: True}, output=int),
            "output is a function of a run",
        ),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_in_our_words(evaluation, make, message):
    with pytest.raises(OptionError, match=message):
        make(evaluation)


def test_an_empty_expected_answer_is_contained_in_nothing(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    found = pipeline.evaluate([{"ticket": "a", "expected": ""}], contains(), wait=True)[0].scores["contains"][0]
    assert (found.state, found.reason) == ("unmeasured", 'the row\'s "expected" is empty')


def test_true_does_not_equal_one(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda *_: "answer", runs_dir=tmp_path)
    rows = [{"ticket": "a", "expected": value} for value in (1, True, 1.0)]
    found = pipeline.evaluate(rows, equals(), output=lambda run: 1, wait=True)
    assert [row.scores["equals"][0].value for row in found] == [True, False, True]


def test_another_function_of_a_judge_is_another_judge(evaluation):
    def yes(node, prompt, context):
        return '{"reason": "it is", "verdict": true}'

    def no(node, prompt, context):
        return '{"reason": "it is not", "verdict": false}'

    found = [evaluation.rescore(judge("good?", model="m", backend=each)).scores["judge"] for each in (yes, no)]
    assert [column.estimate.value for column in found] == [1.0, 0.0]
