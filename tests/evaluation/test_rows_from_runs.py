"""``rows_from(runs)`` and ``pipeline.evaluate(scorers=…, runs=…)``: stored runs as data, and scored without running."""

import threading

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation import rows_from, visits
from attractor_nb.evaluation.saved_rows import save_rows
from attractor_nb.pipeline.runs import runs

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ASKED = []


def team(node, prompt, context):
    ASKED.append(context["ticket"])
    return Outcome.fail("the service said no") if context["ticket"] == "broken" else f"billing {len(context['ticket'])}"


@pytest.fixture
def pipeline(tmp_path):
    ASKED.clear()
    return Pipeline(TEXT, backend=team, runs_dir=tmp_path / "runs")


def billing(output):
    return output.startswith("billing")


def test_rows_have_id_inputs_and_what_came_out(pipeline, tmp_path):
    first = pipeline.run(params={"ticket": "pay"}, wait=True)
    second = pipeline.run(params={"ticket": "broken"}, wait=True)
    found = {row["id"]: row for row in rows_from(runs(tmp_path / "runs"))}
    assert found == {
        first.run_id: {"id": first.run_id, "ticket": "pay", "expected": "billing 3"},
        second.run_id: {"id": second.run_id, "ticket": "broken"},
    }


def test_the_rows_can_be_evaluated(pipeline):
    rows = rows_from([pipeline.run(params={"ticket": ticket}, wait=True) for ticket in ("pay", "I cannot pay")])
    evaluation = pipeline.evaluate(rows, {"same": lambda output, expected: output == expected}, wait=True)
    assert evaluation.scores["same"].estimate.value == 1.0
    assert [row.row.inputs for row in evaluation] == [{"ticket": "pay"}, {"ticket": "I cannot pay"}]


def test_a_handle_is_taken_and_one_that_runs_is_refused(tmp_path):
    started, go_on = threading.Event(), threading.Event()

    def slow(node, prompt, context):
        started.set()
        go_on.wait(20)
        return "done"

    run = Pipeline(TEXT, backend=slow, runs_dir=tmp_path).run(params={"ticket": "pay"})
    assert started.wait(20)
    with pytest.raises(OptionError, match="has not ended"):
        rows_from(run)
    go_on.set()
    run.result(20)
    assert rows_from(run) == [{"id": run.id, "ticket": "pay", "expected": "done"}]


def test_a_fork_has_the_inputs_of_its_parent(pipeline):
    run = pipeline.run(params={"ticket": "pay"})
    run.result(20)
    fork = run.fork("classify")
    fork.result(20)
    assert [row["ticket"] for row in rows_from([run, fork])] == ["pay", "pay"]


def test_a_large_input_is_whole(pipeline):
    text = "word " * 100_000
    (row,) = rows_from(pipeline.run(params={"ticket": text}, wait=True))
    assert row["ticket"] == text


def test_a_map_stands_for_its_rows_in_order(pipeline):
    result = pipeline.map([{"ticket": "a"}, {"ticket": "b"}, {"ticket": "broken"}], wait=True)
    assert [row["ticket"] for row in rows_from(result)] == ["a", "b", "broken"]
    assert [row["ticket"] for row in rows_from(result.directory)] == ["a", "b", "broken"]
    assert [row["ticket"] for row in rows_from([result.directory / "row-00001"])] == ["b"]


@pytest.mark.parametrize(
    ("given", "words"),
    [([], "there are no runs"), (7, "not int"), ([7], "7 is no run"), (["missing"], "missing")],
    ids=["none", "a number", "numbers", "no directory"],
)
def test_what_is_no_run_is_refused(given, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=words) as error:
        rows_from(given)
    assert type(error.value).__module__ == "attractor_nb.errors"


def test_rows_of_a_stage_that_is_not_there_are_refused(pipeline):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    with pytest.raises(OptionError, match=r"^the pipeline has no node 'clasify'; did you mean \"classify\"\?"):
        rows_from(run, stage="clasify")


