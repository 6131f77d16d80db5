"""Events of a run as changes of a session: agents are branches, a fan-out is a wave. Pure.

How many branches there will be is said when a fan-out begins, their names as they start, so agents
wait under the name of the fan-out until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    Event,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    StageEnd,
)
from attractor_nb.model.outcome import StageStatus
from attractor_nb.sessions.fold import AgentsAdded, AgentUpdate, Change, SessionCancelled, SessionCompleted

if TYPE_CHECKING:
    from collections.abc import Iterable

BRANCH_FAILED: Final = "the branch failed"
_NOT_NEEDED: Final = "its result was no longer needed"
_Key = tuple[str, str]
"""The branch that a fan-out is in, and its node."""


@dataclass(slots=True)
class _FanOut:
    """A fan-out under way: its wave, agents that wait for a branch, and branches under way by path."""

    wave: int
    waiting: list[str] = field(default_factory=list[str])
    running: dict[str, str] = field(default_factory=dict[str, str])


class FanOuts:
    """Translates the events of one run into changes of a session."""

    def __init__(self, pid: int) -> None:
        """Begin; ``pid`` is that of the process that runs the branches."""
        self._pid = pid
        self._known: dict[_Key, dict[str, ParallelBranchCompleted | None]] = {}
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._waves = 0
        self._failed = False
        self._fan_outs: dict[_Key, _FanOut] = {}

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before a resume: a branch that was over, or under way, is not announced."""
        for event in events:
            self.take(event)
        self._begin()

    def take(self, event: Event) -> list[Change]:
        """The changes that an event brings."""
        match event:
            case ParallelStarted():
                return self._start(event)
            case ParallelBranchStarted():
                self._known.setdefault((enclosing(event.branch), event.name), {})[event.branch] = None
                return self._start_branch(event.branch, event.name)
            case ParallelBranchCompleted():
                return self._end_branch(event)
            case ParallelCompleted():
                return self._end((event.branch, event.name))
            case StageEnd():
                self._known.pop((event.branch, event.name), None)
                return self._end((event.branch, event.name))
            case PipelineCompleted() | PipelineFailed() | PipelineInterrupted():
                return self._end_run(event)
            case _:
                return []

    def _start(self, event: ParallelStarted) -> list[Change]:
        key = event.branch, event.name
        changes = self._end(key)
        self._waves += 1
        fan_out = self._fan_outs[key] = _FanOut(self._waves)
        place = f"{event.branch}/{event.name}" if event.branch else event.name
        names = [f"{place} {number}" for number in range(1, event.branch_count + 1)]
        if names:
            agents = [self._new_agent(name) for name in names]
            fan_out.waiting = [agent["id"] for agent in agents]
            changes.append(AgentsAdded(agents, fan_out.wave))
        for path, end in list(self._known.get(key, {}).items()):
            changes += self._start_branch(path, event.name)
            changes += self._end_branch(end) if end is not None else ()
        return changes

    def _start_branch(self, path: str, name: str) -> list[Change]:
        changes: list[Change] = []
        key = enclosing(path), name
        if key not in self._fan_outs:
            self._waves += 1
            self._fan_outs[key] = _FanOut(self._waves)
        fan_out = self._fan_outs[key]
        if path in fan_out.running:
            return []
        if not fan_out.waiting:
            agent = self._new_agent(path)
            changes.append(AgentsAdded([agent], fan_out.wave))
            fan_out.waiting.append(agent["id"])
        agent_id = fan_out.running[path] = fan_out.waiting.pop(0)
        return [*changes, AgentUpdate(agent_id, {"status": "running", "name": path, "pid": self._pid})]

    def _end_branch(self, event: ParallelBranchCompleted) -> list[Change]:
        key = enclosing(event.branch), event.name
        if event.branch in self._known.get(key, {}):
            self._known[key][event.branch] = event
        changes = self._end_within(event.branch)
        fan_out = self._fan_outs.get(key)
        agent_id = fan_out.running.pop(event.branch, None) if fan_out else None
        if agent_id is None:
            return changes
        if event.success:
            ended: dict[str, Any] = {"status": "complete", "exit_code": 0}
        elif event.status == StageStatus.SKIPPED:
            ended = {"status": "cancelled", "error": event.failure_reason or _NOT_NEEDED}
        else:
            self._failed = True
            ended = {"status": "failed", "exit_code": 1, "error": event.failure_reason or BRANCH_FAILED}
        return [*changes, AgentUpdate(agent_id, ended)]

    def _end_within(self, path: str) -> list[Change]:
        """A branch that was cancelled leaves its own fan-outs unfinished."""
        inside = [key for key in self._fan_outs if key[0] == path or key[0].startswith(f"{path}/")]
        return [change for key in inside for change in self._end(key)]

    def _end(self, key: _Key) -> list[Change]:
        """Return the changes at the end of a fan-out: branches that the join did not wait for."""
        fan_out = self._fan_outs.pop(key, None)
        if fan_out is None:
            return []
        left = [*fan_out.running.values(), *fan_out.waiting]
        return [AgentUpdate(agent_id, {"status": "cancelled", "error": _NOT_NEEDED}) for agent_id in left]

    def _end_run(self, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> list[Change]:
        """The end of the session, if the run had one; a resume begins another."""
        has_session, has_failed = self._waves > 0, self._failed
        is_cut = any(fan_out.running or fan_out.waiting for fan_out in self._fan_outs.values())
        changes = [change for key in list(self._fan_outs) for change in self._end(key)]
        self._begin()
        if not has_session:
            return []
        if isinstance(event, PipelineInterrupted):
            return [SessionCancelled(event.reason)]
        if isinstance(event, PipelineFailed) and is_cut and not has_failed:
            # All its branches cancelled would read as complete: no false success.
            return [SessionCancelled(event.error)]
        return [*changes, SessionCompleted()]

    def _new_agent(self, name: str) -> dict[str, Any]:
        self._count += 1
        return {"id": f"{self._count:03}", "name": name}


class Item:
    """Translates the events of one run of a map into changes of the agent of its item."""

    def __init__(self, agent_id: str, pid: int) -> None:
        self._agent_id = agent_id
        self._pid = pid
        self._has_begun = False

    def take(self, event: Event) -> list[Change]:
        """The changes that an event brings; the first event of all begins the agent."""
        changes: list[Change] = []
        if not self._has_begun:
            self._has_begun = True
            changes.append(AgentUpdate(self._agent_id, {"status": "running", "pid": self._pid}))
        match event:
            case PipelineCompleted():
                ended = {"status": "complete", "exit_code": 0}
            case PipelineFailed():
                ended = {"status": "failed", "exit_code": 1, "error": event.error}
            case PipelineInterrupted():
                ended = {"status": "cancelled", "error": event.reason}
            case _:
                return changes
        return [*changes, AgentUpdate(self._agent_id, ended)]
