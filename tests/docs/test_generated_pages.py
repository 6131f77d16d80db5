"""The generated pages of docs/, and the words that are coloured, say what the tables of the project say now."""

import importlib.util
from pathlib import Path

import pytest

from attractor_nb.model.texts import STEERING
from tests.docs.hosts import FEATURES, HOSTS, UNTESTED, shown_cells

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
DOCS = REPOSITORY / "docs"


def load_generator():
    spec = importlib.util.spec_from_file_location("attractor_docs_generator", HERE / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load_generator().PAGES


SLOW = "docs/statistics.md"
"""Its simulations take 20 s."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.campaign] * (name == SLOW)) for name in PAGES])
def test_the_page_is_fresh(name):
    now = (REPOSITORY / name).read_text("utf-8")
    assert now == PAGES[name](now), "run `make docs`"


def test_each_cell_of_the_table_of_hosts_is_shown_by_a_test_or_has_a_reason():
    cells = {(host, feature) for host in HOSTS for feature in FEATURES}
    untested = {(host, feature) for host, features in UNTESTED.items() for feature in features}
    assert set(shown_cells()) | untested == cells
    assert set(shown_cells()) & untested == set()


def test_the_page_of_errors_has_every_malformed_source():
    rows = [line for line in (DOCS / "errors.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    assert len(rows) > 220


def test_no_page_holds_a_control_character():
    for page in sorted(DOCS.rglob("*.md")):
        found = STEERING.search(page.read_text("utf-8"))
        assert found is None, f"{page.name}: {found[0]!r}"
