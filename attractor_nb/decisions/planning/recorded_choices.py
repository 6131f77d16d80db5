"""The choices recorded in a run directory that a resume would reuse (ruling 43).

The manifest names the backend, the addresses and the repository of the run. The user who began the run chose
these. A user who receives a run directory did not, so they need trust as the same values in a graph do. In a
directory that the user did not begin, the working directory needs trust too. Where a model may write or execute,
so does everything that the model would read of it: inputs, prompts, answers and files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.planning.executable_surface import (
    FOREIGN,
    RECORDED,
    Command,
    executable_surface,
    is_steered,
)
from attractor_nb.model.calls.providers import RATE_FIELDS
from attractor_nb.model.events import (
    DebuggerChanged,
    Event,
    InstructionGiven,
    InterviewCompleted,
    PipelineForked,
    PipelineRewound,
    PipelineStarted,
)
from attractor_nb.model.vocabulary.isolation import WORKTREE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from attractor_nb.model.graph import Graph

OWN: Final = " (own)"
"""Suffix of the description of a caller's own object, which cannot be rebuilt from a manifest."""
_MODELS: Final = frozenset({"", "simulated", "local", "llm"})
"""Backends that a manifest may name without trust: they only ask models, at the user's own addresses."""


def recorded_choices(
    backend: Mapping[str, Any], place: Mapping[str, Any], *, is_backend_given: bool
) -> tuple[Command, ...]:
    """The entries of a manifest that need trust.

    Args:
        backend: The manifest that says what answers prompts.
        place: The manifest that says where the run works: that of its first directory, or of a map.
        is_backend_given: The caller names a backend, so that the recorded one is not used.

    >>> recorded_choices({"backend": "claude"}, {}, is_backend_given=False)
    (Command(node_id='', attribute='manifest.backend', text='claude'),)
    """
    found = [] if is_backend_given else list(_of_backend(backend))
    worktree = place.get("worktree")
    if isinstance(worktree, dict):
        found.append(("worktree.repository", cast("dict[str, Any]", worktree).get("repository")))
    elif place.get("isolation") == WORKTREE:  # of a map, whose rows have worktrees
        found.append(("workdir", place.get("workdir")))
    return tuple(Command("", f"{RECORDED}{name}", _text(value)) for name, value in found)


def foreign_choices(
    graph: Graph,
    places: Iterable[Mapping[str, Any]],
    *,
    acts_unasked: bool,
    read_events: Callable[[], Iterable[Event]],
    digest: Callable[[], str],
) -> tuple[Command, ...]:
    """The entries that a directory needs besides, which the user did not begin.

    Args:
        graph: The graph that is active.
        places: What its manifests, and those of the rows of a map, say of where it works; empty where the caller
            names a place.
        acts_unasked: As of ``executable_surface``.
        read_events: Reads the log; called only where a model may write or execute.
        digest: The hash of all files of the directory; called only there.
    """
    if not executable_surface(graph, acts_unasked=acts_unasked):
        return ()
    found: list[tuple[str, object]] = list(dict.fromkeys(entry for place in places for entry in _places_named(place)))
    if is_steered(graph, acts_unasked=acts_unasked):
        found += [*_told(read_events()), ("files", digest())]
    return tuple(Command("", f"{FOREIGN}{name}", _text(value)) for name, value in found)


def _places_named(place: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The places of a manifest that are not the run's own, inside its directory."""
    if place.get("workdir") and not place.get("isolation"):
        yield "workdir", _text(place["workdir"])
    if place.get("workspace_from"):
        yield "workspace_from", _text(place["workspace_from"])
    worktree = place.get("worktree")
    if isinstance(worktree, dict):
        yield "worktree.repository", _text(cast("dict[str, Any]", worktree).get("repository"))


def _told(events: Iterable[Event]) -> Iterator[tuple[str, object]]:
    """The texts of users in a log that reached the models of a run, each with its source."""
    for event in events:
        match event:
            case PipelineStarted(inputs=inputs, carried=carried):
                if inputs:
                    yield "inputs", inputs
                yield from (("instruction", given.text) for given in (carried.instructions if carried else ()))
            case PipelineForked() | PipelineRewound() | DebuggerChanged():
                text = event.text if isinstance(event, DebuggerChanged) else event.prompt
                if text:
                    yield f"prompt of {event.node}", text
                if event.context:
                    yield "context", event.context
            case InstructionGiven(text=text):
                yield "instruction", text
            case InterviewCompleted(stage=stage, text=text, form=form) if text or form:
                yield f"answer at {stage}", form or text
            case _:
                pass


def _of_backend(manifest: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    name = _text(manifest.get("backend") or "")
    facts: object = manifest.get("backend_facts") or {}
    if not facts and name not in _MODELS and not name.endswith(OWN):
        yield "backend", name
    options = cast("dict[str, Any]", facts).get("options") if isinstance(facts, dict) else facts
    if not isinstance(options, dict):
        if options:
            yield "backend_facts", facts
        return
    written = cast("dict[str, Any]", options)
    for key in ("base_url", "system_prompt"):
        if value := written.get(key):
            yield key, value
    endpoints: object = written.get("endpoints") or {}
    if not isinstance(endpoints, dict):
        yield "endpoints", endpoints
        return
    for key, endpoint in sorted(cast("dict[str, Any]", endpoints).items()):
        yield from _of_endpoint(f"endpoint.{key}", endpoint)


def _of_endpoint(where: str, endpoint: object) -> Iterator[tuple[str, object]]:
    """The fields of an endpoint that need trust; its rates only slow requests, as in a graph."""
    if not isinstance(endpoint, dict):
        yield where, endpoint
        return
    for field, value in cast("dict[str, Any]", endpoint).items():
        if value and field not in {"name", "rates", *RATE_FIELDS}:
            yield f"{where}.{field}", value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
