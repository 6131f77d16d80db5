"""A look back at a long run costs work in proportion to it (ruling 52: linear, by counts and not by a clock)."""

import sys

import pytest

from attractor_nb import Pipeline, Run, diff

LOOP = """digraph {{ max_steps={steps} start [shape=Mdiamond] done [shape=Msquare] a [prompt=x] b [prompt=y]
    start -> a -> b; b -> a [condition="outcome=success"]; b -> done [condition="outcome=fail"] }}"""
FEW, MANY = 80, 320


def ran(directory, steps):
    """A run of so many stages, loaded from its directory."""
    answers = (f"answer {number}" for number in range(steps))
    pipeline = Pipeline(LOOP.format(steps=steps), backend=lambda prompt: next(answers))
    result = pipeline.run(wait=True, logs_root=directory, durability="fast")
    assert result.bound == "max_steps"
    return Run.load(directory)


def export(directory, first, second):
    first.export_html(directory / "page.html")


def compare(directory, first, second):
    diff(first, second)


def explain(directory, first, second):
    str(first.explain())


def calls_of(work):
    """The number of functions of Python and of C that a piece of work calls."""
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("look", [export, compare, explain])
def test_looking_back_at_four_times_the_stages_takes_four_times_the_calls_ruling_52(look, tmp_path):
    runs = {
        steps: [ran(tmp_path / f"{steps}.{number}", steps) for number in range(2)] for steps in (FEW // 2, FEW, MANY)
    }
    look(tmp_path, *runs[FEW // 2])  # what is imported and kept for the first time
    few, many = (calls_of(lambda steps=steps: look(tmp_path, *runs[steps])) for steps in (FEW, MANY))
    assert many < 5 * few


def test_long_loops_are_paired_step_by_step(tmp_path):
    first, second = ran(tmp_path / "a", 300), ran(tmp_path / "b", 299)
    pairs = diff(first, second).steps
    assert sum(pair.a is not None and pair.b is not None for pair in pairs) == 299
