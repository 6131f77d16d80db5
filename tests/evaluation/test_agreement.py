"""``agreement(judge, labels)``: kappa with its interval, counts, and the rows that differ."""

import json

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation import Score, agreement

TEXT = """digraph answering {
    inputs="ticket"
    start [shape=Mdiamond]
    answer [prompt="$ticket"]
    done [shape=Msquare]
    start -> answer -> done
}"""


def evaluated(tmp_path, verdicts, labels=(), **scorers):
    """An evaluation whose column ``judge`` has these verdicts, for rows r0, r1, …"""
    rows = [{"id": f"r{number}", "ticket": "t"} for number in range(len(verdicts))]
    for row, label in zip(rows, labels, strict=False):
        row["label"] = label

    def verdict(row):
        value = verdicts[int(row["id"][1:])]
        return Score("judge", state="unmeasured", reason="no credit") if value is None else (value, f"why {row['id']}")

    pipeline = Pipeline(TEXT, backend=lambda prompt: "text", runs_dir=tmp_path / "runs")
    return pipeline.evaluate(rows, {"judge": verdict, **scorers}, durability="fast", wait=True)


def test_kappa_raw_agreement_and_counts(tmp_path):
    verdicts = [True] * 5 + [False] * 5
    labels = [True] * 4 + [False] * 5 + [True]
    found = agreement(evaluated(tmp_path, verdicts), {f"r{number}": label for number, label in enumerate(labels)})
    assert (found.kappa.value, found.kappa.count) == (pytest.approx(0.6), 10)
    assert (found.kappa.low, found.kappa.high) == (pytest.approx(-0.020, abs=0.001), pytest.approx(0.887, abs=0.001))
    assert (found.raw.value, found.raw.method) == (0.8, "Wilson")
    assert found.counts == {(True, True): 4, (True, False): 1, (False, False): 4, (False, True): 1}
    assert (
        str(found).splitlines()[0]
        == found.headline()
        == "judge: kappa 0.6 (\N{MINUS SIGN}0.0197 to 0.887); 8 of 10 rows agree = 80 % (49 to 94 %)"
    )


def test_disagreements_come_first_with_both_values_and_the_judges_reason(tmp_path):
    found = agreement(evaluated(tmp_path, [True, False, True]), {"r0": True, "r1": True, "r2": False})
    assert [(each.id, each.judged, each.label, each.reason) for each in found.disagreements] == [
        ("r1", False, True, "why r1"),
        ("r2", True, False, "why r2"),
    ]
    lines = str(found).splitlines()
    place = lines.index("Disagreements: 2 of 3 rows")
    assert lines[place + 3].split() == ["r1", "false", "true", "why", "r1"]
    assert "label true" in str(found)
    assert str(found).index("why r1") < str(found).index("label true")


