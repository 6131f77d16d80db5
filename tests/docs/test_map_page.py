"""What docs/map.md shows is true: its program runs, and the options that it names exist."""

import re
from pathlib import Path

from attractor_nb.maps.map_options import own_options

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "map.md").read_text("utf-8")


def test_the_program_on_the_page_runs():
    program = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
    exec(compile(program, "docs/map.md", "exec"), {})


def test_the_options_on_the_page_exist():
    table = PAGE.split("| option | meaning |")[1].split("\n\n")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(named) == 9
    own = own_options(**dict.fromkeys(set(named) & {"max_budget_usd_all", "max_tokens_all", "max_duration_all"}))
    assert [name for name in named if not hasattr(own, name)] == []
