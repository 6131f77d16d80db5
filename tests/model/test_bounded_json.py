"""JSON of strangers that is nested without end is no JSON, wherever it is stored or received."""

import pytest

from attractor_nb.backends.agents.agent_events import SavedSession
from attractor_nb.backends.llm import addresses
from attractor_nb.backends.local_model import _response_schema
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.bounded_json import MAX_DEPTH, read_bounded_json
from attractor_nb.model.calls.messages import messages_of
from attractor_nb.model.graph import Node
from attractor_nb.notebook.extension import read_params
from attractor_nb.runtime.handles.cache_verdict import words_of_look
from attractor_nb.studio import debugger

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("kind", [str, str.encode], ids=["text", "bytes"])
@pytest.mark.parametrize("text", [DEEP, DEEP[:100_000], '{"a":' * 5000 + "1" + "}" * 5000, "[" * 101 + "]" * 101])
def test_a_text_that_is_nested_without_end_is_no_json(kind, text):
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH} levels"):
        read_bounded_json(kind(text))


@pytest.mark.parametrize(
    "text", ['["' + "[" * 500 + '"]', "[" * 100 + "]" * 100, "[" + "[]," * 500 + "[]]", r'["\"[[", "\\"]']
)
def test_brackets_in_texts_and_beside_one_another_are_not_depth(text):
    assert isinstance(read_bounded_json(text), list)


@pytest.mark.parametrize(
    "data", ['{"a": "\ud800"}'.encode("utf-8", "surrogatepass"), b'\xef\xbb\xbf{"a": "x"}', '{"a": 1}'.encode("utf-16")]
)
def test_bytes_are_read_as_python_reads_them(data):
    assert list(read_bounded_json(data)) == ["a"]


def test_a_conversation_of_another_form_is_none():
    assert messages_of(DEEP) is None


def test_a_look_into_the_cache_of_another_form_says_nothing():
    assert words_of_look(DEEP) == ""


def test_a_thread_that_somebody_else_has_kept_is_refused():
    with pytest.raises(TerminalError, match="another backend's"):
        SavedSession.read(DEEP, "claude", "t")


@pytest.mark.parametrize("attrs", [{}, {"verdict": "json"}], ids=["schema", "verdict"])
def test_a_schema_binds_no_local_model(attrs):
    assert _response_schema(Node("plan", {"response_schema": DEEP, **attrs})) is None


def test_a_parameter_and_a_value_of_the_debugger_are_texts():
    assert read_params([f"a={DEEP}"]) == {"a": DEEP}
    assert debugger._read(DEEP) == DEEP


def test_a_file_of_endpoints_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path))
    (tmp_path / addresses.FILE_NAME).write_text(f"a = {'[' * 5000}{']' * 5000}\n")
    with pytest.raises(OptionError, match="cannot be read"):
        addresses.users_endpoints()
