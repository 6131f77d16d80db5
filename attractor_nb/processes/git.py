"""git, run by the engine and not by a command of a graph: without hooks, pagers or user configuration.

No hook of a repository runs, nothing is signed, nothing is asked at a terminal, and no ``GIT_*`` variable of
the caller decides which repository is meant. It must not know what a run is.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.processes.local import command_environment
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_SECONDS: Final = 600.0
"""Time limit of one call; a checkout of a large repository takes minutes."""
IDENTITY: Final = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in (("NAME", "attractor-nb"), ("EMAIL", "attractor-nb@localhost"))
}
"""Author of our commits: the user's configuration is neither read nor changed."""
_QUIET: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
    "core.quotePath=false",
    "color.ui=false",
    "gc.auto=0",
)
_MAX_WORDS: Final = 500


class Git:
    """git in one directory.

    Args:
        directory: Where it is called.
        git_dir: The repository's own directory; found from the directory if not given.
        work_tree: The top of the checkout, with ``git_dir``.
    """

    def __init__(self, directory: Path, *, git_dir: Path | None = None, work_tree: Path | None = None) -> None:
        self._directory = directory
        self._place: dict[str, str] = {}
        if git_dir is not None:
            self._place = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(work_tree or directory)}

    def with_index(self, index: Path) -> Git:
        """The same, with another file as the index."""
        found = Git(self._directory)
        found._place = {**self._place, "GIT_INDEX_FILE": str(index)}
        return found

    def ask(self, *arguments: str, stdin: str = "") -> str:
        """The output of git, without its last line end; an error when git fails."""
        ended = self._run(arguments, stdin)
        if ended.returncode != 0:
            words = redacted((ended.stderr or ended.stdout).strip())[-_MAX_WORDS:]
            raise StorageError(f"git {arguments[0]} failed: {words}", path=str(self._directory))
        return ended.stdout.removesuffix("\n")

    def says(self, *arguments: str) -> str | None:
        """The output of git; None when git fails."""
        ended = self._run(arguments, "")
        return ended.stdout.removesuffix("\n") if ended.returncode == 0 else None

    def _run(self, arguments: tuple[str, ...], stdin: str) -> subprocess.CompletedProcess[str]:
        settings = [part for setting in _QUIET for part in ("-c", setting)]
        try:
            return subprocess.run(  # noqa: S603 - no shell, and no text of a graph is a word of it
                ["git", *settings, *arguments],  # noqa: S607 - the user's own git, wherever it is
                cwd=self._directory,
                env=_environment() | self._place,
                input=stdin,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=PATIENCE_SECONDS,
                check=False,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if not self._directory.is_dir():
                raise StorageError(f"there is no directory {self._directory}", path=str(self._directory)) from error
            raise StorageError(
                "git is not installed, or not on the PATH", path=str(self._directory), hint="install git"
            ) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StorageError(f"git {arguments[0]} cannot be called: {error}", path=str(self._directory)) from error


def _environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **command_environment(inherited),
        **IDENTITY,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "LC_ALL": "C.UTF-8",
    }
