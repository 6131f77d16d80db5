"""The page of the runs that are kept: what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attractor_nb.pipeline.runs import RunRow, RunTable
from attractor_nb.storage.run_listing import MAX_CHECKED_BYTES, REMAINS_BEGINNING, TAGS_NAME
from attractor_nb.studio.history.history_table import STATUSES, Filter
from attractor_nb.studio.timeline.heat_view import MEASURES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "history.md").read_text(encoding="utf-8")


def test_each_call_of_the_table_is_there():
    of_rows = re.findall(r"runs\(\)\[0\]\.(\w+)\(", PAGE)
    of_tables = re.findall(r"runs\(\)\.(\w+)\(", PAGE)
    assert {"load", "tag", "resume", "delete"} <= set(of_rows)
    assert {"where", "open", "refreshed", "to_frame"} <= set(of_tables)
    assert all(hasattr(RunRow, name) for name in of_rows)
    assert all(hasattr(RunTable, name) for name in of_tables)


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_is_told(status):
    assert f"`{status}`" in PAGE


def test_conditions_measures_and_bounds_are_those_of_the_code():
    assert all(f"`{name}`" in PAGE for name in Filter.__slots__)
    assert all(f"`{name}`" in PAGE for name in MEASURES)
    assert f"up to {MAX_CHECKED_BYTES >> 20} MB" in PAGE
    assert f"`{TAGS_NAME}`" in PAGE
    assert f"`{REMAINS_BEGINNING}…`" in PAGE
