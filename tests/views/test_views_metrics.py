"""Widths and wrapping."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.views.metrics import shorten, text_width, wrap

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def test_wide_characters_are_wider_than_narrow_ones():
    assert text_width("iii", 12) < text_width("nnn", 12) < text_width("計画中", 12)


def test_monospace_gives_every_letter_the_same_room():
    assert text_width("iii", 12, is_mono=True) == text_width("WWW", 12, is_mono=True)


def test_combining_marks_take_no_room():
    assert text_width("e\N{COMBINING ACUTE ACCENT}", 12) == text_width("e", 12)


def test_bold_is_wider():
    assert text_width("plan", 12, is_bold=True) > text_width("plan", 12)


@given(st.text(min_size=1), st.integers(40, 200))
def test_shortened_text_fits(text, width):
    assert text_width(shorten(text, width, 12), 12) <= width


@given(st.text(), st.integers(40, 200), st.integers(1, 4))
def test_wrapped_lines_fit_and_are_not_too_many(text, width, max_lines):
    lines = wrap(text, width, 12, max_lines=max_lines)
    assert 1 <= len(lines) <= max_lines
    assert all(text_width(line, 12) <= width + 0.01 for line in lines)


@given(st.lists(st.text("abcdefg", min_size=1, max_size=6), min_size=1, max_size=8))
def test_nothing_is_lost_while_there_are_lines_left(words):
    text = " ".join(words)
    assert " ".join(wrap(text, 80, 12, max_lines=99)) == text


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20), st.booleans())
def test_a_word_that_is_as_wide_as_the_line_is_whole(word, is_mono):
    width = text_width(word, 12, is_mono=is_mono)
    assert wrap(f"{word} {word}", width, 12, max_lines=4, is_mono=is_mono) == (word, word)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Plan", ("Plan",)),
        ("Review the plan with care", ("Review the", "plan with care")),
        ("one\ntwo", ("one", "two")),
        ("one two three four five six seven", ("one two three", "four five six…")),
        ("計画を立てて実装する", ("計画を立てて実", "装する")),
        ("", ("",)),
    ],
    ids=["one word", "two lines", "own break", "too long", "no spaces", "empty"],
)
def test_labels_wrap(text, lines):
    assert wrap(text, 84, 12, max_lines=2) == lines


def test_a_label_that_is_cut_ends_in_an_ellipsis():
    assert wrap("word " * 50, 100, 12, max_lines=3)[-1].endswith(ELLIPSIS)
