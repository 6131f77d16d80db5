"""Going back in a run survives kills: it happened or it did not, and nothing is used or counted twice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("workers") / "rewind_worker.py"
SECONDS = 110
STAGES_AT_A_TIME = 12


def work(name, folder, kills=()):
    """What the worker says of a graph; ``kills`` are the operations to be killed at."""
    folder.mkdir()
    command = [sys.executable, str(WORKER), name, str(folder), *map(str, kills)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout)


@pytest.mark.timeout(600)
@pytest.mark.protects(
    "attractor_nb/engine/runner.py", "setup.stream.announce(setup.rewound, is_synced=True)", instead="pass"
)
@pytest.mark.protects(
    "attractor_nb/pipeline/recorded.py",
    'if checkpoint is not None and reaches_behind(stored.tail, checkpoint["log_sequence"]):',
    instead="if False:",
)
@pytest.mark.parametrize("name", ["loop", "restart"])
def test_a_kill_at_any_operation_leaves_the_run_as_it_was_or_rewound(name, tmp_path, campaign, figures):
    """Protected by: the one record that makes the run stand there is durable before anything else of the
    rewind; and a checkpoint from behind the place it goes back to holds no more."""
    counted = work(name, tmp_path / "counted")
    numbers = list(range(1, len(counted["operations"]) + 1))
    assert counted["before"] != counted["after"]
    record = counted["operations"].index(["write", "events.jsonl"]) + 1
    chosen = sorted({*range(record - 1, record + 5), *campaign.pick(numbers, sample=6)})
    found = {"rewound": 0, "problems": []}
    for begin in range(0, len(chosen), STAGES_AT_A_TIME):
        told = work(name, tmp_path / f"killed-{begin}", chosen[begin : begin + STAGES_AT_A_TIME])
        found["rewound"] += told["rewound"]
        found["problems"] += told["problems"]
    assert found["problems"] == []
    assert 0 < found["rewound"] < len(chosen)
    figures.record(
        0,
        f"killed while going back in a run, graph {name!r}",
        f"{len(chosen)} of {len(chosen)} kills: {len(chosen) - found['rewound']} left the run as it was,"
        f" {found['rewound']} rewound; same path and context at the end, no recorded stage run again",
    )


@pytest.mark.protects("attractor_nb/decisions/run_state.py", 'self.numbers = dict(carried["visits"])')
@pytest.mark.parametrize("name", ["loop", "restart"])
def test_no_visit_has_the_key_of_one_that_was_set_aside(name, tmp_path):
    """Protected by: a rewind and a restart go on with the numbers of the visits before them."""
    told = work(name, tmp_path / "run")
    assert len(set(told["calls"])) == len(told["calls"])
