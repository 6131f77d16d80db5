"""Tab and Shift-Tab in a real kernel: every option of a call, with type, default and meaning."""

from __future__ import annotations

import inspect
import re

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.model.vocabulary.option_meanings import OF_A_MAP, OF_A_RUN

MADE = """\
from attractor_nb import Pipeline
review = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }", backend="simulated")
run = review.run(durability="none")
run.result()
"""
CALLS = {
    "review.run(": Pipeline.run,
    "review.run_async(": Pipeline.run_async,
    "review.check(": Pipeline.check,
    "review.map(": Pipeline.map,
    "review.resume_map(": Pipeline.resume_map,
    "run.fork(": Run.fork,
}


@pytest.fixture
def at_work(kernel):
    kernel.run(MADE)
    return kernel


def keywords(function):
    return {
        f"{each.name}=" for each in inspect.signature(function).parameters.values() if each.kind is each.KEYWORD_ONLY
    }


def test_tab_offers_every_option_of_a_call_and_no_other(at_work):
    for call, function in CALLS.items():
        offered = {name for name in at_work.complete(call) if name.endswith("=")}
        assert keywords(function) <= offered, call
        assert offered & {f"{name}=" for name in OF_A_RUN | OF_A_MAP} <= {
            f"{name}=" for name in inspect.signature(function).parameters
        }, call


def test_tab_offers_the_options_of_a_call_on_what_is_not_made_yet(at_work):
    assert "max_steps=" in at_work.complete('Pipeline("digraph {}").run(max_')
    assert "max_parallel=" in at_work.complete('Pipeline("digraph {}").map([], max_')


def test_shift_tab_tells_type_default_and_meaning_of_every_option(at_work):
    for call, function in CALLS.items():
        told = " ".join(at_work.inspect(call).split())
        for option, each in inspect.signature(function).parameters.items():
            if each.kind is each.KEYWORD_ONLY:
                assert f"{option}: {each.annotation!r} = {each.default!r}" in told, (call, option)
        meanings = " ".join(inspect.getdoc(function).split())
        assert meanings in told, call
        assert len(re.findall(r"\bmax_steps: Stop after this many stages\.", told)) == 1
