"""runs() as a table: choosing, opening, tagging, resuming, deleting; heat and timelines from what it lists."""

from __future__ import annotations

import json
from datetime import date, timedelta
from importlib import import_module

import pytest

from attractor_nb import Outcome, Pipeline, Run, heat, runs
from attractor_nb.errors import OptionError, RunError, RunLocked
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.pipeline.runs import RunTable

TEXT = 'digraph talk { start [shape=Mdiamond] plan say [prompt="b"] done [shape=Msquare] start -> plan -> say -> done }'


def refusing(node, prompt, context):
    return Outcome.fail("no money") if node.id == "say" else "ok"


@pytest.fixture
def kept():
    """Three runs: one that went well, one that failed, one that stopped; and a map of two rows."""
    talk = Pipeline(TEXT, backend="simulated")
    talk.run(wait=True, logs_root="kept/well")
    talk.run(wait=True, logs_root="kept/badly", backend=refusing)
    talk.run(wait=True, logs_root="kept/half", stop_after=2)
    talk.map([{"n": 1}, {"n": 2}], wait=True, map_dir="kept/rows")
    return runs("kept")


def names(table):
    return sorted(row.logs_root.name for row in table)


def test_a_list_is_chosen_opened_tagged_resumed_and_deleted(kept):
    assert names(kept) == ["badly", "half", "rows", "well"]
    assert names(kept.where(status="failed")) == ["badly"]
    assert names(kept.where(text="NO MONEY")) == ["badly"]
    assert names(kept.where(kind="map")) == ["rows"]
    assert names(kept.where(pipeline="Talk", kind="run", since="1h")) == ["badly", "half", "well"]
    assert names(kept.where(since=timedelta(hours=-1))) == []
    assert names(kept.where(since=date(2020, 1, 1))) == names(kept)
    assert [row.stages for row in kept.where(kind="run").where(status=["failed", "completed"])] == [3, 4]

    (well,) = kept.where(text="well")
    assert isinstance(well.load(), Run)
    assert names(kept.where(kind="map")[0].load()) == ["row-00000", "row-00001"]
    assert well.tag("good", "late") == ("good", "late")
    assert well.untag("late") == ("good",)
    assert names(runs("kept").where(tag="good")) == ["well"]
    assert names(kept.where(kind="run").tag("all").where(tag=["good", "all"])) == ["well"]

    (half,) = kept.where(status="paused")
    assert half.resume().result().status == "success"
    assert runs("kept").where(status="completed", text="half")[0].stages == 4
    assert runs("kept").where(status="success", text="half") == runs("kept").where(status="completed", text="half")

    with pytest.raises(OptionError, match="for good"):
        kept.delete()
    assert names(kept.where(text="badly").delete(confirm=True)) == []
    assert names(runs("kept").where(kind="map").delete(confirm=True)) == []
    assert names(runs("kept")) == ["half", "well"]


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ({"stauts": "failed"}, "stauts"),
        ({"status": "fialed"}, 'did you mean "failed"'),
        ({"status": 5}, "no status"),
        ({"since": "soon"}, "since is no time"),
        ({"kind": "walk"}, "not a kind"),
        ({"text": 5}, "no text"),
        ({"tag": ""}, "no tag"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(conditions, words):
    with pytest.raises(OptionError, match=words):
        runs("none").where(**conditions)


def test_a_live_run_is_followed_and_never_deleted():
    run = Pipeline(
        'digraph g { s [shape=Mdiamond] ask [shape=hexagon] d [shape=Msquare] s -> ask -> d [label="Go"] }'
    ).run(logs_root="kept/live", interviewer="deferred")
    run.wait_for_gate("ask", timeout=60)
    (row,) = runs("kept")
    assert (row.status, row.note, row.is_live) == ("waiting", "waits at ask", True)
    assert "? waiting" in str(row)
    assert len(runs("kept").where(status="running")) == len(runs("kept").where(status="waiting")) == 1
    with pytest.raises(RunLocked):
        row.delete(confirm=True)
    run.answer("ask", "Go")
    run.result(60)
    assert runs("kept")[0].status == "completed"


def test_a_frame_has_a_row_for_each_run_and_without_pandas_the_message_says_so(kept, monkeypatch):
    frame = kept.where(kind="run").to_frame() if _has_pandas() else None
    if frame is not None:
        assert sorted(frame["status"]) == ["completed", "failed", "paused"]
        assert str(frame["start_time"].dtype).startswith("datetime64")

    def no_pandas(name):
        raise ImportError(name)

    monkeypatch.setattr("attractor_nb.views.table.import_module", no_pandas)
    with pytest.raises(OptionError, match="needs pandas"):
        kept.to_frame()


def _has_pandas():
    try:
        import_module("pandas")
    except ImportError:
        return False
    return True


def test_what_a_cell_keeps_has_no_times_and_print_has_them(kept):
    bundle = kept._repr_mimebundle_()
    assert "started" not in bundle["text/plain"] + bundle["text/html"]
    assert "took" not in bundle["text/plain"]
    assert "started" in str(kept)
    assert bundle == runs("kept")._repr_mimebundle_()
    assert str(runs("none")) == "no runs"


def test_heat_of_runs_of_several_pipelines_is_that_of_the_newest_run_and_says_so(kept):
    Pipeline(TEXT.replace("talk", "other")).run(wait=True, logs_root="kept/other", backend="simulated")
    found = heat(runs("kept"), "visits")
    assert found.graph.label == "other"
    assert found.run_count == 1
    note = "only runs of other: 3 runs of other pipelines left out (talk)"
    assert note in str(found)
    assert note in found.to_svg()


def test_heat_is_measured_over_what_is_listed_and_what_cannot_be_read_is_named(kept):
    (row,) = kept.where(text="well")
    (row.logs_root / "events.jsonl").write_text("nonsense\n{}\n")
    found = heat(kept, "failures")
    assert (found["say"], found["plan"]) == (1, 0)
    assert "left out" in str(found)
    assert "it is a map" in str(found)
    assert heat(Run.load("kept/badly"), "visits")["plan"] == 1
    with pytest.raises(KeyError):
        found["nobody"]
    with pytest.raises(OptionError, match='did you mean "tokens"'):
        heat(kept, "token")
    with pytest.raises(OptionError, match="no run to measure"):
        heat([])
    with pytest.raises(OptionError, match="is no run"):
        heat([5])
    with pytest.raises(OptionError, match="5 is no run") as refused:
        heat(5)
    assert refused.value.hint == "a run, or several: runs().where(pipeline=…)"


def test_a_timeline_of_a_run_reads_well_and_says_which_lanes_there_are(kept):
    timeline = Run.load("kept/badly").timeline()
    assert [lane.key for lane in timeline.timeline.lanes] == ["start", "plan", "say"]
    assert "no money" in str(timeline)
    assert set(timeline._repr_mimebundle_()) == {"text/html", "image/svg+xml", "text/plain"}
    with pytest.raises(OptionError, match="no lanes by"):
        Run.load("kept/badly").timeline(by="hour")


def test_a_desk_does_what_is_clicked_and_says_the_call(kept):
    requests = HistoryRequests(kept)
    said = requests.answer({"kind": "open", "key": "badly"})
    assert 'Run.load("kept/badly")' in said["call"]
    assert "no money" in said["words"]
    assert "rows" in requests.answer({"kind": "open", "key": "rows"})["call"]
    assert "good" in requests.answer({"kind": "tag", "key": "well", "tag": "good"})["words"]
    assert requests.answer({"kind": "tag", "key": "well", "tag": "a,b"})["isError"]
    assert requests.answer({"kind": "untag", "key": "well", "tag": "good"})["words"] == "It has no tags."
    assert "is active" in requests.answer({"kind": "resume", "key": "half"})["words"]
    requests.resumed["half"].result(60)
    assert requests.answer({"kind": "resume", "key": "rows"})["isError"]
    assert requests.answer({"kind": "delete", "key": "badly"})["title"] == "Deleted badly"
    assert requests.answer({"kind": "delete", "key": "badly"})["isError"]
    assert requests.answer({"kind": "delete", "key": "../kept/well"})["isError"]
    assert requests.answer({"kind": "refresh"}) is None
    assert requests.answer({"kind": "dance"}) is None
    assert sorted(row["key"] for row in requests.rows()) == ["half", "rows", "well"]
    json.dumps(requests.rows())


def test_a_map_is_not_resumed_as_a_run(kept):
    with pytest.raises(RunError, match="is a map"):
        kept.where(kind="map")[0].resume()


def test_an_evaluation_is_listed_as_one_with_its_rows(kept):
    pipeline = Pipeline(TEXT, backend="simulated")
    rows = [{"n": "1"}, {"n": "2"}]
    pipeline.evaluate(rows, {"any": lambda output: True}, inputs=["n"], wait=True, map_dir="kept/scored")
    for table in (runs("kept"), runs("kept")):  # read, and read from what is kept of it
        (row,) = table.where(kind="evaluation")
        assert (row.logs_root.name, row.kind, row.is_map) == ("scored", "evaluation", True)
        assert names(table.where(kind="map")) == ["rows"]
        assert "2 rows" in str(table.where(kind="evaluation"))
    assert names(row.load()) == ["row-00000", "row-00001"]
    with pytest.raises(RunError, match="is an evaluation") as refused:
        row.resume()
    assert "resume_evaluation(directory, scorers)" in str(refused.value)


def test_a_table_is_a_sequence(kept):
    assert isinstance(kept[:2], RunTable)
    assert kept == list(kept)
    assert kept != "well"
    (well,) = kept.where(text="well")
    assert kept.where(text="well").open(0).id == well.run_id


def test_hostile_names_stay_texts_wherever_they_are_shown():
    hostile = '<img src=x onerror="alert(1)">\u202e'
    text = TEXT.replace(
        "digraph talk {", f'digraph talk {{ graph [label="{hostile.replace(chr(34), chr(92) + chr(34))}"]'
    )
    Pipeline(text, backend="simulated").run(wait=True, logs_root="kept/run", is_shown=False)
    (row,) = runs("kept")
    row.tag("<b>bold</b>")
    table = runs("kept")
    html = table._repr_mimebundle_()["text/html"]
    assert "<b>bold" not in html
    assert "&lt;b&gt;bold" in html
    assert "<img" not in html + row.load().heat()._repr_mimebundle_()["image/svg+xml"]
    assert "\u202e" not in html + str(table) + json.dumps(HistoryRequests(table).rows(), ensure_ascii=False)
    assert "<img" not in row.load().timeline().to_svg()
