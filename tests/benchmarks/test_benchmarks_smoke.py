"""Measurements of each kind run once, small and without peers: the benchmark itself does not rot.

All of them do with ATTRACTOR_CAMPAIGN=full.

No figure is judged here: times on a shared machine say nothing. What is robust has a test beside its
subject (bytes written, modules loaded, calls per fold).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GOALS = (
    (
        ("P1", "P2", "P3", "P4", "S1", "P5", "R1", "M1"),
        ("P6", "P7", "P8", "P9", "P10", "P11", "U1"),
        ("P12", "P13", "P14", "L1", "H1"),
        ("V1", "V2", "V3", "V4", "V5", "V6"),
    )
    if os.environ.get("ATTRACTOR_CAMPAIGN") == "full"
    else (("P2", "P5", "R1", "M1"), ("P6", "P9", "P11", "U1"), ("P12", "P13", "H1"), ("V1",))
)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("goals", GOALS, ids=" ".join)
def test_goals_are_measured_and_their_rows_are_in_the_table(goals, tmp_path):
    page = tmp_path / "benchmarks.md"
    command = [sys.executable, str(HERE), "--only", *goals, "--scale", "tiny", "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert [goal for goal in goals if f"| **{goal}** |" not in text] == []


def test_ten_times_the_steps_write_at_most_twelve_times_the_bytes(tmp_path):
    """P4 as a guard: bytes do not depend on how busy the machine is."""

    def written(steps):
        command = [sys.executable, str(HERE / "workers" / "chain.py"), "ours:fast", str(steps), "1"]
        here = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, env=here)
        return json.loads(done.stdout)["written"]

    if not Path("/proc/self/io").exists():
        pytest.skip("this system does not count the bytes that a process writes")
    assert written(1000) <= 12 * written(100)


def test_a_step_calls_the_system_no_more_often_than_this(tmp_path):
    """S1 as a guard: each of its rows is met."""
    page = tmp_path / "benchmarks.md"
    command = [sys.executable, str(HERE), "--only", "S1", "--scale", "tiny", "--output", str(page)]
    subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    rows = [line for line in page.read_text().splitlines() if line.startswith("| **S1** |") or " calls |" in line]
    assert len(rows) == 3
    assert [row for row in rows if not row.endswith("| met |")] == []


def test_loading_the_extension_loads_nothing_heavy():
    """P8 as a guard: which modules are loaded does not depend on the machine either."""
    command = [sys.executable, str(HERE / "workers" / "loading.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert json.loads(done.stdout)["heavy"] == []
