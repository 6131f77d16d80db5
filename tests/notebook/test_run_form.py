"""The form of a pipeline's inputs in a cell: fields, what they start, and what is kept of both."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.notebook.editing import RunFormView
from attractor_nb.notebook.live.live_runs import LiveRuns

ASK = """digraph ask {
    inputs="ticket, tone='<b>plain</b>'"
    start [shape=Mdiamond]
    ask [prompt="Answer $ticket in a $tone voice."]
    done [shape=Msquare]
    start -> ask -> done
}"""


class Kept:
    """The output of the form's cell."""

    def __init__(self):
        self.bundles = []

    def update(self, bundle, *, raw):
        self.bundles.append(bundle)


@pytest.fixture
def shown():
    form = Pipeline(ASK).form(durability="none", is_shown=False)
    view = RunFormView(form, LiveRuns())
    view.said = []
    view.send = lambda content, buffers=None: view.said.append(content["words"])
    view._handle = Kept()
    return form, view


def test_a_click_runs_with_what_is_filled_in(shown):
    form, view = shown
    assert [field["words"] for field in view.fields] == ["", "otherwise: <b>plain</b>"]
    view._on_message(view, {"kind": "submit", "values": {"ticket": "the printer"}}, [])
    assert "the printer" in form.run.result()["ask"].prompt
    assert view.said == [""]


def test_what_is_missing_is_said_and_nothing_runs(shown):
    form, view = shown
    view._on_message(view, {"kind": "submit", "values": {}}, [])
    assert form.run is None
    assert "ticket" in view.said[0]


def test_what_was_started_last_is_kept_below_the_form(shown):
    form, view = shown
    view.update({"text/html": "<p>run</p>", "text/plain": "run"}, raw=True)
    (kept,) = view._handle.bundles
    assert kept["text/html"].startswith(f'<div data-attractor-place="{view.place}"')
    assert kept["text/html"].endswith("<p>run</p>")
    assert kept["text/plain"] == f"{form}\n\nrun"


def test_a_shell_shows_the_widget_where_somebody_can_fill_it_in():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    shell.extension_manager.load_extension("attractor_nb")
    try:
        shell.user_ns["form"] = Pipeline(ASK).form()
        with capture_output() as captured:
            shell.run_cell("form")
    finally:
        shell.extension_manager.unload_extension("attractor_nb")
    assert "run it with pipeline.run" in captured.stdout, "nobody can click in a terminal"
