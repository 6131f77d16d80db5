"""``pipeline.evaluate``: rows scored as they end, in three states, resumed without paying twice."""

import asyncio
import errno
import json
import os
import sys
import threading
from collections import Counter
from types import ModuleType

import pytest
from pydantic import BaseModel

from attractor_nb import Outcome, Pipeline
from attractor_nb.backends.llm.tools.file_tools import ToolProblem, resolved_parts
from attractor_nb.errors import OptionError, RunNotFound
from attractor_nb.evaluation import (
    contains,
    cost,
    equals,
    evaluation_rows,
    json_schema,
    latency,
    matches,
    route,
    visits,
)
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Usage
from tests.disks.faulty_disk import FaultyDisk

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ROWS = [
    {"id": "pay", "ticket": "I cannot pay", "expected": "billing"},
    {"id": "crash", "ticket": "It crashes", "expected": "support"},
    {"id": "refund", "ticket": "Money back", "expected": "billing"},
]


def team(node, prompt, context):
    if "crash" in context["ticket"]:
        return "support"
    if context["ticket"] == "broken":
        return Outcome.fail("the service said no")
    return "billing" if "pay" in context["ticket"] else "sales"


@pytest.fixture
def pipeline(tmp_path):
    return Pipeline(TEXT, backend=team, runs_dir=tmp_path / "runs")


def correct(output, expected):
    return output == expected


def test_tools_of_models_read_no_expected_answer_and_no_other_user_does(pipeline, tmp_path):
    directory = tmp_path / "kept"
    evaluation = pipeline.evaluate(ROWS, correct, wait=True, map_dir=directory, isolation="workspace")
    workspace = directory / "row-00000" / "workspace"
    assert (workspace.is_dir(), evaluation.directory) == (True, directory)
    for name in ("evaluation-rows.jsonl", "scores.jsonl"):
        assert (directory / name).stat().st_mode & 0o777 == 0o600
        for root in (workspace, directory / "row-00000", directory, tmp_path):
            for path in (str(directory / name), os.path.relpath(directory / name, root)):
                with pytest.raises(ToolProblem):
                    resolved_parts(path, root)


def length(output):
    return len(output)


def states(evaluation, name):
    return [score.state for row in evaluation for score in row.scores[name]]


def test_a_function_scores_each_row_and_the_verdict_has_an_interval(pipeline):
    evaluation = pipeline.evaluate(ROWS, correct, wait=True)
    assert [row.scores["correct"][0].value for row in evaluation] == [True, True, False]
    estimate = evaluation.scores["correct"].estimate
    assert (estimate.value, estimate.count, estimate.method) == (pytest.approx(2 / 3), 3, "Wilson")
    assert evaluation.headline() == "3 rows   correct 2 of 3 = 67 % (21 to 94 %)"
    assert [row.id for row in evaluation.failures] == ["refund"]
    assert evaluation.status == "success"


def test_a_failed_row_that_is_retried_is_scored_anew(tmp_path):
    failing = Pipeline(TEXT, backend=lambda node, prompt, context: Outcome.fail("no"), runs_dir=tmp_path)
    failed = failing.evaluate(ROWS[:1], [correct, visits("classify")], wait=True)
    assert states(failed, "correct") == ["failed"]
    again = Pipeline(TEXT, backend=team).resume_evaluation(
        failed.directory, [correct, visits("classify")], wait=True, failed="retry"
    )
    assert [row.scores["correct"][0].value for row in again] == [True]
    assert again.rescore(correct).scores["correct"].estimate.value == 1.0


def test_all_rows_passing_says_at_least(pipeline):
    evaluation = pipeline.evaluate([{**ROWS[0], "id": str(number)} for number in range(10)], correct, wait=True)
    assert "10 of 10, at least 72 %" in str(evaluation)


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_only_inputs_reach_the_pipeline(pipeline, durability):
    canary = "CANARY-7311"
    rows = [{**row, "expected": canary, "group": canary, "metadata": {"a": canary}, "note": canary} for row in ROWS]
    evaluation = pipeline.evaluate(rows, correct, wait=True, durability=durability)
    places = [place for row in range(3) for place in (evaluation.directory / f"row-{row:05}").rglob("*")]
    assert len(places) > 20
    for place in places:
        assert not place.is_file() or canary.encode() not in place.read_bytes(), place
    assert canary.encode() not in (evaluation.directory / "inputs.jsonl").read_bytes()


