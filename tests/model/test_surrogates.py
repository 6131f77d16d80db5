"""A text that came in pieces can be written, whatever its pieces were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.texts import ends_in_half, whole

ANY = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY)
def test_every_text_can_be_written_and_what_could_be_stays(text):
    mended = whole(text)
    mended.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        assert len(mended) <= len(text)
    else:
        assert mended is text


@given(st.text(), st.data())
def test_a_text_escaped_and_cut_anywhere_is_joined(text, data):
    units = text.encode("utf-16-le")
    halves = "".join(chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2))
    cut = data.draw(st.integers(0, len(halves)))
    assert whole(halves[:cut] + halves[cut:]) == text


@pytest.mark.parametrize(("text", "is_half"), [("", False), ("a", False), ("\ud83d", True), ("\ude00", False)])
def test_the_first_half_alone_waits_for_more(text, is_half):
    assert ends_in_half(text) is is_half
