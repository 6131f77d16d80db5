"""The examples of docs/evaluation.md are true: its programs run one after the other, and its scorers exist."""

import re
from pathlib import Path

from attractor_nb.evaluation import scorers

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "evaluation.md").read_text("utf-8")


def test_the_programs_on_the_page_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    programs = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(programs) == 8
    for program in programs:
        exec(compile(program, "docs/evaluation.md", "exec"), names)


def test_the_table_of_scorers_names_all_that_exist():
    table = PAGE.split("| scorer | value |")[1].split("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)\(", line.split("|")[1])}
    assert named == {factory.__name__ for factory in scorers._FACTORIES}