def test_a_failed_row_counts_as_zero_and_says_so(pipeline):
    rows = [ROWS[0], {"id": "b", "ticket": "broken", "expected": "billing"}]
    evaluation = pipeline.evaluate(rows, {"correct": correct, "length": length}, wait=True)
    assert states(evaluation, "correct") == ["scored", "failed"]
    assert evaluation.scores["correct"].estimate.value == 0.5
    assert evaluation.scores["length"].estimate.value == 3.5
    assert evaluation.scores["correct"].failed == 1
    assert "the service said no" in str(evaluation)


def test_what_costs_is_measured_of_failed_rows_too(pipeline):
    evaluation = pipeline.evaluate([{"ticket": "broken"}], [latency(), visits("classify")], wait=True)
    assert states(evaluation, "latency") == states(evaluation, "visits") == ["scored", "scored"][:1]
    assert evaluation[0].scores["visits"][0].value == 1


def test_of_a_row_that_kept_no_run_only_what_its_result_says_is_measured(pipeline, tmp_path):
    place = tmp_path / "kept"
    disk = FaultyDisk(fail_at=1, counted=("make_directory", str(place / "row-00001")), error=errno.EIO)
    scorers = [correct, visits("classify"), cost()]
    evaluation = pipeline.evaluate(ROWS, scorers, wait=True, map_dir=place, disk=disk)
    assert states(evaluation, "correct") == ["scored", "failed", "scored"]
    assert states(evaluation, "cost") == ["scored"] * 3
    score = evaluation["crash"].scores["visits"][0]
    assert (score.state, score.reason) == ("unmeasured", "nothing is kept of the row's run")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "it returned None"),
        (float("nan"), "it returned nan"),
        ([1], "it returned list"),
        ("x" * 201, "a text of 201 characters"),
        ({}, "a dict of 0 values"),
    ],
)
def test_a_scorer_that_returns_no_score_leaves_the_row_unmeasured(pipeline, returned, reason):
    evaluation = pipeline.evaluate(ROWS, {"odd": lambda output: returned}, wait=True)
    assert states(evaluation, "odd") == ["unmeasured"] * 3
    assert reason in evaluation[0].scores["odd"][0].reason
    assert evaluation.scores["odd"].estimate.value is None
    assert "3 unmeasured" in evaluation.headline()
    assert evaluation.check() == ["3 runs unmeasured, and at most 0 allowed"]
    assert evaluation.check(max_unmeasured=3) == []


def test_an_error_in_one_row_costs_that_score_alone(pipeline):
    def picky(output, row):
        if row["id"] == "crash":
            raise ValueError("bad day")
        return True

    evaluation = pipeline.evaluate(ROWS, [picky, correct], wait=True)
    assert states(evaluation, "picky") == ["scored", "unmeasured", "scored"]
    assert evaluation["crash"].scores["picky"][0].reason == "ValueError: bad day"
    assert evaluation.scores["picky"].estimate.count == 2
    assert evaluation.scores["correct"].estimate.count == 3


def test_a_value_of_another_kind_than_most_is_unmeasured(pipeline):
    evaluation = pipeline.evaluate(ROWS, {"odd": lambda row: 0.5 if row["id"] == "crash" else True}, wait=True)
    assert evaluation.scores["odd"].kind == "pass/fail"
    assert states(evaluation, "odd") == ["scored", "unmeasured", "scored"]
    assert evaluation["crash"].scores["odd"][0].reason == "the scorer returned 0.5, and true or false for most rows"


def test_a_dict_makes_a_column_of_each_key(pipeline):
    evaluation = pipeline.evaluate(
        ROWS, {"of": lambda output: {"long": len(output) > 6, "size": len(output)}}, wait=True
    )
    assert {name: column.kind for name, column in evaluation.scores.items()} == {
        "of.long": "pass/fail",
        "of.size": "number",
    }


