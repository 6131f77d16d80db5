"""The prebuilt parse tables of the three languages, and the trees of conditions and stylesheets."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark, UnexpectedInput

from attractor_nb import languages
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, parse_tree
from attractor_nb.languages.table_building import LANGUAGES, build_tables, write_tables

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


FOLDER = Path(languages.__file__).parent


def grammar(language):
    return (FOLDER / language / "grammar.lark").read_text("utf-8")


TREE_LANGUAGES = ("condition", "stylesheet")
LARKS = {language: Lark(grammar(language), parser="lalr", maybe_placeholders=False) for language in TREE_LANGUAGES}


def plain(tree):
    """A tree of either make as nested lists."""
    if isinstance(tree, Branch):
        return [tree.rule, *map(plain, tree.parts)]
    return [str(tree.data), *map(plain, tree.children)] if hasattr(tree, "data") else _terminal(tree)


def _terminal(token):
    if hasattr(token, "start_pos"):
        return (token.type, str(token), token.start_pos, token.end_pos)
    return tuple(token)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shipped_tables_are_those_of_the_grammar(language):
    assert (FOLDER / language / "tables.json").read_text("utf-8") == build_tables(grammar(language))


@pytest.mark.parametrize("language", TREE_LANGUAGES)
@given(text=TEXTS)
def test_our_loop_reads_and_stops_as_lark_does(language, text):
    expected, stop = read_by_lark(language, text)
    if stop is None:
        assert plain(parse_tree(language, text)) == expected
    else:
        with pytest.raises(ReadingStoppedError) as stopped:
            parse_tree(language, text)
        assert stopped.value.offset == stop


def read_by_lark(language, text):
    """The tree, or the offset at which lark stops."""
    try:
        return plain(LARKS[language].parse(text)), None
    except UnexpectedInput as error:
        is_end = getattr(getattr(error, "token", None), "type", "") == "$END"
        return None, len(text) if is_end else error.pos_in_stream


def test_tables_are_written_beside_their_grammars(tmp_path):
    for language in LANGUAGES:
        (tmp_path / language).mkdir()
        (tmp_path / language / "grammar.lark").write_text(grammar(language), "utf-8")
    write_tables(tmp_path)
    for language in LANGUAGES:
        assert (tmp_path / language / "tables.json").read_bytes() == (FOLDER / language / "tables.json").read_bytes()


def test_reading_needs_no_lark():
    program = (
        "import sys\n"
        "from attractor_nb.languages.condition import parse_condition\n"
        "from attractor_nb.languages.dot import parse_dot\n"
        "from attractor_nb.languages.stylesheet import parse_stylesheet\n"
        "parse_condition('outcome=success'); parse_dot('digraph { a -> b }'); parse_stylesheet('* { model: a }')\n"
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
