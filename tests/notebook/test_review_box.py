"""A review as a box of ipywidgets, without a page: rows in turn, answers by buttons and keys, a file of lines."""

from __future__ import annotations

import getpass
import json
import time

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation import agreement
from attractor_nb.notebook.review_box import ReviewBox
from attractor_nb.runtime.handles.presenters import register_review

TEXT = """digraph answering {
    inputs="ticket"
    start [shape=Mdiamond]
    answer [prompt="$ticket"]
    done [shape=Msquare]
    start -> answer -> done
}"""
ROWS = [
    {"id": "a", "ticket": "I cannot pay", "expected": "Another card"},
    {"id": "b", "ticket": "It crashes"},
    {"id": "c", "ticket": "Money back"},
]


def reply(node, prompt, context):
    return Outcome.fail("no") if context["ticket"] == "broken" else f"re: {context['ticket']}"


@pytest.fixture
def pipeline(tmp_path):
    return Pipeline(TEXT, backend=reply, runs_dir=tmp_path / "runs")


@pytest.fixture
def evaluation(pipeline):
    return pipeline.evaluate(ROWS, {"judge": lambda output, row: (row["id"] != "c", "secretly judged")}, wait=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reviews.jsonl"


@pytest.fixture
def box(evaluation, path):
    return ReviewBox(evaluation, path)


def shown(box):
    return "".join(each.value for each in box.children if type(each).__name__ == "HTML")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_a_row_shows_inputs_and_output_and_neither_the_expected_answer_nor_the_judges(box):
    assert box.row.id == "a"
    assert "I cannot pay" in shown(box)
    assert "re: I cannot pay" in shown(box)
    assert "Another card" not in shown(box)
    assert "secretly judged" not in shown(box)
    assert "row a, 1 of 3" in shown(box)


def test_a_click_stores_the_answer_at_once_with_note_tag_name_and_time(box, path):
    box.note.value, box.tag.value = " too short ", "tone"
    before = time.time()
    box.bad.click()
    (line,) = lines(path)
    assert before - 1 <= line.pop("time") <= time.time() + 1
    assert line.pop("by").startswith(getpass.getuser())
    assert line == {"id": "a", "value": False, "note": "too short", "tag": "tone"}


def test_the_expected_answer_is_shown_behind_the_persons_own_and_next_goes_on(box):
    box.good.click()
    assert box.row.id == "a"
    assert "Another card" in shown(box)
    assert "answer: good" in shown(box)
    box.next.click()
    assert box.row.id == "b"
    assert "Another card" not in shown(box)


def test_a_row_without_an_expected_answer_is_followed_by_the_next_one(box):
    box.next.click()
    box.good.click()
    assert box.row.id == "c"
    assert (box.note.value, box.tag.value) == ("", "")


def test_keys_answer_and_move(box, path):
    for key in ("0", "n", "1", "b", "x", "?"):
        box.key_field.value = key
        assert box.key_field.value == ""
    assert [(line["id"], line["value"]) for line in lines(path)] == [("a", False), ("b", True)]
    assert box.row.id == "b"


def test_a_second_answer_is_appended_and_counts(box, path, evaluation):
    box.bad.click()
    box.good.click()
    assert [line["value"] for line in lines(path)] == [False, True]
    assert agreement(evaluation, path).counts == {(True, True): 1}


def test_the_ends_have_no_way_further(box):
    assert (box.back.disabled, box.next.disabled) == (True, False)
    box.key_field.value = "b"
    assert box.row.id == "a"
    box.next.click()
    box.next.click()
    assert (box.row.id, box.back.disabled, box.next.disabled) == ("c", False, True)


def test_opened_again_it_continues_at_the_first_row_without_an_answer(box, evaluation, path):
    box.tag.value = "tone"
    box.good.click()
    again = ReviewBox(evaluation, path)
    assert again.row.id == "b"
    assert "1 of 3 rows answered" in shown(again)
    again.back.click()
    assert "answer: good" in shown(again)
    assert "Another card" in shown(again)
    assert again.tag.value == "tone"


def test_when_all_rows_have_answers_it_says_so(box, evaluation, path):
    box.good.click()
    box.next.click()
    box.good.click()
    box.good.click()
    assert "all 3 rows answered" in shown(box)
    assert ReviewBox(evaluation, path).row.id == "a"


def test_a_note_that_is_typed_after_the_answer_is_stored_by_going_on(box, path):
    box.good.click()
    box.note.value = "but long"
    box.next.click()
    assert [(line["value"], line["note"]) for line in lines(path)] == [(True, ""), (True, "but long")]
    box.back.click()
    box.next.click()
    assert len(lines(path)) == 2


def test_a_note_without_an_answer_waits_for_it(box, path):
    box.note.value = "unsure"
    box.next.click()
    box.back.click()
    assert box.note.value == "unsure"
    assert not path.exists()


def test_an_answer_that_the_disk_refuses_is_said_and_the_row_stays(box, path):
    box.next.click()
    path.mkdir()
    box.good.click()
    assert box.row.id == "b"
    assert "the answer is not stored" in shown(box)
    path.rmdir()
    box.good.click()
    assert box.row.id == "c"
    assert "not stored" not in shown(box)


def test_what_is_shown_is_escaped_and_without_keys(pipeline, path):
    key = "sk-ant-api03-" + "a1B2" * 20
    rows = [{"id": "<b>", "ticket": f"<script>alert(1)</script> {key}"}]
    box = ReviewBox(pipeline.evaluate(rows, {"judge": lambda output: True}, wait=True), path)
    box.note.value = key
    box.good.click()
    assert "<script>" not in shown(box)
    assert "&lt;script&gt;" in shown(box)
    assert key not in shown(box)
    assert key not in path.read_text()


def test_rows_without_an_output_are_left_out(pipeline, path):
    rows = [{"id": "a", "ticket": "broken"}, {"id": "b", "ticket": "fine"}]
    assert ReviewBox(pipeline.evaluate(rows, {"judge": lambda output: True}, wait=True), path).row.id == "b"
    nothing = pipeline.evaluate(rows[:1], {"judge": lambda output: True}, wait=True)
    with pytest.raises(OptionError, match="no row of the evaluation has an output to review"):
        ReviewBox(nothing, path)


def test_an_output_that_a_function_reads_is_shown(pipeline, path):
    evaluation = pipeline.evaluate(
        ROWS[:1], {"judge": lambda output: True}, output=lambda run: f"prompt: {run['answer'].prompt}", wait=True
    )
    assert "prompt: " in shown(ReviewBox(evaluation, path))


def test_a_file_that_holds_something_else_is_refused(evaluation, path):
    path.write_text('{"id": "a", "grade": 1}\n')
    with pytest.raises(OptionError, match="is no review"):
        ReviewBox(evaluation, path)


def test_evaluation_review_gives_the_box_of_the_notebook_and_writes_beside_the_evaluation(evaluation, path):
    remove = register_review(ReviewBox)
    try:
        evaluation.review().good.click()
        evaluation.review(path).bad.click()
    finally:
        remove()
    assert lines(evaluation.directory / "reviews.jsonl")[0]["value"] is True
    assert lines(path)[0]["value"] is False


def test_without_a_notebook_a_review_is_refused(evaluation):
    with pytest.raises(OptionError, match=r"evaluation\.review\(\) belongs to notebooks"):
        evaluation.review()


def test_loading_the_extension_brings_the_box_and_unloading_removes_it(evaluation, path):
    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.notebook.extension import load, unload

    shell = InteractiveShell.instance()
    load(shell)
    try:
        assert isinstance(evaluation.review(path), ReviewBox)
    finally:
        unload(shell)
        InteractiveShell.clear_instance()
    with pytest.raises(OptionError, match="no notebook's extension is loaded"):
        evaluation.review(path)


def test_a_row_whose_output_cannot_be_read_any_more_says_why_and_is_reviewed(pipeline, path):
    lost = []

    def last_word(run):
        if lost:
            raise KeyError(lost[0])
        return run["answer"].response.split()[-1]

    evaluation = pipeline.evaluate(ROWS[:2], {"short": lambda output: len(output) < 40}, output=last_word, wait=True)
    lost.append("answer")
    box = ReviewBox(evaluation, path)
    assert "the output cannot be read: &#39;answer&#39;" in shown(box)
    box._answer(value=True)
    assert [line["value"] for line in lines(path)] == [True]