@pytest.mark.parametrize("name", ["rows.csv", "rows"])
def test_rows_are_saved_in_a_file_of_json_lines_alone(pipeline, tmp_path, name):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    with pytest.raises(OptionError) as error:
        save_rows(run, tmp_path / name)
    assert error.value.message == f"{tmp_path / name} is no file of JSON lines"
    assert error.value.hint == 'name it .jsonl: save_rows(run, "rows.jsonl")'
    assert not (tmp_path / name).exists()


def test_runs_that_exist_are_scored_and_nothing_runs(pipeline, tmp_path):
    for ticket in ("pay", "broken", "I cannot pay"):
        pipeline.run(params={"ticket": ticket}, wait=True)
    asked = len(ASKED)
    before = sorted(path for path in (tmp_path / "runs").rglob("*"))
    evaluation = pipeline.evaluate(scorers=[billing, visits("classify")], runs=runs(tmp_path / "runs"))
    assert len(ASKED) == asked
    assert sorted(path for path in (tmp_path / "runs").rglob("*")) == before
    assert evaluation.headline().startswith("3 rows   billing 2 of 3 = 67 %")
    assert [row.row.inputs["ticket"] for row in evaluation.failures] == ["broken"]
    assert evaluation.scores["visits"].estimate.value == 1.0
    (failed,) = evaluation.failures
    assert evaluation.run(failed.id).status == "failed"
    assert evaluation.directory is None


def test_scored_runs_are_rescored_drawn_and_exported(pipeline, tmp_path):
    given = [pipeline.run(params={"ticket": ticket}, wait=True) for ticket in ("pay", "broken")]
    evaluation = pipeline.evaluate(scorers=billing, runs=given)
    longer = evaluation.rescore({"long": lambda output: len(output) > 20})
    assert longer.scores["long"].estimate.value == 0.0
    graph = evaluation.graph()
    assert graph["classify"].failed == (given[1].run_id,)
    text = evaluation.export_html(tmp_path / "page.html").read_text()
    assert '"stage classify":' in text or '"edge 0":' in text
    assert str(tmp_path) not in text


def test_another_output_of_the_runs_is_judged(pipeline):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    evaluation = pipeline.evaluate(
        scorers={"asked": lambda output: "pay" in output}, runs=run, output=lambda run: run["classify"].prompt
    )
    assert evaluation.scores["asked"].estimate.value == 1.0


def test_a_run_of_another_graph_is_refused(pipeline, tmp_path):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    other = Pipeline(TEXT.replace("Which team?", "Whose is it?"), backend=team, runs_dir=tmp_path)
    with pytest.raises(OptionError, match="is not of this version of triage"):
        other.evaluate(scorers=billing, runs=run)


def test_a_run_given_twice_is_refused(pipeline):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    with pytest.raises(OptionError, match="rows 0 and 1 have the id"):
        pipeline.evaluate(scorers=billing, runs=[run, run])


@pytest.mark.parametrize(
    ("options", "word"),
    [({"rows": [{"ticket": "a"}]}, "rows"), ({"repeat": 2}, "repeat"), ({"max_parallel": 3}, "max_parallel")],
    ids=["rows", "repeat", "an option"],
)
def test_what_would_do_nothing_is_refused(pipeline, options, word):
    run = pipeline.run(params={"ticket": "pay"}, wait=True)
    with pytest.raises(OptionError, match=f"so {word} would do nothing"):
        pipeline.evaluate(scorers=billing, runs=run, **options)


def test_a_review_of_runs_that_exist_needs_a_file(pipeline):
    evaluation = pipeline.evaluate(scorers=billing, runs=pipeline.run(params={"ticket": "pay"}, wait=True))
    with pytest.raises(OptionError) as error:
        evaluation.review()
    assert (error.value.message, error.value.hint) == (
        "nothing is kept of this evaluation",
        'review("reviews.jsonl") names a file',
    )


def test_an_interrupted_run_is_unmeasured(pipeline):
    run = pipeline.run(params={"ticket": "pay"}, wait=True, stop_after=1)
    evaluation = pipeline.evaluate(scorers=billing, runs=[run, pipeline.run(params={"ticket": "b"}, wait=True)])
    assert [row.scores["billing"][0].state for row in evaluation] == ["unmeasured", "scored"]
    assert "resume_evaluation" not in str(evaluation)
