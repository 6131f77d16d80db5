"""The graphs of the kill campaign, and the world around them.

A graph is data: to put another one through the whole campaign, add its text to ``GRAPHS`` and what its
model stages answer to ``REPLIES``; the judge compares with an uninterrupted run of the same graph and
knows no node. A graph whose branches run side by side says in ``AT_ONCE`` how many, one with child runs in
``CHILDREN`` of what.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from attractor_nb import Answer, Outcome, Pipeline, current_stage
from attractor_nb.engine.time_limits import SystemClock

EFFECTS = "CAMPAIGN_EFFECTS"
"""Environment variable with the path of the file in which each execution leaves its mark."""
TOOL = Path(__file__).with_name("kill_tool.sh")
DAY = 24 * 60 * 60
LARGE = "evidence " * 14_000

GRAPHS = {
    # A tool, a retry, a loop of three rounds, a gate, a goal gate with one redirect, a value over 100 KB.
    "stages": """digraph Stages {
        graph [goal="survive"]
        start [shape=Mdiamond]
        plan [prompt="Plan how to $goal"]
        research [prompt="Collect"]
        build [shape=parallelogram, tool_command="sh $CAMPAIGN_TOOL"]
        flaky [prompt="Try", max_retries=3]
        polish [prompt="Polish"]
        enough [shape=diamond]
        approve [shape=hexagon, label="Ship it?"]
        verify [prompt="Verify", goal_gate=true, retry_target=mend]
        report [prompt="Report"]
        mend [prompt="Mend"]
        done [shape=Msquare]
        start -> plan -> research -> build -> flaky -> polish -> enough
        enough -> polish [condition="context.rounds!=3"]
        enough -> approve [condition="context.rounds=3"]
        approve -> verify [label="[Y] Yes"]
        approve -> plan [label="[N] No"]
        verify -> report [default=true]
        report -> done
        mend -> verify
    }""",
    # The same kinds of stages, in the run's directory and again in that of a restart.
    "restart": """digraph Restart {
        graph [goal="survive"]
        start [shape=Mdiamond]
        plan [prompt="Plan how to $goal"]
        research [prompt="Collect"]
        build [shape=parallelogram, tool_command="sh $CAMPAIGN_TOOL"]
        approve [shape=hexagon, label="Ship it?"]
        judge [prompt="Judge"]
        done [shape=Msquare]
        start -> plan -> research -> build -> approve
        approve -> judge [label="[Y] Yes"]
        approve -> plan [label="[N] No"]
        judge -> done [condition="outcome=success"]
        judge -> plan [condition="outcome=fail", loop_restart=true]
    }""",
    # Four branches side by side, passed twice: two stages, a tool, a retry, a gate; then the best is chosen.
    "branches": """digraph Branches {
        graph [goal="survive"]
        start [shape=Mdiamond]
        plan [prompt="Plan how to $goal"]
        fan [shape=component]
        research [prompt="Collect"]
        write [prompt="Write"]
        build [shape=parallelogram, tool_command="sh $CAMPAIGN_TOOL"]
        flaky [prompt="Try", max_retries=3]
        approve [shape=hexagon, label="Ship it?"]
        agree [prompt="Say yes"]
        refuse [prompt="Say no"]
        best [shape=tripleoctagon, merge=all]
        polish [prompt="Polish"]
        enough [shape=diamond]
        done [shape=Msquare]
        start -> plan -> fan
        fan -> research -> write -> best
        fan -> build -> best
        fan -> flaky -> best
        fan -> approve
        approve -> agree [label="[Y] Yes"]
        approve -> refuse [label="[N] No"]
        agree -> best
        refuse -> best
        best -> polish -> enough
        enough -> fan [condition="context.rounds!=2"]
        enough -> done [condition="context.rounds=2"]
    }""",
    # Stages of one thread: an attempt that fails after it spoke, a loop; each checks what it hears.
    "threads": """digraph Threads {
        graph [goal="survive", default_fidelity=full, thread_id=main]
        start [shape=Mdiamond]
        ask [prompt="Ask"]
        stumble [prompt="Try", max_retries=3]
        answer [prompt="Answer"]
        done [shape=Msquare]
        start -> ask -> stumble -> answer
        answer -> ask [condition="context.rounds!=4"]
        answer -> done [condition="context.rounds=4"]
    }""",
    # Two kinds of child runs, each started twice: a sub-pipeline and one with a supervisor.
    "children": """digraph Children {
        graph [goal="survive"]
        start [shape=Mdiamond]
        plan [prompt="Plan how to $goal"]
        sub [type=pipeline, pipeline.name=worker, pipeline.inputs="ticket=context.ticket",
            pipeline.outputs="made=context.last_response"]
        boss [shape=house, stack.child_pipeline=worker, manager.poll_interval=10d]
        polish [prompt="Polish"]
        enough [shape=diamond]
        done [shape=Msquare]
        start -> plan -> sub -> boss -> polish -> enough
        enough -> sub [condition="context.rounds!=2"]
        enough -> done [condition="context.rounds=2"]
    }""",
}
CHILDREN = {
    # What children do: a large value, a tool, a retry, a gate.
    "worker": """digraph Worker {
        graph [goal="help"]
        start [shape=Mdiamond]
        research [prompt="Collect"]
        build [shape=parallelogram, tool_command="sh $CAMPAIGN_TOOL"]
        flaky [prompt="Try", max_retries=3]
        approve [shape=hexagon, label="Ship it?"]
        report [prompt="Report"]
        done [shape=Msquare]
        start -> research -> build -> flaky -> approve
        approve -> report [label="[Y] Yes"]
        approve -> research [label="[N] No"]
        report -> done
    }"""
}
"""The pipelines that stages of a graph run as children."""
AT_ONCE = {"branches": 4}
"""The number of stages that can be in flight; one where a graph is not named."""


def _flaky(context):
    if not context.get("internal.retry_count.flaky"):
        return Outcome.fail("the first try fails")
    return Outcome.success("the second try succeeds")


def _told(context, **updates):
    """A success after which the context knows that this visit was committed."""
    return Outcome.success(context_updates={"trail": [*context.get("trail", []), _visit()], **updates})


def _stumble(context):
    if not context.get("internal.retry_count.stumble"):
        return Outcome.fail("the first try fails")
    return _told(context)


def _visit():
    return current_stage().idempotency_key.partition(":")[2]


def _misheard(context):
    """Go on in the thread, if there is one; what was heard that no committed visit said, or empty."""
    conversation = current_stage().conversation
    if conversation is None:
        return ""
    heard = conversation.read().split()
    committed = iter(context.get("trail", []))
    conversation.save(" ".join([*heard, _visit()]))
    return "" if all(visit in committed for visit in heard) else f"{_visit()} heard {heard}"


REPLIES = {
    "ask": _told,
    "stumble": _stumble,
    "answer": lambda context: _told(context, rounds=context.get("rounds", 0) + 1),
    "research": lambda context: Outcome.success("much", context_updates={"corpus": LARGE}),
    "flaky": _flaky,
    "polish": lambda context: Outcome.success(context_updates={"rounds": context.get("rounds", 0) + 1}),
    "verify": lambda context: Outcome.success("sound") if context.get("mended") else Outcome.fail("not mended yet"),
    "mend": lambda context: Outcome.success("mended", context_updates={"mended": True}),
    "judge": lambda context: (
        Outcome.success("good")
        if current_stage().logs_root.name.startswith("restart-")
        else Outcome.fail("all over again")
    ),
}
"""Answers of model stages, from the context alone: the same however often one is executed."""


class Backend:
    """Answers prompts, each time leaving a mark outside of the run directory."""

    async def run(self, node, prompt, context):
        leave_mark({})
        if misheard := _misheard(context):
            return Outcome.fail(misheard, is_terminal=True)
        reply = REPLIES.get(node.id)
        return reply(context) if reply else f"{node.id} was done for {context.get('ticket', 'nobody')}"


class Approver:
    """Says yes, and leaves a mark that it was asked."""

    async def ask(self, question):
        leave_mark({"question": question.id})
        return Answer(value="Y", answered_by="campaign")

    async def ask_multiple(self, questions):
        return [await self.ask(question) for question in questions]

    async def inform(self, message, stage):
        pass


def leave_mark(more):
    """Append one line to the effects, in one write: what a kill cannot tear and a resume cannot undo."""
    scope = current_stage()
    mark = {"node": scope.node_id, "key": scope.idempotency_key, "where": str(scope.logs_root), **more}
    descriptor = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(mark).encode() + b"\n")
    finally:
        os.close(descriptor)


class HurriedClock(SystemClock):
    """The time of this machine, without waits, and with the same durations in every run.

    When checkpoints are due is then the same too, and so is the number of each operation.
    """

    def __init__(self):
        self._seconds = 0.0

    def monotonic(self):
        self._seconds += 0.01
        return self._seconds

    async def sleep(self, seconds):
        """Not at all; but a supervisor whose interval is over would look again, as often as chance has it."""
        await asyncio.sleep(seconds if seconds > DAY else 0)

    wait_out = sleep


def pipelines():
    """All graphs, parsed: what a worker does once before it forks."""
    return {name: Pipeline(text, pipelines=CHILDREN) for name, text in GRAPHS.items()}
