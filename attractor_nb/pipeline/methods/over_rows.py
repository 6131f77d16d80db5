"""``Pipeline.map``, ``map_async`` and ``resume_map``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``starting``
from typing import TYPE_CHECKING, Any, Literal, Never

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import HeldInterrupt, held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.keyword_options import given_options
from attractor_nb.runtime.prepare.run_options import as_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.maps import map_launch as launch
    from attractor_nb.maps import map_options as options
    from attractor_nb.maps.map_launch import MapWish
    from attractor_nb.maps.map_result import MapResult
    from attractor_nb.maps.map_run import MapRun
    from attractor_nb.model.events import EventObserver
    from attractor_nb.pipeline.methods.keywords import MapKeywords
    from attractor_nb.protocols import Clock, Processes, Randomness
    from attractor_nb.runtime import launch as launching
    from attractor_nb.runtime.prepare.run_options import (
        BackendSpec,
        DurationSpec,
        ExecutorSpec,
        InterviewerSpec,
    )
    from attractor_nb.storage.disk import Disk
else:
    launch = later("attractor_nb.maps.map_launch")
    launching = later("attractor_nb.runtime.launch")
    options = later("attractor_nb.maps.map_options")


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
        self,
        params: Iterable[Mapping[str, Any]],
        *,
        wait: Literal[True],
        **options: typing.Unpack[MapKeywords],
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
            on_failure: After a failed row: continue, or stop, which starts no further one.
            outputs: Context values that the result keeps of each row; nothing else of it stays in memory.
            map_dir: The map's own directory; it must be new or empty. One is made in runs_dir by default.
            max_budget_usd_all: Start no further row at this price of all rows together, in US dollars.
            max_tokens_all: Start no further row at so many tokens of all rows together.
            max_duration_all: Start no further row after 90s, 15m, 2h of the whole map.
            ship: What travels to the workers of an executor: rows, or their stages; by default rows, where
                all their stages may be run again.
            session: Keep the status of the rows in .founder-mode/status of this directory (status-schema);
                True: of the working directory.
            backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a
                backend.
            interviewer: Who answers gates: auto, console, deferred (run.answer), a function or an
                interviewer; by default whoever shows the run, else the terminal.
            trust: Vouches for the commands of a pipeline from elsewhere, for this call: True, or their hash.
            max_steps: Stop after so many stages.
            max_node_visits: Stop after so many visits to one node.
            max_restarts: Stop after so many loop_restarts.
            max_goal_gate_redirects: Stop after so many ways back from unsatisfied goal gates.
            max_budget_usd: Stop at this price in US dollars.
            max_tokens_total: Stop at so many tokens.
            max_duration: Stop after 90s, 15m, 2h of running time, in the middle of a stage if need be.
            runs_dir: Where run directories are made; .attractor/runs by default.
            durability: Commits survive a power loss (full), or a killed process (fast); none stores nothing.
            workdir: Where commands, agents and tools of models work; the current directory by default.
            isolation: A place of the run's own: workspace (a folder in the run directory), worktree (a git
                worktree with a branch), or none, whatever the graph says.
            workspace_from: A folder, or a quoted pattern: a workspace begins with copies of its files.
            cache: Take results of unchanged stages from .attractor/cache, or another directory, and keep them
                there.
            cassette: Record the calls of models, commands and people in this file, and replay them from it.
            cassette_mode: replay: call nothing; record: call everything; auto, the default: what is not
                there.
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages are done: a concurrent.futures.Executor, or a function that
                makes one; here by default.
            worker_wait: How long an executor is waited for that does not answer or has no workers.
            host: Where the engine works: thread, or kernel, a task in the running event loop.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default what its
                node says.
            take_over: For a resume: take the run from an owner that is frozen, or gone with its machine.
            secrets: Values that must not appear in anything that is written, shown or raised.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a
                Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only when it is due.
            clock: Stands in for the clock; for tests.
            randomness: Stands in for chance; for tests.
            processes: Stands in for what starts commands; for tests.
            disk: Stands in for the disk; for tests.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and nobody vouched for them; see ``trust``.
        """
        given = given_options(locals(), own=["params"])
        with held_interrupts() as interrupt:
            wish = _wish(self, given, interrupt, is_waited_for=wait)
            if wait:
                launching.refuse_own_loop(wish.of_rows)
            handle = launch.start_map(self, params, wish)
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
            on_failure: After a failed row: continue, or stop, which starts no further one.
            outputs: Context values that the result keeps of each row; nothing else of it stays in memory.
            map_dir: The map's own directory; it must be new or empty. One is made in runs_dir by default.
            max_budget_usd_all: Start no further row at this price of all rows together, in US dollars.
            max_tokens_all: Start no further row at so many tokens of all rows together.
            max_duration_all: Start no further row after 90s, 15m, 2h of the whole map.
            ship: What travels to the workers of an executor: rows, or their stages; by default rows, where
                all their stages may be run again.
            session: Keep the status of the rows in .founder-mode/status of this directory (status-schema);
                True: of the working directory.
            backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a
                backend.
            interviewer: Who answers gates: auto, console, deferred (run.answer), a function or an
                interviewer; by default whoever shows the run, else the terminal.
            trust: Vouches for the commands of a pipeline from elsewhere, for this call: True, or their hash.
            max_steps: Stop after so many stages.
            max_node_visits: Stop after so many visits to one node.
            max_restarts: Stop after so many loop_restarts.
            max_goal_gate_redirects: Stop after so many ways back from unsatisfied goal gates.
            max_budget_usd: Stop at this price in US dollars.
            max_tokens_total: Stop at so many tokens.
            max_duration: Stop after 90s, 15m, 2h of running time, in the middle of a stage if need be.
            runs_dir: Where run directories are made; .attractor/runs by default.
            durability: Commits survive a power loss (full), or a killed process (fast); none stores nothing.
            workdir: Where commands, agents and tools of models work; the current directory by default.
            isolation: A place of the run's own: workspace (a folder in the run directory), worktree (a git
                worktree with a branch), or none, whatever the graph says.
            workspace_from: A folder, or a quoted pattern: a workspace begins with copies of its files.
            cache: Take results of unchanged stages from .attractor/cache, or another directory, and keep them
                there.
            cassette: Record the calls of models, commands and people in this file, and replay them from it.
            cassette_mode: replay: call nothing; record: call everything; auto, the default: what is not
                there.
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages are done: a concurrent.futures.Executor, or a function that
                makes one; here by default.
            worker_wait: How long an executor is waited for that does not answer or has no workers.
            host: Where the engine works: thread, or kernel, a task in the running event loop.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default what its
                node says.
            take_over: For a resume: take the run from an owner that is frozen, or gone with its machine.
            secrets: Values that must not appear in anything that is written, shown or raised.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a
                Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only when it is due.
            clock: Stands in for the clock; for tests.
            randomness: Stands in for chance; for tests.
            processes: Stands in for what starts commands; for tests.
            disk: Stands in for the disk; for tests.
            **unknown: Any other keyword: an error that names the nearest option.
        """
        given = given_options(locals(), own=["params"])
        with held_interrupts() as interrupt:
            wish = _wish(self, given, interrupt, is_waited_for=True)
            return await launch.start_map(self, params, wish)

    def resume_map(
        self,
        directory: str | Path | MapRun | MapResult,
        *,
        params: Iterable[Mapping[str, Any]] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        max_parallel: int = 4,
        on_failure: str = "continue",
        outputs: Sequence[str] = (),
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
    ) -> MapRun:
        """Go on with a map: finished rows are read, not run; interrupted ones resumed, missing ones started.

        Args:
            directory: The map, or its directory.
            params: The same inputs again; they are in the directory, too.
            failed: ``keep`` the rows that failed, or ``retry`` each from the stage that it failed in.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            max_parallel: How many rows run at the same time.
            on_failure: After a failed row: continue, or stop, which starts no further one.
            outputs: Context values that the result keeps of each row; nothing else of it stays in memory.
            max_budget_usd_all: Start no further row at this price of all rows together, in US dollars.
            max_tokens_all: Start no further row at so many tokens of all rows together.
            max_duration_all: Start no further row after 90s, 15m, 2h of the whole map.
            ship: What travels to the workers of an executor: rows, or their stages; by default rows, where
                all their stages may be run again.
            session: Keep the status of the rows in .founder-mode/status of this directory (status-schema);
                True: of the working directory.
            backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a
                backend.
            interviewer: Who answers gates: auto, console, deferred (run.answer), a function or an
                interviewer; by default whoever shows the run, else the terminal.
            trust: Vouches for the commands of a pipeline from elsewhere, for this call: True, or their hash.
            max_steps: Stop after so many stages.
            max_node_visits: Stop after so many visits to one node.
            max_restarts: Stop after so many loop_restarts.
            max_goal_gate_redirects: Stop after so many ways back from unsatisfied goal gates.
            max_budget_usd: Stop at this price in US dollars.
            max_tokens_total: Stop at so many tokens.
            max_duration: Stop after 90s, 15m, 2h of running time, in the middle of a stage if need be.
            runs_dir: Where run directories are made; .attractor/runs by default.
            durability: Commits survive a power loss (full), or a killed process (fast); none stores nothing.
            workdir: Where commands, agents and tools of models work; the current directory by default.
            isolation: A place of the run's own: workspace (a folder in the run directory), worktree (a git
                worktree with a branch), or none, whatever the graph says.
            workspace_from: A folder, or a quoted pattern: a workspace begins with copies of its files.
            cache: Take results of unchanged stages from .attractor/cache, or another directory, and keep them
                there.
            cassette: Record the calls of models, commands and people in this file, and replay them from it.
            cassette_mode: replay: call nothing; record: call everything; auto, the default: what is not
                there.
            observers: Functions that are called with every event.
            is_shown: Whether the notebook shows the run.
            executor: Where tool and model stages are done: a concurrent.futures.Executor, or a function that
                makes one; here by default.
            worker_wait: How long an executor is waited for that does not answer or has no workers.
            host: Where the engine works: thread, or kernel, a task in the running event loop.
            on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default what its
                node says.
            take_over: For a resume: take the run from an owner that is frozen, or gone with its machine.
            secrets: Values that must not appear in anything that is written, shown or raised.
            tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a
                Tracing.
            checkpoint_every_stage: Write checkpoint.json after every stage, not only when it is due.
            clock: Stands in for the clock; for tests.
            randomness: Stands in for chance; for tests.
            processes: Stands in for what starts commands; for tests.
            disk: Stands in for the disk; for tests.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            RunNotFound, RunLocked, GraphChanged, InputsChanged, CheckpointCorrupt: It cannot go on, and why.
            OptionError: An option is unusable, or nothing of the map was kept.
            UntrustedSource: The pipeline's commands come from elsewhere and nobody vouched for them.
        """
        given = given_options(locals(), own=["params"])
        place = getattr(directory, "directory", directory)
        if place is None:
            raise OptionError(
                'nothing of the map is kept, for its durability was "none"', hint="start it anew"
            )
        with held_interrupts() as interrupt:
            wish = _wish(self, given, interrupt, is_waited_for=False)
            return launch.continue_map(
                self, as_path(place), params, wish, on_graph_change=on_graph_change, failed=failed
            )


def _wish(
    pipeline: Definition, given: Mapping[str, Any], interrupt: HeldInterrupt, *, is_waited_for: bool
) -> MapWish:
    own, of_rows = options.split_options(given)
    return launch.MapWish(
        own, launching.options_for(pipeline, of_rows), interrupt, is_waited_for=is_waited_for
    )
