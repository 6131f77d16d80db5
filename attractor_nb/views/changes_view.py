"""Changes of a run in its worktree: a line for each file, and the diff, for a terminal or a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.model.texts import shown
from attractor_nb.views.display import Displayed
from attractor_nb.views.drawings.theme import root_class
from attractor_nb.views.markup import element, style_sheet
from attractor_nb.views.output_styles import inspection_css
from attractor_nb.views.texts.prose import prose_css, prose_html, prose_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARACTERS: Final = 200_000
"""Of a diff; the rest is on the run's branch."""
MAX_LINES: Final = 400
MAX_FILES: Final = 100
CHANGES_NAME: Final = "changes.diff"


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that changed."""

    path: str  #: Its path in the repository.
    added: int | None  #: Lines that it has more; None for one that is not text.
    removed: int | None  #: Lines that it had; likewise.

    def __str__(self) -> str:
        if self.added is None:
            return f"{self.path}  (binary)"
        return f"{self.path}  +{self.added} -{self.removed}"


@dataclass(frozen=True, slots=True, repr=False)
class Changes(Displayed):
    """The changes of a run."""

    branch: str  #: The run's branch.
    repository: str
    base: str  #: The commit with which it is compared.
    files: tuple[ChangedFile, ...]  #: The files, in the order of the diff.
    diff: str  #: The unified diff, cut where it is very long.

    @property
    def advice(self) -> str:
        """The commands that merge the changes or discard them: nothing is merged by itself."""
        return (
            f"git -C {self.repository} merge {self.branch}  takes them over; "
            f"git -C {self.repository} branch -D {self.branch}  removes them, once the run is deleted"
        )

    def __str__(self) -> str:
        if not self.files:
            return f"no changes on {self.branch} since {self.base[:12]}"
        lines = self.diff.splitlines()
        rest = [f"… {len(lines) - MAX_LINES} more lines on {self.branch}"] if len(lines) > MAX_LINES else []
        return "\n".join([*self._head(), "", *map(shown, lines[:MAX_LINES]), *rest])

    def _html(self) -> str:
        if not self.files:
            return element("pre", None, str(self))
        diff = shown(self.diff)
        summary = element("summary", None, "diff")
        return element(
            "div",
            {"class": f"attractor-table attractor-inspection {root_class()} auto"},
            style_sheet(inspection_css() + prose_css()),
            element("pre", None, "\n".join(self._head())),
            element("details", None, summary, prose_html(diff, prose_of(diff, CHANGES_NAME) or [diff])),
        )

    def _head(self) -> Iterator[str]:
        count = len(self.files)
        yield shown(f"{count} file{'s' * (count != 1)} changed on {self.branch} since {self.base[:12]}")
        yield from (f"  {shown(str(file))}" for file in self.files[:MAX_FILES])
        if count > MAX_FILES:
            yield f"  … and {count - MAX_FILES} more"
        yield shown(self.advice)


def read_numstat(text: str) -> tuple[ChangedFile, ...]:
    r"""The files of ``git diff --numstat``.

    >>> [str(file) for file in read_numstat("3\t1\tsrc/a.py\n-\t-\tlogo.png")]
    ['src/a.py  +3 -1', 'logo.png  (binary)']
    """
    found: list[ChangedFile] = []
    for line in text.splitlines():
        added, removed, path = [*line.split("\t", 2), "", ""][:3]
        is_text = added.isdigit() and removed.isdigit()
        found.append(ChangedFile(path, int(added) if is_text else None, int(removed) if is_text else None))
    return tuple(found)


def cut_diff(text: str) -> str:
    """A diff that is no longer than can be looked at."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[… {len(text) - MAX_CHARACTERS:,} more characters]"
