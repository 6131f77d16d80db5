"""Suggestions do not depend on the order of sets: the same mistake gets the same words in each process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb.lint.survey import KnownNames
from attractor_nb.model.texts import nearest, no_such_key, slipped

NEAR = [f"alpha{letter}" for letter in "qwertzuiop"]
SEEDS = ["0", "1", "2", "3"]
MISTAKES = Path(__file__).with_name("mistakes.py")


def test_the_same_mistakes_get_the_same_words_whatever_the_seed_of_hashes():
    said = [
        subprocess.run(
            [sys.executable, MISTAKES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in SEEDS
    ]
    assert said[0].count("did you mean") >= 8
    assert said == said[:1] * len(SEEDS)


@pytest.mark.parametrize("known", [set(NEAR), frozenset(NEAR), sorted(NEAR)], ids=["set", "frozenset", "sorted"])
def test_of_a_set_the_first_by_the_alphabet_is_meant(known):
    assert nearest("alphax", known) == "alphae"
    assert KnownNames(known).nearest("alphax") == "alphae"
    assert no_such_key("it", "key", "alphax", known).hint == "keys: " + ", ".join(sorted(NEAR))


def test_of_a_set_the_first_slip_by_the_alphabet_is_meant():
    assert slipped("ab", {"abz", "abx", "abc", "aby"}) == "abc"


def test_of_a_list_the_first_is_meant():
    assert nearest("alphax", NEAR) == "alphaq"