def test_classes_are_counted(pipeline):
    evaluation = pipeline.evaluate(ROWS, {"team": lambda output: output}, wait=True)
    assert evaluation.scores["team"].classes == {"billing": 1, "support": 1, "sales": 1}


def test_a_coroutine_scores_too(pipeline):
    async def slow(output):
        await asyncio.sleep(0.01)
        return output != "sales"

    assert pipeline.evaluate(ROWS, slow, wait=True).scores["slow"].estimate.value == pytest.approx(2 / 3)


def test_repeats_are_runs_of_their_own_and_rows_are_the_unit(tmp_path):
    calls = []

    def alternating(node, prompt, context):
        calls.append(context["ticket"])
        return "billing" if calls.count(context["ticket"]) % 2 else "sales"

    pipeline = Pipeline(TEXT, backend=alternating, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(ROWS[:1] + ROWS[2:], correct, repeat=4, max_parallel=1, wait=True)
    column = evaluation.scores["correct"]
    assert len(calls) == 8
    assert [score.value for score in evaluation["pay"].scores["correct"]] == [True, False, True, False]
    assert column.values == [0.5, 0.5]
    assert column.estimate.count == 2
    assert column.flip_rate == pytest.approx(2 / 3)
    assert (column.pass_at(2), column.pass_all(2)) == (pytest.approx(5 / 6), pytest.approx(1 / 6))
    assert "●○●○" in str(evaluation)


def test_repeats_and_a_cache_are_refused_together(pipeline):
    with pytest.raises(OptionError, match="one answer, read again"):
        pipeline.evaluate(ROWS, correct, repeat=2, cache=True)


# -- the ready scorers ------------------------------------------------------------------------------------------


def test_the_ready_scorers(tmp_path):
    text = TEXT.replace("done [", "escalate [prompt=x]\n    done [").replace(
        "start -> classify -> done",
        """start -> classify
        classify -> escalate [condition="context.classify.response=up"]
        classify -> done
        escalate -> done""",
    )

    def answer(node, prompt, context):
        if node.id == "escalate":
            return '{"team": "support"}'
        return "up" if "crash" in context["ticket"] else "billing 2026-01-02"

    rows = [
        {"id": "a", "ticket": "crash", "expected": '{"team": "support"}', "next": "escalate"},
        {"id": "b", "ticket": "pay", "expected": "billing 2026-01-02", "next": "escalate"},
    ]
    schema = {"type": "object", "required": ["team"]}
    scorers = [
        equals(),
        contains("support"),
        matches(r"\d{4}-\d\d"),
        json_schema(schema),
        route("classify", "next"),
        cost(),
    ]
    pipeline = Pipeline(text, backend=answer, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(rows, scorers, wait=True)
    found = {name: [row.scores[name][0].value for row in evaluation] for name in evaluation.scores}
    assert found["equals"] == [True, True]
    assert found["contains"] == [True, False]
    assert found["matches"] == [False, True]
    assert found["json_schema"] == [True, False]
    assert found["route"] == [True, False]
    assert found["cost"] == [0.0, 0.0]
    assert "took done, expected escalate" in evaluation["b"].scores["route"][0].reason


@pytest.mark.parametrize(
    ("scorer", "name", "reason"),
    [
        (equals(), "equals", 'the row has no "expected"'),
        (equals("right"), "equals", 'the row has no "right"'),
        (route("classify"), "route", 'the row has no "expected"'),
    ],
)
def test_a_row_without_the_right_answer_is_not_measured(pipeline, scorer, name, reason):
    evaluation = pipeline.evaluate([{"ticket": "pay", "right": None}], scorer, wait=True)
    score = evaluation[0].scores[name][0]
    assert (score.state, score.reason) == ("unmeasured", reason)


def test_the_cost_of_calls_without_a_price_is_not_measured(tmp_path):
    def answer(node, prompt, context):
        return Response("billing", usage=Usage(10, 5, None, 2))

    evaluation = Pipeline(TEXT, backend=answer, runs_dir=tmp_path).evaluate(ROWS[:1], cost(), wait=True)
    score = evaluation[0].scores["cost"][0]
    assert (score.state, score.reason) == ("unmeasured", "2 calls have no price")


def test_a_number_equals_its_text(pipeline):
    rows = [{"ticket": "pay", "right": 3}, {"ticket": "pay", "right": "4"}]
    evaluation = pipeline.evaluate(rows, equals("right"), output=lambda run: 3, wait=True)
    assert [row.scores["equals"][0].value for row in evaluation] == [True, False]


def test_output_names_a_value_or_is_a_function_of_the_run(pipeline):
    def seen(output):
        return str(output)

    by_key = pipeline.evaluate(ROWS[:1], seen, output="classify.response", wait=True)
    by_function = pipeline.evaluate(ROWS[:1], seen, output=lambda run: run["classify"].prompt[-13:], wait=True)
    assert by_key[0].scores["seen"][0].value == "billing"
    assert by_function[0].scores["seen"][0].value.strip() == "I cannot pay"


@pytest.mark.parametrize("output", [3, "", " "])
def test_an_output_that_is_neither_a_key_nor_a_function_is_refused(pipeline, output):
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(ROWS, correct, output=output)
    assert error.value.message == f"output must be a context key or a function, not {output!r}"
    assert error.value.hint == 'output="write.response"'


def test_an_unknown_output_is_refused_before_the_first_row(pipeline):
    with pytest.raises(OptionError, match=r'sets the output "clasify\.response"; did you mean'):
        pipeline.evaluate(ROWS, correct, output="clasify.response")


# -- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "there are no rows"),
        ([{"tikcet": "a"}], 'row 0 has no column "ticket"; did you mean "tikcet"'),
        ([{"ticket": "a", "id": "x"}, {"ticket": "b", "id": "x"}], 'rows 0 and 1 have the id "x"'),
        ([{"ticket": float("nan")}], "row 0"),
        ([{"ticket": "a", "expected": float("nan")}], 'row 0: the column "expected" is not a JSON value'),
        ([{"ticket": "a", "expected": object()}], 'row 0: the column "expected" is not a JSON value'),
        ([{"ticket": "a"}, "b"], "row 1 is str, not a dict"),
        (7, "rows must be dicts, a DataFrame or a file, not int"),
        ({"ticket": "a"}, "not dict"),
        ("missing.jsonl", "missing.jsonl"),
        ("rows.docx", "unknown extension"),
    ],
)
def test_unusable_rows_are_refused_by_name_before_anything_runs(pipeline, tmp_path, monkeypatch, rows, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=words.replace("(", r"\(")) as error:
        pipeline.evaluate(rows, correct)
    assert type(error.value).__module__.startswith("attractor_nb")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("scorers", "words"),
    [
        (None, "needs scorers"),
        ([], "the list is empty"),
        (equals, r"call it: equals\(…\)"),
        ([correct, correct], 'two scorers have the name "correct"'),
        (lambda output: True, "a lambda has no name"),
        (lambda outptu: True, "a lambda has no name"),
        ({"s": lambda outptu: True}, "takes 'outptu', which a row does not have; did you mean \"output\""),
        ({"s": 3}, "a scorer must be a function, not int"),
        ({"s": dict}, "is a class"),
        (
            {"s": max},
            (
                "the parameters of the scorer s cannot be read: no signature found for builtin <built-in function max>"
                "\n hint: wrap it in a function of your own"
            ),
        ),
    ],
)
def test_unusable_scorers_are_refused_before_anything_runs(pipeline, tmp_path, scorers, words):
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(ROWS, scorers)
    assert words.replace("\\", "") in str(error.value)
    assert not (tmp_path / "runs").exists()


