"""Lists of assignments: what cannot be read is named at its place."""

import pytest

from attractor_nb.errors import MappingSyntaxError
from attractor_nb.model.vocabulary.variables import parse_mapping

FORM = "write name=context.key"


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        ("a=1, b=2, a=3", '"a" is assigned twice', 10, "leave one of them out"),
        ("=1", "expected a name", 0, FORM),
        ("a=1, 2=b", "expected a name", 5, FORM),
        ("a 1", 'expected "=" after a', 2, FORM),
        ("a", 'expected "=" after a', 1, FORM),
        ("a=", "expected a value", 2, FORM),
        ("a= , b=1", "expected a value", 3, FORM),
    ],
)
def test_what_cannot_be_read_is_named_at_its_place(text, message, place, hint):
    with pytest.raises(MappingSyntaxError) as caught:
        parse_mapping(text)
    assert (caught.value.message, caught.value.span.start) == (message, place)
    assert caught.value.hint.startswith(hint)
