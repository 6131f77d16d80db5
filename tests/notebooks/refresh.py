"""Executes the notebooks of the tour in place and keeps nothing in them that differs between two runs.

    python tests/notebooks/refresh.py notebooks/01_quickstart.ipynb

Without arguments: all of them. The outputs that it writes are what nbval compares with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CELL_SECONDS = 120
LAYOUT = {"ATTRACTOR_LAYOUT": "layered"}
"""Pictures that do not depend on the Graphviz of this machine; the target ``test`` says the same."""
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def refresh(path: Path) -> None:
    """Execute a notebook as nbval does: from its own folder, with nobody there to click."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    os.environ.update(LAYOUT)
    client.execute()
    notebook.metadata.update(METADATA)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(str(path) for path in NOTEBOOKS.glob("*.ipynb")):
        print(name)
        refresh(Path(name).resolve())
