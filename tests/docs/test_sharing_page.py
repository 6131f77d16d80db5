"""The examples of the page about comparing and sharing are true."""

import contextlib
import io
import re
from pathlib import Path

from attractor_nb import Pipeline, Run
from attractor_nb.studio.compare.compare_runs import Comparison
from attractor_nb.studio.export_page import MAX_BYTES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sharing.md").read_text("utf-8")


def test_the_example_of_the_page_finds_the_difference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "sharing.md", "exec"), {})
    assert printed.getvalue() == "draft ('response',)\n"


def test_the_calls_that_the_page_names_exist():
    for name in re.findall(r"`both\.(\w+)\(", PAGE):
        assert hasattr(Comparison, name), name
    for owner, name in re.findall(r"`(run|pipeline)\.(\w+)\(", PAGE):
        assert hasattr({"run": Run, "pipeline": Pipeline}[owner], name), name
    assert f"{MAX_BYTES / 1e6:g} MB" in PAGE
