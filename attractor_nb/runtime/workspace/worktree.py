"""``isolation="worktree"``: a git worktree and a branch of a run's own, and a commit for each stage.

The user's checkout, branches, hooks and settings stay as they are: what a run does is on its branch, and
a person merges it, or does not. Which commit a stage left is in the run's log; here is how to get there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from pathlib import Path, PurePath
from time import sleep
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from attractor_nb.errors import OptionError, RunError, StorageError
from attractor_nb.lazy_imports import later
from attractor_nb.model.vocabulary.isolation import WORKTREE
from attractor_nb.processes.git import Git
from attractor_nb.redaction import redacted
from attractor_nb.stage import Kept
from attractor_nb.storage.run_directory import WORKTREE_NAME, first_directory, refuse_link
from attractor_nb.storage.stored_run import read_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.views import changes_view
    from attractor_nb.views.changes_view import Changes
else:
    changes_view = later("attractor_nb.views.changes_view")


BRANCH_BEGINNING: Final = "attractor/"
_BRANCH: Final = re.compile(rf"{BRANCH_BEGINNING}[A-Za-z0-9][A-Za-z0-9._-]{{0,199}}")
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
_PLAIN: Final = ("--no-ext-diff", "--no-textconv", "--no-renames")
"""A diff that runs no command of the user's or the repository's settings."""
_LEFT: Final = "changes that no stage of the run has committed"
_ELSE: Final = 'run it without isolation, or with isolation="workspace"'


class Repository(Struct, frozen=True):
    """The repository of which a run gets a worktree."""

    top: Path  #: The top of the checkout in which the run was started.
    prefix: str  #: The way from there to where it was started, or empty.
    commit: str  #: First commit of the worktree.
    changes: int  #: Number of files of the checkout with uncommitted changes: the worktree has them as committed.

    def facts(self, run_id: str) -> dict[str, Any]:
        """The manifest entry of a run for its worktree."""
        return {
            "repository": str(self.top),
            "prefix": self.prefix,
            "branch": f"{BRANCH_BEGINNING}{run_id}",
            "base": self.commit,
            "start": self.commit,
        }

    @property
    def warning(self) -> str:
        """A warning that the worktree lacks the uncommitted changes of the checkout; empty without such changes."""
        if not self.changes:
            return ""
        files = f"{self.changes:,} file{'s' * (self.changes != 1)}"
        return (
            f"{files} in {self.top} {'are' if self.changes != 1 else 'is'} changed and not committed: the "
            f"worktree of the run begins at {self.commit[:12]}, without them"
        )


def find_repository(directory: Path) -> Repository:
    """The repository that holds a directory."""
    git = Git(directory)
    if shutil.which("git") is None:
        raise OptionError('isolation="worktree" needs git, which is not on the PATH', hint=f"install git, or {_ELSE}")
    try:
        inside = git.says("rev-parse", "--is-inside-work-tree")
        if inside is None:
            raise OptionError(
                f'isolation="worktree" needs a git repository, and {directory} is in none',
                hint=f"git init and commit, name one by workdir=, or {_ELSE}",
            )
        if inside != "true":
            raise OptionError(
                f"{directory} is in a bare repository, or inside of .git: there is no checkout",
                hint="name a checkout by workdir=",
            )
        top = Path(git.ask("rev-parse", "--show-toplevel"))
        prefix = git.ask("rev-parse", "--show-prefix").rstrip("/")
        commit = git.says("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if commit is None:
            raise OptionError(
                f"the repository {top} has no commit yet, and a worktree begins at one",
                hint="make a first commit: git add -A && git commit",
            )
        changes = len(git.ask("status", "--porcelain=v1", "--", ".", ":(exclude,top).attractor").splitlines())
    except StorageError as error:
        raise OptionError(error.message, hint=f"fix it, or {_ELSE}") from error
    return Repository(top, prefix, commit, changes)


class Worktree:
    """The worktree of a run (``workplaces.Workspace``); one thread at a time changes it.

    Attributes:
        path: Its top.
        repository: The top of the checkout from which it was made.
        branch: The run's branch.
        base: The commit with which the run's changes are compared.
    """

    isolation = WORKTREE

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self.path = path
        self.repository = Path(str(facts["repository"]))
        self.branch = str(facts["branch"])
        self.base = str(facts["base"])
        self._start = str(facts.get("start") or self.base)
        self._prefix = str(facts.get("prefix", ""))
        self._check()
        self._lock = threading.Lock()
        self._inside: tuple[Git, WorktreeIndex] | None = None
        self._last = self._start

    def _check(self) -> None:
        """Refuse facts that no run has written: a place outside of the worktree, a branch of the user's, an option."""
        way = PurePath(self._prefix)
        is_ours = (
            not way.is_absolute()
            and ".." not in way.parts
            and _BRANCH.fullmatch(self.branch) is not None
            and all(_COMMIT.fullmatch(commit) for commit in (self.base, self._start))
        )
        if not is_ours:
            raise StorageError(
                f"the manifest describes a worktree that no run makes: branch {self.branch[:80]!r}, directory"
                f" {self._prefix[:80]!r}, commits {self.base[:40]!r} and {self._start[:40]!r}",
                path=str(self.path),
                hint="start a run of your own from its pipeline.dot",
            )

    @property
    def directory(self) -> Path:
        """The working directory of the run: as far below the top as it was started in the repository."""
        return self.path / self._prefix

    async def open(self) -> None:
        """It is made before the run begins."""

    async def close(self) -> None:
        """It stays as long as the run directory does."""

    # -- making and finding ---------------------------------------------------------------------------

    def make(self) -> None:
        """Make it, or make again what of it is gone; the branch keeps what was committed."""
        outer = self._outer()
        refuse_link(self.path)
        if not self.path.is_dir() or not any(self.path.iterdir()):
            outer.says("worktree", "remove", "--force", str(self.path))
            words = [str(self.path), self.branch]
            if outer.says("rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}") is None:
                words = ["-b", self.branch, str(self.path), self._start]
            outer.ask("worktree", "add", "--quiet", "--force", *words)
        elif self._found(outer) is None:
            outer.ask("worktree", "repair", str(self.path))  # the run directory was moved
        self.directory.mkdir(parents=True, exist_ok=True)

    def _outer(self) -> Git:
        if not self.repository.is_dir():
            raise StorageError(
                f"the repository {self.repository} of the run's worktree is gone",
                path=str(self.repository),
                hint="restore it at its path: the run's branch is in it",
            )
        return Git(self.repository)

    def _found(self, outer: Git) -> Path | None:
        """Git's own directory for this worktree; asked of the repository, for files here may be anybody's."""
        common = Path(outer.ask("rev-parse", "--path-format=absolute", "--git-common-dir"))
        wanted = os.path.realpath(self.path)
        for entry in sorted(common.glob("worktrees/*/gitdir")):
            place = Path(entry.read_text(encoding="utf-8", errors="replace").strip())
            if os.path.realpath(place.parent) == wanted:
                return entry.parent
        return None

    def _inner(self) -> tuple[Git, WorktreeIndex]:
        """Git in the worktree, on the run's branch: a stage may have changed to another."""
        if self._inside is None:
            outer = self._outer()
            own = self._found(outer)
            if own is None:
                raise StorageError(
                    f"{self.path} is not a worktree of {self.repository}", path=str(self.path), hint="resume the run"
                )
            git = Git(self.path, git_dir=own, work_tree=self.path)
            self._inside = git, WorktreeIndex(git, own, self.branch)
        git = self._inside[0]
        own_branch = f"refs/heads/{self.branch}"
        if git.says("symbolic-ref", "--quiet", "HEAD") != own_branch:
            git.ask("symbolic-ref", "-m", "attractor-nb: back to the run's branch", "HEAD", own_branch)
        return self._inside

    # -- what stages leave ----------------------------------------------------------------------------

    def keep(self, message: str) -> Kept:
        """Commit what has changed, from any source: an agent may have committed some of it itself."""
        with self._lock:
            git, index, told = self._place_again()
            index.commit_all(message)
            commit = git.ask("rev-parse", "HEAD")
            before, self._last = self._last, commit
            if commit == before:
                return Kept(commit, warnings=(*told, *index.take_warnings()))
            index.look_for_links(before, commit)
            diff = git.ask("diff", *_PLAIN, before, commit, "--")
            return Kept(commit, changes_view.cut_diff(diff), (*told, *index.take_warnings()))

    def _place_again(self) -> tuple[Git, WorktreeIndex, tuple[str, ...]]:
        """The worktree is where the run works, whatever a stage did to it; and what a user must know of that.

        Without its ``.git`` file the next command's git would find the user's own checkout around it.
        """
        told: list[str] = []
        if self.path.is_symlink() or not self.path.is_dir():
            self.path.unlink(missing_ok=True)
            self.path.mkdir()
            told.append(
                f"a stage removed the worktree of the run, {self.path}. An empty one was made: on the branch "
                f"{self.branch} the stage has deleted all files"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        git, index = self._inner()
        link = self.path / ".git"
        if link.is_symlink() or not link.is_dir():
            words = f"gitdir: {index.own}\n"
            if link.is_symlink() or not link.is_file() or link.read_text(encoding="utf-8", errors="replace") != words:
                link.unlink(missing_ok=True)
                link.write_text(words, encoding="utf-8")
        return git, index, tuple(told)

    def stand_at(self, commit: str, *, is_cut_off: bool) -> str:
        """Bring the worktree to the position of the run in the log; what is lost by that is kept aside.

        A person may change and commit in the worktree while the run is inactive; that stays. What an
        attempt left that was cut off, or stages that a rewind has set aside, goes: the stage is executed on
        what it had.

        Args:
            commit: The commit of the last stage that counts; empty for where the run began.
            is_cut_off: Whether a stage was cut off here, or a rewind goes back.

        Returns:
            Where what was there is kept, when there was more than that; else empty.
        """
        wanted = self._last = commit or self._start
        self.make()
        with self._lock:
            self._remove_lock()
            git, index = self._inner()
            head = git.ask("rev-parse", "HEAD")
            is_ahead = git.says("merge-base", "--is-ancestor", wanted, head) is not None
            if is_ahead and not is_cut_off:
                return ""
            if not index.commit_all(_LEFT) and head == wanted:
                return ""
            head = git.ask("rev-parse", "HEAD")
            kept = ""
            if git.says("merge-base", "--is-ancestor", head, wanted) is None:
                kept = self._free_name(git)
                git.ask("branch", "--no-track", kept, head)
            git.ask("reset", "--quiet", "--hard", wanted)
            git.ask("clean", "--quiet", "-d", "--force")
            self.directory.mkdir(parents=True, exist_ok=True)
            return kept

    def _remove_lock(self) -> None:
        """Take away the lock of a git that was killed here: the run is ours, so no other git works there."""
        own = self._found(self._outer())
        if own is not None:
            (own / "index.lock").unlink(missing_ok=True)

    def _free_name(self, git: Git) -> str:
        number = 1
        while git.says("rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}-aside-{number}"):
            number += 1
        return f"{self.branch}-aside-{number}"

    # -- what changed ---------------------------------------------------------------------------------

    def difference(self, before: str, after: str) -> tuple[str, str]:
        """The files that changed from one commit to another, and the diff; of an empty one, the run's ends."""
        outer = self._outer()
        ends = before or self.base, after or f"refs/heads/{self.branch}"
        return outer.ask("diff", "--numstat", *_PLAIN, *ends, "--"), outer.ask("diff", *_PLAIN, *ends, "--")

    def forget(self) -> None:
        """Have the repository forget a worktree whose directory is gone. The branch stays."""
        if self.repository.is_dir():
            Git(self.repository).says("worktree", "remove", "--force", str(self.path))


def worktree_facts(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The manifest entry for the run's worktree; None for a run without one."""
    found = manifest.get("worktree")
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def worktree_of(path: Path, facts: Mapping[str, Any]) -> Worktree:
    """The worktree that a manifest describes."""
    try:
        return Worktree(path, facts)
    except KeyError as error:
        raise StorageError(
            f"the manifest does not say the {error.args[0]} of the run's worktree", path=str(path)
        ) from None


def worktrees_in(logs_root: Path) -> list[Worktree]:
    """The worktrees of a run, or of the rows of a map; those whose manifest cannot be read are left out."""
    found: list[Worktree] = []
    for place in (logs_root, *sorted(logs_root.glob("row-*"))):
        with contextlib.suppress(RunError):
            if facts := worktree_facts(read_facts(place)):
                found.append(worktree_of((place / WORKTREE_NAME).absolute(), facts))
    return found


# ``run.changes()``: the changes of a run in its worktree, compared with its start.


def place_facts(logs_root: Path) -> Mapping[str, Any]:
    """The manifest of a run, which has its working place; empty for a run that keeps nothing."""
    first = first_directory(logs_root)
    return read_facts(first) if first.is_dir() else {}


def changes_of(logs_root: Path) -> Changes:
    """The changes that the run of a directory made."""
    facts = place_facts(logs_root)
    found = worktree_facts(facts)
    if found is None:
        where = facts.get("workdir", "")
        raise OptionError(
            f"nothing keeps what the run changes{f' in {where}' if where else ''}",
            hint='a run with isolation="worktree" has a branch of its own, and a commit for each stage',
        )
    worktree = worktree_of(first_directory(logs_root) / WORKTREE_NAME, found)
    numbers, diff = worktree.difference(worktree.base, "")
    return changes_view.Changes(
        worktree.branch,
        str(worktree.repository),
        worktree.base,
        changes_view.read_numstat(redacted(numbers)),
        changes_view.cut_diff(redacted(diff)),
    )


# The part of a run's worktree that becomes a commit: all but nested repositories (ruling 49).

LOCK_DELAYS_SECONDS: Final = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Delays of a commit that waits for a git of a command or an agent."""
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
        """Warnings of what was left out or worked around since the last call; each is returned once."""
        found, self._warnings = tuple(self._warnings), []
        return found

    def commit_all(self, message: str) -> bool:
        """Commit what has changed; whether anything has.

        A lock of the index is waited for. One that stays was left by a git that was killed, or is held by one that
        is still running: it is left alone, and a copy of the index is used.
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
        """Report nested repositories that another program committed as a mere link to one of their commits."""
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
