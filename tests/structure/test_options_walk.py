"""The walk of a run's options: which files and functions of the package they enter between the call and the engine.

It is measured on a real run: a function is on the walk when one of its variables holds the ``RunOptions``.
"""

from __future__ import annotations

import sys
import threading
import tomllib
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb import Pipeline
from attractor_nb.runtime.prepare.run_options import RunOptions

PACKAGE = Path(attractor_nb.__file__).parent
SETTINGS = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8"))
LAYERS = next(each for each in SETTINGS["tool"]["importlinter"]["contracts"] if each["id"] == "layers")["layers"]
HEIGHT = {name.strip(): -place for place, row in enumerate(LAYERS) for name in row.split("|")}
SOURCE = "digraph { start [shape=Mdiamond] work [prompt=Do] done [shape=Msquare] start -> work -> done }"
MOST_FILES, MOST_CLIMBS, MOST_NAMES = 15, 5, 20


def name_of(frame):
    """A function of the package as its file and name; None for any other."""
    path = Path(frame.f_code.co_filename)
    return (str(path.relative_to(PACKAGE)), frame.f_code.co_qualname) if path.is_relative_to(PACKAGE) else None


def holds_options(frame):
    return any(isinstance(value, RunOptions) for value in frame.f_locals.values())


class Walk:
    """The functions that hold the options, and from which of them each has them."""

    def __init__(self):
        self.functions = set()
        self.steps = set()

    def see(self, frame, event, _):
        if event != "call" or (name := name_of(frame)) is None or not holds_options(frame):
            return
        self.functions.add(name)
        origin = frame.f_back
        while origin is not None and (name_of(origin) is None or not holds_options(origin)):
            origin = origin.f_back
        if origin is not None:
            self.functions.add(name_of(origin))  # of one that makes the options none are seen when it is called
            self.steps.add((name_of(origin), name))

    @property
    def files(self):
        return {file for file, _ in self.functions}

    @property
    def passed(self):
        """The functions that hand the options on; the others only read them."""
        return {origin for origin, _ in self.steps}

    @property
    def climbs(self):
        def height(function):
            return HEIGHT[function[0].partition("/")[0].removesuffix(".py")]

        return {(origin, taker) for origin, taker in self.steps if height(taker) > height(origin)}


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    """The functions that runs with options of each kind enter: bounds, places, recordings, caches, pins."""
    found, place = Walk(), tmp_path_factory.mktemp("walk")
    places = {"max_steps": 9, "workdir": place, "pins": {"work": "x"}, "durability": "fast"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for options in ({}, {"cassette": "calls.json"}, {**places, "cache": True}):
            pipeline = Pipeline(SOURCE)
            pipeline.run(wait=True)  # modules that are loaded when they are first needed
            threading.setprofile(found.see)
            sys.setprofile(found.see)
            try:
                result = pipeline.run(wait=True, **options)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
            assert result.status == "success"
    return found


def test_the_walk_of_the_options_is_seen_from_the_first_file_to_the_last(walk):
    assert {"runtime/prepare/run_options.py", "runtime/launch.py", "runtime/begin.py", "runtime/wire.py"} <= walk.files


def test_the_options_enter_few_files(walk):
    assert len(walk.files) <= MOST_FILES, sorted(walk.files)


def test_few_functions_hand_the_options_on(walk):
    assert len(walk.passed) <= MOST_NAMES, sorted(walk.passed)


def test_the_options_hardly_ever_climb_to_a_higher_layer(walk):
    assert len(walk.climbs) <= MOST_CLIMBS, sorted(walk.climbs)


def test_a_climb_is_seen():
    below, above = ("storage/files/atomic.py", "write"), ("pipeline/run.py", "Run.result")
    walk = Walk()
    walk.steps = {(below, above), (above, below)}
    assert walk.climbs == {(below, above)}
