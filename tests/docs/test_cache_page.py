"""The examples of docs/cache.md are true: its program prints what it says, and its bounds are those of the code."""

import re
import shutil
from pathlib import Path

from attractor_nb.engine.stage_cache import COMPARED_ENTRIES
from attractor_nb.storage.cache_store import MAX_ENTRY_BYTES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cache.md").read_text("utf-8")


def test_the_program_on_the_page_executes_exactly_what_the_edit_invalidates(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    program = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
    exec(compile(program, "docs/cache.md", "exec"), {"__name__": "page"})
    printed = dict(re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))[""]
    assert capsys.readouterr().out == printed


def test_the_bounds_on_the_page_are_those_of_the_code():
    assert f"node's {COMPARED_ENTRIES} newest" in PAGE
    assert f"over {MAX_ENTRY_BYTES // 2**20} MiB" in PAGE
