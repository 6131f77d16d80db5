"""The outcome of a fan-out: join policy, error policy, and early cancellation of branches (spec 4.8; ruling 22).

A branch that was cancelled is neither a success nor a failure. Branches are counted, never weighed. A branch whose
stages were all skipped counts as a success, as its stages route (ruling 20), but such branches alone are no success.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Outcome, StageStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from attractor_nb.model.branch import BranchResult
    from attractor_nb.model.graph import Edge, Graph, Node


ResultT = TypeVar("ResultT", bound="BranchResult")

WAIT_ALL, FIRST_SUCCESS, K_OF_N, QUORUM = "wait_all", "first_success", "k_of_n", "quorum"
CONTINUE, FAIL_FAST, IGNORE = "continue", "fail_fast", "ignore"
JOIN_POLICIES: Final = (WAIT_ALL, FIRST_SUCCESS, K_OF_N, QUORUM)
ERROR_POLICIES: Final = (CONTINUE, FAIL_FAST, IGNORE)
BRANCHES: Final[tuple[str, str]] = ("branch", "branches")
ITEMS: Final[tuple[str, str]] = ("item", "items")
_SLACK: Final = 1e-9
"""A third of three branches is one, however the fraction is written."""


class FanOutPolicy(msgspec.Struct, frozen=True):
    """The policy that decides the outcome of a fan-out."""

    join: str  #: ``wait_all``, ``first_success``, ``k_of_n`` or ``quorum``.
    error: str  #: ``continue``, ``fail_fast`` or ``ignore``.
    needed: int  #: Branches that must succeed; for ``wait_all`` all of them.
    count: int  #: Branches there are.
    noun: tuple[str, str] = BRANCHES  #: Noun for them, singular and plural.

    @property
    def counted(self) -> str:
        """The number of branches or items, in words."""
        return f"{self.count} {self.noun[self.count != 1]}"


def policy_of(node: Node, count: int, noun: tuple[str, str] = BRANCHES) -> FanOutPolicy:
    """Read a fan-out's policy.

    Args:
        node: The fan-out, or a stage that is run for each item of a list.
        count: How many branches, or items, it has.
        noun: What they are called, one and several.
    """
    if not count:
        raise OptionError(f"{node.id} has no branches", hint="draw an edge without a condition for each of them")
    join = node.get("join_policy", str, WAIT_ALL)
    error = node.get("error_policy", str, CONTINUE)
    if join not in JOIN_POLICIES:
        raise OptionError(f"{node.id}: join_policy must be one of {', '.join(JOIN_POLICIES)}, not {join!r}")
    if error not in ERROR_POLICIES:
        raise OptionError(f"{node.id}: error_policy must be one of {', '.join(ERROR_POLICIES)}, not {error!r}")
    return FanOutPolicy(join, error, _needed(node, join, count, noun), count, noun)


def _needed(node: Node, join: str, count: int, noun: tuple[str, str]) -> int:
    if join == FIRST_SUCCESS:
        return 1
    if join == K_OF_N:
        needed = node.get("join_k", int)
        if needed is None:
            raise OptionError(f"{node.id}: join_policy=k_of_n needs join_k", hint="set join_k=2, for example")
        if not 1 <= needed <= count:
            raise OptionError(
                f"{node.id}: join_k={needed} of {count} {noun[count != 1]} cannot be reached",
                hint=f"set join_k between 1 and {count}",
            )
        return needed
    if join == QUORUM:
        quorum = node.get("join_quorum", float)
        if quorum is None:
            raise OptionError(
                f"{node.id}: join_policy=quorum needs join_quorum", hint="set join_quorum=0.5, for example"
            )
        if not 0 < quorum <= 1:
            raise OptionError(
                f"{node.id}: join_quorum={quorum:g} is not a fraction of the {noun[1]}",
                hint="set it above 0 and at most 1",
            )
        return max(1, math.ceil(quorum * count - _SLACK))
    return count


def continues_without(policy: FanOutPolicy) -> bool:
    """True if a fan-out may succeed, or succeed in part, while one of its branches did not."""
    if policy.join == WAIT_ALL:
        return policy.count > 1 and policy.error != FAIL_FAST
    return policy.needed < policy.count


def settled(policy: FanOutPolicy, results: Sequence[BranchResult]) -> str:
    """The reason to cancel the branches that still run; empty while they are needed.

    >>> from attractor_nb.model.branch import BranchResult
    >>> done = [BranchResult("a", StageStatus.SUCCESS)]
    >>> settled(FanOutPolicy("first_success", "continue", 1, 3), done)
    'cancelled: a succeeded first'

    Args:
        policy: The fan-out's policy.
        results: Those that have ended so far, in the order in which they did.
    """
    if stopper := next((result for result in results if result.veto), None):
        what = f"leads back to {stopper.return_target}" if stopper.return_target else "fails the fan-out"
        return f"cancelled: {stopper.id} {what}"
    if policy.join == FIRST_SUCCESS and (winner := next((each for each in results if each.has_worked), None)):
        return f"cancelled: {winner.id} succeeded first"
    if policy.error == FAIL_FAST and (failed := next((each for each in results if _has_failed(each)), None)):
        return f"cancelled: {failed.id} failed"
    return ""


class JoinProgress(msgspec.Struct):
    """``settled`` for results that arrive one after the other: it inspects each of them once."""

    policy: FanOutPolicy  #: The fan-out's policy.
    _seen: int = 0

    def __call__(self, results: Sequence[BranchResult]) -> str:
        """The answer of ``settled`` for the results since the last call; ``results`` are all so far."""
        new, self._seen = results[self._seen :], len(results)
        return settled(self.policy, new)


def _has_failed(result: BranchResult) -> bool:
    return not result.is_success and not result.is_cancelled


def judged(policy: FanOutPolicy, results: Sequence[BranchResult]) -> Outcome:
    """The outcome of a fan-out whose branches have ended.

    A failure is unmeasured when the policy would be met if its unmeasured branches had succeeded (ruling 51).
    """
    succeeded = [result for result in results if result.is_success]
    failed = [result for result in results if _has_failed(result)]
    exits = tuple(dict.fromkeys(result.exit_id for result in results if result.exit_id))
    unmeasured = [result for result in failed if result.is_unmeasured]
    count = len(succeeded)
    notes = f"{count} of {policy.counted} succeeded"
    if stopper := next((result for result in results if result.veto), None):
        return _vetoed(stopper, notes)
    status = _status(policy, count, len(failed))
    is_idle = bool(succeeded) and not any(result.has_worked for result in succeeded)
    if is_idle:
        if not status.is_failure and not failed:
            notes = f"each stage of {policy.counted} was skipped"
            return Outcome(StageStatus.SKIPPED, suggested_next_ids=exits, notes=notes)
        notes, status = f"0 of {policy.counted} succeeded, {count} skipped", StageStatus.FAIL
    if not status.is_failure:
        return Outcome(status, suggested_next_ids=exits, notes=notes)
    wanted = "" if policy.join == WAIT_ALL else f"; {policy.join} needs {policy.needed}"
    why = "; ".join(f"{result.id}: {result.failure_reason}" for result in failed[:3])
    more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
    is_met_with_them = not _status(policy, count + len(unmeasured), len(failed) - len(unmeasured)).is_failure
    return Outcome(
        status,
        suggested_next_ids=exits,
        notes=notes,
        failure_reason=f"{notes}{wanted}" + (f" ({why}{more})" if why else ""),
        is_unmeasured=is_met_with_them and (bool(unmeasured) or not is_idle),
    )


def _vetoed(stopper: BranchResult, notes: str) -> Outcome:
    """FAIL, whatever the policies say; it is not retried where a branch has said how the run is to continue."""
    target = stopper.return_target
    return Outcome(
        StageStatus.FAIL,
        suggested_next_ids=(target,) if target else (),
        notes=f"{notes}; {stopper.id} leads back to {target}" if target else notes,
        failure_reason=stopper.veto,
        is_terminal=bool(target),
    )


def _status(policy: FanOutPolicy, succeeded: int, failed: int) -> StageStatus:
    """The status by the numbers of branches; under ``wait_all`` a cancelled branch leaves the policy unmet."""
    if policy.join != WAIT_ALL:
        return StageStatus.SUCCESS if succeeded >= policy.needed else StageStatus.FAIL
    if not succeeded or (failed and policy.error == FAIL_FAST):
        return StageStatus.FAIL
    if failed and policy.error != IGNORE:
        return StageStatus.PARTIAL_SUCCESS
    return StageStatus.SUCCESS


def kept(policy: FanOutPolicy, results: Sequence[ResultT]) -> tuple[ResultT, ...]:
    """The results to hand on: under ``ignore`` the successful ones alone."""
    return tuple(result for result in results if result.is_success or policy.error != IGNORE)


# The joins of fan-outs, and the nodes before a fan-out (spec 4.8; rulings 22, 36).
#
# All branches are walked at once, one edge deeper each turn; a node remembers which branches have reached
# it. The first turn in which all have reached a fan-in node finds the join. Once they have met, only paths
# that lead to a fan-in are followed. Nothing is walked where all branches have the same nearest fan-in: no other
# one is nearer to the branch that is farthest away, and of equally near ones each branch has the least id. Nor are
# branches walked that end apart from one another, nor the stretch of branches that have only one way to the node
# where they meet: many fan-outs on the same long ways would each walk them to their ends. This is known of nodes
# that lead into no loop.

PARALLEL_TYPE: Final = "parallel"
FAN_IN_TYPE: Final = "parallel.fan_in"


class Join(msgspec.Struct, frozen=True):
    """The node where the branches of a fan-out meet."""

    #: The node at which the run continues; empty when the branches have no node in common, and run to their ends.
    node_id: str = ""
    is_fan_in: bool = False  #: It is a fan-in node; otherwise the nearest ordinary node that all branches lead to.


def branch_edges(graph: Graph, node_id: str) -> tuple[Edge, ...]:
    """The edges of a fan-out that begin its branches, in source order.

    Those with a condition begin none: they say where the run goes when it holds after the branches.
    """
    return tuple(edge for edge in graph.outgoing_edges(node_id) if not edge.condition.strip())


def joins_of(graph: Graph) -> dict[str, Join]:
    """The node where the branches of each fan-out meet: the nearest fan-in node, else the nearest common node.

    A node's distance is that from the branch that is farthest away; of equally near ones the least id wins.
    The fan-out itself is no way on, so a loop back to it joins nothing.
    """
    ahead = _FanInsAhead(graph)
    ends = cache(partial(_WaysToEnds, graph))
    return {
        node_id: _join_of(graph, node_id, ahead, ends)
        for node_id, handler_type in graph.handler_types.items()
        if handler_type == PARALLEL_TYPE
    }


def _join_of(graph: Graph, node_id: str, ahead: _FanInsAhead, ends: Callable[[], _WaysToEnds]) -> Join:
    starts = [edge.target for edge in branch_edges(graph, node_id) if edge.target in graph.nodes]
    if not starts:
        return Join()
    if fan_in := ahead.common(starts, node_id):
        return Join(fan_in, is_fan_in=True)
    starts = ends().shortened(starts)
    everybody = (1 << len(starts)) - 1
    # A set of branches is one number, bit n for branch n, so that thousands of them are joined and compared in one
    # step. `arrived` has the branches that have reached a node, `coming` those that reach it in this turn.
    arrived: dict[str, int] = {}
    coming: dict[str, int] = {}
    for number, start in enumerate(starts):
        coming[start] = coming.get(start, 0) | 1 << number
    ordinary = ""
    successors: dict[str, Sequence[str]] = {}
    while coming:
        complete = _take_in(arrived, coming, everybody)
        fan_ins = [name for name in complete if graph.nodes[name].handler_type == FAN_IN_TYPE]
        if fan_ins:
            return Join(min(fan_ins), is_fan_in=True)
        if complete and not ordinary:
            ordinary = min(complete)
        if ordinary:
            # All branches are at one node and continue together: the nearest join needs no more walking.
            if len(coming) == 1 and complete and (fan_in := ahead.common(complete, node_id)):
                return Join(fan_in, is_fan_in=True)
            coming = {name: branches for name, branches in coming.items() if name in ahead}
        coming = _one_deeper(graph, node_id, coming, arrived, successors)
    return Join(ordinary)


class BranchBorders(msgspec.Struct, frozen=True):
    """The nodes that a branch may enter, and those that it may not."""

    within: frozenset[str]  #: Nodes that branches can reach by edges until they end.
    before: frozenset[str]  #: The fan-out and all that leads to it again: no branch enters that (ruling 36).


def surroundings_of(graph: Graph, node_id: str, join: str) -> BranchBorders:
    """The nodes within the branches of a fan-out, and those before it.

    A node lies before it when the fan-out can be reached from there without passing the join or a branch. So
    it either can be reached from the start without the fan-out, or the branches reach it only by a jump;
    in both cases only a way back leads from a branch to it. A way through the join is none: that is the loop
    of the whole run.
    """

    def onward(name: str) -> Iterable[str]:
        return (edge.target for edge in graph.outgoing_edges(name) if edge.target in graph.nodes)

    def back(name: str) -> Iterable[str]:
        return (edge.source for edge in graph.incoming_edges(name) if edge.source in graph.nodes)

    fan_out, ends = {node_id}, {node_id, join}
    without_it = walked((node.id for node in graph.start_nodes), onward, fan_out)
    upstream = without_it & walked(back(node_id), back, ends)
    starts = [edge.target for edge in branch_edges(graph, node_id) if edge.target in graph.nodes]
    within = walked(starts, onward, upstream | ends)
    return BranchBorders(frozenset(within), frozenset(fan_out | walked(back(node_id), back, within | ends)))


def walked(starts: Iterable[str], successors: Callable[[str], Iterable[str]], stops: Collection[str]) -> set[str]:
    """All nodes that can be reached from some nodes, these included, without entering others."""
    seen = {start for start in starts if start not in stops}
    work = list(seen)
    for name in work:
        for target in successors(name):
            if target not in seen and target not in stops:
                seen.add(target)
                work.append(target)
    return seen


class _Ahead(NamedTuple):
    """The nearest fan-in that can be reached from a node."""

    distance: int  #: How many edges away it is.
    fan_in: str  #: Its id.
    successor: str  #: The next node on a shortest way there; empty for the fan-in itself.


class _FanInsAhead:
    """The nearest fan-in of each node from which one can be reached, and a shortest way there: a forest."""

    def __init__(self, graph: Graph) -> None:
        self._found = _nearest_fan_ins(graph)
        # All nodes whose way leads through one node have consecutive numbers from its own on.
        self._sizes = dict.fromkeys(self._found, 1)
        for name in reversed(self._found):
            if successor := self._found[name].successor:
                self._sizes[successor] += self._sizes[name]
        self._numbers: dict[str, int] = {}
        free = {"": 0}
        for name, ahead in self._found.items():
            self._numbers[name] = free[ahead.successor]
            free[ahead.successor] += self._sizes[name]
            free[name] = self._numbers[name] + 1

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def common(self, starts: Sequence[str], fan_out: str) -> str:
        """The fan-in that is the nearest of each of these nodes: then no other one is nearer to all of them.

        Empty when there is none, or when a known way leads through the fan-out: then it must be walked.
        """
        found = {self._found[name].fan_in if name in self._found else "" for name in starts}
        if len(found) != 1 or any(self._leads_through(name, fan_out) for name in starts):
            return ""
        return found.pop()

    def _leads_through(self, name: str, fan_out: str) -> bool:
        first = self._numbers.get(fan_out)
        return first is not None and 0 <= self._numbers.get(name, -1) - first < self._sizes[fan_out]


def _nearest_fan_ins(graph: Graph) -> dict[str, _Ahead]:
    """For each node from which a fan-in can be reached, the nearest; the nearest nodes come first."""
    # Breadth first from all fan-ins at once, against the edges: the first to meet a node is the nearest to it, and
    # of several in one turn the least id wins, whatever order the edges have.
    level = {name: (name, "") for name, kind in graph.handler_types.items() if kind == FAN_IN_TYPE}
    found: dict[str, _Ahead] = {}
    distance = 0
    while level:
        found.update((name, _Ahead(distance, *way)) for name, way in level.items())
        before: dict[str, tuple[str, str]] = {}
        for name, (fan_in, _) in level.items():
            for edge in graph.incoming_edges(name):
                source = edge.source
                if source in graph.nodes and source not in found:
                    before[source] = min((fan_in, name), before.get(source, (fan_in, name)))
        level = before
        distance += 1
    return found


class _Way(NamedTuple):
    """The only way from a node, until a node from which several lead, or none."""

    length: int  #: How many edges it has.
    successor: str  #: The next node on it; the node itself at its end.
    farther: str  #: A node farther on it. How far depends on the length alone, so that few steps reach any node.


class _WaysToEnds:
    """The ends of each node that leads into no loop, and its only way as far as there is only one: a forest."""

    def __init__(self, graph: Graph) -> None:
        self._ways: dict[str, _Way] = {}
        self._ends: dict[str, int] = {}  # a set of ends is one number, as one of branches
        onward = {
            name: [e.target for e in graph.outgoing_edges(name) if e.target in graph.nodes] for name in graph.nodes
        }
        missing = {name: len(targets) for name, targets in onward.items()}
        ready = [name for name, count in missing.items() if not count]
        for number, name in enumerate(ready):  # each after all its targets
            targets = dict.fromkeys(onward[name])
            self._ends[name] = 0 if targets else 1 << number
            for target in targets:
                self._ends[name] |= self._ends[target]
            self._ways[name] = self._way_over(*targets) if len(targets) == 1 else _Way(0, name, name)
            for edge in graph.incoming_edges(name):
                if edge.source in missing:
                    missing[edge.source] -= 1
                    if not missing[edge.source]:
                        ready.append(edge.source)

    def _way_over(self, successor: str) -> _Way:
        # The jump of a node is as long as both jumps behind it together where these are equally long, else one edge.
        way = self._ways[successor]
        middle = self._ways[way.farther]
        far = self._ways[middle.farther]
        is_even = way.length - middle.length == middle.length - far.length
        return _Way(way.length + 1, successor, middle.farther if is_even else successor)

    def shortened(self, starts: Sequence[str]) -> Sequence[str]:
        """Nodes from which branches need to be walked: none if they end apart, one if their only ways meet there."""
        common = -1
        for start in starts:
            common &= self._ends.get(start, -1)
        if not common:
            return ()
        meeting = starts[0]
        for start in starts[1:]:
            meeting = self._meeting(meeting, start)
        return (meeting,) if meeting else starts

    def _meeting(self, one: str, other: str) -> str:
        """The first node that two only ways have in common, or empty."""
        ways = self._ways
        if one not in ways or other not in ways:
            return ""
        if ways[one].length < ways[other].length:
            one, other = other, one
        length = ways[other].length
        while ways[one].length > length:
            way = ways[one]
            one = way.farther if ways[way.farther].length >= length else way.successor
        while one != other and ways[one].length:
            way, beside = ways[one], ways[other]
            if way.farther != beside.farther:
                one, other = way.farther, beside.farther
            else:
                one, other = way.successor, beside.successor
        return one if one == other else ""


def _take_in(arrived: dict[str, int], coming: Mapping[str, int], everybody: int) -> list[str]:
    """Note who has come where; the nodes at which the last branch came just now."""
    complete: list[str] = []
    for name, branches in coming.items():
        before = arrived.get(name, 0)
        arrived[name] = before | branches
        if arrived[name] == everybody != before:
            complete.append(name)
    return complete


def _one_deeper(
    graph: Graph,
    node_id: str,
    coming: Mapping[str, int],
    arrived: Mapping[str, int],
    successors: dict[str, Sequence[str]],
) -> dict[str, int]:
    """The nodes that branches reach for the first time by one more edge, with the branches that do."""
    deeper: dict[str, int] = {}
    for name, branches in coming.items():
        if name not in successors:
            successors[name] = [
                edge.target
                for edge in graph.outgoing_edges(name)
                if edge.target != node_id and edge.target in graph.nodes
            ]
        for target in successors[name]:
            if new := branches & ~arrived.get(target, 0):
                deeper[target] = deeper.get(target, 0) | new
    return deeper
