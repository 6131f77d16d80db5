"""Executes the notebooks of the tour in place and keeps nothing in them that differs between two runs.

What nbval replaces before it compares is replaced here as well. What a language model said is kept as it
was said; nbval does not compare it.

    python tests/notebooks/refresh.py notebooks/01_quickstart.ipynb

Without arguments: all of them. The outputs that it writes are what nbval compares with.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
CELL_SECONDS = 120
SURROUNDINGS = {"ATTRACTOR_STATE_DIR": str(NOTEBOOKS.parent / ".venv" / "state")}
"""No traces in the user's home; the target ``test-notebooks`` says the same."""
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def refresh(path: Path) -> None:
    """Execute a notebook as nbval does: from its own folder, without a user to click."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    os.environ.update(SURROUNDINGS)
    client.execute()
    notebook.metadata.update(METADATA)
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if "text" in output:
            output.text = sanitized(output.text)
        for kind in {"text/plain", "text/html"} & output.get("data", {}).keys():
            output.data[kind] = sanitized(output.data[kind])
    nbformat.write(notebook, path)


def sanitized(text: str) -> str:
    """Text without the names that no two runs share."""
    rules = configparser.RawConfigParser()
    rules.read(NOTEBOOKS / "sanitize.cfg", encoding="utf-8")
    for section in rules.sections():
        text = re.sub(rules[section]["regex"], rules[section]["replace"], text)
    return text


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(str(path) for path in NOTEBOOKS.glob("*.ipynb")):
        print(name)
        refresh(Path(name).resolve())
