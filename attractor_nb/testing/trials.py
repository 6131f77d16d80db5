"""One attempt of one handler, outside a run."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attractor_nb.calling import call
from attractor_nb.context import Context
from attractor_nb.model.graph import Graph
from attractor_nb.processes import LocalProcesses
from attractor_nb.runtime.workspace.workspace import Folder, RunWorkplace
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.storage.run_directory import WORKSPACE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Node
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.protocols import Handler


class FolderFiles:
    """A plain folder as the directory of a stage (``stage.StageFiles``)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def directory(self) -> Path:
        """The folder; made when first asked for."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return self._directory

    def write_text(self, name: str, text: str) -> None:
        """Write a file."""
        (self.directory / name).write_text(text, "utf-8", "backslashreplace")

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file that may hold anything, and be in folders of the stage's."""
        place = self.directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write the text that ``compose`` gives into a new file; whether it is."""
        if (self.directory / name).exists():
            return False
        self.write_text(name, compose())
        return True

    def append_text(self, name: str, text: str) -> None:
        """Add to a file."""
        with (self.directory / name).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)

    def read_text(self, name: str) -> str | None:
        """The text of a file; None when there is none."""
        path = self._directory / name
        return path.read_text("utf-8") if path.exists() else None

    def rename(self, name: str, new_name: str) -> None:
        """Give a file another name."""
        (self._directory / name).rename(self._directory / new_name)


@dataclass(frozen=True, slots=True)
class StageTrial:
    """What one attempt did.

    Attributes:
        outcome: What the handler returned.
        events: The events that it emitted.
        files: The files that it wrote.
        context: The context that it was given, with its own changes.
    """

    outcome: Outcome | None
    events: tuple[Event, ...]
    files: FolderFiles
    context: Context


async def try_stage(
    handler: Handler,
    node: Node,
    logs_root: Path,
    *,
    graph: Graph | None = None,
    context: Context | None = None,
    preamble: str = "",
    complaint: str = "",
    visit: int = 1,
    attempt: int = 1,
) -> StageTrial:
    """Run one attempt of a handler in its own stage scope, as the engine would.

    Args:
        handler: The handler to try.
        node: The node it executes.
        logs_root: The run directory; the stage's folder is made in it.
        graph: The node's graph; by default one of this node alone.
        context: The run's context; by default an empty one.
        preamble: Context carried into a model's prompt.
        complaint: What was wrong with the last response of this visit.
        visit: Which visit of the node it is.
        attempt: Which attempt of the visit it is.
    """
    graph = graph or Graph("trial", nodes={node.id: node})
    context = Context() if context is None else context
    events: list[Event] = []
    files = FolderFiles(logs_root / node.id)
    workspace = (logs_root / WORKSPACE_NAME).absolute()
    workspace.mkdir(parents=True, exist_ok=True)
    scope = StageScope(
        run_id="trial",
        node_id=node.id,
        visit=visit,
        attempt=attempt,
        logs_root=logs_root,
        files=files,
        announce=events.append,
        preamble=preamble,
        complaint=complaint,
        workplace=RunWorkplace(graph, Folder(workspace), LocalProcesses()),
    )
    variables = copy_context()
    variables.run(enter_stage, scope)
    work = call(handler.execute, node, context, graph, logs_root)
    outcome = await asyncio.get_running_loop().create_task(work, context=variables)
    return StageTrial(outcome, tuple(events), files, context)
