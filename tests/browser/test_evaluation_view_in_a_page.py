"""The evaluation of a cell in a bare page: rows by mouse and keys, repeats, refusals, texts that stay texts."""

from __future__ import annotations

import pytest

from attractor_nb import Pipeline
from attractor_nb.notebook.evaluation_view import EvaluationView
from attractor_nb.notebook.live.live_runs import LiveRuns

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.hit=1">'
TEXT = """digraph triage { inputs="ticket"
    start [shape=Mdiamond] classify [prompt="Which team? $ticket"] done [shape=Msquare]
    start -> classify -> done }"""
ROWS = [
    {"id": "t1", "ticket": "pay", "expected": f"yes {HOSTILE}"},
    {"id": HOSTILE, "ticket": "pay now", "expected": "no"},
]
NAMES = ("headline", "scores", "rows", "count", "opened", "beneath")


def correct(output, expected):
    return output == expected


@pytest.fixture
def opened(open_view, tmp_path):
    def open_(**options):
        pipeline = Pipeline(TEXT, backend=lambda prompt: f"yes {HOSTILE}", runs_dir=tmp_path / "runs")
        evaluation = pipeline.evaluate(ROWS, correct, wait=True, **options)
        widget = EvaluationView(evaluation, LiveRuns())
        values = {name: getattr(widget, name) for name in NAMES}
        widget.close()
        return open_view("evaluation_view", "showEvaluation(host, el)", **values)

    return open_


def test_a_row_is_opened_by_a_click_or_by_keys_and_closed_again(opened):
    view = opened()
    view.page.locator(".av-row").first.locator("td").last.click()
    view.page.get_by_role("button", name="t1").press("Enter")
    assert view.sent == [{"kind": "open", "row": HOSTILE}, {"kind": "open", "row": "t1"}]
    view.set("beneath", [{"place": "k1", "title": f"Row {HOSTILE}"}])
    view.set("opened", {"row": "t1", "repeat": 0})
    button = view.page.get_by_role("button", name="t1")
    assert button.get_attribute("aria-expanded") == "true"
    assert view.page.locator(".an-title").text_content() == f"Row {HOSTILE}"
    button.click()
    assert view.sent[-1] == {"kind": "close"}
    assert view.page.evaluate("() => window.hit") is None
    assert view.page.locator("img").count() == 0
    view.shoot("evaluation-view")
    assert view.console == []


def test_each_repeat_of_a_row_can_be_opened(opened):
    view = opened(repeat=3)
    view.page.get_by_role("button", name="Show run 2 of row t1").click()
    assert view.sent == [{"kind": "open", "row": "t1", "repeat": 1}]


def test_a_refusal_is_read_and_without_a_kernel_nothing_is_offered(opened):
    view = opened()
    view.tell(kind="said", problem=f"row t1 is gone {HOSTILE}")
    assert view.page.locator(".av-said").text_content() == f"row t1 is gone {HOSTILE}"
    view.page.evaluate("() => window.host.lose()")
    assert view.page.get_by_role("button", name="t1").is_disabled()
    view.page.locator(".av-row").first.locator("td").last.click()
    assert view.sent == []
    assert "The kernel is gone" in view.page.locator(".av-said").text_content()
