"""A run as one box of ipywidgets, without a page: what it shows after which events, its slider, its questions."""

from __future__ import annotations

import getpass

import pytest
from ipywidgets import Tab

from attractor_nb import Pipeline, Run
from attractor_nb.errors import AnswerRefused, OptionError
from attractor_nb.notebook.run_box import RunBox
from attractor_nb.runtime.handles.presenters import register_widget
from attractor_nb.testing import ScriptedBackend
from tests.waiting import wait_until

SECONDS = 60
TEXT = """digraph G { start [shape=Mdiamond] plan [prompt="Plan it"] review [shape=hexagon, label="Good?"] done [shape=Msquare]
  start -> plan -> review  review -> done [label="[A] Approve"]  review -> plan [label="[R] Redo"] }"""
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def run(tmp_path):
    pipeline = Pipeline(TEXT, backend=ScriptedBackend())
    started = pipeline.run(interviewer="deferred", logs_root=tmp_path / "run")
    yield started
    started.cancel()
    started.result(timeout=SECONDS)


def words(box):
    return box.children[0].value


def picture(box):
    """The drawing without its style sheet, which names every state."""
    head, _, body = box.children[1].value.partition("</style>")
    return head.partition("<style>")[0] + body


def test_it_follows_the_run_and_its_buttons_answer(run):
    box = RunBox(run)
    card = box.gates.wait_for("review", SECONDS)
    wait_until(lambda: "waiting" in words(box))
    wait_until(lambda: "state-waiting" in picture(box))
    card.buttons["R"].click()
    again = wait_until(lambda: (card_now := box.gates.wait_for("review", SECONDS)) is not card and card_now)
    assert box.gates.words.startswith(f"✓ Redo, by {getpass.getuser()}, after ")
    again.buttons["A"].click()
    assert run.result(timeout=SECONDS).status == "success"
    wait_until(lambda: "success" in words(box) and "auto ended" in picture(box))
    assert not box.gates.is_waiting
    assert box.slider.value == box.slider.max == 6, "start, plan, review, plan, review, done"


def test_the_slider_shows_the_run_as_it_stood_behind_each_stage(run):
    run.wait_for_gate("review", SECONDS)
    run.answer("review", "A")
    run.result(timeout=SECONDS)
    box = RunBox(run)
    assert (box.slider.max, box.slider.value) == (4, 4)
    end = picture(box)
    box.slider.value = 0
    assert "state-success" not in picture(box)
    assert "before the first stage" in picture(box)
    box.slider.value = 2
    assert "step 2 of 4, behind plan" in picture(box)
    box.slider.value = 4
    assert picture(box) == end


def test_a_person_who_looks_back_is_not_taken_away_by_what_happens(run):
    box = RunBox(run)
    card = box.gates.wait_for("review", SECONDS)
    wait_until(lambda: box.slider.max == 2)
    box.slider.value = 1
    looked_at = picture(box)
    card.buttons["A"].click()
    run.result(timeout=SECONDS)
    wait_until(lambda: box.slider.max == 4)
    assert (box.slider.value, picture(box)) == (1, looked_at)


def test_a_click_that_the_run_refuses_leaves_its_answer_to_another(run, monkeypatch):
    box = RunBox(run)
    card = box.gates.wait_for("review", SECONDS)

    def refuse(*_, **__):
        raise AnswerRefused("not that one")

    with monkeypatch.context() as refusing:
        refusing.setattr(run, "answer", refuse)
        card.buttons["A"].click()
    assert "not that one" in card.problem
    assert run.gates, "the gate still waits"
    run.answer("review", "A", answered_by="ann (inbox)")
    run.result(timeout=SECONDS)
    wait_until(lambda: not box.gates.is_waiting)
    assert box.gates.words.startswith("✓ answered elsewhere: Approve, by ann, in the inbox, after ")


def test_the_slider_of_a_run_that_keeps_nothing_says_so_beside_its_end():
    run = Pipeline(TEXT, backend=ScriptedBackend()).run(interviewer="auto", durability="none")
    run.result(timeout=SECONDS)
    box = RunBox(run)
    assert box.slider.max == 4
    end = picture(box)
    box.slider.value = 1
    assert picture(box).startswith(end)
    assert f"nothing of run {run.id} is stored, so its history cannot be read" in picture(box)


def test_a_loaded_run_is_shown_as_it_ended(run, tmp_path):
    run.wait_for_gate("review", SECONDS)
    run.answer("review", "A")
    run.result(timeout=SECONDS)
    box = RunBox(Run.load(tmp_path / "run"))
    assert "success" in words(box)
    assert box.slider.max == 4


def test_any_host_displays_it_and_it_can_be_put_into_other_boxes(run):
    box = RunBox(run)
    bundle = box._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == box.model_id
    assert "stage" in bundle["text/plain"]
    assert Tab([box]).children == (box,)


def test_what_a_run_calls_itself_is_never_html(tmp_path):
    pipeline = Pipeline(TEXT.replace("Good?", "<b>Good</b>?"), backend=ScriptedBackend())
    run = pipeline.run(interviewer="deferred", logs_root=tmp_path / "run")
    box = RunBox(run)
    card = box.gates.wait_for("review", SECONDS)
    assert "<b>" not in card.box.children[0].value
    run.cancel()
    run.result(timeout=SECONDS)
    wait_until(lambda: not box.gates.is_waiting)


def test_without_a_notebook_the_method_says_what_is_missing_and_with_one_makes_it(run):
    with pytest.raises(OptionError, match=r"run\.widget\(\) belongs to notebooks"):
        run.widget()
    remove = register_widget(RunBox)
    try:
        assert isinstance(run.widget(), RunBox)
    finally:
        remove()
