"""The cost of a resume, counted: the cost of one more earlier stage, which no busy machine changes (issue 18, R1).

Counted is from the call until the engine starts: the difference between a run with 80 stages behind it and one with 40.
"""

import gc
import sys
from itertools import pairwise
from pathlib import Path
from types import BuiltinFunctionType

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.storage.log import event_lines
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import LOCK_NAME

FEW, MANY = 40, 80
PACKAGE = str(Path(event_lines.__file__).parents[1])


class Count:
    async def execute(self, node, context, graph, logs_root):
        return Outcome.success(context_updates={"i": context.get("i", 0) + 1})


def chain_of(stages):
    names = ["start", *(f"n{number}" for number in range(stages + 1)), "done"]
    lines = [f"n{number} [type=count]" for number in range(stages + 1)]
    lines += [f"{source} -> {target}" for source, target in pairwise(names)]
    text = f"digraph chain {{ graph [max_steps=1000] start [shape=Mdiamond] done [shape=Msquare] {' '.join(lines)} }}"
    return Pipeline(text, handlers={"count": Count()})


def stopped_run(stages, place):
    """A run with so many stages and its start behind it, and its log alone."""
    pipeline = chain_of(stages)
    run = pipeline.run(wait=True, durability="fast", logs_root=place, stop_after=stages + 1)
    assert run.status == "paused", run.reason
    for file in place.glob("checkpoint*.json"):
        file.unlink()
    return pipeline


def resumed(pipeline, place):
    """The calls of our functions and of the system that a resume makes before its engine starts."""
    calls = system_calls = 0

    def counted(frame, event, argument):
        nonlocal calls, system_calls
        calls += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)
        is_built_in = event == "c_call" and isinstance(argument, BuiltinFunctionType)
        system_calls += is_built_in and argument.__module__ == "posix" and argument.__name__ != "fspath"

    gc.collect()  # what earlier runs left in cycles is ended here, not by chance amid the count
    sys.setprofile(counted)
    try:
        run = pipeline.resume(place, durability="fast")
    finally:
        sys.setprofile(None)
    result = run.result()
    assert result.status == "success"
    assert result.context["i"] == len(pipeline.graph.nodes) - 2
    return calls, system_calls


def cost_of_a_stage(place, *, before_resume=lambda directory: None):
    totals = []
    for stages in (FEW, FEW, MANY):  # the first one imports what is needed
        directory = place / f"run-{len(totals)}"
        pipeline = stopped_run(stages, directory)
        before_resume(directory)
        totals.append(resumed(pipeline, directory))
    return tuple((many - few) / (MANY - FEW) for few, many in zip(totals[1], totals[2], strict=True))


@pytest.mark.campaign
def test_a_stage_behind_a_resume_costs_so_many_calls_and_none_of_the_system(tmp_path):
    calls, system_calls = cost_of_a_stage(tmp_path)
    assert calls <= 16
    assert system_calls == 0


@pytest.mark.campaign
def test_only_a_run_that_may_have_another_owner_has_its_stage_directories_swept(tmp_path):
    def exchange_lock(directory):
        lock = directory / LOCK_NAME
        lock.rename(directory / "held.lock")
        lock.touch()

    _, system_calls = cost_of_a_stage(tmp_path, before_resume=exchange_lock)
    assert system_calls == 3  # opened, listed, closed


def test_a_resume_reads_each_line_of_the_log_once(tmp_path, monkeypatch):
    pipeline = stopped_run(FEW, tmp_path / "run")
    lines = len(read_log(tmp_path / "run").events)
    read: list[bytes] = []

    def counted(payload, decode=event_lines.read_event):
        read.append(payload)
        return decode(payload)

    monkeypatch.setattr(event_lines, "read_event", counted)
    assert pipeline.resume(tmp_path / "run", durability="fast").result().status == "success"
    assert len(read) == lines
