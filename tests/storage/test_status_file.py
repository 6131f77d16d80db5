"""status.json in both directions: the contract, and what breaks it (appendix C; ruling 27)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import StatusFileError
from attractor_nb.model.inputs import is_engine_key
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.storage.stages.status_file import StatusText, read_status_file, redacted_status

MAX_STATUS_BYTES = 1024 * 1024

TARGETS = ["deploy", "rollback"]
KEYS = st.text(min_size=1).filter(lambda key: not is_engine_key(key, ()))
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
USAGES = st.none() | st.builds(
    Usage, st.integers(0, 10**9), st.integers(0, 10**9), st.none() | st.floats(0.01, 9.0), st.integers(0, 99)
)
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(StageStatus),
    st.text(),
    st.lists(st.sampled_from(TARGETS)).map(tuple),
    st.dictionaries(
        KEYS, VALUES | st.lists(VALUES, max_size=3) | st.dictionaries(st.text(), VALUES, max_size=3), max_size=4
    ),
    st.text(),
    st.text(),
    is_terminal=st.booleans(),
    usage=USAGES,
)


@given(OUTCOMES)
def test_an_outcome_survives_its_status_file(outcome):
    text = StatusText(outcome, visit=3, attempt=2, duration=0.04)()
    assert read_status_file(text, targets=TARGETS) == outcome


def test_ruling_27_what_we_write():
    outcome = Outcome(
        StageStatus.FAIL,
        "retry it",
        ("deploy",),
        {"a": 1},
        "tried",
        "broken",
        is_terminal=True,
        usage=Usage(1, 2, None, 1),
    )
    assert json.loads(StatusText(outcome, visit=2, attempt=1, duration=0.03)()) == {
        "outcome": "fail",
        "preferred_next_label": "retry it",
        "suggested_next_ids": ["deploy"],
        "context_updates": {"a": 1},
        "notes": "tried",
        "failure_reason": "broken",
        "is_terminal": True,
        "usage": {"input_tokens": 1, "output_tokens": 2, "calls": 1},
        "attempt": 1,
        "visit": 2,
        "duration_ms": 30,
    }


def test_appendix_c_the_five_keys_are_always_written():
    plain = json.loads(StatusText(Outcome.success(), visit=1, attempt=1)())
    assert list(plain)[:5] == ["outcome", "preferred_next_label", "suggested_next_ids", "context_updates", "notes"]


def test_the_example_of_the_contract_is_read(tmp_path):
    (tmp_path / "status.json").write_text(
        """{
            "outcome": "success",
            "preferred_next_label": "approved",
            "suggested_next_ids": ["deploy", "rollback"],
            "context_updates": {"review.passed": true, "review.score": 8.5},
            "notes": "Code review passed with minor suggestions"
        }"""
    )
    assert read_status_file(tmp_path / "status.json", targets=TARGETS) == Outcome(
        StageStatus.SUCCESS,
        "approved",
        ("deploy", "rollback"),
        {"review.passed": True, "review.score": 8.5},
        "Code review passed with minor suggestions",
    )


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        pytest.param('{"status": "success"}', Outcome.success(), id="status"),
        pytest.param('{"outcome": "success", "status": "succeeded"}', Outcome.success(), id="both, agreeing"),
        pytest.param('{"outcome": "SKIPPED"}', Outcome(StageStatus.SKIPPED), id="upper case"),
        pytest.param('{"outcome": "failed"}', Outcome(StageStatus.FAIL), id="alias"),
        pytest.param(
            '{"outcome": "success", "preferred_label": "yes"}',
            Outcome(StageStatus.SUCCESS, "yes"),
            id="preferred_label",
        ),
        pytest.param(
            '{"outcome": "success", "preferred_next_label": null, "suggested_next_ids": null, "context_updates": null, '
            '"notes": null, "usage": null}',
            Outcome.success(),
            id="nulls",
        ),
        pytest.param('{"outcome": "success", "anything": [1]}', Outcome.success(), id="unknown keys are passed over"),
    ],
)
def test_ruling_27_other_spellings_are_read(text, outcome):
    assert read_status_file(text, targets=TARGETS) == outcome


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "status.json is not JSON: expecting value at 1:1", id="empty"),
        pytest.param('{"outcome":\n "success",}', "status.json is not JSON: ", id="syntax"),
        pytest.param('{"outcome": "success", "outcome": "fail"}', "says the key 'outcome' twice", id="duplicate key"),
        pytest.param("[]", "status.json is a list where an object was expected", id="list"),
        pytest.param('"success"', "status.json is a text where an object was expected", id="text"),
        pytest.param("{}", 'status.json has no "outcome"', id="no outcome"),
        pytest.param('{"outcome": null}', 'status.json has no "outcome"', id="null outcome"),
        pytest.param('{"outcome": 1}', "outcome is a number where a text was expected", id="outcome a number"),
        pytest.param('{"outcome": "sucess"}', "outcome 'sucess' is not known; did you mean \"success\"?", id="misspelt"),
        pytest.param('{"outcome": "fail", "status": "success"}', 'says both "outcome": fail and "status": success', id="contradiction"),
        pytest.param(
            '{"outcome": "fail", "preferred_label": "a", "preferred_next_label": "b"}', "preferred_label differ", id="two labels"
        ),
        pytest.param('{"outcome": "fail", "notes": ["a"]}', "notes is a list where a text was expected", id="notes"),
        pytest.param('{"outcome": "fail", "failure_reason": {}}', "failure_reason is an object", id="failure reason"),
        pytest.param('{"outcome": "fail", "is_terminal": 1}', "is_terminal is a number where true or false", id="is_terminal"),
        pytest.param('{"outcome": "success", "suggested_next_ids": "deploy"}', "is a text where a list of node ids", id="ids a text"),
        pytest.param('{"outcome": "success", "suggested_next_ids": [true]}', "holds true or false where a node id", id="id a flag"),
        pytest.param('{"outcome": "success", "suggested_next_ids": ["exit"]}', "names 'exit', which no outgoing edge leads to", id="no edge"),
        pytest.param('{"outcome": "success", "context_updates": []}', "context_updates is a list where an object", id="updates a list"),
        pytest.param('{"outcome": "success", "context_updates": {"internal.x": 1}}', "'internal.x', which belongs to the engine", id="internal"),
        pytest.param('{"outcome": "success", "context_updates": {"graph.goal": 1}}', "'graph.goal', which belongs to the engine", id="graph"),
        pytest.param('{"outcome": "success", "context_updates": {"": 1}}', "context keys must be non-empty text", id="empty key"),
        pytest.param('{"outcome": "success", "context_updates": {"a": 1e999}}', "has the number 1e999, which is too large", id="infinite"),
        pytest.param('{"outcome": "success", "context_updates": {"a": NaN}}', "has the value NaN", id="nan"),
        pytest.param('{"outcome": "success", "context_updates": {"a": 99999999999999999999}}', "more than 64 bits", id="huge integer"),
        pytest.param('{"outcome": "success", "context_updates": {"a": "\\ud800"}}', "lone surrogate", id="surrogate"),
        pytest.param('{"outcome": "success", "usage": 3}', "usage is a number where an object", id="usage"),
        pytest.param('{"outcome": "success", "usage": {"calls": -1}}', "usage cannot be counted: calls -1 is not a count", id="negative"),
        pytest.param('{"outcome": "success", "usage": {"cost_usd": "1"}}', "usage cannot be counted: cost_usd '1' is no price", id="cost"),
        pytest.param(" " * (MAX_STATUS_BYTES + 1), "status.json is larger than 1 MB", id="too large"),
    ],
)  # fmt: skip
def test_ruling_27_what_breaks_the_contract_is_named(text, message):
    with pytest.raises(StatusFileError) as caught:
        read_status_file(text, targets=TARGETS)
    assert message in caught.value.message


def test_an_id_without_an_edge_is_answered_with_those_there_are():
    with pytest.raises(StatusFileError) as caught:
        read_status_file('{"outcome": "success", "suggested_next_ids": ["exit"]}', targets=TARGETS)
    assert caught.value.hint == "outgoing edges lead to: deploy, rollback"


def test_a_file_that_is_not_there_or_no_file_is_named(tmp_path):
    with pytest.raises(StatusFileError, match="there is no "):
        read_status_file(tmp_path / "status.json", targets=())
    (tmp_path / "status.json").symlink_to("/etc/hostname")
    with pytest.raises(StatusFileError, match="cannot read"):
        read_status_file(tmp_path / "status.json", targets=())


def test_a_file_of_a_gigabyte_is_refused_unread(tmp_path):
    with (tmp_path / "status.json").open("wb") as file:
        file.truncate(1024**3)
    with pytest.raises(StatusFileError, match="are more than"):
        read_status_file(tmp_path / "status.json", targets=())


def test_a_status_that_is_no_json_is_written_without_its_secrets_all_the_same():
    secret = "sk-ant-" + "a1B2" * 12
    clean = redacted_status(f'{{"outcome": "success", "notes": "{secret}')
    assert clean.startswith('{"outcome": "success", "notes": "')
    assert secret not in clean
