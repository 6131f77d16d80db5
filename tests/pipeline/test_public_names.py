"""Tab shows those names of a handle that are meant for users."""

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from attractor_nb import Pipeline
from attractor_nb.maps.map_launch import MapRun
from attractor_nb.pipeline.run import Run

OF_EVERY_HANDLE = {"cancel", "gates", "id", "is_done", "pipeline", "result", "status", "stops", "view", "wait"}
OF_A_RUN = {
    *(
        "answer",
        "changes",
        "children",
        "debugger",
        "details",
        "error",
        "events",
        "explain",
        "explain_loop",
        "export_html",
        "fork",
    ),
    *("graph", "heat", "inspect", "journal", "load", "logs_root", "mark", "on_event", "outcomes", "read_stage_file"),
    *("replay", "resume", "rewind", "tell", "timeline", "to_mermaid", "to_png", "to_svg", "visits", "wait_for_gate"),
    *("why", "widget"),
}
OF_A_MAP = {"directory", "export_html", "on_row", "stop", "when_done"}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_a_handle_offers_what_people_call():
    pipeline = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    run, rows = pipeline.run(durability="none"), pipeline.map([{}], durability="none")
    run.result()
    rows.result()
    assert (type(run), type(rows)) == (Run, MapRun)
    assert public(run) == OF_EVERY_HANDLE | OF_A_RUN
    assert public(rows) == OF_EVERY_HANDLE | OF_A_MAP


@pytest.mark.parametrize(
    ("typed", "key"), [('run["pl', "plan"), ('result["pl', "plan"), ('result.context["tic', "ticket")]
)
def test_a_run_its_result_and_its_context_complete_their_keys(typed, key):
    shell = InteractiveShell()
    pipeline = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> plan -> done }")
    run = pipeline.run(durability="none", params={"ticket": "42"})
    shell.user_ns.update(run=run, result=run.result())
    with provisionalcompleter():
        offered = [found.text for found in shell.Completer.completions(typed, len(typed))]
    assert any(key in text for text in offered), offered
