"""The line that says which call comes next names what the user has, in a real InteractiveShell."""

from __future__ import annotations

import atexit
import builtins

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from attractor_nb.notebook import load_ipython_extension, unload_ipython_extension

SETUP = """from attractor_nb import Pipeline, Run
talk = Pipeline('digraph talk { start [shape=Mdiamond] say [prompt="Say it"] done [shape=Msquare]'
    ' start -> say -> done }', backend="simulated")"""


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # A doctest leaves its last value there, and IPython then keeps its hands off the name.
    monkeypatch.delattr(builtins, "_", raising=False)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"hist_file": ":memory:"}}))
    load_ipython_extension(shell)
    shell.run_cell(SETUP)
    yield shell
    unload_ipython_extension(shell)
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    InteractiveShell.clear_instance()


def shown(shell, capsys, *cells):
    """The output of the last cell, printed or as its value."""
    for cell in cells:
        capsys.readouterr()
        assert shell.run_cell(cell).success
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        (["review = talk.run(stop_after=1)\nreview.result()", "print(review)"], "resume with review.resume()"),
        (["review = talk.run(stop_after=1)\nresult = review.result()", "print(result)"], "resume with review.resume()"),
        (["review = talk.run()\nreview.result()", "print(review)"], 'see review["say"]'),
        (["result = talk.run(wait=True)", "print(result)"], 'see result["say"]'),
        (["review = talk.run()", "review.result()"], 'see review["say"]'),
        (["talk.run(wait=True)"], 'see _["say"]'),
        (["review = talk.run()\nreview.result()", "print(review.replay())"], 'see review["say"]'),
        (["print(talk.run(wait=True))"], 'see run["say"]'),
        (["review = talk.run(stop_after=1)\nreview.result()\nagain = review.resume()\nagain.result()",
          "print(again)"], 'see again["say"]'),
        (["runs = [talk.run(stop_after=1)]\nruns[0].result()", "print(runs[0])"], "resume with run.resume()"),
    ],
)  # fmt: skip
def test_the_next_step_names_the_variable_that_the_user_has(shell, capsys, cells, step):
    assert step in shown(shell, capsys, *cells)


def test_the_name_that_is_shown_for_the_value_of_a_cell_works_in_the_next_one(shell, capsys):
    assert 'see _["say"]' in shown(shell, capsys, "talk.run(wait=True)")
    assert "[Simulated]" in shown(shell, capsys, 'print(_["say"].response)')


def test_another_run_under_the_usual_name_is_not_meant(shell, capsys):
    out = shown(
        shell, capsys, "run = talk.run(wait=True)\nreview = talk.run(stop_after=1)\nreview.result()", "print(review)"
    )
    assert "resume with review.resume()" in out


def test_without_the_extension_the_line_is_as_ever(shell, capsys):
    unload_ipython_extension(shell)
    assert 'see run["say"]' in shown(shell, capsys, "review = talk.run(wait=True)\nprint(review)")
