"""The strict reader refuses what a JSON text from elsewhere may do to us."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.events import ToolCallEnded, event_from_plain
from attractor_nb.storage.files.strict_json import (
    JsonProblem,
    json_bytes,
    json_line,
    json_page,
    read_json,
    read_own_json,
)
from attractor_nb.storage.log import event_lines

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(b'{"a": 1, "a": 2}', "says the key 'a' twice", id="duplicate key"),
        pytest.param(b'{"a": {"b": 1, "b": 2}}', "says the key 'b' twice", id="duplicate inner key"),
        pytest.param(b"[NaN]", "has the value NaN", id="nan"),
        pytest.param(b"[-Infinity]", "has the value -Infinity", id="infinity"),
        pytest.param(b"[1e999]", "has the number 1e999, which is too large", id="infinity in digits"),
        pytest.param(b"[" * 101 + b"]" * 101, "nested deeper than 100 levels", id="too deep"),
        pytest.param(b'{"a":' * 200_000, "nested deeper than 100 levels", id="bottomless"),
        pytest.param(b"[" + b"9" * 5000 + b"]", "a number that is too long", id="huge integer"),
        pytest.param(b"\xff\xfe", "is not UTF-8 text (byte 0)", id="no utf-8"),
        pytest.param(b'{"a":\n 1,}', "is not JSON: ", id="trailing comma"),
        pytest.param(b"", "is not JSON: expecting value at 1:1", id="empty"),
    ],
)
def test_what_is_no_decent_json_is_refused_in_words(text, problem):
    with pytest.raises(JsonProblem) as caught:
        read_json(text)
    assert problem in str(caught.value)


def _written_by_anybody(value, chance):
    """A JSON text of a value: keys may stand there twice, numbers may be none, spaces may be anywhere."""
    space = " " * chance.choice((0, 0, 0, 1))
    if isinstance(value, dict):
        pairs = [(json_line(key).decode(), _written_by_anybody(inner, chance)) for key, inner in value.items()]
        if pairs and chance.random() < 0.2:
            pairs.append(chance.choice(pairs))
        return "{" + ("," + space).join(f"{key}:{space}{inner}" for key, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written_by_anybody(inner, chance) for inner in value) + "]"
    odd = chance.choice(("NaN", "-Infinity", "1e999", "1.50", "-0.0", "1E5", "9" * 4400, '"\\u0041"', '"\\ud800"'))
    return odd if chance.random() < 0.05 else json_bytes(value).decode()


def _read_by(read, data):
    """The values within a record as a reader returns them, or its refusal."""
    try:
        return repr(read(b'{"type":"ToolCallEnded","sequence":1,"arguments":{"a":%b}}' % data))
    except ValueError as problem:
        return f"refused: {problem}"


def _with_care(payload):
    return event_from_plain(read_json(payload))


@given(JSON_VALUES, st.randoms(use_true_random=False))
def test_the_fast_reader_of_records_says_what_the_strict_one_says(value, chance):
    text = _written_by_anybody(value, chance).encode()
    assert _read_by(event_lines.event_of, text) == _read_by(_with_care, text)


@given(st.binary(max_size=30) | st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\', max_size=30).map(str.encode))
def test_the_fast_reader_of_records_says_what_the_strict_one_says_of_any_bytes(data):
    assert _read_by(event_lines.event_of, data) == _read_by(_with_care, data)


def test_a_record_that_we_wrote_is_read_once_and_not_with_care(monkeypatch):
    monkeypatch.setattr(event_lines, "read_json", None)
    arguments = {
        "text": 'é\n"\\/\x7f\x01',
        "float": 0.1,
        "time": 1795331297.2232058,
        "int": 2**70,
        "list": [{}, [], None],
    }
    event = ToolCallEnded(sequence=1, name="plan", arguments=arguments)
    assert event_lines.event_of(event_lines.event_json(event)) == event


def test_a_text_over_the_limit_is_refused_before_it_is_parsed():
    with pytest.raises(JsonProblem, match="is larger than 1 KB"):
        read_json(b"[" * 2000, max_bytes=1024)
    with pytest.raises(JsonProblem, match="is larger than 1 MB"):
        read_json("x" * (1024 * 1024 + 1), max_bytes=1024 * 1024)


def test_brackets_inside_strings_do_not_count_as_depth():
    assert read_json(json.dumps("[{" * 500)) == "[{" * 500
    assert read_json(json.dumps(['"[' * 200, [1]])) == ['"[' * 200, [1]]


def test_many_brackets_side_by_side_are_not_deep():
    assert len(read_json("[" + ",".join(["[]"] * 300) + "]")) == 300


def test_a_byte_order_mark_is_passed_over():
    assert read_json(b"\xef\xbb\xbf[1]") == [1]


@given(JSON_VALUES)
def test_what_we_write_reads_back_unchanged(value):
    assert read_json(json_bytes(value)) == value


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5))
def test_an_object_reads_back_unchanged_from_a_line_and_from_a_page(plain):
    assert read_json(json_line(plain)) == plain
    assert read_json(json_page(plain)) == plain


@pytest.mark.parametrize("value", ["half \ud83d", {"a": ["whole", "\udc00"]}], ids=ascii)
def test_half_a_character_survives_the_fast_reader_of_values(value):
    assert read_own_json(json_bytes(value)) == value


@pytest.mark.parametrize("data", [b"{", b"", b"\xff"], ids=ascii)
def test_the_fast_reader_of_values_refuses_what_none_of_us_wrote_in_words(data):
    with pytest.raises(JsonProblem):
        read_own_json(data)


def test_a_lone_surrogate_survives():
    assert read_json(json_bytes({"a": "\ud800"})) == {"a": "\ud800"}
    assert read_json(json_line({"a": "\ud800"})) == {"a": "\ud800"}


CYCLE = {}
CYCLE["again"] = CYCLE


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no words")


STRANGE = [object(), {1, 2}, float("nan"), b"\xff", "\ud800", CYCLE, 10**400, Unspeakable(), {None: Unspeakable()}]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_page_is_written_whatever_the_values_are(value):
    page = json_page({"outcome": "success", "context_updates": {"a": value}})
    assert read_json(page)["outcome"] == "success"