def test_without_declared_inputs_the_caller_says_which_columns_are_inputs(tmp_path):
    pipeline = Pipeline(TEXT.replace('inputs="ticket"', ""), backend=team, runs_dir=tmp_path)
    with pytest.raises(OptionError, match="declares no inputs"):
        pipeline.evaluate(ROWS, correct)
    assert len(pipeline.evaluate(ROWS, correct, inputs=["ticket"], wait=True)) == 3


def test_an_input_that_the_pipeline_does_not_declare_is_refused(pipeline, tmp_path):
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(ROWS, correct, inputs=["ticket", "tickt"])
    assert (error.value.message, error.value.hint) == (
        '"tickt" is no input of triage; did you mean "ticket"?',
        "its inputs: ticket",
    )
    assert not (tmp_path / "runs").exists()


def test_more_rows_than_the_limit_are_refused_without_reading_them_all(pipeline, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_rows, "MAX_ROWS", 1_200)
    read = []
    rows = (read.append(number) or {"ticket": str(number)} for number in range(2_000))
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(rows, correct)
    assert (error.value.message, error.value.hint) == ("there are more than 1,200 rows", "evaluate them in parts")
    assert len(read) == 1_201
    assert not (tmp_path / "runs").exists()


def test_expected_is_never_an_input(tmp_path):
    pipeline = Pipeline(TEXT.replace('inputs="ticket"', 'inputs="ticket, expected"'), backend=team, runs_dir=tmp_path)
    with pytest.raises(OptionError, match="the pipeline would see it"):
        pipeline.evaluate(ROWS, correct)


