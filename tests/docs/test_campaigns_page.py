"""The page of campaigns is true: each fault has its figure, and each test that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "campaigns.md").read_text("utf-8")
FAULTS = dict(re.findall(r"^\| (\d+) \|.*\| (.*) \|$", PAGE, re.MULTILINE))
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", PAGE)))


@pytest.mark.parametrize("number", range(1, 20))
def test_each_fault_has_a_figure_and_a_test(number):
    figures = FAULTS[str(number)]
    files = re.findall(r"\(`(\w+\.py)`\)", figures)
    assert files, figures
    assert all((ROOT / "tests" / "faults" / name).exists() for name in files)


@pytest.mark.parametrize(("path", "names"), NAMED)
def test_each_test_that_is_named_exists(path, names):
    text = (ROOT / path).read_text("utf-8")
    for name in names.split("::")[1:]:
        assert re.search(rf"^\s*(?:async )?(?:def|class) {name}\b", text, re.MULTILINE), name
