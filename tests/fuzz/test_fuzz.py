"""The fuzzer with a few hundred inputs; the campaign takes 10,000, the same each time, and `make fuzz` a million."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HERE = Path(__file__).resolve().parent


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


targets, mutation = loaded("targets"), loaded("mutation")


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "fuzz.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=580)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("count", "guided"), [(400, "0"), pytest.param(10_000, "0.1", marks=pytest.mark.campaign)])
def test_hostile_inputs_keep_all_promises(count, guided, tmp_path):
    ended = fuzz("--runs", str(count), "--guided-share", guided, "--place", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {result["target"] for result in results} == set(targets.TARGETS)
    assert sum(result["runs"] for result in results) == count
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("misdeed", "words"),
    [
        (lambda _: {}["x"], "raises KeyError"),
        (lambda _: (_ for _ in ()).throw(RecursionError()), "raises RecursionError"),
        (lambda _: (_ for _ in ()).throw(MemoryError()), "raises MemoryError"),
        (lambda _: [None for _ in range(200)], "takes"),
    ],
    ids=["foreign error", "recursion", "memory", "time"],
)
def test_a_broken_promise_is_noticed(misdeed, words, monkeypatch):
    monkeypatch.setitem(targets.TARGETS, "json", misdeed)
    if words == "takes":
        monkeypatch.setattr(targets.time, "process_time", iter((0.0, targets.FLOOR_SECONDS + 0.1)).__next__)
    with pytest.raises(targets.BrokenPromiseError, match=words):
        targets.run_target("json", b"x")


def test_the_same_seed_makes_the_same_inputs_and_another_one_others():
    first, again, other = (mutation.Mutator("dot", seed) for seed in (1, 1, 2))
    inputs = [first.fresh() for _ in range(50)]
    assert inputs == [again.fresh() for _ in range(50)]
    assert inputs != [other.fresh() for _ in range(50)]


@pytest.mark.parametrize(
    "target", [pytest.param(name, marks=pytest.mark.campaign if name != "dot" else ()) for name in targets.TARGETS]
)
def test_a_saved_input_is_replayed(target, tmp_path):
    path = tmp_path / f"{target}-0123.input"
    path.write_bytes(mutation.seeds(target)[0])
    ended = fuzz("--replay", str(path))
    assert (ended.returncode, ended.stdout) == (0, "the promises are kept\n"), ended.stderr


WORDS = {target: st.sampled_from(words) for target, words in mutation.WORDS.items()}


def broken_promise(target, data):
    """The promise that a target breaks on these bytes; empty if it keeps all."""
    try:
        targets.run_target(target, data)
    except targets.BrokenPromiseError as broken:
        return str(broken)
    return ""


@pytest.mark.parametrize("target", list(targets.TARGETS))
@given(data=st.data())
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_seeds_that_were_cut_and_filled_with_words_keep_all_promises(target, data):
    text = data.draw(st.sampled_from(mutation.seeds(target)))
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(text)))
        removed = data.draw(st.integers(0, 9))
        words = "".join(data.draw(st.lists(WORDS[target], max_size=5)))
        text = text[:start] + words.encode("utf-8", "surrogatepass") + text[start + removed :]
    assert not broken_promise(target, text)


@pytest.mark.parametrize("target", list(targets.TARGETS))
@given(raw=st.binary(max_size=200))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_any_bytes_keep_all_promises(target, raw):
    assert not broken_promise(target, raw)
