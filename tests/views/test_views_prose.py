"""Texts as trees: what they are taken for, what is marked in them, and that nothing in them gets out or takes long."""

from __future__ import annotations

import itertools
import json
import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.views.frontend import FOLDER
from attractor_nb.views.texts.prose import ATTRIBUTES, TAGS, _is_let_through, prose_html, prose_of, shown_stage
from attractor_nb.views.texts.prose_code import code_node, diff_node
from attractor_nb.views.texts.text_diff import marked_rows, word_diff, word_sides

MAX_CHARACTERS = 20_000


def flat(nodes):
    """Every node of a tree."""
    for node in nodes:
        if isinstance(node, list):
            yield node
            yield from flat(node[1:])


def words(nodes):
    """The text of a tree."""
    return "".join(node if isinstance(node, str) else words(node[1:]) for node in nodes if isinstance(node, str | list))


def heads(nodes):
    return [node[0] for node in flat(nodes)]


@pytest.mark.parametrize(
    ("text", "name", "head"),
    [
        ("# A", "response.md", "h3.level-1"),
        ("plain words", "", "p"),
        ('{"a": 1}', "response.md", "div.json"),
        ('{"a": 1}', "stdout.txt", "div.json"),
        ('{"a": 1,', "response.md", "pre.code"),
        ("[link](https://a.b)", "response.md", "p"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "response.md", "pre.diff"),
        ("-a\n+b", "changes.diff", "pre.diff"),
        ("def f(): pass", "tool.py", "pre.code"),
    ],
)
def test_a_text_is_taken_for_what_it_is(text, name, head):
    assert prose_of(text, name)[0][0] == head


@pytest.mark.parametrize("text", [None, "", " \n", "a line", "# no heading"])
def test_what_a_command_said_is_shown_as_it_is(text):
    assert prose_of(text, "stdout.txt") is None


def test_html_in_a_text_is_text():
    nodes = prose_of("<b>bold</b>\n\n<script>hit()</script>")
    assert set(heads(nodes)) == {"p"}
    assert "<script>hit()</script>" in words(nodes)


@pytest.mark.parametrize(
    "address",
    ["javascript:x", "JaVaScRiPt:x", "data:text/html,x", "file:///etc/passwd", "/relative", "#here", "vbscript:x"],
)
def test_an_address_that_is_not_followed_is_shown(address):
    nodes = prose_of(f"[click]({address}) and <{address}>")
    assert "a" not in heads(nodes)
    assert f"click ({address})" in words(nodes)


@pytest.mark.parametrize("address", ["https://a.b/c?d=e&f", "http://a.b", "mailto:a@b.c"])
def test_links_lead_to_http_https_and_mailto(address):
    assert [node[1] for node in flat(prose_of(f"[x]({address})")) if node[0] == "a"] == [{"href": address}]


@pytest.mark.parametrize("address", ["http://[a/b", "//[::1", "HTTP://[x"])
def test_an_address_that_cannot_be_read_is_let_through_nowhere(address):
    assert not _is_let_through(address)


def test_json_keeps_doubled_keys_their_order_and_the_digits_of_numbers():
    text = '{"b": 1.50, "a": 12345678901234567890, "b": [], "é": "x\\ny", "n": null}'
    said = words(prose_of(text, "x.json"))
    assert re.findall(r'"[bané]"', said) == ['"b"', '"a"', '"b"', '"é"', '"n"']
    assert "1.50" in said
    assert "12345678901234567890" in said
    assert '"x\\ny"' in said


def test_big_arrays_are_folded_at_first_and_small_ones_open():
    folds = [
        node
        for node in flat(prose_of(json.dumps({"big": list(range(50)), "small": [1, 2]})))
        if node[0] == "details.fold"
    ]
    assert [isinstance(fold[1], dict) for fold in folds] == [True, False, True]


def test_a_fence_is_coloured_by_its_language_and_json_in_it_folds():
    nodes = prose_of("```python\nreturn 1  # one\n```\n\n```json\n[1]\n```\n\n```unknown\nreturn 1\n```")
    assert heads(nodes) == [
        "pre.code", ".keyword", ".number", ".comment", "div.json", "details.fold", "summary", ".count", ".shut",
        "div.row", ".number", "div.end", "pre.code",
    ]  # fmt: skip


def test_a_fence_is_coloured_on_a_machine_that_is_busy_with_other_things(monkeypatch):
    hours = itertools.count(step=3600)
    monkeypatch.setattr("time.monotonic", lambda: next(hours))
    assert heads(prose_of("```python\nreturn 1  # one\n```")) == ["pre.code", ".keyword", ".number", ".comment"]


