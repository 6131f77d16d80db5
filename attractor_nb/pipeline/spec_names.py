"""The names that the specification's own examples use (spec 7.3, 9.3, 9.6, 11.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from attractor_nb.errors import RunNotFound
from attractor_nb.model.inputs import RESERVED_PREFIXES, sets_engine_key
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.prepare.run_options import as_dict, as_path, given_options
from attractor_nb.storage.stored_run import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.events import EventObserver
    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Clock, Handler, LintRule, Processes, Randomness, Transform
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.runtime.prepare.run_options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.storage.files.disk import Disk


def run_pipeline(
    graph: Graph | str | Path,
    context: Context | None = None,
    *,
    llm_callback: Callable[..., Any] | None = None,
    handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
    transforms: Sequence[Transform] = (),
    rules: Sequence[LintRule] = (),
    params: Mapping[str, Any] | None = None,
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
) -> RunResult:
    """Run a graph and wait for its end (spec 11.13).

    Args:
        graph: A parsed graph, DOT text or a path.
        context: Its values begin the run; afterwards it holds the run's.
        llm_callback: Answers prompts: a function of ``(node, prompt, context)`` or ``(prompt)``.
        handlers: Custom handlers by type.
        transforms: Custom transforms, after the built-in ones.
        rules: Custom lint rules.
        params: The inputs of the run, by name; the context has them before the first stage.
        backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.
        interviewer: Who answers gates: auto, console, deferred (run.answer), pause (the run stops there, answered
            later), refuse, a function or an interviewer; by default the view of the run, or the terminal when there is
            none.
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
        durability: full: commits survive a power loss; fast: they survive a killed process; none: nothing is stored.
        workdir: Where commands, agents and tools of models work; the current directory by default.
        isolation: The run's own working directory: workspace (a folder in the run directory), worktree (a git worktree
            with a branch) or none; overrides the graph.
        workspace_from: A folder, or a quoted pattern, whose files are copied into the new workspace.
        cache: Store results of stages in .attractor/cache, or in the given directory, and reuse them for unchanged
            stages.
        cassette: Record the calls of models, commands and people in this file, and replay them from it.
        cassette_mode: replay: call nothing; record: call everything; auto, the default: call what is not recorded.
        stop_after: Pause after this many stages.
        breakpoints: Where the run stops until run.debugger continues it: plan, plan->review, after:plan, on:error, a
            condition.
        pins: Nodes that are not executed, each with its result: the text of the response, an Outcome, or a run that has
            the result.
        observers: Functions that are called with every event.
        is_shown: Whether the notebook shows the run.
        executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
            default in this process.
        worker_wait: How long to wait for an executor that does not answer or has no workers.
        host: Where the engine runs: thread, its own thread, or kernel, a task in the running event loop.
        on_interrupted: What to do with a stage that was cut off: rerun, ask or fail; by default as its node says.
        take_over: For a resume: take the run from an owner that is frozen or whose machine is gone.
        secrets: Values that are removed from everything that is written, shown or raised.
        session: The directory whose .founder-mode/status has the status files of parallel work (status-schema); True:
            the working directory.
        tracer: Make an OpenTelemetry trace: True for the global provider, a TracerProvider, a Tracer or a Tracing.
        checkpoint_every_stage: Write checkpoint.json after every stage, not only from time to time.
        clock: Replaces the clock; for tests.
        randomness: Replaces the source of random numbers; for tests.
        processes: Replaces the object that starts commands; for tests.
        disk: Replaces the file system; for tests.
        **unknown: Any other keyword: an error that names the nearest option.

    Raises:
        ValidationError: Lint found errors; nothing was run.
    """
    given = given_options(locals(), own=["params"])
    pipeline = Pipeline(graph, backend=llm_callback, handlers=handlers, transforms=transforms, rules=rules)
    inputs = as_dict("params", params or {})
    if context is not None:
        declared = {each.name for each in pipeline.inputs}
        own_values = {
            key: context[key]
            for key in context
            if (key in declared if declared else not _is_engine_owned(key, context[key], pipeline.graph))
        }
        inputs = {**own_values, **inputs}
    result = pipeline.run(wait=True, params=inputs, **given)
    if context is not None:
        context.apply_updates({key: result.context[key] for key in result.context})
    return result


def _is_engine_owned(key: str, value: object, graph: Graph) -> bool:
    """Whether a value of an earlier run is left out: it says how that run went, not what this one begins with."""
    return key.startswith(RESERVED_PREFIXES) or sets_engine_key(key, value, graph.nodes)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored state of a run (spec 5.3).

    Attributes:
        timestamp: When it was made, in seconds since 1970 (UTC).
        current_node: The last completed node.
        completed_nodes: All completed nodes in order.
        node_retries: Failed attempts by node.
        context_values: The context; large values are references to artifacts.
        logs: Entries of the run log.
        next_node: Where a resume goes on.
        node_outcomes: Latest status by node.
    """

    timestamp: float
    current_node: str
    completed_nodes: tuple[str, ...]
    node_retries: dict[str, int]
    context_values: dict[str, Any]
    logs: tuple[Any, ...]
    next_node: str
    node_outcomes: dict[str, str]


def load_checkpoint(logs_root: str | Path) -> Checkpoint:
    """The newest valid checkpoint of a run directory (spec 11.13).

    Args:
        logs_root: The run directory.

    Raises:
        RunNotFound: There is no run, or it has no checkpoint yet.
        CheckpointCorrupt: What is there is damaged.
    """
    plain = read_run(as_path(logs_root)).checkpoint
    if plain is None:
        raise RunNotFound(f"{logs_root} has no checkpoint yet")
    return Checkpoint(
        float(plain.get("timestamp", 0.0)),
        str(plain.get("current_node", "")),
        tuple(plain.get("completed_nodes", ())),
        dict(plain.get("node_retries", {})),
        dict(plain.get("context", {})),
        tuple(plain.get("logs", ())),
        str(plain.get("next_node", "")),
        dict(plain.get("node_outcomes", {})),
    )
