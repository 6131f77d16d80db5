"""A row of a map as it is written and read."""

import json

import pytest

from attractor_nb.model.outcome import Usage
from attractor_nb.model.row_result import RowResult


def test_what_says_nothing_is_left_out():
    plain = RowResult(0, "success", usage=Usage()).to_plain()
    assert plain == {"row": 0, "status": "success", "stages": 0, "duration_seconds": 0.0}


def test_a_row_is_read_and_written_as_it_was():
    plain = {
        "row": 3,
        "status": "fail",
        "reason": "no",
        "run_id": "r",
        "directory": "row-3",
        "stages": 2,
        "duration_seconds": 0.25,
        "usage": {"input_tokens": 1, "calls": 1},
        "outputs": {"a": [1]},
    }
    assert json.dumps(RowResult.from_plain(plain).to_plain()) == json.dumps(plain)


@pytest.mark.parametrize("change", [{"status": "odd"}, {"row": -1}, {"usage": {"calls": -1}}, {"stages": "2"}])
def test_another_shape_is_none(change):
    with pytest.raises(ValueError):
        RowResult.from_plain({"row": 0, "status": "success"} | change)
