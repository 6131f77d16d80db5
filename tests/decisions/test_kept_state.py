"""The state of a run in a checkpoint: this form is read for ever."""

import json
import re

import pytest

from attractor_nb.decisions.kept_state import checkpoint_entries, state_of
from attractor_nb.model.outcome import StageStatus

BRANCH = """{
  "path": "fan/a", "id": "a", "fan_out": "fan", "index": 0, "context": {"k": [1, null]}, "logs": ["a: looked"],
  "end": {"type": "ParallelBranchCompleted", "sequence": 9, "time": 1.5, "branch": "fan/a", "name": "fan", "index": 0,
          "visit": 1, "attempt": 1, "id": "a", "duration": 0.5, "success": true, "status": "success"},
  "next_node": "join", "completed_nodes": ["a"], "node_retries": {}, "node_outcomes": {"a": "success"},
  "visits": {"a": 1}, "usage": {"input_tokens": 10, "calls": 1},
  "state": {
    "stale_gates": [], "failed_in": {}, "skipped": [], "last_step": 0, "redirects": 0, "restarts": 0, "elapsed_seconds": 0.0,
    "seen": ["success", ""], "last": ["success", "only_edge", ""], "last_notes": "said", "failure": null, "incoming_edge": 3, "in_flight": null,
    "ended": ["", "", false], "bound": "", "usage_by_node": {"a": {"input_tokens": 10, "calls": 1}},
    "restart": ["", ""], "recent": [["a", "a", "success", "said", "text", 4, ["a.response", "k"]]], "inputs": ["who"],
    "recent_keys": ["k"], "notes": [], "fidelity": "full", "threads": {"t": "fan/a/a.1.1"}, "numbers": {},
    "branches": {}, "taken": [["a", "join", 3, 1]]}}"""
ENTRIES = """{
  "next_node": "fan", "completed_nodes": ["start", "gate", "gate"], "node_retries": {"gate": 1},
  "node_outcomes": {"start": "success", "gate": "partial_success", "a": "success"}, "visits": {"start": 1, "gate": 2},
  "usage": {"input_tokens": 10, "cost_usd": 0.25, "calls": 2, "unpriced_calls": 1},
  "state": {
    "stale_gates": ["gate", "other"], "failed_in": {"gate": ["fan/a"]}, "skipped": ["z", "b"], "last_step": 4,
    "redirects": 1, "restarts": 2, "elapsed_seconds": 7.25, "seen": ["partial_success", "Yes"], "last": ["fail", "no_match", "why"], "last_notes": "é",
    "failure": ["gate", "no key", 2, true], "incoming_edge": 0,
    "in_flight": ["fan", 2, 1, 1, true, "compact", "no number"], "ended": ["failed", "too often", true],
    "bound": "max_steps", "usage_by_node": {"gate": {"cost_usd": 0.25, "calls": 1}}, "restart": ["gate", "/r-1"],
    "recent": [], "inputs": ["who"], "recent_keys": ["y", "x"], "notes": [["failure", "gate failed"]],
    "fidelity": "full", "threads": {"t": "gate.2.1"}, "numbers": {"fan": 2},
    "branches": {"open": [BRANCH], "numbers": {"fan/a": {"a": 1}}, "steps": 1}, "taken": [["gate", "gate", 2, 1]]}}""".replace(
    "BRANCH", BRANCH
)
NEWER = (
    "failed_in",
    "skipped",
    "last_step",
    "last_notes",
    "failure",
    "bound",
    "usage_by_node",
    "notes",
    "threads",
    "numbers",
    "branches",
    "taken",
)
"""Keys that checkpoints of before do not have."""


def entries():
    return json.loads(ENTRIES)


def test_it_is_written_as_it_was_read():
    written = json.dumps(checkpoint_entries(state_of({"run_id": "r", **entries()})))
    assert written == json.dumps(entries()), "and in this order"


def test_a_branch_knows_its_run_and_its_fan_out():
    state = state_of(entries())
    branch = state.branches.open["fan/a"]
    assert (branch.state.root, branch.state.branch, branch.end.status) == (state, "fan/a", "success")
    assert (state.steps, state.recent.maxlen, state.outcomes["a"]) == (
        4,
        branch.state.recent.maxlen,
        StageStatus.SUCCESS,
    )
    state.branches.let_go("", "fan")
    assert not state.branches.open


def test_what_older_checkpoints_lack_has_its_default():
    plain = entries()
    for name in NEWER:
        del plain["state"][name]
    del plain["state"]["in_flight"][5:]
    written = checkpoint_entries(state_of(plain))["state"]
    assert [written[name] for name in NEWER if name != "branches"] == [{}, (), 0, "", None, "", {}, (), {}, {}, ()]
    assert written["branches"] == {"open": (), "numbers": {}, "steps": 0}
    assert written["in_flight"] == ["fan", 2, 1, 1, True, "", ""]


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("completed_nodes",), "start", "completed_nodes"),
        (("node_outcomes", "start"), "odd", "node_outcomes"),
        (("state", "seen"), [], "state.seen"),
        (("state", "in_flight"), ["fan"], "state.in_flight"),
        (("state", "recent"), [["a"]], "state.recent[0]"),
        (("state", "branches", "open"), [{}], "open[0].path"),
        (("state", "branches", "open", 0, "end", "type"), "StageStarted", "open[0].end.type"),
    ],
)
def test_a_foreign_shape_is_refused_with_its_place(path, value, place):
    plain = holder = entries()
    *way, last = path
    for step in way:
        holder = holder[step]
    holder[last] = value
    with pytest.raises(ValueError, match=re.escape(place)):
        state_of(plain)
