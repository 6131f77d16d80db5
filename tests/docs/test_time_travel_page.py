"""The page of time travel: what it names is there, and its calls are those of the code."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from attractor_nb import Run
from attractor_nb.model.events import PipelineForked
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.manifest_file import Manifest
from attractor_nb.studio.replay_frames import Moment, Replay

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "time-travel.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["context", "prompt", "visit", "pipeline"])
def test_each_argument_of_a_fork_is_told(name):
    assert name in inspect.signature(Run.fork).parameters
    assert f"{name}=" in PAGE


@pytest.mark.parametrize("bound", sorted(set(BOUNDS) - {"max_goal_gate_redirects"}))
def test_what_each_bound_counts_is_told(bound):
    assert f"`{bound}`" in PAGE


def test_what_a_replay_and_a_record_have_is_there():
    assert hasattr(Replay, "at")
    assert {"view", "context"} <= set(Moment.__dataclass_fields__)
    assert "spent" in PipelineForked.__struct_fields__
    assert "fork_of" in Manifest.__struct_fields__
    assert "`fork_of`" in PAGE
    assert f"`{TEMPORARY_PREFIX}…`" in PAGE
