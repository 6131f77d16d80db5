"""Runs that a newer version wrote: what it says is kept and shown, and no run continues from a misread record."""

import json
from zlib import crc32

import pytest

from attractor_nb import Outcome, Pipeline, Run, runs
from attractor_nb.errors import CheckpointCorrupt, RunError
from attractor_nb.model.events import UnknownEvent
from attractor_nb.storage.log.event_lines import encode_event
from attractor_nb.storage.log.event_log import read_log

TEXT = 'digraph work { start [shape=Mdiamond] plan [type="own"] done [shape=Msquare] start -> plan -> done }'


class Own:
    async def execute(self, node, context, graph, logs_root):
        return Outcome.success()


def pipeline():
    return Pipeline(TEXT, handlers={"own": Own()})


@pytest.fixture
def paused(tmp_path):
    """A run directory that stopped before its end."""
    run = pipeline().run(wait=True, logs_root=tmp_path / "run", durability="fast", stop_after=2)
    assert run.status == "paused"
    return tmp_path / "run"


def rewrite(root, number, **changes):
    """Have a record of the log say something else, under a checksum that is right."""
    path = root / "events.jsonl"
    lines = path.read_bytes().splitlines()
    plain = json.loads(lines[number - 1])
    plain |= changes
    del plain["crc"]
    payload = json.dumps(plain, separators=(",", ":")).encode()
    lines[number - 1] = b'%b,"crc":"%08x"}' % (payload[:-1], crc32(payload))
    path.write_bytes(b"\n".join(lines) + b"\n")
    for checkpoint in root.glob("checkpoint*.json"):  # it knows how long the log was
        checkpoint.unlink()


def test_an_event_of_an_unknown_type_is_kept_and_shown_as_it_is(paused):
    rewrite(paused, 4, type="StageDreamt", dream={"of": ["sheep"]})
    events = read_log(paused).events
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    dreamt = events[3]
    assert type(dreamt) is UnknownEvent
    assert (dreamt.type, dreamt.to_plain()["dream"]) == ("StageDreamt", {"of": ["sheep"]})
    assert "StageDreamt: of a newer version" in dreamt.description
    assert encode_event(dreamt).rstrip() == (paused / "events.jsonl").read_bytes().splitlines()[3]


def test_a_run_with_an_unknown_event_is_listed_and_looked_at(paused):
    rewrite(paused, 4, type="StageDreamt")
    assert [row.status for row in runs(paused.parent)] == ["paused"]
    run = Run.load(paused, pipeline())
    assert "StageDreamt" in [event.type for event in run.events()]
    assert run.inspect("start").node == "start"


def test_a_run_with_an_unknown_event_is_not_gone_on_with(paused):
    rewrite(paused, 4, type="StageDreamt")
    with pytest.raises(RunError, match="record 4 of its log is a StageDreamt") as caught:
        pipeline().resume(paused).result(60)
    assert "update attractor_nb" in caught.value.hint


def test_a_newer_form_of_the_log_is_said_in_words(paused):
    rewrite(paused, 1, schema_version=2)
    assert [row.status for row in runs(paused.parent)] == ["paused"]
    with pytest.raises(RunError, match="its log has form 2, and this one knows form 1"):
        pipeline().resume(paused).result(60)


def test_what_a_newer_form_says_otherwise_is_no_damage_of_the_disk(paused):
    rewrite(paused, 1, schema_version=2)
    rewrite(paused, 3, duration=["long"], outcome=7)
    with pytest.raises(CheckpointCorrupt, match=r"newer version of attractor_nb wrote the log \(form 2") as caught:
        read_log(paused)
    assert caught.value.hint == "update attractor_nb, and read the run again"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attempt": -1}, "has a wrong shape: attempt: expected a whole number >= 0"),
        ({"attempt": "1"}, "has a wrong shape: attempt: expected a whole number, got a text"),
        ({"name": 5}, "has a wrong shape: name: expected a text, got a whole number"),
        ({"outcome": {"outcome": "maybe"}}, "has a wrong shape: outcome.outcome: invalid enum value 'maybe'"),
        (
            {"outcome": {"outcome": "success", "usage": {"cost_usd": -1}}},
            "has a wrong shape: outcome.usage.cost_usd: expected a number >= 0.0",
        ),
    ],
    ids=["out_of_bounds", "text_for_number", "number_for_text", "unknown_status", "within_a_record"],
)
def test_a_wrong_value_is_refused_with_file_line_and_field(paused, changes, words):
    rewrite(paused, 3, **changes)
    with pytest.raises(CheckpointCorrupt) as caught:
        read_log(paused)
    assert f"{paused / 'events.jsonl'}: the record in line 3 (byte " in caught.value.message
    assert words in caught.value.message


def test_a_record_that_says_something_twice_is_refused(paused):
    path = paused / "events.jsonl"
    lines = path.read_bytes().splitlines()
    payload = lines[1][: lines[1].rindex(b',"crc"')] + b',"attempt":2}'
    lines[1] = b'%b,"crc":"%08x"}' % (payload[:-1], crc32(payload))
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CheckpointCorrupt, match=r"line 2 .* says the key 'attempt' twice"):
        read_log(paused)
