"""A stage that is run for each item of a list, as it is drawn, counted and inspected."""

import json

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.model.events import ChildEnded, ChildStarted, StageStarted
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.folding import fold_event, take_event
from attractor_nb.views.state import RunView
from tests.pipeline.test_for_each import FILES, FRAME, PerItem, repeated, run


def begun(item, visit=1, count=3):
    """The run of an item begins."""
    return ChildStarted(name="review", visit=visit, child_id=f"r{visit}{item}", item=item, item_count=count)


def ended(item, status="completed", visit=1):
    """And it ends."""
    return ChildEnded(name="review", visit=visit, child_id=f"r{visit}{item}", item=item, status=status)


def note_after(*events):
    """The text in the box of the stage after these events."""
    view = RunView()
    for event in (StageStarted(name="review", visit=1), *events):
        take_event(view, event)
    return view.nodes["review"].note


@pytest.fixture
def directory(tmp_path):
    """A run directory to be."""
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("events", "note"),
    [
        ([begun(0)], "0 of 3"),
        ([begun(0), begun(1), ended(0)], "1 of 3"),
        ([begun(0), ended(0, "failed"), begun(1), ended(1)], "2 of 3, 1 failed"),
        ([begun(0), ended(0, "interrupted"), begun(0)], "0 of 3"),
        ([begun(0), ended(0, "interrupted")], "1 of 3, 1 stopped"),
        ([begun(0), ended(0), StageStarted(name="review", visit=2)], ""),
        ([begun(0), ended(0), StageStarted(name="review", visit=2), begun(0, 2, 5)], "0 of 5"),
    ],
    ids=["begun", "one of them", "one failed", "taken up", "stopped", "another visit", "items of another visit"],
)
def test_the_box_says_how_many_items_have_ended_and_how_many_failed(events, note):
    assert note_after(*events) == note


def test_what_happens_in_the_run_of_an_item_changes_the_box_only_when_the_count_does():
    view = RunView()
    for event in (StageStarted(name="review", visit=1), begun(0), begun(1)):
        fold_event(view, event)
    assert "review" in fold_event(view, ended(0))[1]["nodes"]
    assert not fold_event(view, ended(0))[1]


def test_the_count_is_the_same_live_and_read(directory):
    result = run(repeated(), directory, PerItem({"b.py": Outcome.fail("no")}))
    assert result.view.nodes["review"].note == "3 of 3, 1 failed"
    assert Run.load(directory).view.nodes["review"].note == "3 of 3, 1 failed"
    assert "3 of 3, 1 failed" in Run.load(directory)._repr_mimebundle_()["image/svg+xml"]


def test_the_box_has_the_shape_of_its_stage_and_names_the_list():
    body = 'x [shape=parallelogram, for_each="item in files", tool_command=ls] start -> x -> done'
    box = next(box for box in draw_scene(Pipeline(FRAME.format(graph="", body=body)).graph).boxes if box.node_id == "x")
    assert (box.shape.name, box.detail) == ("PARALLELOGRAM", "each item in files")


def test_the_pipeline_of_an_item_is_drawn_beneath_as_that_of_a_sub_pipeline_is():
    svg = Pipeline(repeated()).to_svg()
    assert 'data-child="review"' in svg


# -- the inspector -------------------------------------------------------------------------------------


def test_the_inspector_lists_the_items_with_their_values_and_ends(directory):
    run(repeated(), directory, PerItem({"b.py": Outcome.fail("no taste")}))
    stage = Run.load(directory).inspect("review")
    plain = [(one["index"], one["value"], one["status"], one["reason"]) for one in stage.to_plain()["items"]]
    assert plain == [(0, "a.py", "success", ""), (1, "b.py", "fail", "no taste"), (2, "c.py", "success", "")]
    assert "no taste" in str(stage)
    assert '<th scope="col">value</th>' in stage._repr_mimebundle_()["text/html"]


def test_items_that_never_began_are_listed_as_such(directory):
    run(
        repeated('prompt="${item}", max_parallel=1, error_policy=fail_fast'),
        directory,
        PerItem({"a.py": Outcome.fail("no")}),
    )
    items = Run.load(directory).inspect("review").items
    assert [one.status for one in items] == ["fail", "not started", "not started"]


def test_an_exported_page_has_the_values_of_the_items_too(directory, tmp_path):
    run(repeated(), directory)
    page = Run.load(directory).export_html(tmp_path / "run.html").read_text("utf-8")
    assert all(f'"value": "{name}"' in page or f'"value":"{name}"' in page for name in FILES)


def test_a_large_list_is_listed_with_its_values(directory):
    run(repeated('prompt="x"'), directory, params={"files": ["a" * 200_000, "b"]})
    assert [len(one["value"]) for one in Run.load(directory).inspect("review").to_plain()["items"]] == [200, 1]


def test_another_stage_has_no_items(directory):
    run(repeated(), directory)
    assert Run.load(directory).inspect("start").to_plain()["items"] == []


def test_the_run_of_an_item_can_be_opened_and_its_files_read(directory):
    run(repeated(), directory)
    loaded = Run.load(directory)
    answer = answer_inspection(loaded, {"node": "review", "item": 1, "visit": 1})
    assert (answer["kind"], answer["node"], answer["item"], answer["of_visit"]) == ("stage", "review", 1, 1)
    assert answer["response"] == "read b.py"
    file = answer_inspection(loaded, {"node": "review", "item": 1, "file": "response.md"})
    assert (file["kind"], file["text"], file["item"]) == ("file", "read b.py", 1)
    json.dumps(answer)


@pytest.mark.parametrize(
    ("item", "problem"),
    [(7, "review has no item 7"), (1, "item 1 of review has no run yet")],
    ids=["unknown", "not begun"],
)
def test_an_item_without_a_run_is_answered_with_the_problem(item, problem, directory):
    run(
        repeated('prompt="${item}", max_parallel=1, error_policy=fail_fast'),
        directory,
        PerItem({"a.py": Outcome.fail("no")}),
    )
    assert problem in answer_inspection(Run.load(directory), {"node": "review", "item": item})["problems"][0]


def test_the_items_of_an_earlier_visit_are_those_of_that_visit(directory):
    run(repeated(), directory)
    again = Run.load(directory, Pipeline(repeated())).rewind(
        "review", backend=PerItem(dict.fromkeys(FILES, "once more")), durability="fast"
    )
    assert again.result(60).status == "success"
    loaded = Run.load(directory)
    said = [answer_inspection(loaded, {"node": "review", "item": 0, "visit": visit})["response"] for visit in (1, 2)]
    assert said == ["read a.py", "once more"]


@pytest.mark.parametrize("path", ["review/1>review", "review>review"])
def test_a_path_leads_to_the_run_of_an_item(path, directory):
    run(repeated('prompt="${item}", max_parallel=1'), directory)
    expected = {"review/1>review": "read b.py", "review>review": "read c.py"}[path]
    assert Run.load(directory).inspect(path).response == expected
