"""Going back in a run survives kills: it happened or it did not, and nothing is used or counted twice."""

import pytest

WORKER = "rewind_worker.py"
KILLS_AT_A_TIME = 12


@pytest.mark.timeout(1800)
@pytest.mark.protects(
    "attractor_nb/engine/runner.py", "setup.stream.announce(setup.rewound, is_synced=True)", instead="pass"
)
@pytest.mark.protects(
    "attractor_nb/runtime/handles/recorded_state.py",
    'if checkpoint is not None and reaches_behind(stored.tail, checkpoint["log_sequence"]):',
    instead="if False:",
)
@pytest.mark.parametrize("name", ["loop", "restart"])
@pytest.mark.campaign
def test_a_kill_at_any_operation_leaves_the_run_as_it_was_or_rewound(ask_worker, name, tmp_path, campaign, figures):
    """Protected by: the one record that makes the run stand there is durable before anything else of the
    rewind; and a checkpoint from behind the place it goes back to holds no more."""
    counted = ask_worker(WORKER, name, folder=tmp_path / "counted")
    numbers = list(range(1, len(counted["operations"]) + 1))
    assert counted["before"] != counted["after"]
    record = counted["operations"].index(["write", "events.jsonl"]) + 1
    chosen = sorted({*range(record - 1, record + 5), *campaign.pick(numbers, sample=6)})
    found = {"rewound": 0, "missed": 0, "problems": []}
    for begin in range(0, len(chosen), KILLS_AT_A_TIME):
        kills = chosen[begin : begin + KILLS_AT_A_TIME]
        told = ask_worker(WORKER, name, folder=tmp_path / f"killed-{begin}", kills=kills)
        found["rewound"] += told["rewound"]
        found["missed"] += told["missed"]
        found["problems"] += told["problems"]
    assert found["problems"] == []
    # How many times a late checkpoint is written varies from run to run, and with it the number of operations.
    assert found["missed"] <= max(1, len(chosen) // 10)
    assert 0 < found["rewound"] < len(chosen)
    kills = len(chosen) - found["missed"]
    figures.record(
        0,
        f"killed while going back in a run, graph {name!r}",
        f"{kills} of {kills} kills: {len(chosen) - found['rewound']} left the run as it was,"
        f" {found['rewound'] - found['missed']} rewound; same path and context at the end, no recorded stage run again",
    )


@pytest.mark.protects("attractor_nb/decisions/run_state.py", "self.numbers = dict(carried.visits)")
@pytest.mark.parametrize("name", ["loop", "restart"])
def test_no_visit_has_the_key_of_one_that_was_set_aside(ask_worker, name, tmp_path):
    """Protected by: a rewind and a restart go on with the numbers of the visits before them."""
    told = ask_worker(WORKER, name, folder=tmp_path / "run")
    assert len(set(told["calls"])) == len(told["calls"])
