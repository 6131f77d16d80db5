"""A fan-out (spec 4.8; ruling 22): its branches run side by side, and its policies decide the outcome.

How a branch is walked is the engine's business (``stage.Branches``); what the results mean is decided
in ``decisions/branch_policies.py``. Here they meet, and the results go into the context before they are judged
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from attractor_nb.decisions.branch_policies import JoinProgress, judged, kept, policy_of
from attractor_nb.decisions.fan_in_choice import (
    MERGE_NONE,
    MERGES,
    NO_RESULTS,
    Candidate,
    CandidateChoice,
    UnreadableResults,
    candidates_of,
    eligible,
    merged,
    ranked,
    ranking_request,
    read_choice,
    winner_updates,
    without_winner,
)
from attractor_nb.decisions.replays.cache_keys import context_inputs
from attractor_nb.decisions.response_schemas import complaint_about
from attractor_nb.errors import OptionError
from attractor_nb.handlers.codergen import (
    TRUNCATED,
    answer_in,
    backend_call,
    json_values,
    place_of,
    rendered_node,
    task_of,
    with_values,
)
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import Response, StageCall, with_complaint, with_context
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.branch import BranchResult
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CodergenBackend


RESULTS_KEY = "parallel.results"
SUCCESS_COUNT_KEY = "parallel.success_count"
FAIL_COUNT_KEY = "parallel.fail_count"
DEFAULT_MAX_PARALLEL = 4
_BRANCH_PREFIX = "parallel.branch."


class ParallelHandler:
    """Runs the branches of a node, each with a copy of the context, and tells the run how they ended."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """Walk the branches, and judge them by the join policy; a policy that cannot be met is a FAIL."""
        branches = current_stage().branches
        if branches is None:
            return Outcome.fail(f"{node.id} has no branches here: it is not a fan-out of the plan", is_terminal=True)
        try:
            policy = policy_of(node, len(branches.ids))
        except OptionError as error:
            return Outcome.fail(error.message, is_terminal=True)
        results = await branches.walk(
            max_parallel=max(1, node.get("max_parallel", int, DEFAULT_MAX_PARALLEL)), settled=JoinProgress(policy)
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


# A fan-in (spec 4.9; ruling 22): chooses the best of the branches that went before, by rule or by a model.
#
# ``decisions/fan_in_choice.py`` decides which answer counts and which updates a branch hands on.

ASKED_AT_MOST = 2
"""An answer that is none is asked for once more; then the rule decides."""


class _Selection(Struct, frozen=True):
    """The best candidate, why, and what asking cost."""

    best: Candidate
    notes: str
    usage: Usage | None = None


class FanInHandler:
    """Selects the best branch: a node with a prompt asks a backend, one without takes the rule's."""

    writes_status = False

    def __init__(self, backend: CodergenBackend) -> None:
        self._backend = backend

    @property
    def reserves_requests(self) -> bool:
        """True if the backend reserves what each of its requests can cost (``StageScope.paying``)."""
        return bool(getattr(self._backend, "reserves_requests", False))

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS with the winner in ``parallel.fan_in.*``; FAIL if there is no candidate or no judge.

        SKIPPED when each candidate was skipped, as its fan-out is (rulings 17a, 20).

        What the backend raises is classed by the engine, and its own outcome that is no success is
        handed on (appendix D).
        """
        try:
            candidates = candidates_of(context.get("parallel.results"))
        except UnreadableResults as error:
            return Outcome.fail(f"{node.id}: {error}", is_terminal=True)
        merge = node.get("merge", str, MERGE_NONE)
        if merge not in MERGES:
            return Outcome.fail(f"{node.id}: merge is one of {', '.join(MERGES)}, not {merge!r}", is_terminal=True)
        if not candidates:
            return Outcome.fail(NO_RESULTS, is_terminal=True)
        able = eligible(candidates)
        if all(each.is_idle for each in candidates):
            count = len(candidates)
            notes = f"all {count} candidates were skipped" if count > 1 else "the only candidate was skipped"
            return Outcome(StageStatus.SKIPPED, context_updates=without_winner(context), notes=notes)
        if not able:
            return Outcome.fail(_all_failed(candidates), is_terminal=True)
        selection = _Selection(ranked(able)[0], "")
        if node.prompt and len(able) > 1:
            node = rendered_node(node, graph, context.get)
            failed = [each for each in candidates if each.status.is_failure]
            found = await self._asked(node, context, (able, failed))
            if isinstance(found, Outcome):
                return found
            selection = found
        return _fan_in_outcome(node, context, able, selection)

    def stage_call(self, node: Node, context: Context, graph: Graph) -> StageCall:
        """The first question to the backend, and the results that it is about."""
        results = context.get("parallel.results")
        try:
            candidates = candidates_of(results)
        except UnreadableResults as error:
            return StageCall(None, str(error))
        if not node.prompt or len(able := eligible(candidates)) < 2:
            return StageCall(None, "a rule chooses, which costs nothing")
        failed = [each for each in candidates if each.status.is_failure]
        scope, node = current_stage(), rendered_node(node, graph, context.get)
        prompt = with_context(scope.preamble, ranking_request(task_of(node), able, failed))
        call = backend_call(self._backend, node, prompt, context, scope)
        values = context_inputs({"parallel.results": results}, place_of(scope))
        return with_values(call, {"results": values, "merge": node.get("merge", str, MERGE_NONE)})

    async def _asked(
        self, node: Node, context: Context, sorted_out: tuple[Sequence[Candidate], Sequence[Candidate]]
    ) -> _Selection | Outcome:
        """The backend's choice; the rule's, and why, if it named no candidate twice; or its own failure."""
        able, failed = sorted_out
        scope, usage, choice, complaint = current_stage(), None, None, ""
        request = with_context(scope.preamble, ranking_request(task_of(node), able, failed))
        for number in range(1, ASKED_AT_MOST + 1):
            prompt = with_complaint(request, complaint)
            suffix = "" if number == 1 else f"-{number}"
            scope.files.write_text(f"prompt{suffix}.md", prompt)
            answer: Any = await call(self._backend.run, node, prompt, context)
            usage = _sum(usage, answer)
            if isinstance(answer, Outcome):
                if not answer.status.is_success:
                    return replace(answer, usage=usage)
                answer = answer.notes
            if not isinstance(answer, str):
                kind = type(answer).__name__
                reason = f"the backend returned {kind}; a backend returns text or an Outcome"
                return replace(Outcome.fail(reason, is_terminal=True), usage=usage)
            text = answer_in(answer, scope.files, f"reasoning{suffix}.md", is_decision=True)
            scope.files.write_text(f"response{suffix}.md", text)
            choice = _choice(text, [each.id for each in able])
            if choice.best_id:
                return _Selection(_by_id(able, choice), choice.notes, usage)
            complaint = complaint_about(text, choice.problem, "Name exactly one candidate.")
        assert choice is not None, "the backend is asked at least once"
        notes = f"By status, score and id: the answer of the backend was no choice twice ({choice.problem})"
        return _Selection(ranked(able)[0], notes, usage)


def _choice(text: str, ids: Sequence[str]) -> CandidateChoice:
    """The candidate that a response names; none when a part of it is missing."""
    if isinstance(text, Response) and text.is_truncated:
        return CandidateChoice(problem=TRUNCATED)
    found = json_values(text)
    if broken := next((each.problem for each in found if each.problem), ""):
        return CandidateChoice(problem=f"its JSON {broken}")
    return read_choice(text, (each.value for each in found), ids)


def _by_id(able: Sequence[Candidate], choice: CandidateChoice) -> Candidate:
    return next(each for each in able if each.id == choice.best_id)


def _sum(usage: Usage | None, answer: object) -> Usage | None:
    own = answer.usage if isinstance(answer, Response | Outcome) else None
    return own if usage is None else usage if own is None else usage + own


def _fan_in_outcome(node: Node, context: Context, able: Sequence[Candidate], selection: _Selection) -> Outcome:
    best = selection.best
    updates, conflicts = merged(node.get("merge", str, MERGE_NONE), able, best)
    for line in conflicts:
        context.append_log(f"{node.id} merges branches: {line}")
    notes = f"Selected best candidate: {best.id}"
    return replace(
        Outcome.success(
            f"{notes}. {selection.notes}" if selection.notes else notes,
            context_updates={**updates, **winner_updates(best, context)},
        ),
        usage=selection.usage,
    )


def _all_failed(candidates: Sequence[Candidate]) -> str:
    why = "; ".join(f"{each.id}: {each.failure_reason or each.ending}" for each in candidates[:3])
    more = f" and {len(candidates) - 3} more" if len(candidates) > 3 else ""
    count = len(candidates)
    return f"all {count} candidates failed ({why}{more})" if count > 1 else f"the only candidate failed ({why})"
