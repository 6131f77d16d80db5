"""The directories of stages within branches: ``branches/<fan-out>/<branch>/<node>`` (spec 5.6; ruling 22).

The directory of a branch is laid out as a run directory is, as far as stages go: a fan-out within it has a
``branches`` of its own there. Which name belongs to which id follows from the order of the log alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attractor_nb.model.branch import parts_of
from attractor_nb.model.events import Event, StageStarted
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.run_directory import BRANCHES_NAME, RunDirectory
from attractor_nb.storage.stages.stage_directories import StageDirectories, StageNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.storage.attempt_files import DirectoryStageFiles

Place = tuple[str, str]
"""The path of a branch, and the id of a node in it."""


class BranchNames:
    """Names of the directories of branches and of the stages in them."""

    def __init__(self, visited: Iterable[Place] = ()) -> None:
        """Take up the places that have a directory already, in the order of their first visit."""
        self._levels: dict[tuple[str, ...], StageNames] = {}
        for branch, node_id in visited:
            self.of(branch).name_of(node_id)

    def of(self, branch: str) -> StageNames:
        """The names of the stages in a branch."""
        self.names_to(branch)
        return self._levels.setdefault(parts_of(branch), StageNames({}))

    def names_to(self, branch: str) -> tuple[str, ...]:
        """The directories that lead to a branch, from the run directory down."""
        names: list[str] = []
        above: tuple[str, ...] = ()
        for depth, part in enumerate(parts_of(branch)):
            if depth % 2 == 0:
                names.append(BRANCHES_NAME)
                level = (*above, BRANCHES_NAME)  # no branch has an odd number of parts
            else:
                level = above
            names.append(self._levels.setdefault(level, StageNames({})).name_of(part))
            above = (*above, part)
        return tuple(names)

    def names_of(self, branch: str, node_id: str) -> tuple[str, ...]:
        """The directories that lead to a stage, its own included."""
        return (*self.names_to(branch), self.of(branch).name_of(node_id))


def places_of(events: Iterable[Event]) -> dict[Place, tuple[int, int]]:
    """The places where stages of branches were executed, in the order of their first visit, with the latest attempt."""
    return {
        (event.branch, event.name): (event.visit, event.attempt)
        for event in LoggedEvents.of(events).select(StageStarted)
        if event.branch
    }


class BranchDirectories:
    """Makes room for each new attempt of a stage in a branch, and holds the branches open that run."""

    def __init__(
        self, disk: Disk, root: RunDirectory, latest: Mapping[Place, tuple[int, int]], *, is_taken_over: bool = False
    ) -> None:
        """Take up the branches of a run.

        Args:
            disk: Where.
            root: The run directory.
            latest: Visit and attempt whose files each directory holds now, in the order of first visits.
            is_taken_over: See ``StageDirectories``.
        """
        self._disk = disk
        self._root = root
        self._names = BranchNames(latest)
        self._latest: dict[str, dict[str, tuple[int, int]]] = {}
        for (branch, node_id), attempt in latest.items():
            self._latest.setdefault(branch, {})[node_id] = attempt
        self._not_replaced = set(self._latest) if is_taken_over else set[str]()
        self._open: dict[str, tuple[RunDirectory, StageDirectories]] = {}

    def open(self, branch: str, node_id: str, visit: int, attempt: int) -> DirectoryStageFiles:
        """The empty directory of a new attempt; see ``StageDirectories.open``."""
        if branch not in self._open:
            directory = self._made(branch)
            stages = StageDirectories(
                self._disk,
                directory,
                self._names.of(branch),
                announce_escape=None,
                latest=self._latest.get(branch, {}),
                is_taken_over=branch in self._not_replaced,
            )
            self._not_replaced.discard(branch)
            self._open[branch] = (directory, stages)
        files = self._open[branch][1].open(node_id, visit, attempt)
        self._latest.setdefault(branch, {})[node_id] = (visit, attempt)
        return files

    def _made(self, branch: str) -> RunDirectory:
        """A branch's directory, made with those above it unless they are there."""
        names = self._names.names_to(branch)
        path, parent, opened = self._root.path, self._root.descriptor, list[int]()
        try:
            for name in names:
                path /= name
                with contextlib.suppress(FileExistsError):
                    self._disk.make_directory(name, parent)
                parent = self._disk.open_directory(name, parent)
                opened.append(parent)
            return RunDirectory(self._disk, path, descriptor=opened.pop())
        except OSError as error:
            raise storage_error(error, "make branch directory", path) from error
        finally:
            for descriptor in opened:
                self._disk.close(descriptor)

    def close(self, branch: str) -> None:
        """Give back what is held open for a branch."""
        if found := self._open.pop(branch, None):
            found[0].close()

    def close_all(self) -> None:
        """Give back everything."""
        for branch in tuple(self._open):
            self.close(branch)

    def names_of(self, branch: str, node_id: str) -> tuple[str, ...]:
        """The directories that lead to a stage, its own included."""
        return self._names.names_of(branch, node_id)
