"""Reading the pipeline of a run directory, or of that of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from attractor_nb.model.vocabulary.option_meanings import OF_A_PIPELINE
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.prepare.run_options import (
    BackendSpec,
    ExecutorSpec,
    InterviewerSpec,
    as_path,
    given_options,
    tells_options,
)
from attractor_nb.runtime.stored_execution import read_definition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from attractor_nb.handlers.manager_loop import GuardFunction
    from attractor_nb.model.diagnostic import Severity
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.sources import Source


@tells_options
def load_pipeline(
    logs_root: str | Path,
    *,
    backend: BackendSpec = None,
    interviewer: InterviewerSpec = None,
    executor: ExecutorSpec = None,
    handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
    transforms: Sequence[Transform] = (),
    rules: Sequence[LintRule] = (),
    severity: Mapping[str, Severity] | None = None,
    params: Mapping[str, Any] | None = None,
    name: str = "",
    runs_dir: str | Path | None = None,
    strict: bool = False,
    allow_many_exits: bool = False,
    pipelines: Mapping[str, Definition | Source] | None = None,
    guards: Mapping[str, GuardFunction] | None = None,
    schemas: Mapping[str, type[BaseModel]] | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    child_roots: Sequence[str | Path] = (),
    **unknown: Never,
) -> Pipeline:
    """The pipeline that a run directory, or that of a map, holds.

    Custom handlers and all else that is plugged in is not stored and must be given again.

    Args:
        logs_root: The directory.

    Raises:
        RunNotFound: There is no run, or it does not hold its source.
    """
    own = {name: value for name, value in locals().items() if name in OF_A_PIPELINE}
    options = given_options({**own, "name": name or None, **unknown})  # else the recorded one
    return read_definition(as_path(logs_root), Pipeline, options)
