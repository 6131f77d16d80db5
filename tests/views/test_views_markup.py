"""The element builder: nothing leaves the element that it stands in."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.views.markup import clean, element, joined, number, path_data


@given(st.text(), st.text())
def test_any_text_is_well_formed_and_comes_back(text, value):
    root = ET.fromstring(element("a", {"b": value}, text))
    assert len(root) == 0
    assert (root.text or "") == clean(text).replace("\r\n", "\n").replace("\r", "\n")
    assert root.attrib.keys() == {"b"}


@pytest.mark.parametrize(
    "char",
    ["\x00", "\x08", "\x1b", "\x7f", "\x9f", "\ud800", "\ufffe", "\uffff", "\u202e", "\u2066", "\ufdd0"],
    ids=lambda char: f"U+{ord(char):04X}",
)
def test_characters_that_xml_forbids_or_that_reorder_text_are_removed(char):
    assert clean(f"a{char}b") == "ab"


@pytest.mark.parametrize("text", ["plain", "計画", "مراجعة", "🚀", "a\u200db", "tab\there"])
def test_other_characters_stay(text):
    assert clean(text) == text


def test_markup_children_are_nested_and_text_children_escaped():
    assert element("a", None, element("b"), "<c>") == "<a><b/>&lt;c&gt;</a>"


def test_an_attribute_of_none_is_left_out():
    assert element("a", {"b": None, "c": 1.0}) == '<a c="1"/>'


def test_pieces_are_joined_as_they_are():
    assert joined([element("a"), element("b")], "\n") == "<a/>\n<b/>"


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "0"), (-0.04, "0"), (3.0, "3"), (2.25, "2.2"), (-1.55, "-1.6"), (100, "100"), (0.06, "0.1")],
)
def test_numbers_have_one_decimal_at_most(value, written):
    assert number(value) == written


def test_a_path_separates_numbers_only_from_numbers():
    assert path_data("M", 1, -2, "L", 3.5, 4, "Z") == "M1 -2L3.5 4Z"
