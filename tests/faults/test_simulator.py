"""Thousands of random runs on a simulated clock, disk and schedule, judged by an oracle (``simulate.py``).

Also the test of the simulator: taken away one at a time, these protections must each be missed by it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("simulate.py")
RUNNER, STATE = "attractor_nb/engine/runner.py", "attractor_nb/decisions/run_state.py"
ROUTING, GATES = "attractor_nb/decisions/routing.py", "attractor_nb/engine/gates.py"


@pytest.mark.timeout(1800)
@pytest.mark.protects(
    "attractor_nb/storage/log/event_log.py",
    "            self._disk.sync_data(self._descriptor)\n",
    instead="            pass\n",
)
@pytest.mark.protects(
    RUNNER,
    "        attempts.announce(effect.event, is_synced=True)\n        self._committed += 1\n",
    instead="        self._committed += 1\n",
)
@pytest.mark.protects(
    STATE,
    "        self.in_flight = None\n        self.completed.append(name)",
    instead="        self.completed.append(name)",
)
@pytest.mark.protects(
    STATE,
    "        self.visits[name] = self.visits.get(name, 0) + 1\n",
    instead="        self.visits[name] = self.visits.get(name, 0) + 2\n",
)
@pytest.mark.protects(STATE, "        self.stale_gates.update(event.passed_over)\n", instead="        pass\n")
@pytest.mark.protects(
    ROUTING,
    "if evaluate_condition(edge.condition, status, seen.preferred_label, lookup):",
    instead="if edge.weight >= 0:",
)
@pytest.mark.protects(
    GATES,
    "        if recorded := self._recorded.pop(question.id, None):\n            return recorded_answer(recorded, question)\n",
    instead="",
)
@pytest.mark.protects(
    RUNNER,
    "            self._save_checkpoint(is_forced=True)  # before the intent, which the log does not have yet\n        state.apply(effect.started)\n",
    instead="            state.apply(effect.started)\n            self._save_checkpoint(is_forced=True)\n        else:\n            state.apply(effect.started)\n",
)
@pytest.mark.campaign
def test_random_runs_under_random_faults_come_to_the_same_end(figures):
    """Protected by the flush of each commit, by committing at all, by a visit that ends with its commit, by counting
    it once, by remembering gates that must be executed again, by never taking an edge whose condition is false,
    by recorded answers, and by a checkpoint that is never ahead of the log."""
    runs = 800  # as many in the campaign: `make simulate` takes 100,000
    command = [sys.executable, "-P", str(PROGRAM), "--json", "--runs", str(runs)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert found["wrong"] == {}
    assert found["runs"] == runs
    struck = found["faults"]
    kinds = ", ".join(f"{kind} {count}" for kind, count in struck.items())
    figures.record(
        0,
        "random graphs, outcomes, answers and schedules on a simulated clock and disk",
        f"{runs} of {runs} runs right in {found['lives']} lives, struck by {kinds};"
        f" {found['runs_per_second']} runs a second",
        runs=runs,
    )


WRONG_ONCE = {
    3073567: "a restart that a resume begins did not say what it goes on from, so that no rewind took it",
    3098690: "a power loss brought back a temporary file in a restart that was set aside",
}


@pytest.mark.protects(
    "attractor_nb/runtime/resume.py", 'restart_of=str(directory_before(point.whole) or ""),', instead='restart_of="",'
)
@pytest.mark.protects(
    "attractor_nb/storage/child_directories.py", "        disk.sync(leftover)", instead="        pass"
)
@pytest.mark.parametrize("seed", WRONG_ONCE)
def test_a_seed_that_was_wrong_once_is_right(seed):
    """Protected by: what a restart goes on from is known to a resume that begins it; what is swept is durable
    before its directory is set aside."""
    command = [sys.executable, "-P", str(PROGRAM), "--seed", str(seed), "--faults", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ, timeout=120)
    assert ended.stdout.endswith("nothing is wrong\n"), WRONG_ONCE[seed] + ended.stdout