@pytest.mark.parametrize("repeat", [0, -1, 1.5, True, "2", 100_000])
def test_repeat_is_a_whole_number(pipeline, repeat):
    with pytest.raises(OptionError, match="repeat must be a whole number"):
        pipeline.evaluate(ROWS, correct, repeat=repeat)


def test_nothing_kept_is_refused(pipeline):
    with pytest.raises(OptionError, match="keeps its runs and scores"):
        pipeline.evaluate(ROWS, correct, durability="none")


# -- files ------------------------------------------------------------------------------------------------------


def test_rows_come_from_files_of_several_kinds(pipeline, tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "a.csv").write_text("id,ticket,expected\npay,I cannot pay,billing\nc,It crashes,support\n")
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    cases = [
        {"name": row["id"], "inputs": {"ticket": row["ticket"]}, "expected_output": row["expected"]} for row in ROWS
    ]
    (tmp_path / "dataset.json").write_text(json.dumps({"name": "tickets", "cases": cases}))
    every = ["pay", "crash", "refund"]
    for name, ids in (("a.jsonl", every), ("a.csv", ["pay", "c"]), ("a.json", every), ("dataset.json", every)):
        evaluation = pipeline.evaluate(tmp_path / name, correct, wait=True)
        assert [row.id for row in evaluation] == ids
        assert evaluation["pay"].row.expected == "billing"


class Tagged(BaseModel):
    ticket: str
    tags: list[str]


def test_a_value_of_csv_that_is_no_json_is_refused_with_its_row(tmp_path):
    text = TEXT.replace('inputs="ticket"', 'inputs_schema="Tagged"')
    pipeline = Pipeline(text, backend=team, runs_dir=tmp_path / "runs", schemas={"Tagged": Tagged})
    (tmp_path / "a.csv").write_text('ticket,tags\nI cannot pay,"[""a""]"\nIt crashes,a b\n')
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(tmp_path / "a.csv", correct)
    assert (error.value.message, error.value.hint) == ("row 1: tags is not a JSON array: a b", 'for example ["a", "b"]')
    assert not (tmp_path / "runs").exists()


class Reader:
    """Stands for a library of tables whose reader of Parquet gives rows or raises."""

    DataFrame = tuple  # rows are a list

    def __init__(self, given):
        self.given = given

    def read_parquet(self, path):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


@pytest.mark.parametrize("pandas", [None, Reader(ImportError("no pyarrow"))], ids=["no pandas", "no pyarrow"])
def test_a_parquet_file_is_read_by_the_next_library_where_one_is_missing(pipeline, tmp_path, monkeypatch, pandas):
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    monkeypatch.setitem(sys.modules, "polars", Reader(ROWS))
    evaluation = pipeline.evaluate(tmp_path / "a.parquet", correct, wait=True)
    assert [row.id for row in evaluation] == ["pay", "crash", "refund"]


