"""Runs in marimo, without marimo: what its cells are given. ``tests/browser/test_other_hosts.py`` has the real one."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import GateWouldBlock, OptionError
from attractor_nb.runtime.handles import presenters

GATE = """digraph review {
  start [shape=Mdiamond]
  ok    [shape=hexagon]
  done  [shape=Msquare]
  start -> ok
  ok -> done [label="[A] Approve"]
}"""


@pytest.fixture
def marimo(monkeypatch):
    """A module that says whether a cell runs, and keeps what was appended to its output."""
    module = ModuleType("marimo")
    module.outputs, module.is_in_cell = [], True
    module.running_in_notebook = lambda: module.is_in_cell
    module.output = ModuleType("marimo.output")
    module.output.append = module.outputs.append
    monkeypatch.setitem(sys.modules, "marimo", module)
    for name in ("_presenters", "_waiting_rules", "_click_rules", "_widget_makers", "_review_makers"):
        monkeypatch.setattr(presenters, name, [])
    monkeypatch.setattr(presenters, "_registered_hosts", set())
    return module


def test_a_run_is_appended_to_the_output_of_the_cell_that_starts_it(marimo):
    run = Pipeline(GATE).run(durability="none")
    [view] = marimo.outputs
    assert (view.place, view.has_gates, view.has_beside) == ("", True, False)
    assert run._display_() is view, "a later cell shows the view that follows the run"
    run.wait_for_gate(timeout=10)
    with pytest.raises(GateWouldBlock, match="end this cell and click"):
        run.result(10)
    run.answer("ok", "A")
    assert run.result(10).status == "success"


def test_outside_of_a_cell_nothing_is_registered_and_a_later_cell_is_not_missed(marimo):
    marimo.is_in_cell = False
    run = Pipeline(GATE).run(durability="none", interviewer="auto")
    assert marimo.outputs == []
    assert run.result(10).status == "success"
    with pytest.raises(OptionError, match="no notebook's extension is loaded"):
        run.widget()
    marimo.is_in_cell = True
    view = run.widget()
    assert view.states["line"]["is_ended"]
    assert view.place == ""


def test_a_process_without_marimo_imports_nothing_for_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "marimo", raising=False)
    monkeypatch.setattr(presenters, "HOSTS", {"marimo": "attractor_nb.no_such_module"})
    assert presenters.are_runs_shown() is bool(presenters._presenters)
