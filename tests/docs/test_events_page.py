"""The examples of docs/events.md run as they are written, those over HTTP against a real server."""

import re
from pathlib import Path

from attractor_nb.model.events import EVENT_TYPES
from tests.server.conftest import TOKEN, running

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "events.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with running(tmp_path / "runs") as client:
        variables = {"SERVER": client.base, "TOKEN": TOKEN}
        for number, block in enumerate(BLOCKS):
            exec(compile(block, f"events.md, block {number}", "exec"), variables)
    assert len(BLOCKS) == 5


def test_the_events_that_the_page_names_exist():
    named = set(re.findall(r"`([A-Z]\w+)`", PAGE)) - {"SERVER", "TOKEN", "GET"}
    assert named <= set(EVENT_TYPES), named - set(EVENT_TYPES)