@pytest.mark.parametrize(
    ("reader", "words", "hint"),
    [
        (None, "needs pandas with pyarrow, or polars", "pip install polars"),
        (Reader(ImportError("no pyarrow")), "needs pandas with pyarrow, or polars", "pip install polars"),
        (
            Reader(FileNotFoundError(errno.ENOENT, "No such file or directory")),
            "cannot be read: No such file or directory",
            "name a file that exists",
        ),
        (Reader(OSError("the disk is gone")), "cannot be read: the disk is gone", "name a file that exists"),
        (
            Reader(ValueError("no magic bytes")),
            "is not a Parquet file: no magic bytes",
            "write it with frame.to_parquet(…)",
        ),
    ],
    ids=["no library", "no pyarrow", "no file", "no disk", "no Parquet"],
)
def test_a_parquet_file_that_cannot_be_read_says_why(pipeline, tmp_path, monkeypatch, reader, words, hint):
    monkeypatch.setitem(sys.modules, "pandas", reader)
    monkeypatch.setitem(sys.modules, "polars", None)
    path = tmp_path / "a.parquet"
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(path, correct)
    assert (error.value.message, error.value.hint) == (f"{path} {words}", hint)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_a_dataset_in_yaml_without_its_library_says_what_to_install(pipeline, tmp_path, monkeypatch, suffix):
    monkeypatch.setitem(sys.modules, "pydantic_evals", None)
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(tmp_path / f"cases.{suffix}", correct)
    assert error.value.message == (
        f"{tmp_path / f'cases.{suffix}'}: a YAML dataset is read by pydantic-evals, which is not installed"
    )
    assert error.value.hint == "pip install pydantic-evals, or use a .jsonl file"


def test_a_dataset_that_its_library_cannot_read_is_refused_with_its_words(pipeline, tmp_path, monkeypatch):
    class Unread:
        @classmethod
        def from_file(cls, path):
            raise ValueError(f"no cases in {path.name}")

    library = ModuleType("pydantic_evals")
    library.Dataset = Unread
    monkeypatch.setitem(sys.modules, "pydantic_evals", library)
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(tmp_path / "cases.yaml", correct)
    assert error.value.message == (
        f"{tmp_path / 'cases.yaml'} is not a dataset of pydantic-evals: no cases in cases.yaml"
    )
    assert error.value.hint == "a list of cases with inputs"


class Case:
    def __init__(self, name, inputs, expected_output=None, metadata=None):
        self.name, self.inputs, self.expected_output, self.metadata = name, inputs, expected_output, metadata


class Dataset:
    def __init__(self, *cases):
        self.cases = list(cases)


def test_a_dataset_of_cases_is_read_and_a_single_input_needs_no_name(pipeline):
    dataset = Dataset(Case("a", "I cannot pay", "billing"), Case(None, {"ticket": "It crashes"}, "support"))
    evaluation = pipeline.evaluate(dataset, correct, wait=True)
    assert [row.id for row in evaluation] == ["a", "1"]
    assert evaluation.scores["correct"].estimate.value == 1.0


def test_a_single_input_of_a_case_is_refused_where_the_pipeline_has_several(tmp_path):
    pipeline = Pipeline(
        TEXT.replace('inputs="ticket"', 'inputs="ticket, guide"'), backend=team, runs_dir=tmp_path / "runs"
    )
    with pytest.raises(OptionError) as error:
        pipeline.evaluate(Dataset(Case("a", {"ticket": "a", "guide": "b"}), Case("b", "I cannot pay")), correct)
    assert (error.value.message, error.value.hint) == (
        "row 1: its inputs are str, the pipeline has ticket, guide",
        "give dicts with these names",
    )
    assert not (tmp_path / "runs").exists()


# -- resuming ---------------------------------------------------------------------------------------------------


CALLS: Counter[str] = Counter()
"""Calls of the scorers below; a list that they close over would be a part of their version."""


