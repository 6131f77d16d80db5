"""Names that are imported when they are first used: the two lists of a module agree, and the names are there."""

import ast
import importlib
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb.lazy_imports import deferred

PACKAGE = Path(attractor_nb.__file__).parent


def modules_that_defer():
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "__getattr__ = deferred(" in text:
            name = ".".join(("attractor_nb", *file.relative_to(PACKAGE).with_suffix("").parts))
            yield pytest.param(name.removesuffix(".__init__"), text, id=name)


def two_lists(text):
    """The imports for type checkers that offer a name, and the table."""
    typed, table = {}, {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("attractor_nb."):
            home = node.module.removeprefix("attractor_nb.")
            typed |= {alias.name: home for alias in node.names if alias.asname == alias.name}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "deferred":
            table = ast.literal_eval(node.args[1])
    return typed, table


@pytest.mark.parametrize(("module", "text"), list(modules_that_defer()))
def test_type_checkers_see_what_is_imported_later(module, text):
    typed, table = two_lists(text)
    assert typed == table
    loaded = importlib.import_module(module)
    for name, home in table.items():
        assert getattr(loaded, name) is getattr(importlib.import_module(f"attractor_nb.{home}"), name)


def modules_that_take_others_later():
    for file in sorted(PACKAGE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "import later\n" in text:
            yield pytest.param(text, id=str(file.relative_to(PACKAGE)))


@pytest.mark.parametrize("text", list(modules_that_take_others_later()))
def test_a_module_that_is_taken_later_is_the_one_that_type_checkers_see(text):
    typed, taken = {}, {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            typed |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Assign) and getattr(getattr(node.value, "func", None), "id", "") == "later":
            taken[node.targets[0].id] = ast.literal_eval(node.value.args[0])
    assert taken
    assert {name: typed[name] for name in taken} == taken
    for module in taken.values():
        importlib.import_module(module)


def test_a_name_that_is_not_offered_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'attractor_nb.x' has no attribute 'nothing'"):
        deferred("attractor_nb.x", {})("nothing")


def test_every_public_name_is_there():
    assert [name for name in attractor_nb.__all__ if not hasattr(attractor_nb, name)] == []
