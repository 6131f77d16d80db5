"""``resume --from``: back to before a visit of a node."""

import json

import pytest


@pytest.fixture
def finished(command, sources):
    """The directory of a run that has ended."""
    ran = command("run", "straight.dot", "--logs-root", "run", "--simulate")
    assert ran.code == 0
    return "run"


def test_from_says_on_stderr_what_it_sets_aside(command, finished):
    ran = command("resume", finished, "--from", "write")
    assert ran.code == 0
    assert "rewound to write, visit 1: 2 stages set aside" in ran.err
    assert "rewound" not in ran.out


def test_quiet_and_json_tell_the_result_alone(command, finished):
    ran = command("resume", finished, "--from", "write", "--visit", "1", "--quiet", "--json")
    assert ran.code == 0
    assert ran.err == ""
    (stage,) = (entry for entry in json.loads(ran.out)["stages"] if entry["id"] == "write")
    assert stage["visits"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "wrote"), 'did you mean "write"'),
        (("--from", "write", "--visit", "7"), "visits of write: 1"),
        (("--visit", "1"), "visit needs the node to rewind to"),
        ((), "--from write`"),
    ],
    ids=["unknown_node", "no_such_visit", "visit_of_nothing", "ended"],
)
def test_what_cannot_be_gone_back_to_is_said_with_its_remedy(command, finished, options, message):
    ran = command("resume", finished, *options)
    assert ran.code == 2
    assert message in ran.err
