"""docs/libraries.md: a row for each package that pyproject.toml installs, no other, and what the rows name exists."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "libraries.md").read_text("utf-8")
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
REQUIRED = {"ipywidgets", "graphviz", "networkx", "pydantic", "lark", "nest-asyncio", "nbval", "pytest"}
FORKS = {"nest-asyncio2": "nest-asyncio"}


def rows(title):
    """The rows of a section's table, as lists of cells."""
    section = re.search(rf"## {title}\n(.*?)(?=\n## |\Z)", PAGE, re.DOTALL)[1]
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| ")
    ]
    return cells[2:]


def names(requirements):
    return {re.split(r"[\[><=;\s]", each)[0] for each in requirements}


ALWAYS, EXTRAS, EIGHT = rows("Always installed"), rows("Extras"), rows("The eight that the project is required to use")


def test_each_dependency_has_a_row_and_no_row_is_stale():
    assert [row[0] for row in ALWAYS] == sorted(names(PROJECT["dependencies"]))


def test_each_package_of_an_extra_has_a_row_that_names_its_extras():
    extras = {}
    for extra, requirements in PROJECT["optional-dependencies"].items():
        for name in names(requirements):
            extras.setdefault(name, set()).add(extra)
    assert {row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in EXTRAS} == extras
    assert [row[0] for row in EXTRAS] == sorted(extras)


@pytest.mark.parametrize("row", [*ALWAYS, *EXTRAS], ids=lambda row: row[0])
def test_a_row_names_modules_that_exist_and_a_newest_release(row):
    places = re.findall(r"`([\w/]+(?:/|\.py))`", " ".join(row))
    assert places
    assert all((REPOSITORY / "attractor_nb" / place).exists() for place in places), places
    assert re.search(r"; [\w.]+, 20\d\d-\d\d", row[-1])


def test_each_of_the_eight_names_a_test_that_exists():
    assert {FORKS.get(row[0], row[0]) for row in EIGHT} == REQUIRED
    for row in EIGHT:
        path, _, name = re.search(r"`([^`]+)`", row[1])[1].partition("::")
        assert not name or re.search(rf"def {name}\(", (REPOSITORY / path).read_text("utf-8")), row[1]
        assert (REPOSITORY / path).is_file()


PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-x")
BLOCKED = {"nest-asyncio": ("nest_asyncio2", "nest_asyncio")}  # the archived one is taken where only it is installed


@pytest.mark.campaign
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", EIGHT, ids=lambda row: row[0])
def test_the_test_of_a_required_package_fails_without_it_and_passes_with_it(row, tmp_path):
    test = re.search(r"`([^`]+)`", row[1])[1]
    options = ["--nbval"] if test.endswith(".ipynb") else []
    blocked = dict.fromkeys(BLOCKED.get(row[0], (row[0],)))

    def code(modules):
        """The exit code where each Python process, kernels and children too, lacks these modules."""
        (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update({modules!r})\n")
        paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, *PYTEST, test, *options]
        return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, timeout=500).returncode

    assert code({}) == 0
    assert code(blocked) != 0
