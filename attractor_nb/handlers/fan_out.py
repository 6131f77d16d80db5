"""A fan-out (spec 4.8; ruling 22): its branches run side by side, and its policies say what that comes to.

How a branch is walked is the engine's business (``stage.Branches``); what the results mean is decided
in ``decisions/fan_outs/branch_policies.py``. Here they meet, and the results go into the context before anybody judges
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.fan_outs.branch_policies import Settling, judged, kept, policy_of
from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Outcome
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.branch import BranchResult
    from attractor_nb.model.graph import Graph, Node

RESULTS_KEY = "parallel.results"
SUCCESS_COUNT_KEY = "parallel.success_count"
FAIL_COUNT_KEY = "parallel.fail_count"
DEFAULT_MAX_PARALLEL = 4
_BRANCH_PREFIX = "parallel.branch."


class ParallelHandler:
    """Runs the branches of a node, each with a copy of the context, and tells the run how they ended."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """What the join policy makes of the branches; a policy that cannot be met is a FAIL."""
        branches = current_stage().branches
        if branches is None:
            return Outcome.fail(f"{node.id} has no branches here: it is not a fan-out of the plan", is_terminal=True)
        try:
            policy = policy_of(node, len(branches.ids))
        except OptionError as error:
            return Outcome.fail(error.message, is_terminal=True)
        results = await branches.walk(
            max_parallel=max(1, node.get("max_parallel", int, DEFAULT_MAX_PARALLEL)), settled=Settling(policy)
        )
        _tell(context, kept(policy, results), results)
        return judged(policy, results)


def _tell(context: Context, handed_on: Iterable[BranchResult], results: Iterable[BranchResult]) -> None:
    """Replace what an earlier fan-out left in the context, all of it."""
    updates: dict[str, object] = {key: None for key in context if key.startswith(_BRANCH_PREFIX)}
    succeeded = failed = 0
    for result in results:
        updates[f"{_BRANCH_PREFIX}{result.id}.status"] = result.status.value
        succeeded += result.is_success
        failed += not result.is_success and not result.is_cancelled
    updates[RESULTS_KEY] = [result.to_plain() for result in handed_on]
    updates[SUCCESS_COUNT_KEY], updates[FAIL_COUNT_KEY] = succeeded, failed
    context.apply_updates(updates)
