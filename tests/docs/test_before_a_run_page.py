"""docs/before-a-run.md: its code prints what stands below it, its numbers are those of the code."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.lint.paths import MAX_CYCLES
from attractor_nb.lint.rules.path_rules import RULES
from attractor_nb.studio.estimate.estimated_usage import Assumptions

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "before-a-run.md").read_text("utf-8")


def test_the_code_prints_what_stands_below_it(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    blocks = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed
    assert len(blocks) == 3


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("A response has {:,} tokens", "response_tokens"),
        ("A preamble has {:,} tokens for each earlier stage", "carried_tokens"),
        ("A node with tools makes {:,} requests", "tool_requests"),
        ("`llm.max_tokens` or {:,} tokens", "max_response_tokens"),
        ("{:,} requests with tools", "max_tool_requests"),
    ],
)
def test_the_numbers_are_those_of_the_code(words, field):
    assert words.format(getattr(Assumptions(), field)) in " ".join(PAGE.split())


def test_the_rules_on_demand_and_the_bound_of_loops_are_named():
    section = " ".join(re.search(r"## Analyse all runs\n\n(.*?)\n## ", PAGE, re.DOTALL)[1].split())
    assert all(f"`{rule.name}`" in section for rule in RULES)
    assert f"the first {MAX_CYCLES} are listed" in section


def test_the_rules_exist():
    named = re.search(r"## Lint rules about models\n\n(.*?)\n\n", PAGE, re.DOTALL)[1]
    assert set(re.findall(r"`(\w+)`", named)) <= {rule.name for rule in BUILT_IN_RULES}
