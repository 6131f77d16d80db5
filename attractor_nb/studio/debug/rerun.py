"""``Debugger.rerun``: one stage once more, on its input: a fork that ends after its first stage."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from attractor_nb.decisions.overrides import overrides_of
from attractor_nb.errors import OptionError, RunError
from attractor_nb.runtime.fork import fork_run
from attractor_nb.runtime.prepare.run_options import given_options
from attractor_nb.studio.inspect.inspect_run import inspect_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.events import EventObserver
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.protocols import Clock, Processes, Randomness
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.prepare.run_options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.storage.files.disk import Disk

_OWN = frozenset({"stop_after", "breakpoints", "host"})


@dataclass(frozen=True, slots=True)
class Rerun:
    """A stage that was executed once more, beside what it had come to.

    Attributes:
        node: The node.
        visit: The visit whose input it had.
        outcome: What it came to now.
        before: What it had come to; None when it never ended.
        response: The text of its response now; empty without one.
        response_before: The text that it had then.
        run: The run in which it was executed, in a directory of its own.
    """

    node: str
    visit: int
    outcome: Outcome
    before: Outcome | None
    response: str
    response_before: str
    run: Execution

    @property
    def is_same(self) -> bool:
        """Whether status and response are what they were."""
        return (
            self.before is not None
            and self.outcome.status is self.before.status
            and self.response == self.response_before
        )

    @property
    def diff(self) -> str:
        """The response against the one before, as a unified diff; empty when they are the same."""
        lines = difflib.unified_diff(
            self.response_before.splitlines(), self.response.splitlines(), "before", "now", lineterm=""
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        before = "never ended" if self.before is None else str(self.before.status)
        words = f"{self.node}, visit {self.visit}, once more: {self.outcome.status}, before {before}"
        if reason := self.outcome.failure_reason:
            words += f"\nreason: {reason}"
        if self.response == self.response_before:
            return f"{words}; the response is the same" if self.response else words
        return f"{words}\n{self.diff}"

    def __repr__(self) -> str:
        return str(self)


def rerun_stage(run: Execution, node: str, visit: int | None, options: Mapping[str, Any]) -> Rerun:
    """Execute a stage once more on its stored input; see ``Debugger.rerun``.

    Raises:
        OptionError: An option is the rerun's own, or there is no such node.
        RunError: It has no such visit, it is pinned there, or the run is not stored.
    """
    for name in options:
        if name in _OWN:
            raise OptionError(f"{name} is given, and a rerun executes one stage and ends")
    visits = [entry for entry in run.journal().visits_of(node, "") if visit in (None, entry.number)]
    if visits:
        started = visits[-1].sequence
        before = (event for event in run.journal().counted if event.sequence < started)
        if node in overrides_of(before).pins:
            raise RunError(
                f"{node} was pinned in visit {visits[-1].number}: nothing was executed that could be again",
                hint=f'another visit: rerun("{node}", visit=…)',
            )
    given: Mapping[str, Any] = options.get("pins") or {}
    pins = {**given, node: None}  # one that the handle keeps does not stand for this stage
    whole: dict[str, Any] = {**options, "pins": pins, "stop_after": 1}
    fork = fork_run(run, node, visit, **whole)
    fork.result()
    outcome = fork.outcomes.get(node)
    if outcome is None or not visits:
        raise RunError(f"{node} was not brought to an end: {fork.result().reason}")
    commit = visits[-1].commit
    return Rerun(
        node,
        visits[-1].number,
        outcome,
        None if commit is None else commit.outcome,
        fork.read_stage_file(node, "response.md") or "",
        _response_of(run, node, visits[-1].number),
        fork,
    )


def _response_of(run: Execution, node: str, visit: int) -> str:
    """The response of a visit, also of one whose files were moved aside."""
    inspected = inspect_stage(run, node, visit)
    response = inspected.to_plain().get("response")
    return response if isinstance(response, str) else ""


class Rerunning:
    """Executing a stage of a run once more."""

    _run: Execution

    def rerun(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        backend: BackendSpec = None,
        interviewer: InterviewerSpec = None,
        trust: bool | str = False,
        max_steps: int | None = None,
        max_node_visits: int | None = None,
        max_restarts: int | None = None,
        max_goal_gate_redirects: int | None = None,
        max_budget_usd: float | None = None,
        max_tokens_total: int | None = None,
        max_duration: DurationSpec | None = None,
        logs_root: str | Path | None = None,
        runs_dir: str | Path | None = None,
        durability: str = "full",
        workdir: str | Path | None = None,
        isolation: str | None = None,
        workspace_from: str | Path | None = None,
        cache: bool | str | Path = False,
        cassette: str | Path | None = None,
        cassette_mode: str | None = None,
        pins: Mapping[str, Any] | None = None,
        observers: Sequence[EventObserver] = (),
        is_shown: bool = False,
        executor: ExecutorSpec = None,
        worker_wait: DurationSpec = "30s",
        on_interrupted: str | None = None,
        take_over: bool = False,
        secrets: Sequence[str] = (),
        session: bool | str | Path = False,
        tracer: Any = None,
        checkpoint_every_stage: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        processes: Processes | None = None,
        disk: Disk | None = None,
        **unknown: Never,
    ) -> Rerun:
        """Execute one stage once more on its stored input, in a directory of its own; the run stays as it is.

        Works for loaded runs and for those that have ended, too.

        Args:
            node: The node.
            visit: Which of its visits, by number; the latest by default.
            context: Values of the context that are others now.
            prompt: The prompt of the node now.
            pipeline: What is run in place of what the run ran.
            on_graph_change: As of ``Pipeline.resume``; with a pipeline given the change is accepted.
            backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.
            interviewer: Who answers gates: auto, console, deferred (run.answer), pause (the run stops there, answered
                later), refuse, a function or an interviewer; by default the view of the run, or the terminal when there
                is none.
            trust: Trust the commands of a pipeline from another source, for this call: True, or their hash.
            max_steps: Stop after this many stages.
            max_node_visits: Stop after this many visits to one node.
            max_restarts: Stop after this many restarts by loop_restart edges.
            max_goal_gate_redirects: Stop after unsatisfied goal gates have sent the run back this many times.
            max_budget_usd: Stop at this cost in US dollars.
            max_tokens_total: Stop at this many tokens.
            max_duration: Stop after this running time (90s, 15m, 2h), even in the middle of a stage.
            logs_root: The run's own directory; it must be new or empty.
            runs_dir: Where run directories are made; .attractor/runs by default.
            durability: full: commits survive a power loss; fast: they survive a killed process; none: nothing is
                stored.
            workdir: Where commands, agents and tools of models work; the current directory by default.
            isolation: The run's own working directory: workspace (a folder in the run directory), worktree (a git
                worktree with a branch) or none; overrides the graph.
            workspace_from: A folder, or a quoted pattern, whose files are copied into the new workspace.
            cache: Store results of stages in .attractor/cache, or in the given directory, and reuse them for unchanged
                stages.
            cassette: Record the calls of models, commands and people in this file, and replay them from it.
            cassette_mode: replay: call nothing; record: call everything; auto, the default: call what is not recorded.
            pins: Nodes that are not executed, each with its result: the text of the response, an Outcome, or a run that
                has the result.
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
                default in this process.
            worker_wait: How long to wait for an executor that does not answer or has no workers.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default as its node says.
            take_over: For a resume: take the run from an owner that is frozen or whose machine is gone.
            secrets: Values that are removed from everything that is written, shown or raised.
            session: The directory whose .founder-mode/status has the status files of parallel work (status-schema);
                True: the working directory.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only from time to time.
            clock: Replaces the clock; for tests.
            randomness: Replaces the source of random numbers; for tests.
            processes: Replaces the object that starts commands; for tests.
            disk: Replaces the file system; for tests.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            OptionError, RunError: There is no such node or visit, or nothing of the run is stored.
        """
        given = given_options(locals())
        fork = {"context": context, "prompt": prompt, "pipeline": pipeline, "on_graph_change": on_graph_change}
        return rerun_stage(self._run, node, visit, {**fork, **given})