def test_a_file_of_reviews_counts_by_its_latest_line_of_each_id(tmp_path):
    path = tmp_path / "reviews.jsonl"
    lines = [
        {"id": "r0", "value": False},
        {"id": "r1", "value": False},
        {"id": "r0", "value": True, "note": "on reflection"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"id": "r1", "val')
    evaluation = evaluated(tmp_path, [True, False])
    for given in (path, str(path)):
        found = agreement(evaluation, given)
        assert (found.raw.value, found.kappa.value) == (1.0, 1.0)


def test_a_column_of_the_rows_is_a_mapping_too(tmp_path):
    found = agreement(evaluated(tmp_path, [True, False, True], ["true", "0", None]), "label")
    assert (found.counts, found.unlabelled) == ({(True, True): 1, (False, False): 1}, 1)
    assert "rows without a label: 1" in str(found)


def test_classes_make_a_table_of_their_own_size(tmp_path):
    found = agreement(evaluated(tmp_path, ["a", "b", "c"]), {"r0": "a", "r1": "c", "r2": "c"})
    assert found.classes == ["a", "b", "c"]
    assert [found.counts.get(pair, 0) for pair in (("a", "a"), ("b", "c"), ("c", "c"))] == [1, 1, 1]


def test_numbers_are_compared_whatever_their_form(tmp_path):
    found = agreement(evaluated(tmp_path, [4, 5, 1]), {"r0": "4", "r1": 5.0, "r2": 2})
    assert [each.id for each in found.disagreements] == ["r2"]


def test_labels_of_unknown_ids_and_rows_without_a_verdict_are_listed(tmp_path):
    found = agreement(evaluated(tmp_path, [True, None, False]), {"r0": True, "r1": True, "gone": False, "r2": False})
    assert (list(found.unknown), list(found.unmeasured), found.raw.count) == (["gone"], ["r1"], 2)
    assert "labels of unknown rows (1): gone" in str(found)
    assert "labelled rows without a value of the judge (1): r1" in str(found)


def test_a_row_that_the_pipeline_failed_has_no_verdict(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda prompt: Outcome.fail("no"), runs_dir=tmp_path / "runs")
    evaluation = pipeline.evaluate([{"id": "r0", "ticket": "t"}], {"judge": lambda output: True}, wait=True)
    found = agreement(evaluation, {"r0": False})
    assert (list(found.unmeasured), found.raw.count) == (["r0"], 0)


def test_of_repeats_the_first_run_counts(tmp_path):
    seen = []

    def first_alone(output):
        seen.append(output)
        return len(seen) == 1

    pipeline = Pipeline(TEXT, backend=lambda prompt: "text", runs_dir=tmp_path / "runs")
    evaluation = pipeline.evaluate(
        [{"id": "r0", "ticket": "t"}], {"judge": first_alone}, repeat=3, max_parallel=1, wait=True
    )
    assert agreement(evaluation, {"r0": True}).raw.count == 1
    assert agreement(evaluation, {"r0": True}).raw.value == 1.0


def test_kappa_of_one_class_or_of_nothing_is_said_to_be_undefined(tmp_path):
    evaluation = evaluated(tmp_path, [True, True])
    assert "kappa is undefined: judge and labels have one class" in str(agreement(evaluation, {"r0": True, "r1": True}))
    assert "kappa is undefined: no row has both a value and a label" in str(agreement(evaluation, {}))


def test_the_column_is_named_where_there_are_several(tmp_path):
    evaluation = evaluated(tmp_path, [True], length=lambda output: len(output) > 9)
    with pytest.raises(OptionError, match="the evaluation has 2 columns: judge, length"):
        agreement(evaluation, {"r0": True})
    assert agreement(evaluation, {"r0": True}, column="length").raw.value == 0.0
    with pytest.raises(OptionError, match="has no score 'lenght'; did you mean"):
        agreement(evaluation, {"r0": True}, column="lenght")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"r0": "maybe"}, "the label of row \"r0\" is 'maybe', but must be True or False"),
        ({"r0": 2}, "must be True or False"),
        ({"r0": float("nan")}, "must be True or False"),
        ("lable", "a row has no column 'lable'; did you mean \"label\""),
        ("missing.jsonl", "there is no file missing.jsonl"),
        (7, "labels must be a mapping, a file or a column, not int"),
    ],
)
def test_unusable_labels_are_refused(tmp_path, monkeypatch, labels, words):
    monkeypatch.chdir(tmp_path)
    evaluation = evaluated(tmp_path, [True, False], [True, False])
    with pytest.raises(OptionError) as error:
        agreement(evaluation, labels)
    assert words in str(error.value)


def test_a_label_that_is_no_number_is_refused_where_the_verdicts_are_numbers(tmp_path):
    with pytest.raises(OptionError) as error:
        agreement(evaluated(tmp_path, [4, 5]), {"r0": 4, "r1": "many"})
    assert error.value.message == (
        "the label of row \"r1\" is 'many', but must be a number, as the judge's verdicts are"
    )
    assert error.value.hint == "change the label"


def test_a_line_that_is_no_review_is_refused_by_its_file(tmp_path):
    path = tmp_path / "reviews.jsonl"
    path.write_text('{"id": "r0", "label": true}\n')
    with pytest.raises(OptionError, match=r"reviews\.jsonl: .* is no review"):
        agreement(evaluated(tmp_path, [True]), path)


def test_numbers_of_many_values_are_no_classes(tmp_path):
    evaluation = evaluated(tmp_path, [number / 7 for number in range(30)])
    with pytest.raises(OptionError, match="60 different values; kappa compares at most 20"):
        agreement(evaluation, {f"r{number}": number + 100 for number in range(30)})


def test_something_else_than_an_evaluation_is_refused(tmp_path):
    with pytest.raises(OptionError, match="agreement takes an evaluation, not ScoreColumn"):
        agreement(evaluated(tmp_path, [True]).scores["judge"], {})


def test_what_a_notebook_shows_escapes_all_of_the_input(tmp_path):
    found = agreement(evaluated(tmp_path, ["<img src=x>", "b"]), {"r0": "<script>", "r1": "b"})
    html = found._repr_mimebundle_()["text/html"]
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
