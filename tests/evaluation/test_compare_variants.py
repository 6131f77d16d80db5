"""``pipeline.compare``: variants validated before anything is paid, paired, and judged in a sentence."""

import asyncio

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import NoSuchKey, OptionError, ValidationError
from attractor_nb.evaluation import compare_scored
from attractor_nb.evaluation.scored_rows import (
    BaselineColumn,
    BaselineHead,
    BaselineRow,
    BaselineScore,
    ScoredRows,
    read_baseline,
)
from attractor_nb.evaluation.variants import variants_of
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Usage

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    draft [prompt="Draft $ticket"]
    polish [prompt="Polish $ticket"]
    done [shape=Msquare]
    start -> draft -> polish -> done
}"""


class Backend:
    """Answers ``good`` for as many tickets as the prompt of ``polish`` says, and counts its calls."""

    def __init__(self):
        self.calls = []

    async def run(self, node, prompt, context):
        self.calls.append(node.id)
        right = {"Polish": 20, "Better": 32, "Worse": 4, "Same": 20}
        word = next((word for word in right if word in prompt), "Polish")
        return Response("good" if int(context["ticket"]) < right[word] else "bad", usage=Usage(10, 5, 0.01))


ROWS = [{"id": f"r{number}", "ticket": str(number)} for number in range(40)]


def good(output):
    return output == "good"


@pytest.fixture
def backend():
    return Backend()


@pytest.fixture
def pipeline(backend, tmp_path):
    return Pipeline(TEXT, backend=backend, runs_dir=tmp_path / "runs")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    variants = {name: {"polish.prompt": f"{name} $ticket"} for name in ("Better", "Worse", "Same")}
    pipeline = Pipeline(TEXT, backend=Backend(), runs_dir=tmp_path_factory.mktemp("runs"))
    return pipeline.compare(variants, ROWS, good, durability="fast")


def test_each_variant_gets_a_verdict_over_pairs_of_rows(comparison):
    found = {name: comparison[name]["good"] for name in ("Better", "Worse", "Same")}
    assert {name: each.verdict for name, each in found.items()} == {
        "Better": "better",
        "Worse": "worse",
        "Same": "not decided",
    }
    better = found["Better"]
    assert (better.baseline_mean, better.variant_mean, better.difference.value) == (0.5, 0.8, pytest.approx(0.3))
    assert better.wins == tuple(f"r{number}" for number in range(20, 32))
    assert better.losses == ()
    assert better.test == "exact McNemar"
    assert better.p == pytest.approx(2 * 2 * 0.5**12)  # of 12 wins without a loss, times 2 of Holm: Worse is smaller
    assert found["Worse"].p == pytest.approx(3 * 2 * 0.5**16)
    assert comparison.words[0].startswith("good: Better is better, +30 points (")
    assert "good: Same is not decided: with 40 rows only differences above" in str(comparison)


def test_the_gate_fails_for_what_is_worse_or_may_be(comparison):
    [problem] = comparison.check(at_most_worse_by=0.02)
    assert problem == (
        "good: Worse may be worse by more than 0.02: it lost 16 of 40 rows, and the interval of the difference "
        f"reaches \N{MINUS SIGN}{-comparison['Worse']['good'].difference.low:.3g}"
    )
    assert comparison.check(at_most_worse_by=0.6) == []


def test_equal_stages_are_run_once_for_all_variants(tmp_path):
    calls = []

    def answer(node, prompt, context):
        calls.append(node.id)
        return "good"

    answer.version = "1"  # the author's word that it may be cached
    pipeline = Pipeline(TEXT, backend=answer, runs_dir=tmp_path / "runs")
    comparison = pipeline.compare({"Better": {"polish.prompt": "Better $ticket"}}, ROWS[:10], good)
    assert calls.count("draft") == 10
    assert calls.count("polish") == 20
    assert comparison.notes == ["Better ran 1 of 2 model stages; the others came from the cache"]


def test_a_pattern_changes_all_model_stages(pipeline, backend):
    pipeline.compare({"mini": {"*.llm_model": "mini"}}, ROWS[:2], good)
    changed = Pipeline(TEXT).edit().set("draft", llm_model="mini").set("polish", llm_model="mini").pipeline()
    assert variants_of(pipeline, {"mini": {"*.llm_model": "mini"}})["mini"].graph == changed.graph


def test_another_pipeline_is_a_variant_too(pipeline, backend, tmp_path):
    other = Pipeline(TEXT.replace("Polish", "Better"), backend=backend, runs_dir=tmp_path / "other")
    assert pipeline.compare({"other": other}, ROWS[18:24], good)["other"]["good"].wins == ("r20", "r21", "r22", "r23")


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({}, "variants are a dict"),
        ([], "variants are a dict"),
        ({"x": {}}, "the variant x must be a dict of changes or a pipeline"),
        ({"x": {"polsh.prompt": "y"}}, 'x: the pipeline has no node "polsh"; did you mean "polish"?'),
        ({"x": {"q*.prompt": "y"}}, 'x: no model stage matches "q*"'),
        ({"x": {"prompt": "y"}}, "x: 'prompt' names no attribute of a node"),
        ({"baseline": {"polish.prompt": "y"}}, "'baseline' cannot be the name of a variant"),
        ({"../x": {"polish.prompt": "y"}}, "'../x' cannot be the name of a variant"),
        ({f"v{number}": {"polish.prompt": "y"} for number in range(21)}, "21 variants, more than 20"),
    ],
)
def test_an_unusable_variant_is_refused_before_anything_is_paid(pipeline, backend, variants, words):
    with pytest.raises(OptionError) as error:
        pipeline.compare(variants, ROWS, good)
    assert words in str(error.value)
    assert backend.calls == []


def test_a_variant_with_errors_is_refused_before_anything_is_paid(pipeline, backend):
    with pytest.raises(ValidationError) as error:
        pipeline.compare({"fine": {"polish.prompt": "Same $ticket"}, "odd": {"polish.type": "nope"}}, ROWS, good)
    assert error.value.__notes__ == ["in the variant odd"]
    assert backend.calls == []


def scored(name, values, *, is_lower_better=False, groups=()):
    """Rows with one score each; None is a row without one."""
    head = BaselineHead(name, "graph", "data", {"score": BaselineColumn("1", is_lower_better)})
    scores = [BaselineScore(value, "unmeasured" if value is None else "scored") for value in values]
    owners = groups or [None] * len(values)
    rows = [BaselineRow(f"r{n}", "same", {"score": [each]}, group=owners[n]) for n, each in enumerate(scores)]
    return ScoredRows(name, head, rows)


def difference(before, after, **facts):
    return compare_scored(scored("before", before, **facts), [scored("after", after, **facts)])["after"]["score"]


@pytest.mark.parametrize(("count", "test"), [(9, "sign flips"), (40, "paired t")])
def test_numbers_are_tested_by_sign_flips_below_30_rows_and_by_t_from_there(count, test):
    before = [float(number % 7) for number in range(count)]
    found = difference(before, [value + 1 + number % 3 for number, value in enumerate(before)])
    assert (found.test, found.verdict, found.difference.value) == (test, "better", pytest.approx(2.0, abs=0.05))


def test_a_smaller_number_can_be_the_better_one():
    found = difference([1.0] * 20, [0.5] * 12 + [1.0] * 8, is_lower_better=True)
    assert found.difference.value == pytest.approx(-0.3)
    assert (found.verdict, len(found.wins), found.losses) == ("better", 12, ())
    assert found.words.startswith("score: after is better, \N{MINUS SIGN}0.3 (")


def test_rows_of_one_group_are_no_independent_evidence():
    before, after = [False] * 12, [True] * 12
    alone = difference(before, after)
    together = difference(before, after, groups=["a"] * 6 + ["b"] * 6)
    assert (alone.verdict, together.verdict) == ("better", "not decided")
    assert together.difference.groups == 2


def test_rows_without_a_score_on_one_side_are_not_compared():
    comparison = compare_scored(scored("before", [False] * 10), [scored("after", [True] * 9 + [None])])
    found = comparison["after"]["score"]
    assert (found.difference.count, found.unpaired, len(found.wins)) == (9, 1, 9)
    assert comparison.check(at_most_worse_by=0.5) == ["score: 1 row of after not compared"]
    assert comparison.check(at_most_worse_by=0.5, max_unmeasured=1) == []


def test_a_failing_row_cannot_be_deleted_to_pass_the_gate():
    before, after = scored("before", [True] * 4), scored("after", [True] * 2)
    comparison = compare_scored(before, [after])
    assert comparison.check(at_most_worse_by=0.5) == ["2 rows of before missing or changed in after: r2, r3"]
    assert comparison.check(at_most_worse_by=0.5, max_unmeasured=2) == []
    assert compare_scored(after, [before]).check(at_most_worse_by=0.5) == [], "new rows are no gap"


def test_a_variant_without_a_comparable_row_is_no_unknown_one():
    comparison = compare_scored(scored("before", [True] * 2), [scored("after", [None] * 2)])
    assert comparison["after"] == {}
    with pytest.raises(NoSuchKey) as error:
        comparison["afer"]
    assert (error.value.message, error.value.hint) == (
        "the comparison has no variant 'afer'; did you mean \"after\"?",
        "variants: after",
    )


def test_a_margin_of_an_unknown_score_is_refused():
    comparison = compare_scored(scored("before", [True] * 2), [scored("after", [True] * 2)])
    with pytest.raises(NoSuchKey) as error:
        comparison.check(at_most_worse_by={"scoer": 0.1})
    assert (error.value.message, error.value.hint) == (
        "before has no score 'scoer'; did you mean \"score\"?",
        "scores: score",
    )


def test_p_values_are_adjusted_over_the_variants():
    before = scored("before", [False] * 12)
    variants = [scored(f"v{number}", [True] * 7 + [False] * 5) for number in range(4)]
    assert compare_scored(before, variants[:1]).differences[0].p == pytest.approx(2 * 0.5**7)
    assert {each.p for each in compare_scored(before, variants).differences} == {4 * 2 * 0.5**7}
    assert compare_scored(before, variants).differences[0].verdict == "not decided"


def test_a_comparison_that_was_stopped_continues_in_its_directory(pipeline, backend, tmp_path):
    variants = {"Better": {"polish.prompt": "Better $ticket"}}
    place = tmp_path / "comparison"
    first = pipeline.compare(variants, ROWS[:5], good, directory=place)
    calls = len(backend.calls)
    again = pipeline.compare(variants, ROWS[:5], good, directory=place)
    assert len(backend.calls) == calls == 20
    assert str(again) == str(first)


def test_a_comparison_that_a_bound_stops_names_the_variant_and_continues(pipeline, backend, tmp_path):
    variants = {"Better": {"polish.prompt": "Better $ticket"}}
    place = tmp_path / "comparison"
    options = {"directory": place, "max_parallel": 1}
    with pytest.raises(OptionError) as error:
        pipeline.compare(variants, ROWS[:3], good, max_budget_usd_all=0.03, **options)
    assert error.value.message.startswith("the comparison stopped in the variant baseline: ")
    assert "budget" in error.value.message
    assert error.value.hint == f'resume with directory="{place}"'
    assert pipeline.compare(variants, ROWS[:3], good, **options)["Better"]["good"].difference.count == 3
    assert len(backend.calls) == 12


def test_it_can_be_awaited(backend, tmp_path):
    async def work():
        pipeline = Pipeline(TEXT, backend=backend, runs_dir=tmp_path)
        return await pipeline.compare_async({"Same": {"polish.prompt": "Same $ticket"}}, ROWS[:5], good)

    assert asyncio.run(work())["Same"]["good"].verdict == "not decided"


# -- baselines --------------------------------------------------------------------------------------------------


def test_a_baseline_holds_no_inputs_outputs_or_answers_and_is_compared_later(pipeline, tmp_path):
    rows = [{**row, "expected": "CANARY-1"} for row in ROWS]
    before = pipeline.evaluate(rows[16:26], good, wait=True)
    place = before.save_baseline(tmp_path / "baseline.jsonl")
    text = place.read_text()
    assert "CANARY" not in text
    assert '"ticket"' not in text
    assert len(text.splitlines()) == 11
    changed = Pipeline(TEXT.replace("Polish", "Worse"), backend=Backend(), runs_dir=tmp_path / "later")
    now = changed.evaluate([*rows[16:25], {**rows[25], "ticket": "41"}], good, wait=True)
    comparison = compare_scored(read_baseline(place), [now.scored("now")])
    assert comparison["now"]["good"].losses == ("r16", "r17", "r18", "r19")
    assert comparison["now"]["good"].difference.count == 9
    assert comparison.changed_rows == {"now": ["r25"]}
    assert "now: 1 row with other inputs, not compared: r25" in str(comparison)


def test_the_same_evaluation_writes_the_same_baseline(pipeline, tmp_path):
    first = pipeline.evaluate(ROWS[:5], good, wait=True).save_baseline(tmp_path / "a.jsonl")
    second = pipeline.evaluate(ROWS[:5], good, wait=True).save_baseline(tmp_path / "b.jsonl")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("{}", "is no baseline"),
        ("not json", "is no baseline"),
        ('{"pipeline":"a","graph":"b","data":"c","columns":{"good":{}}}\n{"id":1}', "line 2"),
        (
            '{"pipeline":"a","graph":"b","data":"c","columns":{"good":{}}}\n{"id":"a","inputs":"b","scores":{}}',
            "other scores",
        ),
    ],
)
def test_what_is_no_baseline_is_refused_with_its_line(tmp_path, text, words):
    place = tmp_path / "baseline.jsonl"
    place.write_text(text)
    with pytest.raises(OptionError, match=words):
        read_baseline(place)


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".cache", "a\0b", "x" * 300, "a\\b", "line\n", " ", "BASELINE", "ends.", 3]
)
def test_a_name_that_cannot_be_a_directory_everywhere_is_refused(pipeline, backend, name):
    with pytest.raises(OptionError, match="cannot be the name of a variant"):
        pipeline.compare({name: {"polish.prompt": "Same"}}, ROWS, good)
    assert backend.calls == []


def test_a_variant_may_be_called_cache(pipeline):
    rows = ROWS[:2]
    assert pipeline.compare({"cache": {"polish.prompt": "Same $ticket"}}, rows, good)["cache"]["good"].wins == ()


def test_a_directory_continues_only_the_comparison_that_it_holds(pipeline, backend, tmp_path):
    variants, place = {"Same": {"polish.prompt": "Same $ticket"}}, tmp_path / "comparison"
    pipeline.compare(variants, ROWS[:2], good, directory=place)
    paid = len(backend.calls)
    pipeline.compare(variants, ROWS[:2], good, directory=place)
    corrected = [{**row, "expected": "bad"} for row in ROWS[:2]]
    for rows, repeat, what in ((ROWS[2:4], 1, "rows"), (corrected, 1, "rows"), (ROWS[:2], 2, "repeats")):
        with pytest.raises(OptionError, match=f"holds the evaluation of other {what}"):
            pipeline.compare(variants, rows, good, repeat=repeat, directory=place)
    assert len(backend.calls) == paid


def test_rows_that_can_be_read_once_are_those_of_every_variant(pipeline):
    found = pipeline.compare({"Same": {"polish.prompt": "Same $ticket"}}, iter(ROWS[:2]), good)
    assert found["Same"]["good"].difference.count == 2


def test_a_misspelt_attribute_of_a_variant_is_refused(pipeline, backend):
    with pytest.raises(OptionError, match='"promt" is not an attribute of a node; did you mean "prompt"'):
        pipeline.compare({"Better": {"polish.promt": "Better $ticket"}}, ROWS, good)
    assert backend.calls == []