def flaky(output):
    CALLS["flaky"] += 1
    if CALLS["flaky"] <= 3:
        raise ConnectionError("no network")
    return True


def steady(output, row):
    CALLS[f"steady {row['id']}"] += 1
    return True


@pytest.fixture
def calls():
    CALLS.clear()
    return CALLS


def test_a_stopped_evaluation_is_resumed_and_nothing_is_paid_twice(tmp_path, calls):
    asked = []
    started = threading.Event()

    def answer(node, prompt, context):
        asked.append(context["ticket"])
        if len(asked) == 3:
            started.set()
        return Response("billing", usage=Usage(10, 5, 0.01))

    rows = [{"id": f"r{number}", "ticket": f"pay {number}"} for number in range(8)]
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path)
    run = pipeline.evaluate(rows, steady, max_parallel=1)
    started.wait(20)
    run.stop()
    first = run.result(20)
    assert first.status == "interrupted"
    done = len(calls)
    assert 3 <= done < 8
    assert states(first, "steady").count("unmeasured") == 8 - done
    assert "resume_evaluation" in str(first)
    again = pipeline.resume_evaluation(run.directory, steady, wait=True)
    assert again.status == "success"
    assert sorted(asked) == sorted({row["ticket"] for row in rows})
    assert calls == {f"steady {row['id']}": 1 for row in rows}
    assert states(again, "steady") == ["scored"] * 8


def test_a_changed_scorer_scores_the_rows_that_ended_without_running_them(tmp_path):
    asked = []

    def answer(node, prompt, context):
        asked.append(1)
        return "billing"

    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path)
    evaluation = pipeline.evaluate(ROWS, correct, wait=True)
    again = evaluation.rescore(
        {"correct": lambda output: output == "billing", "prompted": lambda run: "team" in run["classify"].prompt}
    )
    assert len(asked) == 3
    assert again.scores["correct"].estimate.value == again.scores["prompted"].estimate.value == 1.0


def test_a_scorer_that_was_unmeasured_is_asked_again_and_the_others_are_not(pipeline, calls):
    evaluation = pipeline.evaluate(ROWS, [flaky, steady], wait=True)
    assert evaluation.scores["flaky"].unmeasured == 3
    again = evaluation.rescore([flaky, steady])
    assert again.scores["flaky"].unmeasured == 0
    assert calls == {"flaky": 6, "steady pay": 1, "steady crash": 1, "steady refund": 1}


def test_a_torn_line_is_scored_again_and_the_others_are_not(pipeline, calls):
    evaluation = pipeline.evaluate(ROWS, steady, max_parallel=1, wait=True)
    place = evaluation.directory / "scores.jsonl"
    whole = place.read_bytes()
    place.write_bytes(whole[:-20])
    again = evaluation.rescore(steady)
    assert again.scores["steady"].unmeasured == 0
    assert calls == {"steady pay": 1, "steady crash": 1, "steady refund": 2}
    assert place.read_bytes().startswith(whole[:-20] + b"\n")


def test_what_a_scorer_closes_over_is_a_part_of_its_version(pipeline):
    def made(word):
        def is_word(output):
            return output == word

        return is_word

    evaluation = pipeline.evaluate(ROWS, made("billing"), wait=True)
    assert evaluation.scores["is_word"].estimate.value == pytest.approx(1 / 3)
    assert evaluation.rescore(made("bill")).scores["is_word"].estimate.value == 0.0


def test_another_output_is_scored_anew(pipeline):
    def long(output):
        return len(output) > 10

    evaluation = pipeline.evaluate(ROWS, long, wait=True)
    assert evaluation.scores["long"].estimate.value == 0.0
    assert evaluation.rescore(long, output=lambda run: run["classify"].prompt).scores["long"].estimate.value == 1.0
    assert evaluation.rescore(long, output="ticket").scores["long"].estimate.value == pytest.approx(1 / 3)
    assert evaluation.rescore(long).scores["long"].estimate.value == 0.0


