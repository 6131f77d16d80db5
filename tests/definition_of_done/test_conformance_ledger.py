"""The ledger ``docs/conformance.md`` is complete, and every proof that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEDGER = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in LEDGER.splitlines()
    if line.startswith("| ") and not line.startswith("| section") and not line.startswith("| ruling")
]
PROOFS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", LEDGER)))

SECTIONS = {1: 4, 2: 13, 3: 8, 4: 12, 5: 6, 6: 5, 7: 4, 8: 6, 9: 7, 10: 7, 11: 13}
"""Chapters of the specification's table of contents, and how many sections each has."""


@pytest.mark.parametrize(("path", "name"), PROOFS, ids=[name for _, name in PROOFS])
def test_every_proof_in_the_ledger_exists(path, name):
    source = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"


def test_every_section_of_the_specification_has_one_row():
    wanted = [f"{chapter}.{number}" for chapter, count in SECTIONS.items() for number in range(1, count + 1)]
    wanted += ["A", "B", "C", "D"]
    found = [row[0] for row in ROWS if len(row) == 5 and row[0] in set(wanted)]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("document", ["run-directory", "status-file", "task-verification", "status-schema"])
def test_every_companion_document_has_rows(document):
    assert [row for row in ROWS if row[0].startswith(document)]


def test_every_ruling_has_one_row():
    numbers = [int(row[0]) for row in ROWS if len(row) == 3 and row[0].isdecimal()]
    assert numbers == sorted(set(numbers))
    assert set(range(1, 34)) <= set(numbers)


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) == 5], ids=lambda row: f"{row[0]} {row[1]}")
def test_a_section_is_done_and_proven_or_belongs_to_an_issue(row):
    _, _, state, proof, _ = row
    assert "done" in state or "issue" in state or state.startswith("not added")
    if "done" in state:
        assert re.fullmatch(r"`tests/[\w/]+\.py::\w+`", proof)
