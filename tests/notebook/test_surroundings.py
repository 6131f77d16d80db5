"""The environment of the code, and if a run is shown live there."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.notebook.environment import Surroundings, is_inline, is_live, probe

ATTENDED = Surroundings(has_kernel=True, is_attended=True, kernel_version=(7, 4))
HEADLESS = Surroundings(has_kernel=True, is_attended=False, kernel_version=(7, 4))
CLOSED = Surroundings(has_kernel=True, is_attended=True, kernel_version=(7, 4), has_closed_outputs=True)
TERMINAL = Surroundings()


@pytest.mark.parametrize(
    ("around", "mode", "environment", "expected"),
    [
        pytest.param(ATTENDED, "", {}, True, id="a person looks"),
        pytest.param(HEADLESS, "", {}, False, id="nbclient and nbval get static pictures"),
        pytest.param(TERMINAL, "", {}, False, id="a terminal has no widgets"),
        pytest.param(ATTENDED, "off", {}, False, id="off by option"),
        pytest.param(ATTENDED, "", {"ATTRACTOR_LIVE": "off"}, False, id="off by environment"),
        pytest.param(HEADLESS, "", {"ATTRACTOR_LIVE": "on"}, True, id="on by environment"),
        pytest.param(HEADLESS, "off", {"ATTRACTOR_LIVE": "on"}, False, id="the option wins"),
        pytest.param(TERMINAL, "on", {}, False, id="on cannot make a kernel"),
        pytest.param(ATTENDED, " AUTO ", {}, True, id="case and blanks do not count"),
    ],
)
def test_a_run_is_shown_live_where_a_person_can_click(around, mode, environment, expected):
    assert is_live(around, mode, environment) is expected


@pytest.mark.parametrize(
    ("around", "mode", "environment", "expected"),
    [
        pytest.param(ATTENDED, "", {}, False, id="a view stands in for its place in the page"),
        pytest.param(CLOSED, "", {}, True, id="it cannot where outputs are cut off"),
        pytest.param(CLOSED, "off", {}, False, id="off is off"),
        pytest.param(ATTENDED, "inline", {}, True, id="by option"),
        pytest.param(ATTENDED, "", {"ATTRACTOR_LIVE": "inline"}, True, id="by environment"),
    ],
)
def test_a_view_is_inline_where_outputs_cannot_reach_one_another(around, mode, environment, expected):
    assert is_inline(around, mode, environment) is expected


def test_inline_is_live_whoever_looks():
    assert is_live(HEADLESS, "inline", {})
    assert not is_live(TERMINAL, "inline", {})


def test_vs_code_and_colab_are_known_by_what_they_leave_in_the_kernel(monkeypatch):
    kernel = SimpleNamespace()
    assert not probe(SimpleNamespace(kernel=kernel, user_ns={})).has_closed_outputs
    assert probe(SimpleNamespace(kernel=kernel, user_ns={"__vsc_ipynb_file__": "a.ipynb"})).has_closed_outputs
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    assert probe(SimpleNamespace(kernel=kernel, user_ns={})).has_closed_outputs


def test_an_unknown_live_mode_names_the_known_ones():
    with pytest.raises(OptionError, match="auto, on, inline, off"):
        is_live(ATTENDED, "sometimes", {})


def test_a_shell_without_kernel_is_a_terminal():
    assert probe(SimpleNamespace()) == TERMINAL
    assert probe(None) == TERMINAL


def test_a_kernel_says_by_allow_stdin_whether_somebody_is_there():
    kernel = SimpleNamespace(_allow_stdin=False)
    assert not probe(SimpleNamespace(kernel=kernel)).is_attended
    kernel._allow_stdin = True
    assert probe(SimpleNamespace(kernel=kernel)).is_attended


def test_subshells_are_counted_without_making_their_manager():
    manager = SimpleNamespace(list_subshell=lambda: ["one"])
    thread = SimpleNamespace(_manager=manager)
    kernel = SimpleNamespace(_allow_stdin=True, shell_channel_thread=thread)
    assert probe(SimpleNamespace(kernel=kernel)).subshell_count == 1
    thread._manager = None
    assert probe(SimpleNamespace(kernel=kernel)).subshell_count == 0


LOAD = """
import sys, time
started = time.process_time()
import IPython
from IPython.core.interactiveshell import InteractiveShell
imported = time.process_time() - started
shell = InteractiveShell.instance()
before = set(sys.modules)
started = time.process_time()
shell.run_line_magic("load_ext", "attractor_nb")
loaded = time.process_time() - started
heavy = {"networkx", "anywidget", "ipywidgets", "pydantic", "lark", "httpx", "dask", "starlette", "xllamacpp", "rich"}
slow = {"asyncio", "concurrent.futures", "decimal", "subprocess"} & (sys.modules.keys() - before)
print(imported, loaded, *sorted(slow | heavy & sys.modules.keys()))
"""


def test_loading_the_extension_imports_nothing_heavy_and_costs_less_than_half_of_ipython(tmp_path):
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as where it is installed: the first run compiles
    printed = [
        subprocess.run(
            [sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(3)
    ]
    assert [line[2:] for line in printed] == [[], [], []]
    imported, loaded = (min(float(line[column]) for line in printed) for column in (0, 1))
    assert loaded <= 0.5 * imported
