"""``Run.fork``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never, Self

from attractor_nb.runtime.execution import Execution, of_kind
from attractor_nb.runtime.prepare.run_options import given_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.events import EventObserver
    from attractor_nb.protocols import Clock, Processes, Randomness
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.storage.files.disk import Disk


class Forking(Execution):
    """Going another way from a visit of a run, as a run of its own."""

    def fork(
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
        stop_after: int | None = None,
        breakpoints: Sequence[str] = (),
        pins: Mapping[str, Any] | None = None,
        observers: Sequence[EventObserver] = (),
        is_shown: bool = True,
        executor: ExecutorSpec = None,
        worker_wait: DurationSpec = "30s",
        host: str = "thread",
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
    ) -> Self:
        """Begin a run of its own that goes another way from just before a visit of a node, and start it.

        It is made beside this run, and bounds and backend are this run's, unless others are given.

        Args:
            node: The node that is visited first.
            visit: Before which of its visits, by number; the latest by default.
            context: Values of the context that are others in the fork.
            prompt: The prompt of that node in the fork.
            pipeline: What goes on in place of what this run ran.
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
            stop_after: Pause after this many stages.
            breakpoints: Where the run stops until run.debugger continues it: plan, plan->review, after:plan, on:error,
                a condition.
            pins: Nodes that are not executed, each with its result: the text of the response, an Outcome, or a run that
                has the result.
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
                default in this process.
            worker_wait: How long to wait for an executor that does not answer or has no workers.
            host: Where the engine runs: thread, its own thread, or kernel, a task in the running event loop.
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
            RunNotFound, GraphChanged, CheckpointCorrupt, RunError: It cannot begin there, and why.
            OptionError, ContextValueError: An option, a value or the prompt is unusable.
            UntrustedSource: The pipeline's commands come from elsewhere and are not trusted.
            StorageError: The disk refused; there is no fork then.
        """
        from attractor_nb.runtime.fork import fork_run  # noqa: PLC0415 - loads an engine

        given = given_options(locals())
        fork = fork_run(
            self,
            node,
            visit,
            context=context,
            prompt=prompt,
            pipeline=pipeline,
            on_graph_change=on_graph_change,
            **given,
        )
        return of_kind(fork, type(self))
