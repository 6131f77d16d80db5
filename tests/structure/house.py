"""Prints the figures of the code base that docs/architecture.md quotes.

Usage: python tests/structure/house.py
"""

from __future__ import annotations

import ast
import asyncio
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from hatch_build import MADE  # noqa: E402 - beside the package

PACKAGE = REPOSITORY / "attractor_nb"
QUESTION_WORDS = ("What", "Where", "Which", "How", "Whether", "Why", "Who")
CHAIN = "digraph { start [shape=Mdiamond] work [prompt=Do] done [shape=Msquare] start -> work -> done }"


def modules() -> list[Path]:
    """The Python files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def front_end() -> list[Path]:
    """The scripts and style sheets of the package, without those that hatch_build.py makes."""
    found = (path for suffix in ("js", "mjs", "css") for path in PACKAGE.rglob(f"*.{suffix}"))
    return sorted(path for path in found if path.name not in MADE)


def count_lines(paths: list[Path]) -> int:
    """All lines of files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def _spans(tree: ast.Module) -> tuple[set[int], set[int]]:
    """The lines of imports, and those of docstrings."""
    imports: set[int] = set()
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return imports, docstrings


def line_kinds(path: Path) -> tuple[int, int]:
    """The lines of code proper of a module, and its lines of imports."""
    text = path.read_text("utf-8")
    imports, docstrings = _spans(ast.parse(text))
    code: set[int] = set()
    blank = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - imports - docstrings), len(imports)


def docstrings() -> Iterator[str]:
    """The docstrings of modules and classes."""
    for path in modules():
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef) and (text := ast.get_docstring(node)):
                yield text


def exceptions() -> int:
    """The exceptions to the import contracts, without those that name a whole folder."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    named = {rule for contract in settings["contracts"] for rule in contract.get("ignore_imports", ())}
    return sum("*" not in rule for rule in named)


def attempt() -> tuple[int, int]:
    """The files of the package that one attempt of a model stage runs through, and its calls of their functions."""
    from attractor_nb import Pipeline

    files: set[str] = set()
    calls = 0
    is_within = False

    def see(frame, event, argument):
        nonlocal calls, is_within
        place = frame.f_code.co_filename
        if event not in {"call", "return"} or not place.startswith(str(PACKAGE)):
            return
        if frame.f_code.co_name == "run" and place.endswith("engine/attempts.py"):
            is_within = argument is None and frame.f_locals["effect"].planned.id == "work"
        if event == "return":
            return
        if is_within:
            files.add(place)
            calls += 1

    pipeline = Pipeline(CHAIN, backend=lambda prompt: "done")
    pipeline.run(wait=True, durability="none")

    async def run_here():
        sys.setprofile(see)
        try:
            await pipeline.run(durability="none", host="kernel")
        finally:
            sys.setprofile(None)

    asyncio.run(run_here())
    return len(files), calls


def figures() -> dict[str, float]:
    """The figures by name."""
    paths = modules()
    kinds = [line_kinds(path) for path in paths]
    lines = count_lines(paths)
    begun = [re.match(r"\w+", text) for text in docstrings()]
    files, calls = attempt()
    questions = sum(word is not None and word[0] in QUESTION_WORDS for word in begun)
    return {
        "lines of code proper": sum(code for code, _ in kinds),
        "Python files": len(paths),
        "lines of a file on average": round(lines / len(paths)),
        "longest file": max(count_lines([path]) for path in paths),
        "imports, percent of lines": round(100 * sum(imports for _, imports in kinds) / lines, 1),
        "JavaScript and CSS lines": count_lines(front_end()),
        "docstrings that begin with a question word, percent": round(100 * questions / len(begun), 1),
        "exceptions to the import contracts": exceptions(),
        "files that one model attempt runs through": files,
        "calls of one model attempt": calls,
    }


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{value:>10,}  {name}")
