"""The code blocks of the pages, and the notes that a page makes on them in comments that readers do not see.

A note stands above its block: ``<!-- not run: reason -->`` for one that cannot run here, with a reason of `REASONS`, and
``<!-- lint: rule, rule -->`` for a pipeline with findings. A pipeline whose first line is ``// name.dot`` is a file for the
blocks below it.

As a program it runs the Python and shell blocks of one page, one after the other, in one process and one directory:

    python tests/docs/blocks.py PAGE [DEFINITIONS] > results.json
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import subprocess
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
REASONS = {
    "it installs packages": r"\b(pip|uv|conda) ",
    "it is for a clone of the repository": r"^(make \w+|pytest notebooks)",
    "it runs until it is stopped": r"^(attractor-nb serve|jupyter lab|dask)\b|\bserve\(",
    "it needs a key of yours": r"_API_KEY",
    "it starts an agent in a repository of yours": r"--backend claude",
    "it asks for a key of yours": r"getpass",
    "it needs machines of yours": r"SCHEDULER",
    "it needs another shell": r"completion zsh",
    "it is for another process than the run above, which was killed": r"\.resume\(",
    "it is a magic of IPython": r"^%",
    "it is for a notebook with the extension": r"\bdisplay\(|\.widget\(",
    "it is a cell of marimo": r"\bmo\b",
    "its last line raises an error on purpose": r"^raise ",
}
"""Why a block is not run, and what is in each block of which that is true."""
ADDRESS = "http://127.0.0.1:8765/#token=…"
"""What pages call the address of the reader's server. A block gets the address of the server that is there."""
BEFORE = r"""
# A person answers a question once it is there.
attractor-nb() {
    if [ "$1" = answer ] && [ ! -e "$2" ]; then
        until command attractor-nb watch "$2" --once | grep -q "^?"; do sleep 0.1; done
    fi
    command attractor-nb "$@"
}
# Exit code 3: the run is paused at a gate.
trap 'code=$?; [ "$code" = 3 ] || exit "$code"' ERR
"""
AFTER = r"""
printf "\0"
env -0
"""


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

    @property
    def is_run(self) -> bool:
        """Whether it is a program that can run here."""
        return self.language in {"python", "sh"} and not self.reason


def blocks_of(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        indent, kind, words, _, language, body = found.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        rules = tuple(re.findall(r"\w+", words)) if kind == "lint" else ()
        reason = words if kind == "not run" else ""
        name = page.resolve().relative_to(REPOSITORY).as_posix().removeprefix("docs/")
        yield Block(name, text.count("\n", 0, found.start(4)) + 1, language, body, reason, rules)


def run_blocks(page: Path, names: dict[str, object]) -> Iterator[tuple[int, str, str]]:
    """Run the programs of a page: the line of each, what it printed, and the error that ended the page."""
    for block in blocks_of(page):
        if block.language == "dot" and (saved := SAVED.match(block.text)):
            Path(saved[1]).write_text(block.text, "utf-8")
        if not block.is_run:
            continue
        printed, error = run_shell(block.text) if block.language == "sh" else run_python(block, names)
        yield block.line, printed, error
        if error:
            return


def run_python(block: Block, names: dict[str, object]) -> tuple[str, str]:
    """What a Python block printed, and its traceback."""
    printed = io.StringIO()
    try:
        code = compile(block.text, block.id, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(eval(code, names))
            else:
                exec(code, names)
    except Exception:  # noqa: BLE001 - the error of a page's own program
        return printed.getvalue(), traceback.format_exc()
    return printed.getvalue(), ""


def run_shell(text: str) -> tuple[str, str]:
    """What a shell block printed, and its error; its variables are there for the blocks below it."""
    script = BEFORE + text.replace(ADDRESS, "$ATTRACTOR_SERVER") + AFTER
    command = ["bash", "-aEuo", "pipefail", "-c", script]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    printed, *variables = done.stdout.split("\0")
    os.environ.update(line.split("=", 1) for line in variables if "=" in line and not line.startswith("BASH_FUNC_"))
    return printed, f"exit code {done.returncode}\n{printed}{done.stderr}" if done.returncode else ""


if __name__ == "__main__":
    known: dict[str, object] = {"__name__": "page"}
    exec("".join(sys.argv[2:]), known)
    json.dump(list(run_blocks(Path(sys.argv[1]), known)), sys.stdout)
