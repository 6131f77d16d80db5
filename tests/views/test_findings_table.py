"""Of very many findings the gravest are listed, and the number of the others is told."""

import pytest

from attractor_nb import Diagnostic, Pipeline, Severity
from attractor_nb.model import diagnostic
from attractor_nb.model.diagnostic import MOST_LISTED, listed, unlisted
from attractor_nb.studio.edit.editor_requests import EditorRequests
from attractor_nb.views.findings_table import findings_html, findings_text

WARNINGS = [Diagnostic("r", Severity.WARNING, f"odd {number}") for number in range(MOST_LISTED)]
NOTE, ERROR = Diagnostic("r", Severity.INFO, "a note"), Diagnostic("r", Severity.ERROR, "an error")


def test_as_many_findings_as_may_be_listed_are_listed():
    assert listed(WARNINGS) == list(enumerate(WARNINGS))
    assert unlisted(WARNINGS) == 0
    assert "more finding" not in findings_text(WARNINGS) + findings_html(WARNINGS)


def test_of_more_the_gravest_are_listed_in_source_order_with_their_position_among_all():
    found = [NOTE, *WARNINGS, ERROR]
    shown = listed(found)
    assert [number for number, _ in shown] == [*range(1, MOST_LISTED), MOST_LISTED + 1]
    assert shown[-1][1] is ERROR
    assert unlisted(found) == 2


@pytest.mark.parametrize("draw", [findings_text, findings_html], ids=["text", "HTML"])
@pytest.mark.parametrize(("count", "words"), [(1, "and 1 more finding"), (1500, "and 1,500 more findings")])
def test_a_table_says_how_many_more_there_are(draw, count, words):
    shown = draw([*WARNINGS, *[NOTE] * count])
    assert shown.count("odd ") == MOST_LISTED
    assert "a note" not in shown
    assert words in shown


def test_an_editor_lists_as_many_and_fixes_by_the_position_among_all(monkeypatch):
    monkeypatch.setattr(diagnostic, "MOST_LISTED", 1)
    source = "digraph { start [shape=Mdiamond] a [promt=x, prompt=y] b [promt=x] done [shape=Msquare] start -> a -> b -> dne }"
    editor = Pipeline(source).edit()
    state = EditorRequests(editor).state()
    (shown,) = state["findings"]
    assert shown["severity"] == "error"
    assert editor.diagnostics[shown["number"]].message == shown["message"]
    assert state["more_findings"] == len(editor.diagnostics) - 1
