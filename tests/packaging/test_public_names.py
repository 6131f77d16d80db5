"""The names that `attractor_nb` offers are exactly those that it lists."""

import attractor_nb


def test_public_names_are_sorted_and_all_there():
    assert list(attractor_nb.__all__) == sorted(attractor_nb.__all__)
    assert all(hasattr(attractor_nb, name) for name in attractor_nb.__all__)


def test_nothing_private_is_public():
    assert not [name for name in attractor_nb.__all__ if name.startswith("_")]