@given(st.text(alphabet="ab*_[](){}<>!`#-+|:\\n \\\\\"'&~=1.", max_size=200))
def test_any_text_gives_a_tree_of_known_tags_that_loses_no_letter(text):
    nodes = prose_of(text.replace("\\n", "\n"), "a.md") or []
    for head, *inside in flat(nodes):
        assert (head.partition(".")[0] or "span") in TAGS
        attributes = inside[0] if inside and isinstance(inside[0], dict) else {}
        assert attributes.keys() <= ATTRIBUTES
    assert words(nodes).count("a") <= text.count("a") * 2 + 100


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@given(st.text(max_size=200))
def test_html_of_a_tree_has_no_tag_of_the_text(text):
    found = Tags(str(prose_html(text, prose_of(text) or [text]))).found
    assert {tag for tag, _ in found} <= TAGS
    assert {name for _, attrs in found for name in attrs} <= {
        "class",
        "tabindex",
        "href",
        "title",
        "rel",
        "target",
        "start",
        "open",
    }


HOSTILE = {
    "stars": "*" * 10**6,
    "brackets": "[" * 10**6,
    "images": "![" * 500_000,
    "quotes": ">" * 10**6,
    "nested lists": "\n".join(" " * (2 * n) + "- a" for n in range(1_000)),
    "a wide table": "|a" * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + "|b" * 400_000,
    "a long table": "a|b\n-|-\n" + "|\n" * 500_000,
    "deep json": "[" * 500_000 + "]" * 500_000,
    "wide json": json.dumps(list(range(150_000))),
    "blank code": "```python\n" + "   \n" * 250_000,
    "signs in code": "```c\n" + "${" * 500_000,
    "one word": "a" * 10**6,
    "a diff": "".join(f"-{'a b ' * 50}\n+{'b a ' * 50}\n" for _ in range(3_000)),
    "diff of one line": "@@ -1 +1 @@\n-" + "a b " * 120_000 + "\n+" + "b a " * 120_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_and_hostile_nesting_stay_small_and_fast(text):
    began = time.process_time()
    nodes = prose_of(text, "response.md")
    assert time.process_time() - began < 7, "less than a second on a machine with nothing else to do"
    assert len(list(flat(nodes))) < 40_000
    assert len(words(nodes)) <= 3 * MAX_CHARACTERS
    assert len(json.dumps(nodes)) < 1_500_000


def test_of_a_long_text_the_beginning_is_rendered_and_how_much_is_said():
    nodes = prose_of("word\n" * 10_000)
    assert words(nodes[-1:]) == "Rendered are the first 19,999 of 50,000 characters."


def test_words_that_changed_are_marked_within_their_line():
    rows = marked_rows(["-the red house", "+the blue house"])
    assert [[words for words, is_changed in pieces if is_changed] for _, pieces in rows] == [["red"], ["blue"]]


def test_names_of_files_and_places_are_no_changes_and_a_line_that_looks_like_one_is():
    rows = marked_rows(["--- a/x", "+++ b/x", "@@ -1 +1 @@", "--- old", " same"])
    assert [sign for sign, _ in rows] == ["=", "=", "@", "-", " "]


def test_passages_with_little_in_common_differ_as_a_whole():
    rows = marked_rows(["-one two three", "+seven eight nine ten"])
    assert not any(is_changed for _, pieces in rows for _, is_changed in pieces)
    assert word_sides("one", "seven") is None


def test_a_word_in_the_middle_of_a_paragraph_is_found_and_the_rest_of_it_left_out():
    rows = word_diff("a " * 500 + "red house" + " b" * 500, "a " * 500 + "blue house" + " b" * 500)
    assert [[words for words, is_changed in pieces if is_changed] for _, pieces in rows] == [["red"], ["blue"]]
    assert all(len("".join(words for words, _ in pieces)) < 300 for _, pieces in rows)


@given(st.lists(st.text("ab ", max_size=8), max_size=6), st.lists(st.text("ab ", max_size=8), max_size=6))
def test_marks_change_no_text(gone, new):
    lines = [f"-{line}" for line in gone] + [f"+{line}" for line in new]
    assert ["".join(words for words, _ in pieces) for _, pieces in marked_rows(lines)] == lines


def test_a_stage_has_trees_for_what_can_be_rendered_and_none_for_the_rest():
    plain = {"status": "success", "handler": "tool", "prompt": "echo hi", "carried": None, "response": None}
    plain |= {"changes": None, "output": {"stdout": "hi", "stderr": '{"a": 1}'}, "files": []}
    plain["context"] = [{"key": "n", "change": "changed", "before": "one red", "after": "one blue"}]
    shown = shown_stage(plain)
    assert set(shown["shown"]) == {"prompt", "stderr"}
    assert shown["context"][0]["shown"]["after"] == ["one ", ["ins.word", "blue"]]


def test_front_end_and_cells_know_the_same_tags():
    source = (FOLDER / "prose.js").read_text("utf-8")
    listed = re.search(r"PROSE_TAGS = new Set\(\s*\((.*?)\)\.split", source, re.DOTALL)[1]
    assert set("".join(re.findall(r'"([^"]*)"', listed)).split()) == TAGS


def test_code_of_a_language_that_nobody_measured_stays_plain():
    assert code_node("class A {}", "java") == ["pre.code", "class A {}"]
    assert words([diff_node("-a\n+b")]) == "-a\n+b\n"
