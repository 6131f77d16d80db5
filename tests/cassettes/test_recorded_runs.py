"""A recorded run is replayed: the same path, context and files, and nothing is called."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.model.events import ModelCallEnded, StageOutput
from attractor_nb.model.outcome import Usage
from attractor_nb.testing import ScriptedBackend, ScriptedInterviewer

REPLAYED = "replayed"

_SPEC = importlib.util.spec_from_file_location("cassette_scenario", Path(__file__).with_name("conftest.py"))
scenario = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(scenario)


def never():
    return ScriptedBackend(default=AssertionError("a replay asked a model"))


def test_a_run_with_tools_gate_retry_loop_and_branches_replays_the_same_way(pipeline, recorded, tmp_path):
    assert recorded.is_success, recorded.reason
    assert list(recorded.completed_nodes) == scenario.PATH
    (tmp_path / "tried").unlink()
    events = []
    replayed = pipeline.run(
        wait=True,
        backend=never(),
        interviewer=ScriptedInterviewer({}),
        cassette=tmp_path / "ship.json",
        cassette_mode="replay",
        durability="fast",
        observers=[events.append],
    )
    assert replayed.is_success, replayed.reason
    assert replayed.completed_nodes == recorded.completed_nodes
    assert replayed.visits == recorded.visits
    assert {node: str(found.status) for node, found in replayed.outcomes.items()} == {
        node: str(found.status) for node, found in recorded.outcomes.items()
    }
    assert scenario.context_of(replayed) == scenario.context_of(recorded)
    assert scenario.evidence(replayed) == scenario.evidence(recorded)
    assert not (tmp_path / "tried").exists()
    assert replayed.cassette.replayed == recorded.cassette.recorded == 12
    assert not replayed.cassette.unused
    streamed = "".join(event.text for event in events if isinstance(event, StageOutput) and event.name == "plan")
    assert streamed == "First plan.Second plan.\nBetter."


def test_what_a_replay_would_have_cost_is_told_apart_and_no_bound_counts_it(pipeline, recorded, tmp_path):
    assert (recorded.usage.cost_usd, recorded.usage.total_tokens) == (0.75, 330)
    replayed = pipeline.run(
        wait=True,
        backend=never(),
        cassette=tmp_path / "ship.json",
        cassette_mode="replay",
        max_budget_usd=0.01,
        max_tokens_total=1,
        durability="none",
    )
    assert replayed.is_success, replayed.reason
    assert replayed.usage == Usage(cost_usd=0.0)
    assert replayed.cassette.usage == Usage(300, 30, 0.75, 2)


FRESH = """
import json, socket, sys

def refuse(*args, **options):
    raise AssertionError("a replay used the network")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse
