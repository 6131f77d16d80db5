"""Events of a run as changes of a session: agents are branches, a fan-out is a wave. Pure.

How many branches there will be is said when a fan-out begins, their names as they start, so agents
wait under the name of the fan-out until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from attractor_nb.model.events import (
    Event,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    StageFailed,
)
from attractor_nb.sessions.fold import AgentsAdded, AgentUpdate, Change, SessionCancelled, SessionCompleted

BRANCH_FAILED: Final = "the branch failed"
_NOT_NEEDED: Final = "its result was not needed any more"


@dataclass(slots=True)
class _FanOut:
    """A fan-out under way: its wave, agents that wait for a branch, and branches under way."""

    wave: int
    waiting: list[str] = field(default_factory=list[str])
    running: dict[str, str] = field(default_factory=dict[str, str])


class FanOuts:
    """Takes the events of one run, and says what they change."""

    def __init__(self, pid: int) -> None:
        """Begin; ``pid`` is that of the process that runs the branches."""
        self._pid = pid
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._waves = 0
        self._failed = False
        self._fan_outs: dict[str, _FanOut] = {}
        self._errors: dict[str, str] = {}

    def take(self, event: Event) -> list[Change]:
        """The changes that an event brings."""
        match event:
            case ParallelStarted():
                return self._start(event)
            case ParallelBranchStarted():
                return self._start_branch(event)
            case ParallelBranchCompleted():
                return self._end_branch(event)
            case ParallelCompleted():
                return self._end(event.name)
            case StageFailed() if not event.will_retry:
                self._errors[event.name] = event.error or event.outcome.failure_reason
            case PipelineCompleted() | PipelineFailed() | PipelineInterrupted():
                return self._end_run(event)
            case _:
                pass
        return []

    def _start(self, event: ParallelStarted) -> list[Change]:
        changes = self._end(event.name)
        self._waves += 1
        fan_out = self._fan_outs[event.name] = _FanOut(self._waves)
        names = [f"{event.name} {number}" for number in range(1, event.branch_count + 1)]
        if names:
            agents = [self._new_agent(name) for name in names]
            fan_out.waiting = [agent["id"] for agent in agents]
            changes.append(AgentsAdded(agents, fan_out.wave))
        return changes

    def _start_branch(self, event: ParallelBranchStarted) -> list[Change]:
        changes: list[Change] = []
        fan_out = self._fan_outs.get(event.name)
        if fan_out is None:
            changes += self._start(ParallelStarted(name=event.name, visit=event.visit))
            fan_out = self._fan_outs[event.name]
        if not fan_out.waiting:
            agent = self._new_agent(event.branch)
            changes.append(AgentsAdded([agent], fan_out.wave))
            fan_out.waiting.append(agent["id"])
        agent_id = fan_out.running[event.branch] = fan_out.waiting.pop(0)
        self._errors.pop(event.branch, None)
        started = {"status": "running", "name": event.branch, "pid": self._pid}
        return [*changes, AgentUpdate(agent_id, started)]

    def _end_branch(self, event: ParallelBranchCompleted) -> list[Change]:
        fan_out = self._fan_outs.get(event.name)
        agent_id = fan_out.running.pop(event.branch, None) if fan_out else None
        if agent_id is None:
            return []
        if event.success:
            return [AgentUpdate(agent_id, {"status": "complete", "exit_code": 0})]
        self._failed = True
        error = self._errors.get(event.branch, BRANCH_FAILED)
        return [AgentUpdate(agent_id, {"status": "failed", "exit_code": 1, "error": error})]

    def _end(self, name: str) -> list[Change]:
        """What a fan-out leaves behind at its end: branches that the join did not wait for."""
        fan_out = self._fan_outs.pop(name, None)
        if fan_out is None:
            return []
        left = [*fan_out.running.values(), *fan_out.waiting]
        return [AgentUpdate(agent_id, {"status": "cancelled", "error": _NOT_NEEDED}) for agent_id in left]

    def _end_run(self, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> list[Change]:
        """The end of the session, if the run had one; a resume begins another."""
        has_session, has_failed = self._waves > 0, self._failed
        is_cut = any(fan_out.running or fan_out.waiting for fan_out in self._fan_outs.values())
        changes = [change for name in list(self._fan_outs) for change in self._end(name)]
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
    """Takes the events of one run of a map, and says what they change of the agent of its item."""

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
