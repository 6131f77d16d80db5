"""Names in docstrings and comments exist: "see ``name``", "as of ``Class.method``", ``folder.module.name``."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "attractor_nb"
SEE = re.compile(r"\b(?:[Ss]ee|[Aa]s of|inverse of) ``([A-Za-z_][\w.]*)``")
FOLDERS = [path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name not in {"model", "pipeline"}]
"""Other than those that begin names of attributes, too."""
INSIDE = re.compile(rf"``((?:{'|'.join(FOLDERS)})(?:\.\w+)+)``")
FILE = re.compile(r"``((?:\w+/)*\w+\.(?:py|js))``|\b(docs/[\w-]+\.md)\b")
OF_OTHERS = {"subprocess.Popen", "json.py"}


@cache
def _names() -> dict[str, set[str]]:
    """The names of each module, folder and class, by the last part of its name; bases of classes included."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    bases: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        module = path.parent.name if path.name == "__init__.py" else path.stem
        found[path.parent.name].add(module)
        found[path.parent.parent.name].add(path.parent.name)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
                found[node.name] |= _defined(node)
            elif isinstance(node, ast.Module):
                found[module] |= _defined(node)
    for name in bases:
        queue = [name]
        for each in queue:
            found[name] |= found.get(each, set())
            queue += [base for base in bases.get(each, ()) if base not in queue]
    return found


def _defined(parent: ast.Module | ast.ClassDef | ast.If) -> set[str]:
    names: set[str] = set()
    for node in parent.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(names=imported):
                names |= {alias.asname or alias.name for alias in imported}
            case ast.If():
                names |= _defined(node)
            case _:
                pass
    return names


def _own_names(text: str) -> set[str]:
    """All names of a module: its definitions, those inside its classes and functions, and their parameters."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


@cache
def _public() -> set[str]:
    """All modules, folders and classes, and whatever modules define."""
    names = _names()
    return {name for path in PACKAGE.rglob("*.py") for name in names[path.stem]} | names.keys()


@cache
def _files_named(ending: str) -> list[Path]:
    """The files of package and tests whose path ends so."""
    folders = (PACKAGE, ROOT / "tests", ROOT / "examples")
    return [path for folder in folders for path in folder.rglob(Path(ending).name) if f"/{path}".endswith(f"/{ending}")]


def dangling(text: str, place: str) -> list[str]:
    """The references in the text of a module that lead nowhere."""
    names = _names()
    found: list[str] = []
    for reference in [*SEE.findall(text), *INSIDE.findall(text)]:
        *_, owner, name = ["", *reference.split(".")]
        if reference in OF_OTHERS or name in {"py", "js"}:
            continue
        if not (name in names.get(owner, ()) if owner else name in _public() or name in _own_names(text)):
            found.append(f"{place}: {reference}")
    for module, page in FILE.findall(text):
        if module in OF_OTHERS:
            continue
        if not (any(_files_named(module)) if module else (ROOT / page).exists()):
            found.append(f"{place}: {module or page}")
    return found


def test_every_reference_leads_somewhere() -> None:
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert sum(len(SEE.findall(text)) for text in texts.values()) > 30
    assert [each for path, text in texts.items() for each in dangling(text, str(path.relative_to(ROOT)))] == []


def test_a_reference_that_leads_nowhere_is_found() -> None:
    text = '"""See ``picturing``, as of ``Run.fly``, ``views.nowhere.at_all``, ``views/nowhere.py``; docs/none.md."""'
    assert dangling(text, "x") == [
        *("x: picturing", "x: Run.fly", "x: views.nowhere.at_all", "x: views/nowhere.py", "x: docs/none.md")
    ]
    assert (
        dangling('"""See ``Run.resume``, ``parse_dot`` and ``views.drawings.svg.render_svg``; docs/runs.md."""', "x")
        == []
    )
