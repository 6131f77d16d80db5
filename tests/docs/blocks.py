"""The code blocks of the pages, and the notes that a page makes on them in comments that readers do not see.

A note stands above its block: ``<!-- not run: reason -->`` for one that cannot run here, ``<!-- lint: rule, rule -->`` for
a pipeline with findings. A pipeline whose first line is ``// name.dot`` is a file for the blocks below it.

As a program it runs the Python blocks of one page, one after the other, in one process:

    python tests/docs/blocks.py PAGE [DEFINITIONS] > results.json
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"^( *)(?:<!-- (not run|lint): ([^>]*?) -->\n+ *)?(`{3,})(\w*)[^\n]*\n(.*?)^\1\4$", re.DOTALL | re.MULTILINE
)
SAVED = re.compile(r"// (\w+\.dot)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        line: The line of its fence.
        language: The word behind the fence.
        reason: Why it is not run; empty for one that is.
        rules: The lint rules that are expected to report its pipeline.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str = ""
    rules: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The page and the line."""
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        indent, kind, words, _, language, body = found.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        rules = tuple(re.findall(r"\w+", words)) if kind == "lint" else ()
        reason = words if kind == "not run" else ""
        name = page.resolve().relative_to(REPOSITORY / "docs").as_posix()
        yield Block(name, text.count("\n", 0, found.start(4)) + 1, language, body, reason, rules)


def run_blocks(page: Path, names: dict[str, object]) -> Iterator[tuple[int, str, str]]:
    """Run the Python blocks of a page: the line of each, what it printed, and the error that ended the page."""
    for block in blocks_of(page):
        if block.language == "dot" and (saved := SAVED.match(block.text)):
            Path(saved[1]).write_text(block.text, "utf-8")
        if block.language != "python" or block.reason:
            continue
        printed = io.StringIO()
        try:
            code = compile(block.text, block.id, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            with contextlib.redirect_stdout(printed):
                if code.co_flags & inspect.CO_COROUTINE:
                    asyncio.run(eval(code, names))
                else:
                    exec(code, names)
        except Exception:  # noqa: BLE001 - the error of a page's own program
            yield block.line, printed.getvalue(), traceback.format_exc()
            return
        yield block.line, printed.getvalue(), ""


if __name__ == "__main__":
    known: dict[str, object] = {"__name__": "page"}
    exec("".join(sys.argv[2:]), known)
    json.dump(list(run_blocks(Path(sys.argv[1]), known)), sys.stdout)