from attractor_nb import Pipeline
from pathlib import Path
result = Pipeline(Path("ship.dot").read_text()).check("ship.json", path=json.loads(sys.argv[1]), outcome="success")
print(json.dumps([list(result.completed_nodes), result.context["plan.response"], result.cassette.replayed]))
"""


def test_it_replays_in_a_fresh_process_without_network_key_or_backend(recorded, tmp_path):
    (tmp_path / "ship.dot").write_text(scenario.SOURCE)
    (tmp_path / "tried").unlink()
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", FRESH, json.dumps(scenario.PATH)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [scenario.PATH, "Second plan.\nBetter.", 12]
    assert not (tmp_path / "tried").exists()


def test_a_replay_needs_nobody_who_trusts_commands(recorded, tmp_path):
    (tmp_path / "ship.dot").write_text(scenario.SOURCE)
    from_file = Pipeline(tmp_path / "ship.dot")
    assert from_file.check(tmp_path / "ship.json").is_success


LOOP = """digraph {
    start [shape=Mdiamond]
    done [shape=Msquare]
    ask [prompt="Again?", fidelity="truncate", max_retries=3, retry_policy="linear"]
    start -> ask
    ask -> ask [condition="preferred_label=again"]
    ask -> done [condition="preferred_label!=again"]
}"""


def test_equal_calls_are_answered_in_their_order_and_one_more_is_a_miss(tmp_path):
    from attractor_nb.model.outcome import Outcome, StageStatus

    again = Outcome(StageStatus.SUCCESS, preferred_label="again")
    place = {"cassette": tmp_path / "loop.json", "durability": "none"}
    Pipeline(LOOP).run(
        wait=True, backend=ScriptedBackend({"ask": [again, again, "no"]}), cassette_mode="record", **place
    )
    replayed = Pipeline(LOOP).run(wait=True, backend=never(), cassette_mode="replay", **place)
    assert replayed.visits["ask"] == 3, replayed.reason
    file = tmp_path / "loop.json"
    plain = json.loads(file.read_text())
    plain["calls"].pop()  # the answer that ended the loop
    file.write_text(json.dumps(plain))
    short = Pipeline(LOOP).run(wait=True, backend=never(), cassette_mode="replay", **place)
    assert short.status == "fail"
    assert short.visits["ask"] == 2
    assert "the model call of ask, visit 3: it was recorded once, and is made more often now" in short.reason


def test_a_timed_out_call_is_replayed_as_one(tmp_path):
    import asyncio

    source = LOOP.replace('prompt="Again?"', 'prompt="Slow?", timeout="100ms"')

    class Slow:
        calls = 0

        async def run(self, node, prompt, context):
            self.calls += 1
            if self.calls == 1:
                await asyncio.Event().wait()
            return "done"

    place = {"cassette": tmp_path / "slow.json", "durability": "none"}
    recorded = Pipeline(source).run(wait=True, backend=Slow(), cassette_mode="record", **place)
    assert recorded.is_success, recorded.reason
    events = []
    replayed = Pipeline(source).run(wait=True, cassette_mode="replay", observers=[events.append], **place)
    assert replayed.is_success, replayed.reason
    assert [event.attempt for event in events if type(event).__name__ == "StageCompleted" and event.name == "ask"] == [
        2
    ]


class Described:
    """A backend that says what goes into its calls, as those of providers do."""

    def __init__(self, **inputs):
        self.inputs = {"model": "m", "provider": "p", **inputs}

    def call_inputs(self, node, context):
        return self.inputs

    def run(self, node, prompt, context):
        return "said"


ONE = 'digraph { start [shape=Mdiamond] done [shape=Msquare] ask [prompt="Say it."] start -> ask -> done }'


def test_a_replayed_model_call_is_an_event_that_cost_nothing(tmp_path):
    place = {"cassette": tmp_path / "one.json", "durability": "none"}
    Pipeline(ONE).run(wait=True, backend=Described(), cassette_mode="record", **place)
    events = []
    Pipeline(ONE).run(wait=True, backend=Described(), cassette_mode="replay", observers=[events.append], **place)
    calls = [event for event in events if isinstance(event, ModelCallEnded)]
    assert [(call.model, call.finish, call.usage) for call in calls] == [("p:m", REPLAYED, Usage(cost_usd=0.0))]


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("model", {"model": "n"}),
        ("provider", {"provider": "q"}),
        ("temperature", {"temperature": 0.1}),
        ("max_tokens", {"max_tokens": 5}),
        ("system_prompt", {"system_prompt": "Be brief."}),
        ("tools", {"tools": ["read"]}),
        ("response_schema", {"response_schema": {"type": "object"}}),
        ("base_url", {"base_url": "http://127.0.0.1:1"}),
    ],
)
def test_each_thing_that_a_backend_names_makes_another_call(tmp_path, name, now):
    place = {"cassette": tmp_path / "one.json", "durability": "none"}
    Pipeline(ONE).run(wait=True, backend=Described(), cassette_mode="record", **place)
    result = Pipeline(ONE).run(wait=True, backend=Described(**now), cassette_mode="replay", **place)
    assert result.status == "fail"
    assert f"its {name} changed" in result.reason


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Plan $goal", "Plan $goal well", ["the model call of plan", "its prompt changed", "Plan ship it well"]),
        ('goal="ship it"', 'goal="sink it"', ["the model call of plan", '"Plan ship it" → "Plan sink it"']),
        ("Look left", "Look up", ["the model call of fan/left/left", "its prompt changed"]),
        ("&& echo passed", "&& echo good", ["the command call of test", "its command changed"]),
        ('label="Ship?"', 'label="Ship now?"', ["the question call of gate", "its text changed"]),
        ("[R] Redo", "[R] Again", ["the question call of gate", "its options changed"]),
    ],
)
def test_a_miss_names_the_call_and_what_changed(recorded, tmp_path, old, new, said):
    assert old in scenario.SOURCE
    changed = Pipeline(scenario.SOURCE.replace(old, new))
    result = changed.run(wait=True, cassette=tmp_path / "ship.json", cassette_mode="replay", durability="none")
    assert result.status == "fail"
    told = result.reason
    for word in said:
        assert word in told
    assert 'cassette_mode="auto"' in told


def test_a_stage_that_was_never_recorded_says_which_were(recorded, tmp_path):
    renamed = Pipeline(scenario.SOURCE.replace("plan", "draft"))
    result = renamed.run(wait=True, cassette=tmp_path / "ship.json", cassette_mode="replay", durability="none")
    assert "no model call of this stage was recorded; stages with calls: fan/left/left" in result.reason


def test_auto_replays_what_is_there_and_records_the_rest(pipeline, recorded, tmp_path):
    (tmp_path / "tried").unlink()
    changed = Pipeline(scenario.SOURCE.replace("Look left", "Look up"))
    asked = ScriptedBackend({"left": "nothing up there"})
    place = {"cassette": tmp_path / "ship.json", "durability": "none"}
    people = ScriptedInterviewer({"gate": ["R", "A"]})
    first = changed.run(wait=True, backend=asked, interviewer=people, **place)
    assert first.is_success, first.reason
    assert {call.node_id for call in asked.calls} >= {"left"}
    assert asked.calls[0].node_id == "left", "the plan came from the cassette"
    second = changed.run(wait=True, backend=never(), cassette_mode="replay", **place)
    assert second.completed_nodes == first.completed_nodes
    original = pipeline.run(wait=True, backend=never(), cassette_mode="replay", **place)
    assert original.completed_nodes == recorded.completed_nodes, "what was recorded before is still there"


def test_auto_opens_a_backend_only_for_a_call_that_is_not_there(tmp_path):
    class Opened(Described):
        opened = closed = 0

        async def open(self):
            self.opened += 1

        async def close(self):
            self.closed += 1

    place = {"cassette": tmp_path / "one.json", "durability": "none"}
    first, second = Opened(), Opened()
    Pipeline(ONE).run(wait=True, backend=first, **place)
    Pipeline(ONE).run(wait=True, backend=second, **place)
    assert (first.opened, first.closed, second.opened, second.closed) == (1, 1, 0, 0)


def test_the_recorded_backend_is_taken_when_nobody_names_one(tmp_path):
    place = {"cassette": tmp_path / "one.json", "durability": "none"}
    Pipeline(ONE).run(wait=True, backend="simulated", cassette_mode="record", **place)
    assert Pipeline(ONE).run(wait=True, **place).cassette.replayed == 1
    Pipeline(ONE).run(wait=True, backend=str.upper, cassette_mode="record", **place)
    assert Pipeline(ONE).run(wait=True, cassette_mode="replay", **place).is_success
    with pytest.raises(OptionError, match="a custom backend"):
        Pipeline(ONE).run(wait=True, **place)


def test_a_run_that_is_resumed_gets_the_answers_of_its_own_visits(tmp_path):
    from attractor_nb.model.outcome import Outcome, StageStatus

    again = Outcome(StageStatus.SUCCESS, preferred_label="again", notes="once more")
    place = {"cassette": tmp_path / "loop.json"}
    pipeline = Pipeline(LOOP)
    backend = ScriptedBackend({"ask": [again, again, "no"]})
    pipeline.run(wait=True, backend=backend, cassette_mode="record", durability="none", **place)
    stopped = pipeline.run(wait=True, backend=never(), cassette_mode="replay", stop_after=2, durability="fast", **place)
    assert stopped.status == "paused"
    result = pipeline.resume(stopped.logs_root, backend=never(), cassette_mode="replay", **place).result()
    assert result.is_success, result.reason
    assert (result.visits["ask"], result.cassette.replayed) == (3, 2)


def test_no_edge_leads_on_from_a_miss_and_auto_goes_on_where_it_was(tmp_path):
    source = ONE.replace("ask -> done", 'ask ask -> done [condition="outcome=fail"] ask -> done')
    place = {"cassette": tmp_path / "one.json", "durability": "fast"}
    Pipeline(source).run(wait=True, backend=Described(), cassette_mode="record", **place)
    missed = Pipeline(source).run(wait=True, backend=Described(model="n"), cassette_mode="replay", **place)
    assert (missed.status, missed.completed_nodes) == ("fail", ("start",))
    again = Pipeline(source).resume(missed.logs_root, backend=Described(model="n"), **place).result()
    assert again.is_success, again.reason
    assert again.cassette.recorded == 1


def test_a_recording_that_goes_on_after_a_stop_is_whole(pipeline, tmp_path):
    place = {"cassette": tmp_path / "ship.json", "cassette_mode": "record", "durability": "fast"}
    people, backend = ScriptedInterviewer({"gate": ["R", "A"]}), scenario.backend()
    stopped = pipeline.run(wait=True, backend=backend, interviewer=people, stop_after=4, **place)
    result = pipeline.resume(stopped.logs_root, backend=backend, interviewer=people, **place).result()
    assert result.is_success, result.reason
    (tmp_path / "tried").unlink()
    assert list(pipeline.check(tmp_path / "ship.json", backend=never()).completed_nodes) == scenario.PATH


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cassette_mode": "replay"}, "cassette_mode is given, and no cassette"),
        ({"cassette": "x.json", "cassette_mode": "play"}, "unknown cassette_mode 'play'"),
        ({"cassette": 5}, "cassette must be a path, not int"),
        ({"cassette": "x.json", "cassette_mode": "replay"}, "there is no cassette x.json to replay"),
    ],
)
def test_what_a_cassette_cannot_be_is_refused_before_anything_is_made(pipeline, tmp_path, options, message):
    with pytest.raises(OptionError, match=message):
        pipeline.run(wait=True, **options)
    assert not list(tmp_path.iterdir())


def test_a_replay_refuses_a_backend_that_there_is_not(pipeline, recorded, tmp_path):
    with pytest.raises(OptionError, match="nonsense"):
        pipeline.run(wait=True, backend="nonsense", cassette=tmp_path / "ship.json", cassette_mode="replay")
