"""Directory names of stages: the node id, wherever that is safe on every file system (ruling 32).

An id that a file system may refuse, that some file systems take for another id (``Plan`` and
``plan``), or that the run directory needs itself is escaped: a readable beginning, ``~``, and a digest
of the id. No id that is kept as it is contains ``~``.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_NAME_LENGTH = 100
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
RUN_ENTRIES = frozenset(
    {
        *(
            "artifacts",
            "visits",
            "branches",
            "children",
            "threads",
            "workspace",
            "worktree",
            "pipeline.dot",
            "events.jsonl",
            "owner.json",
            "owner.lock",
        ),
        *("checkpoint.json", "checkpoint.previous.json", "manifest.json", "manifest.previous.json"),
    }
)
"""What the run directory needs itself."""
_RESERVED_BEGINNING = "restart-"
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(10))}
)
"""Names that Windows keeps for itself, with whatever ending."""
_TAKEN = "|".join([*(rf"{name}(?:\.|\Z)" for name in _DEVICES), *(rf"{re.escape(name)}\Z" for name in RUN_ENTRIES)])
_SAFE = re.compile(
    rf"(?!{_RESERVED_BEGINNING}|{_TAKEN})[a-z0-9_](?:[a-z0-9_.-]{{0,{MAX_NAME_LENGTH - 2}}}[a-z0-9_-])?",
    re.ASCII | re.IGNORECASE,
)
"""One expression, because a resume asks it of each stage that was visited."""


def is_safe_name(node_id: str) -> bool:
    """Whether a node id can be a directory name everywhere.

    >>> is_safe_name("plan"), is_safe_name("CON"), is_safe_name("artifacts"), is_safe_name("a/b")
    (True, False, False, False)
    """
    return _SAFE.fullmatch(node_id) is not None


def escaped_name(node_id: str) -> str:
    """A safe name for any node id.

    >>> escaped_name("a/b")
    'a_b~c14cddc033f64b9d'
    """
    digest = sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()
    beginning = _UNSAFE_CHARACTER.sub("_", node_id[:40]).lstrip("-")
    return f"{beginning}~{digest[:16]}"


class StageNames:
    """The directory names of a run's nodes; no two nodes share one.

    Of ids that differ in case alone the first one visited keeps its spelling.
    """

    def __init__(self, escaped: Mapping[str, str], visited: Iterable[str] = ()) -> None:
        """Take up recorded names.

        Args:
            escaped: Recorded names of the nodes whose name is not their id; a name that is not the
                one we would give did not come from us and is not used.
            visited: Nodes that have a directory already, in the order of their first visit.
        """
        self._names = {node_id: name for node_id, name in escaped.items() if name == escaped_name(node_id)}
        self._taken = {name.casefold() for name in self._names.values()}
        for node_id in visited:
            self.name_of(node_id)

    def name_of(self, node_id: str) -> str:
        """The directory name of a node; the first call decides it."""
        name = self._names.get(node_id)
        if name is None:
            folded = node_id.casefold()
            if folded in self._taken or not is_safe_name(node_id):
                return self.escape(node_id)
            name = self._names[node_id] = node_id
            self._taken.add(folded)
        return name

    def escape(self, node_id: str) -> str:
        """Give a node another name than its id: what is not ours has that one."""
        name = self._names[node_id] = escaped_name(node_id)
        self._taken.add(name.casefold())
        return name

    @property
    def escaped(self) -> dict[str, str]:
        """The names that are not their node's id, for the manifest."""
        return {node_id: name for node_id, name in self._names.items() if name != node_id}


def recorded_name(node_id: str, escaped: Mapping[str, str]) -> str:
    """The directory name of a node in a run whose manifest records these escaped names."""
    return StageNames(escaped).name_of(node_id)
