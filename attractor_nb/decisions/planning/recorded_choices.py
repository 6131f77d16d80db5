"""What a run directory would choose by itself when its run goes on (ruling 43).

Its manifest says with which backend, at which addresses and in which repository the run worked. The user who began
the run chose these. Who receives a run directory did not, so they need trust as the same words of a graph do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.planning.executable_surface import Command
from attractor_nb.model.calls.rates import RATE_FIELDS
from attractor_nb.model.vocabulary.isolation import WORKTREE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RECORDED: Final = "manifest."
"""What the attributes of these entries begin with: they stand in the manifest and not in the graph."""
OWN: Final = " (own)"
"""What the description of the caller's own object ends with: nobody makes it again from a manifest."""
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
    """What an endpoint says; its rates only slow requests, as in a graph."""
    if not isinstance(endpoint, dict):
        yield where, endpoint
        return
    for field, value in cast("dict[str, Any]", endpoint).items():
        if value and field not in {"name", "rates", *RATE_FIELDS}:
            yield f"{where}.{field}", value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
