"""Reading the pipeline of a run directory, or of that of a map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from attractor_nb.model.vocabulary.option_meanings import OF_A_PIPELINE
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.prepare.run_options import as_path, given_options
from attractor_nb.runtime.stored_execution import read_definition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from attractor_nb.handlers.supervision import GuardFunction
    from attractor_nb.model.diagnostic import Severity
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import BackendSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.runtime.prepare.sources import Source


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
        backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.
        interviewer: Who answers gates: auto, console, deferred (run.answer), pause (the run stops there, answered
            later), refuse, a function or an interviewer; by default the view of the run, or the terminal when there is
            none.
        executor: Where tool and model stages run: a concurrent.futures.Executor, or a function that makes one; by
            default in this process.
        handlers: Custom handlers by type.
        transforms: Custom transforms; they run after the built-in ones.
        rules: Custom lint rules.
        severity: Severities by the name of a rule; they replace the rule's own.
        params: Inputs of every run, by name.
        name: Name to show instead of the graph's.
        runs_dir: Where run directories are made; .attractor/runs by default.
        strict: Refuse attributes without commas between them.
        allow_many_exits: Allow more than one exit node (ruling 7).
        pipelines: Pipelines by name, which nodes run as child runs (pipeline.name, stack.child_pipeline).
        guards: Functions by name, which judge a supervised child run (manager.guard_function).
        schemas: Pydantic models by name, for response_schema and human.form of a node and inputs_schema of the graph.
        tools: Functions by name, which allowed_tools of a node gives to its model (only with backend=llm).
        functions: Functions by name, which nodes call as stages (function=count).
        child_roots: Directories where files of child pipelines may be, in addition to the directory of the file that
            names them and the working directory.
        **unknown: Any other keyword: an error that names the nearest option.

    Raises:
        RunNotFound: There is no run, or it does not hold its source.
    """
    options = given_options(locals(), of=OF_A_PIPELINE)
    return read_definition(as_path(logs_root), Pipeline, options)
