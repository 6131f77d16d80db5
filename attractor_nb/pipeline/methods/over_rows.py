"""``Pipeline.map`` and ``map_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Never

from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.pipeline.methods.map_request import request_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import given_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.maps import map_launch
    from attractor_nb.maps.map_result import MapResult, MapRun
    from attractor_nb.model.events import EventObserver
    from attractor_nb.pipeline.methods.keywords import MapKeywords
    from attractor_nb.protocols import Clock, Processes, Randomness
    from attractor_nb.runtime import launch
    from attractor_nb.runtime.prepare.run_options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.storage.files.disk import Disk
else:
    launch = later("attractor_nb.runtime.launch")
    map_launch = later("attractor_nb.maps.map_launch")


class OverRows(Definition):
    """Running a pipeline over many inputs."""

    @typing.overload
    def map(
        self,
        params: Iterable[Mapping[str, Any]],
        *,
        wait: Literal[False] = False,
        **options: typing.Unpack[MapKeywords],
    ) -> MapRun: ...
    @typing.overload
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: Literal[True], **options: typing.Unpack[MapKeywords]
    ) -> MapResult: ...
    def map(
        self,
        params: Iterable[Mapping[str, Any]],
        *,
        wait: bool = False,
        max_parallel: int = 4,
        on_failure: str = "continue",
        outputs: Sequence[str] = (),
        map_dir: str | Path | None = None,
        max_budget_usd_all: float | None = None,
        max_tokens_all: int | None = None,
        max_duration_all: DurationSpec | None = None,
        ship: str | None = None,
        session: bool | str | Path = False,
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
        runs_dir: str | Path | None = None,
        durability: str = "full",
        workdir: str | Path | None = None,
        isolation: str | None = None,
        workspace_from: str | Path | None = None,
        cache: bool | str | Path = False,
        cassette: str | Path | None = None,
        cassette_mode: str | None = None,
        observers: Sequence[EventObserver] = (),
        is_shown: bool = True,
        executor: ExecutorSpec = None,
        worker_wait: DurationSpec = "30s",
        host: str = "thread",
        on_interrupted: str | None = None,
        take_over: bool = False,
        secrets: Sequence[str] = (),
        tracer: Any = None,
        checkpoint_every_stage: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        processes: Processes | None = None,
        disk: Disk | None = None,
        **unknown: Never,
    ) -> MapRun | MapResult:
        """Run this pipeline over many inputs, several at a time; each row is a run of its own.

        Args:
            params: The inputs of each row: dicts, or a pandas DataFrame.
            wait: Block until the end.
            max_parallel: How many rows run at the same time.
            on_failure: After a failed row: continue, or stop (start no further rows).
            outputs: Context values that the result keeps of each row; nothing else of a row stays in memory.
            map_dir: The map's own directory; it must be new or empty. By default a new one in runs_dir.
            max_budget_usd_all: Start no further rows once all rows together have cost this much, in US dollars.
            max_tokens_all: Start no further rows once all rows together have used this many tokens.
            max_duration_all: Start no further rows once the map has run this long (90s, 15m, 2h).
            ship: What the workers of an executor get: whole rows, or single stages; by default rows, if all their
                stages may be run again.
            session: The directory whose .founder-mode/status has the status files of the rows (status-schema); True:
                the working directory.
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
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
                default in this process.
            worker_wait: How long to wait for an executor that does not answer or has no workers.
            host: Where the engine runs: thread, its own thread, or kernel, a task in the running event loop.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default as its node says.
            take_over: For a resume: take the run from an owner that is frozen or whose machine is gone.
            secrets: Values that are removed from everything that is written, shown or raised.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only from time to time.
            clock: Replaces the clock; for tests.
            randomness: Replaces the source of random numbers; for tests.
            processes: Replaces the object that starts commands; for tests.
            disk: Replaces the file system; for tests.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and are not trusted; see ``trust``.
        """
        given = given_options(locals(), own=["params"])
        with held_interrupts() as interrupt:
            request = request_of(self, given, interrupt, is_waited_for=wait)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            handle = map_launch.start_map(self, params, request)
            return handle.result() if wait else handle

    async def map_async(
        self,
        params: Iterable[Mapping[str, Any]],
        *,
        max_parallel: int = 4,
        on_failure: str = "continue",
        outputs: Sequence[str] = (),
        map_dir: str | Path | None = None,
        max_budget_usd_all: float | None = None,
        max_tokens_all: int | None = None,
        max_duration_all: DurationSpec | None = None,
        ship: str | None = None,
        session: bool | str | Path = False,
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
        runs_dir: str | Path | None = None,
        durability: str = "full",
        workdir: str | Path | None = None,
        isolation: str | None = None,
        workspace_from: str | Path | None = None,
        cache: bool | str | Path = False,
        cassette: str | Path | None = None,
        cassette_mode: str | None = None,
        observers: Sequence[EventObserver] = (),
        is_shown: bool = True,
        executor: ExecutorSpec = None,
        worker_wait: DurationSpec = "30s",
        host: str = "kernel",
        on_interrupted: str | None = None,
        take_over: bool = False,
        secrets: Sequence[str] = (),
        tracer: Any = None,
        checkpoint_every_stage: bool = False,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        processes: Processes | None = None,
        disk: Disk | None = None,
        **unknown: Never,
    ) -> MapResult:
        """Map in the current event loop and return the result; raises as ``map`` does.

        Args:
            params: The inputs of each row: dicts, or a pandas DataFrame.
            max_parallel: How many rows run at the same time.
            on_failure: After a failed row: continue, or stop (start no further rows).
            outputs: Context values that the result keeps of each row; nothing else of a row stays in memory.
            map_dir: The map's own directory; it must be new or empty. By default a new one in runs_dir.
            max_budget_usd_all: Start no further rows once all rows together have cost this much, in US dollars.
            max_tokens_all: Start no further rows once all rows together have used this many tokens.
            max_duration_all: Start no further rows once the map has run this long (90s, 15m, 2h).
            ship: What the workers of an executor get: whole rows, or single stages; by default rows, if all their
                stages may be run again.
            session: The directory whose .founder-mode/status has the status files of the rows (status-schema); True:
                the working directory.
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
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
                default in this process.
            worker_wait: How long to wait for an executor that does not answer or has no workers.
            host: Where the engine runs: thread, its own thread, or kernel, a task in the running event loop.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default as its node says.
            take_over: For a resume: take the run from an owner that is frozen or whose machine is gone.
            secrets: Values that are removed from everything that is written, shown or raised.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only from time to time.
            clock: Replaces the clock; for tests.
            randomness: Replaces the source of random numbers; for tests.
            processes: Replaces the object that starts commands; for tests.
            disk: Replaces the file system; for tests.
            **unknown: Any other keyword: an error that names the nearest option.
        """
        given = given_options(locals(), own=["params"])
        with held_interrupts() as interrupt:
            request = request_of(self, given, interrupt, is_waited_for=True)
            return await map_launch.start_map(self, params, request)
