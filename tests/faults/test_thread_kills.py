"""Fault 1, threads: the process is killed at any operation of a save of a thread, and again while it resumes.

A stage of this graph fails for good when it hears what no committed visit said: words of an attempt that was
cut off, or that failed. Else the end is that of an uninterrupted run.
"""

from __future__ import annotations

import sys

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process of ours"),
    pytest.mark.timeout(1800),
]
GRAPH = "threads"


def saves(operations):
    """Numbers of the operations from before each save of the thread to behind it."""
    places = [number for number, (name, target) in enumerate(operations, 1) if target == "main.json"]
    return [range(place - 4, place + 4) for place in places]


@pytest.mark.protects(
    "attractor_nb/decisions/fidelity.py",
    'return f"{branch}/{node_id}:{visit}.{attempt}" if branch else f"{node_id}:{visit}.{attempt}"',
    instead='return "all"',
)
@pytest.mark.campaign
def test_killed_around_each_operation_of_a_save(kill_worker, campaign, figures):
    """Protected by: what an attempt saves is an entry of its own, which counts when the log has its commit."""
    reference = kill_worker.judge(GRAPH, {})
    assert not reference["violations"], reference["violations"]
    assert reference["told"]["status"] == "success"
    operations = reference["operations"][0]
    of_saves = saves(operations)
    assert len(of_saves) == 16, "four rounds of three stages, one of them with two attempts"
    chosen = [number for place in (of_saves[0], of_saves[6]) for number in place]
    # All saves are alike: of the others every third operation, so that each kind of them is met several times.
    chosen += campaign.pick([number for place in of_saves for number in place][::3], sample=4)
    kills = 0
    for number in sorted(set(chosen)):
        name, target = operations[number - 1]
        for is_halfway in (False, True) if name.startswith("write") else (False,):
            first = {"disk": {"kill_at": number, "is_halfway": is_halfway}}
            verdict = kill_worker.judge(GRAPH, first, {"disk": {"kill_at": 25}})
            assert not verdict["violations"], (name, target, number, verdict["violations"])
            kills += verdict["kills"]
    figures.record(
        1,
        "killed around each operation of a save of a thread, and again in the resume",
        f"{len(set(chosen))} of {sum(map(len, of_saves))} operations, {kills} kills: nobody heard what was not"
        " committed",
    )
