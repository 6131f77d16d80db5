"""The prebuilt parse tables of conditions and stylesheets."""

import subprocess
import sys
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark, UnexpectedInput

from attractor_nb.languages import table_building
from attractor_nb.languages.parse_tables import Branch, ReadingStoppedError, parse_tree
from attractor_nb.languages.table_building import PACKAGES, build_tables, write_tables

WORDS = [
    "outcome",
    "=",
    "!=",
    "&&",
    '"a b"',
    "x",
    " ",
    "* ",
    "{",
    "}",
    "llm_model",
    ":",
    ";",
    ".c",
    "#d",
    "/* e */",
    "'",
    "|",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


def grammar(package):
    return (resources.files(package) / "grammar.lark").read_text("utf-8")


LARKS = {package: Lark(grammar(package), parser="lalr", maybe_placeholders=False) for package in PACKAGES}


def plain(tree):
    """A tree of either make as nested lists."""
    if isinstance(tree, Branch):
        return [tree.rule, *map(plain, tree.parts)]
    return [str(tree.data), *map(plain, tree.children)] if hasattr(tree, "data") else _terminal(tree)


def _terminal(token):
    if hasattr(token, "start_pos"):
        return (token.type, str(token), token.start_pos, token.end_pos)
    return tuple(token)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_shipped_tables_are_those_of_the_grammar(package):
    assert (resources.files(package) / "tables.json").read_text("utf-8") == build_tables(grammar(package))


@pytest.mark.parametrize("package", PACKAGES)
@given(text=TEXTS)
def test_our_loop_reads_and_stops_as_lark_does(package, text):
    expected, stop = read_by_lark(package, text)
    if stop is None:
        assert plain(parse_tree(package, text)) == expected
    else:
        with pytest.raises(ReadingStoppedError) as stopped:
            parse_tree(package, text)
        assert stopped.value.offset == stop


def read_by_lark(package, text):
    """The tree, or the offset at which lark stops."""
    try:
        return plain(LARKS[package].parse(text)), None
    except UnexpectedInput as error:
        is_end = getattr(getattr(error, "token", None), "type", "") == "$END"
        return None, len(text) if is_end else error.pos_in_stream


def test_tables_can_be_written_again(monkeypatch, tmp_path):
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "grammar.lark").write_text(grammar(package), "utf-8")
    monkeypatch.setattr(table_building.resources, "files", lambda package: tmp_path / package)
    write_tables()
    assert all((tmp_path / package / "tables.json").stat().st_size for package in PACKAGES)


def test_reading_needs_no_lark():
    program = (
        "import sys\n"
        "from attractor_nb.languages.condition import parse_condition\n"
        "from attractor_nb.languages.stylesheet import parse_stylesheet\n"
        "parse_condition('outcome=success'); parse_stylesheet('* { model: a }')\n"
        "print(sorted({'lark', 'networkx', 'asyncio', 'subprocess', 'logging'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"
