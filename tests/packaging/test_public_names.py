"""The names that `attractor_nb` and `attractor_nb.evaluation` offer are exactly those that they list."""

import pkgutil
from importlib import import_module

import pytest

import attractor_nb
from attractor_nb import evaluation

offering = pytest.mark.parametrize("package", [attractor_nb, evaluation], ids=lambda package: package.__name__)


@offering
def test_public_names_are_sorted_and_all_there(package):
    assert list(package.__all__) == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


@offering
def test_nothing_private_is_public(package):
    assert not [name for name in package.__all__ if name.startswith("_")]


def test_no_module_of_the_evaluation_has_a_public_name():
    """`from attractor_nb.evaluation import judge` would give the module as soon as anything has imported it."""
    modules = [each.name for each in pkgutil.iter_modules(evaluation.__path__)]
    assert not set(modules) & set(evaluation.__all__)
    for name in modules:
        import_module(f"{evaluation.__name__}.{name}")
    assert callable(evaluation.judge)
    assert callable(evaluation.agreement)
