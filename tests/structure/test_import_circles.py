"""Modules do not import one another in a circle: imports for types only and those inside functions count, too."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "attractor_nb"
MOST_FILES = 3
"""Two or three values of one folder may name one another: a plan and its nodes, a state and its branches."""


def modules_of(package):
    found = {}
    for path in package.rglob("*.py"):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name, path, modules):
    """The modules that a module names anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = {f"{base}.{alias.name}" for alias in node.names}
            found |= {each if each in modules else base for each in inner}
    return (found & modules.keys()) - {name}


def circles(graph):
    """The sets of names that reach one another (Tarjan): each name once, with all that are in its circle."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(name):
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            circle = set(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            if len(circle) > 1:
                found.append(frozenset(circle))

    for name in graph:
        if name not in order:
            visit(name)
    return found


@pytest.fixture(scope="module")
def graph():
    modules = modules_of(PACKAGE)
    return {name: imported(name, path, modules) for name, path in modules.items()}


def test_circles_are_found_whatever_kind_of_import_closes_them(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from house.b import x\n")
    (package / "b.py").write_text("if TYPE_CHECKING:\n    from house import c\n")
    (package / "c.py").write_text("def late():\n    import house.a\n")
    modules = modules_of(package)
    graph = {name: imported(name, path, modules) for name, path in modules.items()}
    assert circles(graph) == [frozenset({"house.a", "house.b", "house.c"})]


def test_no_circle_has_more_than_three_files(graph):
    assert [circle for circle in circles(graph) if len(circle) > MOST_FILES] == []


def test_no_circle_goes_through_two_folders_that_stand_beside_each_other(graph):
    folders = {name.rpartition(".")[0] for name in graph} - {""}
    found = []
    for above in sorted(folders):
        beside = {name for name in folders if name.rpartition(".")[0] == above}
        edges = defaultdict(set)
        for name, others in graph.items():
            own = next((each for each in beside if f"{name}.".startswith(f"{each}.")), None)
            for other in others:
                its = next((each for each in beside if f"{other}.".startswith(f"{each}.")), None)
                if own and its and own != its:
                    edges[own].add(its)
        found += circles({each: edges[each] for each in beside})
    assert found == []
