"""Records the cassettes of the tour anew: after a change of what a prompt carries, or of a notebook's pipeline.

    python tests/notebooks/record_cassettes.py

The answers are those below, written by hand; the scripted server of tests/backends/llm gives them in the forms
of the providers. No key is needed, and nothing leaves this machine.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import nbformat

from attractor_nb import Pipeline

REPOSITORY = Path(__file__).resolve().parents[2]
NOTEBOOK = REPOSITORY / "notebooks" / "07_models_and_stylesheets.ipynb"
CASSETTE = REPOSITORY / "notebooks" / "cassettes" / "release.json"
SERVER = REPOSITORY / "tests" / "backends" / "llm" / "scripted_server.py"
_NEWS = "Version 2.0 finds things in a tenth of the time and works without a network."
ANSWERS = (
    ("1. What is new: faster search.\n2. What changed: settings have moved.\n3. How to upgrade.", (31, 26)),
    (f"{_NEWS} Your settings are in one place now. Upgrading takes a minute.", (74, 33)),
    ("It does not say what becomes of the old settings.", (118, 12)),
    (f"{_NEWS} Your old settings are taken over. Upgrading takes a minute.", (160, 33)),
)


def pipeline_of(notebook: Path, cell_id: str) -> str:
    """The DOT text of a cell."""
    cells = nbformat.read(notebook, as_version=4).cells
    (source,) = [cell.source for cell in cells if cell.id == cell_id]
    return source.split("\n", 1)[1]


def record(target: Path = CASSETTE) -> None:
    """Run the pipeline of notebook 7 against the scripted server, and keep what was said."""
    program = _load(SERVER)
    replies = [program.Reply(text, usage=usage) for text, usage in ANSWERS]
    with program.ScriptedServer(*replies) as server:
        os.environ.update(
            OPENAI_BASE_URL=server.base_url("openai"),
            ANTHROPIC_BASE_URL=server.base_url("anthropic"),
            OPENAI_API_KEY="not-a-key",
            ANTHROPIC_API_KEY="not-a-key",
        )
        Pipeline(pipeline_of(NOTEBOOK, "sheet")).run(
            wait=True,
            backend="llm",
            cassette=target,
            cassette_mode="record",
            durability="none",
            is_shown=False,
        )


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    record()
