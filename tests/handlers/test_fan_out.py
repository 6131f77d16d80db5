"""The handler of fan-outs: what it says when it cannot begin."""

import asyncio
from dataclasses import dataclass

import pytest

from attractor_nb.context import Context
from attractor_nb.handlers.fan_out import ParallelHandler
from attractor_nb.model.graph import Graph, Node
from attractor_nb.model.outcome import StageStatus
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.testing.conformance import FolderFiles


@dataclass
class TwoBranches:
    """Branches that must not be begun."""

    ids = ("a", "b")


@pytest.mark.parametrize(
    ("attrs", "branches", "reason"),
    [
        ({"join_policy": "most"}, TwoBranches(), "fan: join_policy must be one of wait_all, "),
        ({"join_policy": "k_of_n", "join_k": 3}, TwoBranches(), "fan: join_k=3 of 2 branches cannot be reached"),
        ({"error_policy": "panic"}, TwoBranches(), "fan: error_policy must be one of "),
        ({}, None, "fan has no branches here"),
    ],
    ids=["unknown", "unreachable", "error", "no-branches"],
)
def test_a_fan_out_that_cannot_be_joined_fails_before_a_branch_begins(tmp_path, attrs, branches, reason):
    node = Node("fan", {"shape": "component", **attrs})
    files = FolderFiles(tmp_path / "fan")

    async def execute():
        enter_stage(StageScope("run", "fan", 1, 1, tmp_path, files, lambda event: None, branches=branches))
        return await ParallelHandler().execute(node, Context(), Graph("g", nodes={"fan": node}), tmp_path)

    outcome = asyncio.run(execute())
    assert (outcome.status, outcome.is_terminal) == (StageStatus.FAIL, True)
    assert outcome.failure_reason.startswith(reason)
