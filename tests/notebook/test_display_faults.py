"""Displays that cannot follow, or leave a value to IPython: what is shown and logged instead."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from attractor_nb import Pipeline, diff, gates, runs
from attractor_nb.errors import CheckpointCorrupt, OptionError, SessionNotFound
from attractor_nb.notebook.environment import Names
from attractor_nb.notebook.live import live_tables
from attractor_nb.notebook.live.live_run import Beside
from attractor_nb.notebook.live.live_tables import LiveMap
from attractor_nb.notebook.past_views import PastViews
from attractor_nb.notebook.presenting import Presenter
from attractor_nb.notebook.reopening import Reopener
from attractor_nb.notebook.view_actions import TimelineView
from attractor_nb.studio.edit.text_outline import outline_of

WAIT = 30
SECRET = "sk-ant-api03-" + "A1b2C3d4" * 8
TEXT = "digraph g { start [shape=Mdiamond] plan [prompt=x] done [shape=Msquare] start -> plan -> done }"
HEADLESS = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False), execution_count=1)


@pytest.fixture
def run(tmp_path):
    made = Pipeline(TEXT).run(logs_root=tmp_path / "run", is_shown=False)
    made.result(WAIT)
    return made


# -- who follows ------------------------------------------------------------------------------------


class BrokenMap:
    """A map that has ended and cannot be drawn."""

    def when_done(self, function):
        function()

    def _repr_mimebundle_(self, **_):
        raise ValueError("cannot be drawn")


def test_a_map_that_cannot_be_drawn_is_logged_and_its_table_is_over(caplog):
    live = LiveMap(interval_seconds=0)
    live._handles.append(SimpleNamespace(update=lambda *given, **options: None))
    live.follow(BrokenMap())
    assert live.wait(WAIT)
    (record,) = caplog.records
    assert record.getMessage() == "the live table could not follow the map"
    assert "ValueError: cannot be drawn" in caplog.text


@pytest.mark.parametrize(
    ("error", "level", "words"),
    [
        (CheckpointCorrupt("events.jsonl is damaged"), "WARNING", "could not be read any more"),
        (ValueError("cannot be drawn"), "ERROR", "the timeline could not follow the run"),
    ],
    ids=["the run", "the display"],
)
def test_a_timeline_that_cannot_go_on_is_logged_and_the_run_is_none_the_worse(run, caplog, error, level, words):
    view = TimelineView(run.timeline())
    ended = []

    def refuse():
        raise error

    view.refresh = refuse
    view._follow(lambda: ended.append(True))
    (record,) = caplog.records
    assert (record.levelname, words in record.getMessage()) == (level, True)
    assert ended == [], "its last picture is not taken for the end"


def test_a_session_that_goes_away_has_the_reason_in_its_place():
    shown = []

    def states():
        raise SessionNotFound("there is no status.json in here")
        yield

    handle = SimpleNamespace(update=lambda bundle, raw: shown.append(bundle))
    live_tables._follow(handle, states())
    assert shown == [{"text/plain": "there is no status.json in here"}]


# -- what a click asks for -------------------------------------------------------------------------


def test_a_run_that_is_no_longer_active_cannot_be_shown_beside(run):
    beside = Beside(run, SimpleNamespace(run_here=lambda name: None))
    for what in ("show", "stop"):
        reply = beside.answer({"what": what, "run": "gone"})
        assert reply["problem"].startswith("run gone is no longer active")
        assert "runs() lists past runs" in reply["problem"]
        assert "place" not in reply


def test_a_run_that_cannot_be_opened_again_says_why_without_a_secret(tmp_path):
    asked, sent = [], []
    reopener = Reopener(lambda *given: asked.append(given))
    reopener.send = sent.append
    reopener._on_message(None, {"kind": "open", "run": str(tmp_path / SECRET), "place": "key"}, None)
    (reply,) = sent
    assert (reply["kind"], reply["place"], asked) == ("open", "key", [])
    assert str(tmp_path) in reply["problem"]
    assert SECRET not in reply["problem"]


# -- what IPython draws itself ---------------------------------------------------------------------


@pytest.fixture
def presenter():
    return Presenter(HEADLESS, Names(SimpleNamespace(user_ns={})))


def test_where_nobody_can_click_a_value_is_left_to_its_own_picture(presenter, run, tmp_path, capsys):
    views = PastViews(HEADLESS, presenter)
    for display, value in (
        (views.display_runs, runs(tmp_path)),
        (views.display_timeline, run.timeline()),
        (views.display_replay, run.replay()),
        (views.display_stage, run.inspect("plan")),
        (views.display_comparison, diff(run, run)),
        (presenter.display_inbox, gates(tmp_path)),
        (presenter.display_form, run.pipeline.form()),
        (presenter.display_editor, run.pipeline.edit()),
        (presenter.display_pipeline, run.pipeline),
        (presenter.display_map, run),
    ):
        with pytest.raises(NotImplementedError):
            display(value)
    assert capsys.readouterr().out == "", "and nothing is shown twice"


def test_a_result_whose_run_was_shown_live_is_words_alone(presenter, run, capsys):
    result = run.result()
    presenter._live_run_ids.add(result.run_id)
    with pytest.raises(NotImplementedError):
        presenter.display_result(result)
    assert presenter.bundle_result(result) == {"text/plain": str(result)}
    assert capsys.readouterr().out == ""


def test_a_map_that_was_shown_live_leaves_its_result_to_one_line(presenter, run):
    result = run.pipeline.map([{}], wait=True, durability="none")
    presenter._live_run_ids.add(result.map_id)
    with pytest.raises(NotImplementedError):
        presenter.display_map_result(result)
    assert presenter.bundle_map_result(result) == {"text/plain": "✓ completed   1 of 1 rows   1 completed   simulated"}


def test_an_evaluation_under_way_is_left_to_its_own_words(presenter):
    with pytest.raises(NotImplementedError):
        presenter.display_evaluation_run(SimpleNamespace(is_done=False))


@pytest.mark.parametrize("directory", ["maps/one", None])
def test_a_map_that_ended_with_an_error_is_shown_by_its_directory_or_itself(presenter, monkeypatch, directory):
    def result(timeout):
        raise OptionError("the rows cannot be read")

    ended, shown = type("Ended", (), {"is_done": True, "result": staticmethod(result), "directory": directory})(), []
    monkeypatch.setattr(presenter, "display_rows", shown.append)
    presenter.display_map(ended)
    assert shown == [directory or ended]


def test_what_is_not_yet_written_to_its_end_offers_the_names_that_are_known():
    child = 'sub [type=pipeline, pipeline.outputs="%s"]'
    unfinished = outline_of('digraph g { graph [inputs="a: nonsense("] ' + child % "n=, more", "")
    assert unfinished.inputs == []
    assert "sub.run_id" in unfinished.keys
    assert "n" not in unfinished.keys
    assert "n" in outline_of("digraph g { " + child % "n=context.n", "").keys
