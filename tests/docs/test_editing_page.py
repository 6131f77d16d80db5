"""docs/editing.md is true: its program prints the difference below it, and the calls that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from attractor_nb.studio.edit.editor import Editor

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "editing.md").read_text("utf-8")


def test_the_program_prints_the_difference_below_it(capsys):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (printed,) = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "docs/editing.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out.strip() == printed.strip()


def test_each_call_of_the_table_is_there():
    named = set(re.findall(r"editor\.(\w+)", PAGE)) | set(re.findall(r"`\.(\w+)\(", PAGE))
    assert {name for name in named if not hasattr(Editor, name)} == set()
    assert len(named) > 12
