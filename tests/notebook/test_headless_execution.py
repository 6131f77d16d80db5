"""A notebook executed by nbclient, as nbval, papermill and nbconvert do: static, complete, the same each time."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = str(Path(__file__).resolve().parents[2])
CELLS = (
    "%load_ext attractor_nb",
    """%%attractor review
digraph review {
  start [shape=Mdiamond]
  plan [prompt="Plan it"]
  gate [shape=hexagon, label="Good?"]
  done [shape=Msquare]
  start -> plan -> gate
  gate -> done [label="[A] Approve"]
  gate -> plan [label="[R] Redo"]
}""",
    "run = review.run()",
    "run.wait_for_gate('gate', timeout=60)\nrun.answer('gate', 'approve').stage",
    "await run",
    "run['gate'].outcome.preferred_label",
)


def execute(folder):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(cell, id=f"cell-{number}") for number, cell in enumerate(CELLS)]
    environment = {**os.environ, "PYTHONPATH": REPOSITORY, "IPYTHONDIR": str(folder / "ipython")}
    client = NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)
    return [
        [{key: value for key, value in output.items() if key != "metadata"} for output in cell.outputs]
        for cell in notebook.cells
    ]


@pytest.mark.shows("nbclient", "picture", "stored output")
@pytest.mark.timeout(120)
def test_outputs_are_static_and_the_same_each_time(tmp_path):
    first = execute(tmp_path)
    assert first == execute(tmp_path)
    kinds = {kind for cell in first for output in cell for kind in output.get("data", {})}
    assert kinds == {"text/html", "image/svg+xml", "text/plain"}
    assert first[2] == [], "the run is shown where it is waited for, and once"
    picture, words = first[4]
    assert "state-success" in picture["data"]["image/svg+xml"]
    assert words["data"] == {"text/plain": '✓ completed   4 stages   simulated   see run["gate"]'}, (
        "seen beside the picture"
    )
    assert first[5][0]["data"]["text/plain"] == "'[A] Approve'"
