"""The form of a pipeline's inputs as a widget: fields, a button, and what it says."""

import ipywidgets as widgets
import pytest

from attractor_nb import Pipeline
from attractor_nb.notebook.run_form import run_form

ASK = """digraph ask {
    inputs="ticket, tone='<b>plain</b>'"
    start [shape=Mdiamond]
    ask [prompt="Answer $ticket in a $tone voice."]
    done [shape=Msquare]
    start -> ask -> done
}"""


def all_of(widget, kind):
    found = [widget] if isinstance(widget, kind) else []
    return found + [each for child in getattr(widget, "children", ()) for each in all_of(child, kind)]


@pytest.fixture
def shown():
    form = Pipeline(ASK).form(durability="none", is_shown=False)
    return form, run_form(form)


def test_a_click_runs_with_what_is_filled_in(shown):
    form, widget = shown
    fields = all_of(widget, widgets.Textarea)
    assert [field.placeholder for field in fields] == ["", "<b>plain</b>"]
    fields[0].value = "the printer"
    all_of(widget, widgets.Button)[0].click()
    assert "the printer" in form.run.result()["ask"].prompt
    assert all_of(widget, widgets.HTML)[-1].value == ""


def test_what_is_missing_is_said_and_nothing_runs(shown):
    form, widget = shown
    all_of(widget, widgets.Button)[0].click()
    said = all_of(widget, widgets.HTML)[-1].value
    assert form.run is None
    assert 'role="alert"' in said
    assert "ticket" in said
    assert "<b>" not in said.partition(">")[2].removesuffix("</pre>")


def test_a_shell_shows_the_widget_where_somebody_can_fill_it_in():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell()
    shell.extension_manager.load_extension("attractor_nb")
    shell.user_ns["form"] = Pipeline(ASK).form()
    with capture_output() as captured:
        shell.run_cell("form")
    assert "run it with pipeline.run" in captured.stdout, "nobody can click in a terminal"
