"""One cassette for all rows of a map: each row is known by its number."""

import json
import threading
from collections import Counter

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.errors import OptionError

TRIAGE = """digraph triage {
    start [shape=Mdiamond]
    ask [prompt="Which team is this for?"]
    count [shape=parallelogram, tool_command="wc -c"]
    gate [shape=hexagon, label="Right?"]
    done [shape=Msquare]
    start -> ask -> count -> gate
    gate -> done [label="Yes"]
    gate -> ask [label="Again"]
}"""
ROWS = [{"ticket": f"ticket {number}"} for number in range(6)]


class Answering:
    """Answers with the row's own ticket, and counts."""

    def __init__(self):
        self.asked = Counter()
        self.lock = threading.Lock()

    def __call__(self, node, prompt, context):
        with self.lock:
            self.asked[context["ticket"]] += 1
        return f"for {context['ticket']}"


def mapped(cassette, backend=None, rows=ROWS, **options):
    options = {"interviewer": "auto", "trust": True, "outputs": ["ask.response", "tool.output"], **options}
    if backend is not None:
        options["backend"] = FunctionBackend(backend)
    return Pipeline(TRIAGE).map(rows, wait=True, cassette=cassette, **options)


@pytest.mark.parametrize("mode", ["auto", "record"])
def test_a_map_is_recorded_once_and_replayed_without_anybody(tmp_path, mode):
    answering = Answering()
    recorded = mapped(tmp_path / "c.json", answering, cassette_mode=mode)
    assert recorded.is_success
    assert (recorded.cassette.recorded, recorded.cassette.replayed) == (18, 0)
    replayed = mapped(tmp_path / "c.json", cassette_mode="replay", interviewer="refuse", trust=False)
    assert replayed.is_success, replayed
    assert (replayed.cassette.recorded, replayed.cassette.replayed, replayed.cassette.unused) == (0, 18, ())
    assert [row.outputs for row in replayed] == [row.outputs for row in recorded]
    assert [row.outputs["ask.response"] for row in replayed] == [f"for ticket {n}" for n in range(6)]
    assert set(answering.asked.values()) == {1}


def test_rows_that_are_new_are_asked_and_added(tmp_path):
    answering = Answering()
    mapped(tmp_path / "c.json", answering, rows=ROWS[:4])
    more = mapped(tmp_path / "c.json", answering)
    assert (more.cassette.recorded, more.cassette.replayed) == (6, 12)
    assert set(answering.asked.values()) == {1}


def test_a_replay_of_another_row_fails_that_row_alone(tmp_path):
    mapped(tmp_path / "c.json", Answering())
    others = [*ROWS[:2], {"ticket": "another"}, *ROWS[3:]]
    pipeline = Pipeline(TRIAGE.replace("Which team is this for?", "Which team?"))
    replayed = mapped(tmp_path / "c.json", cassette_mode="replay", rows=others)
    assert [row.status for row in replayed].count("fail") == 1
    assert "has no answer for" in replayed[2].reason
    assert not pipeline.map(
        ROWS[:1], wait=True, cassette=tmp_path / "c.json", cassette_mode="replay", interviewer="auto"
    ).is_success


def test_an_interrupted_recording_replaces_no_cassette(tmp_path):
    path = tmp_path / "c.json"
    mapped(path, Answering())
    before = path.read_bytes()
    began = threading.Event()

    def slow(node, prompt, context):
        began.set()
        threading.Event().wait(0.2)
        return "late"

    handle = Pipeline(TRIAGE, backend=FunctionBackend(slow)).map(
        ROWS, cassette=path, cassette_mode="record", interviewer="auto", trust=True, max_parallel=1
    )
    assert began.wait(30)
    handle.cancel()
    assert handle.result(30).status == "interrupted"
    assert path.read_bytes() == before


def test_a_resume_goes_on_with_the_cassette(tmp_path):
    answering = Answering()
    pipeline = Pipeline(TRIAGE, backend=FunctionBackend(answering))
    options = {"cassette": tmp_path / "c.json", "interviewer": "auto", "trust": True}
    handle = pipeline.map(ROWS, max_parallel=1, **options)
    handle.on_row(lambda row: handle.stop())
    stopped = handle.result(30)
    assert stopped.counts["not_started"] >= 1
    assert pipeline.resume_map(stopped, **options).result(30).is_success
    assert set(answering.asked.values()) == {1}
    places = Counter(call["child_of"] for call in json.loads((tmp_path / "c.json").read_text())["calls"])
    assert places == {f"row {number}": 3 for number in range(6)}


def test_nothing_to_replay_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(OptionError, match="there is no cassette"):
        mapped(tmp_path / "none.json", cassette_mode="replay", map_dir=tmp_path / "map")
    assert not (tmp_path / "map").exists()
