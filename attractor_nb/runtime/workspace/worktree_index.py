"""What of a run's worktree becomes a commit: all but nested repositories, whoever holds the index (ruling 49)."""

from __future__ import annotations

import contextlib
import os
import shutil
from time import sleep
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.processes.git import Git

LOCK_DELAYS_SECONDS: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""How long a commit waits for a git that a command or an agent has started."""
_LOCK_NAME: Final = "index.lock"
_PRIVATE_NAME: Final = "index.attractor"
_GIT_LINK: Final = "160000"


class WorktreeIndex:
    """The index of a worktree, as we use it.

    Args:
        git: git in the worktree.
        own: Git's own directory for it; an attribute, too.
        branch: The run's branch, for messages.
    """

    def __init__(self, git: Git, own: Path, branch: str) -> None:
        self._git = git
        self.own = own
        self._branch = branch
        self._warnings: list[str] = []
        self._told: set[str] = set()
        self._stale: tuple[int, int] | None = None

    def take_warnings(self) -> tuple[str, ...]:
        """What was left out or worked around since the last call; each is told once."""
        found, self._warnings = tuple(self._warnings), []
        return found

    def commit_all(self, message: str) -> bool:
        """Commit what has changed; whether anything has.

        A lock of the index is waited for. One that stays was left by a git that was killed, or is held by one that
        goes on: it is left alone, and a copy of the index is used.
        """
        lock = None
        for delay in (*LOCK_DELAYS_SECONDS, 0.0):
            lock = self._lock_facts()
            if lock is not None and lock == self._stale:
                break
            try:
                return self._commit(self._git, message)
            except StorageError:
                lock = self._lock_facts()
                if lock is None:
                    raise
            sleep(delay)
        else:
            self._stale = lock
        self._warn(
            f"{self.own / _LOCK_NAME} is there: a git works in the worktree of the run, or was killed there. The "
            "run commits without it. If no git works there, remove the file"
        )
        with contextlib.suppress(FileNotFoundError):  # git then makes a new one
            shutil.copyfile(self.own / "index", self.own / _PRIVATE_NAME)
        return self._commit(self._git.with_index(self.own / _PRIVATE_NAME), message)

    def _lock_facts(self) -> tuple[int, int] | None:
        try:
            facts = os.lstat(self.own / _LOCK_NAME)
        except OSError:
            return None
        return facts.st_ino, facts.st_mtime_ns

    def _commit(self, git: Git, message: str) -> bool:
        self._add(git)
        if git.says("diff", "--cached", "--quiet", "HEAD") is not None:
            return False
        git.ask("commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--file=-", stdin=message)
        return True

    def _add(self, git: Git) -> None:
        """Add what changed, but for nested repositories: one without a commit is an error of git's."""
        untracked = git.ask("ls-files", "--others", "--exclude-standard", "-z").split("\0")
        nested = [path.rstrip("/") for path in untracked if path.endswith("/")]
        if not nested:
            git.ask("add", "--all")
            return
        for path in nested:
            self._warn_of_nested(path)
        paths = "\0".join((".", *(f":(exclude,top,literal){path}" for path in nested)))
        git.ask("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=paths)

    def look_for_links(self, before: str, after: str) -> None:
        """Tell of nested repositories that somebody else committed as a mere link to one of their commits."""
        fields = self._git.ask("diff", "--raw", "-z", "--no-renames", before, after, "--").split("\0")
        for facts, path in zip(fields[::2], fields[1::2], strict=False):
            old, new = facts[1:].split(" ")[:2]
            if new == _GIT_LINK != old and path not in self._submodules():
                self._warn_of_nested(path)

    def _submodules(self) -> set[str]:
        """The paths that ``.gitmodules`` says where to get from."""
        told = self._git.says("config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
        return {line.partition(" ")[2] for line in (told or "").split("\n")}

    def _warn_of_nested(self, path: str) -> None:
        self._warn(
            f"{path} in the worktree of the run is a git repository of its own: its files are not on the branch "
            f"{self._branch}. To have them committed, remove {path}/.git"
        )

    def _warn(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._warnings.append(message)