def test_a_function_of_the_run_is_given_again_on_resume(pipeline):
    def prompt(run):
        return run["classify"].prompt

    evaluation = pipeline.evaluate(ROWS, steady, output=prompt, wait=True)
    with pytest.raises(OptionError, match="the function is not stored"):
        pipeline.resume_evaluation(evaluation.directory, steady)
    assert pipeline.resume_evaluation(evaluation.directory, steady, output=prompt, wait=True).status == "success"


def test_a_map_that_was_killed_while_it_was_made_is_no_map_without_scores(pipeline, tmp_path, monkeypatch):
    from attractor_nb.storage.map_directory import MapDirectory

    def killed(self, changes):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MapDirectory, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            pipeline.evaluate(ROWS, steady, map_dir=tmp_path / "place")
    assert (tmp_path / "place" / "evaluation.json").exists()
    assert not (tmp_path / "place" / "map.json").exists()
    assert len(pipeline.evaluate(ROWS, steady, map_dir=tmp_path / "place", wait=True)) == 3


def test_a_directory_without_an_evaluation_is_refused(pipeline, tmp_path):
    result = pipeline.map([{"ticket": "pay"}], wait=True)
    with pytest.raises(RunNotFound, match="holds no evaluation"):
        pipeline.resume_evaluation(result.directory, correct)


def test_a_handle_can_be_awaited_and_shows_its_map_while_it_runs(pipeline):
    async def work():
        run = pipeline.evaluate(ROWS, correct)
        assert run.directory is not None
        return await run, str(run)

    evaluation, shown = asyncio.run(work())
    assert evaluation.headline() in shown


# -- what it gives ----------------------------------------------------------------------------------------------


def test_lines_markdown_and_rows_by_id_and_number(pipeline):
    evaluation = pipeline.evaluate(ROWS, correct, wait=True)
    assert evaluation["refund"].id == evaluation[2].id == "refund"
    assert evaluation.run("refund")["classify"].response == "sales"
    line = evaluation.lines()[2]
    assert (line["id"], line["expected"], line["output"], line["correct"]) == ("refund", "billing", "sales", False)
    assert "| refund | sales | billing |" in evaluation.to_markdown()
    with pytest.raises(OptionError, match="has no row 'refnd'; did you mean \"refund\""):
        evaluation["refnd"]


@pytest.mark.parametrize("repeat", [-1, 2])
def test_a_repeat_that_there_is_not_is_refused(pipeline, repeat):
    evaluation = pipeline.evaluate(ROWS[:1], correct, wait=True, repeat=2)
    assert evaluation.run("pay", 1)["classify"].response == "billing"
    with pytest.raises(OptionError) as error:
        evaluation.run("pay", repeat)
    assert (error.value.message, error.value.hint) == (f"row pay has no repeat {repeat}", "its repeats are 0 to 1")


@pytest.mark.parametrize("given", [0.8, "correct", [("correct", 0.8)]])
def test_at_least_is_a_dict_of_numbers_by_score(pipeline, given):
    evaluation = pipeline.evaluate(ROWS[:1], correct, wait=True)
    with pytest.raises(OptionError) as error:
        evaluation.check(at_least=given)
    assert (error.value.message, error.value.hint) == (
        f"at_least must be a dict of numbers by score, not {given!r}",
        'at_least={"correct": 0.8}',
    )


def test_at_least_is_checked_by_name(pipeline):
    evaluation = pipeline.evaluate(ROWS, correct, wait=True)
    assert evaluation.check(at_least={"correct": 0.6}) == []
    assert evaluation.check(at_least={"correct": 0.7}) == ["correct is 0.667, and at least 0.7 is asked for"]
    with pytest.raises(OptionError, match="has no score 'corect'"):
        evaluation.check(at_least={"corect": 0.5})


def test_what_a_notebook_shows_escapes_all_of_the_input(pipeline):
    rows = [{"id": "<b>x</b>", "ticket": "<script>", "expected": "<img src=x>"}]
    bundle = pipeline.evaluate(rows, correct, wait=True)._repr_mimebundle_()
    assert "<script>" not in bundle["text/html"]
    assert "<img" not in bundle["text/html"]
    assert "&lt;b&gt;x" in bundle["text/html"]
