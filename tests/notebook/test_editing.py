"""Views that stand in for static outputs: made once, kept a while, and without a secret."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.notebook.editing import EditorViews, editor_html
from attractor_nb.studio.edit.editor_requests import EditorRequests
from attractor_nb.views.findings_table import findings_html

MOST_VIEWS = 24

TEXT = 'digraph { start [shape=Mdiamond] a [promt="x"] done [shape=Msquare] start -> a -> done }'


def test_the_key_of_findings_is_that_of_their_text_and_stands_at_the_static_table():
    views, pipeline = EditorViews(), Pipeline(TEXT)
    key = views.place_findings(pipeline)
    assert key == views.place_findings(Pipeline(TEXT)) != views.place_findings(Pipeline(TEXT.replace("a ", "b ")))
    html = findings_html(pipeline.diagnostics, place=key)
    assert html.startswith(f'<div data-attractor-place="{key}">')
    assert findings_html(pipeline.diagnostics) in html
    assert views.place_findings(Pipeline(TEXT.replace("promt", "prompt"))) == "", "nothing to click"


def test_an_editor_has_one_view_and_the_oldest_views_are_let_go():
    views, editor = EditorViews(), Pipeline(TEXT).edit()
    key = views.place_editor(editor)
    view = views._views[key]
    assert views.place_editor(editor) == key
    assert view.comm is not None
    others = [Pipeline(TEXT).edit() for _ in range(MOST_VIEWS)]
    keys = {views.place_editor(other) for other in others}
    assert len(keys) == MOST_VIEWS
    assert view.comm is None
    assert views.place_editor(editor) == key, "it comes back at the same place"


def test_what_a_view_is_sent_holds_no_secret():
    secret = "sk-ant-api03-" + "A1b2C3d4" * 8
    editor = Pipeline(TEXT.replace('"x"', f'"{secret}"')).edit()
    requests = EditorRequests(editor)
    replies, _ = requests.answer({"kind": "form", "target": {"node": "a"}})
    assert secret not in f"{requests.state()}{replies}{editor}{editor_html(editor, 'k')}"
    assert [field["is_locked"] for field in replies[0]["form"]["fields"] if field["name"] == "promt"] == [True]
    assert requests.state()["can_offer"] is False


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"kind": 3},
        {"kind": "set", "target": {"node": 3}, "name": ["x"]},
        {"kind": "set", "target": {"edge": 99}, "name": "label", "value": "x"},
        {"kind": "fix", "number": "1", "version": 0},
        {"kind": "rename", "node": None, "id": {}},
        {"kind": "add_edge", "source": "a", "target": "zz"},
        {"kind": "undo"},
        {"kind": "save"},
    ],
)
def test_a_message_of_an_old_or_foreign_view_is_refused_in_words(message):
    requests = EditorRequests(Pipeline(TEXT).edit())
    (reply,), is_changed = requests.answer(message)
    assert (reply["kind"], reply["is_error"], is_changed) == ("said", True, False)
    assert requests.editor.source == TEXT


def fix_all(text):
    requests = EditorRequests(Pipeline(text).edit())
    replies, _ = requests.answer({"kind": "fix_all"})
    return requests, next(each["words"] for each in replies if each["kind"] == "said")


SLIPS = """digraph {
    start [shape=Mdiamond]  done [shape=Msquare]
    build [promt="x", goal_gate=yes]
    check [prompt=p; timeout="5 s"]
    start -> biuld -> check -> done
}"""


def test_fix_all_mends_all_that_it_counts_and_says_so():
    counted = sum(finding["can_fix"] for finding in EditorRequests(Pipeline(SLIPS).edit()).state()["findings"])
    requests, words = fix_all(SLIPS)
    assert counted == 5
    assert not [finding for finding in requests.state()["findings"] if finding["can_fix"]]
    assert words.startswith(f"{counted} fixed, 1 left: ")
    assert 'the goal gate "build" has no retry_target' in words


def test_fix_all_that_leaves_nothing_says_so():
    requests, words = fix_all(TEXT)
    assert (words, requests.state()["findings"]) == ("1 fixed, none left.", [])


def test_all_fixes_are_one_change_that_can_be_taken_back():
    requests, _ = fix_all(SLIPS)
    requests.answer({"kind": "undo"})
    assert requests.state()["source"] == SLIPS
    assert not requests.editor.can_undo
