"""The prebuilt parse tables of conditions and stylesheets."""

import json
from importlib import resources

import lark
import pytest

from attractor_nb.languages import parse_tables


@pytest.mark.parametrize("package", parse_tables.PACKAGES)
def test_the_tables_are_those_of_the_grammar(package):
    shipped = (resources.files(package) / "tables.json").read_text("utf-8")
    if json.loads(shipped)["lark"] != lark.__version__:
        pytest.skip("another lark than the one that made the tables")
    built = json.loads(parse_tables.build_tables(package))
    assert _without_numbering(built) == _without_numbering(json.loads(shipped))


def _without_numbering(tables):
    """The rules and terminals; their numbers follow set order and differ from build to build."""
    return sorted(json.dumps(entry, sort_keys=True) for entry in _terminals(tables)), len(
        tables["data"]["parser"]["parser"]["states"]
    )


def _terminals(tables):
    return [entry for entry in tables["memo"].values() if entry["__type__"] == "TerminalDef"]


@pytest.mark.parametrize("package", parse_tables.PACKAGES)
def test_tables_of_another_lark_are_passed_over(package, monkeypatch):
    monkeypatch.setattr(lark, "__version__", "0.0")
    parser = parse_tables.load_parser.__wrapped__(package)
    assert parser.parse("").data == "start"


def test_tables_can_be_written_again(monkeypatch, tmp_path):
    for package in parse_tables.PACKAGES:
        folder = tmp_path / package
        folder.mkdir()
        (folder / "grammar.lark").write_text(
            (resources.files(package) / "grammar.lark").read_text("utf-8"), "utf-8"
        )
    monkeypatch.setattr(parse_tables.resources, "files", lambda package: tmp_path / package)
    parse_tables.write_tables()
    assert all((tmp_path / package / "tables.json").stat().st_size for package in parse_tables.PACKAGES)
