"""The examples of docs/map.md are true: its program runs, and the options that it names exist."""

import re
from pathlib import Path

from attractor_nb.maps.map_work import own_options

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "map.md").read_text("utf-8")


def test_the_programs_on_the_page_run_one_after_the_other_and_show_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for program in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(compile(program, "docs/map.md", "exec"), names)
    assert f"```\n{names['both']}\n```" in PAGE


def test_the_options_on_the_page_exist():
    table = PAGE.split("| option | meaning |")[1].split("\n\n")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(named) == 9
    own = own_options(**dict.fromkeys(set(named) & {"max_budget_usd_all", "max_tokens_all", "max_duration_all"}))
    assert [name for name in named if not hasattr(own, name)] == []
