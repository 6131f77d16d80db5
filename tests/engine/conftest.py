"""A traversal performed by hand, and small ways to make pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from attractor_nb import Context, Pipeline, parse_dot
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.commits import (
    Announce,
    Ask,
    Asked,
    Commit,
    Execute,
    RecordStatus,
    RunEnd,
    StageResult,
    Wait,
)
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import traverse
from attractor_nb.engine.runner import mirror_graph
from attractor_nb.model.outcome import Outcome
from attractor_nb.testing import ManualClock, ScriptedBackend, SeededRandomness

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"


@dataclass
class Replay:
    """The record of a traversal.

    Attributes:
        end: How it ended.
        path: Committed nodes in order.
        tries: Executed attempts as ``(node, visit, attempt)``.
        waits: Seconds of every wait.
        questions: What the engine itself asked.
        recorded: Attempts that were decided about and not executed.
        events: Announced events and commits, in order.
        state: Where it stands.
        context: The context.
    """

    end: RunEnd | None = None
    path: list[str] = field(default_factory=list)
    tries: list[tuple[str, int, int]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    questions: list[Any] = field(default_factory=list)
    recorded: list[RecordStatus] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    state: RunState | None = None
    context: Context | None = None

    def of(self, kind):
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


def _perform(traversal, replay, reply, seconds, answer):
    result, elapsed = None, replay.state.elapsed_seconds
    while True:
        effect = traversal.send(result)
        result = None
        if isinstance(effect, Execute):
            replay.state.apply(effect.started)
            replay.tries.append((effect.planned.id, effect.started.visit, effect.started.attempt))
            elapsed += seconds
            result = StageResult(reply(effect.planned.id), seconds, elapsed)
        elif isinstance(effect, Wait):
            replay.waits.append(effect.seconds)
            result = elapsed = elapsed + effect.seconds
        elif isinstance(effect, Ask):
            replay.questions.append(effect.question)
            result = Asked(answer, elapsed)
        elif isinstance(effect, RecordStatus):
            replay.recorded.append(effect)
        elif isinstance(effect, Announce | Commit):
            replay.events.append(effect.event)
            if isinstance(effect, Commit):
                replay.path.append(effect.event.name)


@pytest.fixture
def replay():
    """Replay statements from a table of outcomes by node, without a clock, disk or loop."""

    def run(
        body, script=None, *, seconds=1.0, state=None, inputs=None, answer=None, uniform=lambda low, high: 1.0, **bounds
    ):
        graph = parse_dot(FRAME.format(body=body))
        plan = compile_plan(graph, bounds=bounds_of(graph, bounds))
        left = {name: list(given) if isinstance(given, list) else [given] for name, given in (script or {}).items()}

        def reply(node_id):
            queue = left.get(node_id) or [Outcome.success()]
            return queue.pop(0) if len(queue) > 1 else queue[0]

        context = Context()
        mirror_graph(plan, context)
        context.apply_updates(inputs or {})
        replay = Replay(state=state or RunState(plan.start), context=context)
        traversal = traverse(plan, replay.state, context, run_id="aaaaaaaa", uniform=uniform)
        try:
            _perform(traversal, replay, reply, seconds, answer)
        except StopIteration as stop:
            replay.end = stop.value
        return replay

    return run


@pytest.fixture
def dot():
    """A pipeline text with a start, an exit ``done`` and the given statements."""
    return lambda body: FRAME.format(body=body)


@pytest.fixture
def make(dot):
    """A pipeline of the given statements with scripted replies."""

    def build(body, replies=None, **options):
        return Pipeline(dot(body), **{"backend": ScriptedBackend(replies or {}), **options})

    return build


@pytest.fixture
def seams():
    """Options under which no wait takes time and chance repeats itself."""
    return lambda: {"clock": ManualClock(), "randomness": SeededRandomness()}
