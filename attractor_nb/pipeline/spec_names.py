"""The names that the specification's own examples use (spec 7.3, 9.3, 9.6, 11.13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from attractor_nb.errors import RunNotFound
from attractor_nb.model.inputs import RESERVED_PREFIXES, sets_engine_key
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.prepare.run_options import RunKeywords, as_dict, as_path, takes
from attractor_nb.storage.stored_run import read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.runtime.handles.run_result import RunResult


@takes(RunKeywords)
def run_pipeline(
    graph: Graph | str | Path,
    context: Context | None = None,
    *,
    llm_callback: Callable[..., Any] | None = None,
    handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
    transforms: Sequence[Transform] = (),
    rules: Sequence[LintRule] = (),
    **options: Unpack[RunKeywords],
) -> RunResult:
    """Run a graph and wait for its end (spec 11.13).

    Args:
        graph: A parsed graph, DOT text or a path.
        context: Its values begin the run; afterwards it holds the run's.
        llm_callback: Answers prompts: a function of ``(node, prompt, context)`` or ``(prompt)``.
        handlers: Custom handlers by type.
        transforms: Custom transforms, after the built-in ones.
        rules: Custom lint rules.

    Raises:
        ValidationError: Lint found errors; nothing was run.
    """
    pipeline = Pipeline(graph, backend=llm_callback, handlers=handlers, transforms=transforms, rules=rules)
    inputs = as_dict("params", options.get("params") or {})
    if context is not None:
        declared = {each.name for each in pipeline.inputs}
        own_values = {
            key: context[key]
            for key in context
            if (key in declared if declared else not _is_engine_owned(key, context[key], pipeline.graph))
        }
        inputs = {**own_values, **inputs}
    options.update({"params": inputs})
    result = pipeline.run(wait=True, **options)
    if context is not None:
        context.apply_updates({key: result.context[key] for key in result.context})
    return result


def _is_engine_owned(key: str, value: object, graph: Graph) -> bool:
    """True if a value of an earlier run is left out: it says how that run went, not what this one begins with."""
    return key.startswith(RESERVED_PREFIXES) or sets_engine_key(key, value, graph.nodes)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored state of a run (spec 5.3)."""

    timestamp: float  #: When it was made, in seconds since 1970 (UTC).
    current_node: str  #: The last completed node.
    completed_nodes: tuple[str, ...]  #: All completed nodes in order.
    node_retries: dict[str, int]  #: Failed attempts by node.
    context_values: dict[str, Any]  #: The context; large values are references to artifacts.
    logs: tuple[Any, ...]  #: Entries of the run log.
    next_node: str  #: Node where a resume continues.
    node_outcomes: dict[str, str]  #: Latest status by node.


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
