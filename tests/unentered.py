"""Lists the error branches that no test enters: bodies of ``except`` and ``raise`` statements.

Usage: python tests/unentered.py COVERAGE_FILE... (`make entered`)

Fails when a branch is not entered and not in ``unentered.txt``, or when a line of that file names a branch that is
entered or gone. A line of the file is ``path: first line of the branch  # reason``. Only the process of the tests is
measured: what runs in child processes alone is listed with that reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "attractor_nb"
ALLOWED = Path(__file__).with_suffix(".txt")


@dataclass(frozen=True, slots=True)
class Branch:
    """An error branch: its file, the number of its first line, and that line's text."""

    path: str
    line: int
    text: str

    @property
    def key(self) -> str:
        """The name of the branch in the list; a line number would change with every edit above it."""
        return f"{self.path}: {self.text}"


def error_branches(source: str, path: str) -> Iterator[Branch]:
    """The first line of each ``except`` body and each ``raise`` statement, in order and once each.

    >>> text = "try:\\n    f()\\nexcept OSError:\\n    raise ValueError\\nif x:\\n    raise KeyError"
    >>> [branch.line for branch in error_branches(text, "a.py")]
    [4, 6]
    """
    lines = source.splitlines()
    starts = {
        node.body[0].lineno if isinstance(node, ast.ExceptHandler) else node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.ExceptHandler, ast.Raise))
    }
    for start in sorted(starts):
        yield Branch(path, start, lines[start - 1].strip())


def unentered(entered: dict[str, set[int]]) -> list[Branch]:
    """The branches of the package whose first line is not among the entered lines of its file."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        path = str(file.relative_to(PACKAGE))
        lines = entered.get(path, set())
        found += [
            branch for branch in error_branches(file.read_text(encoding="utf-8"), path) if branch.line not in lines
        ]
    return found


def entered_lines(files: list[Path]) -> dict[str, set[int]]:
    """The executed lines of each file of the package, over all coverage files."""
    from coverage import CoverageData

    lines: dict[str, set[int]] = {}
    for file in files:
        data = CoverageData(str(file))
        data.read()
        for name in data.measured_files():
            if Path(name).is_relative_to(PACKAGE):
                lines.setdefault(str(Path(name).relative_to(PACKAGE)), set()).update(data.lines(name) or ())
    return lines


def allowed() -> dict[str, str]:
    """The branches that no test has to enter, with the reason of each."""
    rows = [line.rpartition("  # ") for line in ALLOWED.read_text(encoding="utf-8").splitlines() if line]
    assert all(key and reason for key, _, reason in rows), "a line is: path: first line  # reason"
    return {key: reason for key, _, reason in rows}


def main() -> int:
    found = unentered(entered_lines([Path(name) for name in sys.argv[1:]]))
    reasons = allowed()
    missing = [branch for branch in found if branch.key not in reasons]
    stale = reasons.keys() - {branch.key for branch in found}
    for branch in missing:
        print(f"attractor_nb/{branch.path}:{branch.line}: no test enters: {branch.text}")
    for key in sorted(stale):
        print(f"tests/{ALLOWED.name}: is entered or gone: {key}")
    print(f"{len(found)} error branches are not entered, {len(missing)} of them without a reason")
    return 1 if missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
