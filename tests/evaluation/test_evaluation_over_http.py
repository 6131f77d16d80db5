"""An evaluation at the command line whose model answers over HTTP: recorded, replayed without a key, killed, resumed."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests import warm
from tests.backends.llm.scripted_server import Reply, ScriptedServer

TRIAGE = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}
"""
CHECKS = """
def correct(output, expected, row):
    with open("scored.txt", "a") as file:
        file.write(row["id"] + "\\n")
    return output == expected
"""
COUNT = 8
ANSWERED_BEFORE_THE_KILL = 5
ROWS = [
    {"id": f"r{number}", "ticket": f"ticket-{number}.", "expected": "billing" if number % 2 else "CANARY-7311"}
    for number in range(COUNT)
]
EVALUATE = ("evaluate", "triage.dot", "--rows", "rows.jsonl", "--scorers", "own_checks:correct", "--json", "-q")
BY_MODEL = ("--backend", "llm", "--model", "gpt-5.2")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "triage.dot").write_text(TRIAGE)
    (tmp_path / "own_checks.py").write_text(CHECKS)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def start(place, *arguments, server=None):
    """The command as a process, with a key for the server, or without a key."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ATTRACTOR_"))}
    own["ATTRACTOR_CONFIG_DIR"] = str(place / "config")
    if server is not None:
        own |= {"OPENAI_API_KEY": "planted-key-0123456789", "OPENAI_BASE_URL": server.base_url("openai")}
    return warm.Popen(
        [sys.executable, "-m", "attractor_nb", *arguments],
        cwd=place,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def ticket_of(asked):
    (number,) = [number for number in range(COUNT) if f"ticket-{number}." in json.dumps(asked.body)]
    return number


def outcome(said):
    return [(row["id"], row["output"], row["correct"]) for row in said["rows"]]


def test_a_recorded_evaluation_runs_without_a_key_and_without_a_network(place):
    with ScriptedServer(Reply("billing")) as server:
        code, out, err = ended(start(place, *EVALUATE, *BY_MODEL, "--cassette", "c.json", server=server))
        assert code == 0, err
        assert sorted(map(ticket_of, server.asked)) == list(range(COUNT))
        assert "CANARY" not in json.dumps([asked.body for asked in server.asked])
        recorded = json.loads(out)
    assert recorded["scores"]["correct"]["mean"] == 0.5
    gates = ("--at-least", "correct=0.5", "--markdown", "summary.md")
    code, out, err = ended(start(place, *EVALUATE, "--cassette", "c.json", "--cassette-mode", "replay", *gates))
    assert code == 0, err
    assert outcome(json.loads(out)) == outcome(recorded)
    assert len(server.asked) == COUNT
    assert "correct 4 of 8 = 50 %" in (place / "summary.md").read_text()


@pytest.mark.kind("a kill")
def test_an_evaluation_killed_in_the_middle_is_resumed_and_no_row_is_paid_twice(place):
    is_killed = False
    answered = Counter()

    def choose(asked):
        if not is_killed and sum(answered.values()) >= ANSWERED_BEFORE_THE_KILL:
            return Reply(ends="hang", after=0)
        answered[ticket_of(asked)] += 1
        return Reply("billing")

    with ScriptedServer(choose=choose) as server:
        process = start(
            place, *EVALUATE, *BY_MODEL, "--max-parallel", "1", "--out", "kept", "--durability", "fast", server=server
        )
        try:
            # One row at a time: the sixth is asked for when five are stored and scored.
            server.wait_for(ANSWERED_BEFORE_THE_KILL + 1)
        finally:
            process.kill()
            process.communicate()
        scored = Counter((place / "scored.txt").read_text().split())
        assert scored == {f"r{number}": 1 for number in range(ANSWERED_BEFORE_THE_KILL)}
        is_killed = True
        code, out, err = ended(
            start(place, "evaluate", "--resume", "kept", "--scorers", "own_checks:correct", "--json", server=server)
        )
    assert code == 0, err
    assert answered == dict.fromkeys(range(COUNT), 1), "each row was answered, and so paid, once"
    assert len(server.asked) == COUNT + 1, "only the request that hung was made again"
    assert Counter((place / "scored.txt").read_text().split()) == {f"r{number}": 1 for number in range(COUNT)}
    said = json.loads(out)
    assert [row["output"] for row in said["rows"]] == ["billing"] * COUNT
    assert said["scores"]["correct"]["unmeasured"] == 0
    assert said["usage"]["calls"] >= COUNT
