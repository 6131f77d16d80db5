"""The options as type checkers read them where a method has overloads; ``make docs`` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.events import EventObserver
    from attractor_nb.protocols import Clock, Processes, Randomness
    from attractor_nb.runtime.prepare.run_options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.storage.files.disk import Disk


class RunKeywords(TypedDict, total=False):
    """Options of ``Pipeline.run``."""

    params: Mapping[str, Any] | None
    backend: BackendSpec
    interviewer: InterviewerSpec
    trust: bool | str
    max_steps: int | None
    max_node_visits: int | None
    max_restarts: int | None
    max_goal_gate_redirects: int | None
    max_budget_usd: float | None
    max_tokens_total: int | None
    max_duration: DurationSpec | None
    logs_root: str | Path | None
    runs_dir: str | Path | None
    durability: str
    workdir: str | Path | None
    isolation: str | None
    workspace_from: str | Path | None
    cache: bool | str | Path
    cassette: str | Path | None
    cassette_mode: str | None
    stop_after: int | None
    breakpoints: Sequence[str]
    pins: Mapping[str, Any] | None
    observers: Sequence[EventObserver]
    is_shown: bool
    executor: ExecutorSpec
    worker_wait: DurationSpec
    host: str
    on_interrupted: str | None
    take_over: bool
    secrets: Sequence[str]
    session: bool | str | Path
    tracer: Any
    checkpoint_every_stage: bool
    clock: Clock | None
    randomness: Randomness | None
    processes: Processes | None
    disk: Disk | None


class ResumeMapKeywords(TypedDict, total=False):
    """Options of ``Pipeline.resume_map``."""

    max_parallel: int
    on_failure: str
    outputs: Sequence[str]
    max_budget_usd_all: float | None
    max_tokens_all: int | None
    max_duration_all: DurationSpec | None
    ship: str | None
    session: bool | str | Path
    backend: BackendSpec
    interviewer: InterviewerSpec
    trust: bool | str
    max_steps: int | None
    max_node_visits: int | None
    max_restarts: int | None
    max_goal_gate_redirects: int | None
    max_budget_usd: float | None
    max_tokens_total: int | None
    max_duration: DurationSpec | None
    runs_dir: str | Path | None
    durability: str
    workdir: str | Path | None
    isolation: str | None
    workspace_from: str | Path | None
    cache: bool | str | Path
    cassette: str | Path | None
    cassette_mode: str | None
    observers: Sequence[EventObserver]
    is_shown: bool
    executor: ExecutorSpec
    worker_wait: DurationSpec
    host: str
    on_interrupted: str | None
    take_over: bool
    secrets: Sequence[str]
    tracer: Any
    checkpoint_every_stage: bool
    clock: Clock | None
    randomness: Randomness | None
    processes: Processes | None
    disk: Disk | None


class MapKeywords(ResumeMapKeywords, total=False):
    """Options of ``Pipeline.map``."""

    map_dir: str | Path | None
