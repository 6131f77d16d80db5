"""The surroundings of a call are on the cassette, too: child runs, threads, status files; workers are not needed."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Pipeline, current_stage
from attractor_nb.errors import OptionError, RetryableError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Usage
from attractor_nb.testing import ScriptedBackend, ScriptedInterviewer

CHILD = """digraph child {
    start [shape=Mdiamond]
    done [shape=Msquare]
    ask [prompt="In the child."]
    build [shape=parallelogram, tool_command="echo built; touch built"]
    gate [shape=hexagon, label="From the child?"]
    start -> ask -> build -> gate
    gate -> done [label="[A] Approve"]
    gate -> ask [label="[R] Redo"]
}"""
PARENT = """digraph parent {
    start [shape=Mdiamond]
    done [shape=Msquare]
    ask [prompt="In the parent."]
    part [type="pipeline", pipeline.dotfile="child.dot", pipeline.outputs="said=context.ask.response"]
    start -> ask -> part -> done
}"""


def test_a_child_run_is_on_the_tape_of_its_parent(tmp_path):
    (tmp_path / "child.dot").write_text(CHILD)
    pipeline = Pipeline(PARENT)
    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    recorded = pipeline.run(
        wait=True,
        backend=ScriptedBackend({"ask": ["parent", "child", "child again"]}),
        interviewer=ScriptedInterviewer({"part/gate": ["R", "A"], "gate": ["R", "A"]}),
        cassette_mode="record",
        trust=True,
        **place,
    )
    assert recorded.is_success, recorded.reason
    calls = json.loads((tmp_path / "c.json").read_text())["calls"]
    assert [entry["call"] for entry in calls if entry.get("child_of") == "part"].count("question") == 2
    (tmp_path / "built").unlink()
    replayed = pipeline.run(wait=True, cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
    assert replayed.context["said"] == recorded.context["said"] == "child again"
    assert not replayed.cassette.unused
    assert not (tmp_path / "built").exists()


THREAD = """digraph {
    node [fidelity="full", thread_id="talk"]
    start [shape=Mdiamond]
    done [shape=Msquare]
    one [prompt="One."]
    two [prompt="Two."]
    start -> one -> two -> done
}"""


class Talking:
    """Keeps a conversation as backends of providers do."""

    def __init__(self):
        self.heard = []

    def call_inputs(self, node, context):
        return {"model": "m"}

    def run(self, node, prompt, context):
        conversation = current_stage().conversation
        self.heard.append(conversation.read())
        conversation.save(f"{conversation.read()}[{prompt} of {current_stage().run_id}]")
        return "heard"


def test_a_thread_goes_on_in_a_replay_with_what_was_said_when_it_was_recorded(tmp_path):
    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    backend = Talking()
    recorded = Pipeline(THREAD).run(wait=True, backend=backend, cassette_mode="record", **place)
    assert recorded.is_success, recorded.reason
    assert backend.heard[1].startswith("[One.")
    replayed = Pipeline(THREAD).run(wait=True, backend=Talking(), cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
    threads = [
        [path.read_text().replace(run.run_id, "<run>") for path in (run.logs_root / "threads").iterdir()]
        for run in (recorded, replayed)
    ]
    strip = [text.split("checksum")[1].split("\n", 1)[1] for group in threads for text in group]
    assert len(strip) == 2
    assert strip[0] == strip[1]
    shorter = Pipeline(THREAD.replace("One.", "First."))
    place["cassette_mode"] = "auto"
    again = shorter.run(wait=True, backend=Talking(), **place)
    assert again.cassette.recorded == 2, "what the thread heard before is part of the second call"


ONE = 'digraph { start [shape=Mdiamond] done [shape=Msquare] ask [prompt="Say it."] start -> ask -> done }'


def test_a_status_file_of_an_agent_counts_in_a_replay_and_what_it_cost_does_not(tmp_path):
    def agent(node, prompt, context):
        status = {
            "outcome": "success",
            "notes": "by the agent",
            "context_updates": {"cost_usd": 2.5},
            "usage": {"input_tokens": 7, "cost_usd": 2.5},
        }
        current_stage().files.write_text("status.json", json.dumps(status))
        return "done"

    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    recorded = Pipeline(ONE).run(wait=True, backend=agent, cassette_mode="record", **place)
    assert recorded.usage.cost_usd == 2.5
    replayed = Pipeline(ONE).run(wait=True, cassette_mode="replay", max_budget_usd=1, **place)
    assert replayed.is_success, replayed.reason
    assert replayed.outcomes["ask"].notes == "by the agent"
    assert replayed.usage == Usage(cost_usd=0.0)


def test_calls_of_workers_are_recorded_here_and_a_replay_has_no_workers(tmp_path):
    source = ONE.replace('ask [prompt="Say it."]', 'ask [shape=parallelogram, tool_command="echo there"]')
    place = {"cassette": tmp_path / "c.json", "durability": "fast"}
    with ThreadPoolExecutor(1) as executor:
        recorded = Pipeline(source).run(wait=True, executor=executor, cassette_mode="record", **place)
    assert recorded.is_success, recorded.reason
    replayed = Pipeline(source).run(wait=True, executor=executor, cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
    assert replayed.context["tool.output"] == "there\n"


def test_a_recorded_retry_after_is_not_waited_for_again(tmp_path):
    source = ONE.replace('prompt="Say it."', 'prompt="Say it.", max_retries=1')
    place = {"cassette": tmp_path / "c.json", "durability": "none"}
    backend = ScriptedBackend({"ask": [RetryableError("busy", retry_after_seconds=0.01), "said"]})
    Pipeline(source).run(wait=True, backend=backend, cassette_mode="record", **place)
    stored = (tmp_path / "c.json").read_text()
    assert '"class": "retryable"' in stored
    assert "retry_after" not in stored
    assert Pipeline(source).check(tmp_path / "c.json", path=["start", "ask", "done"]).is_success


@pytest.mark.parametrize("mode", ["record", "auto", "replay"])
def test_a_cassette_that_is_a_link_is_not_followed(tmp_path, mode):
    target = tmp_path / "target.json"
    target.write_text("{}")
    (tmp_path / "c.json").symlink_to(target)
    with pytest.raises(OptionError, match=r"cannot read .*c\.json"):
        Pipeline(ONE).run(wait=True, cassette=tmp_path / "c.json", cassette_mode=mode)
    assert target.read_text() == "{}"


CARRIED = """digraph {
    start [shape=Mdiamond]
    done [shape=Msquare]
    fan [shape=component]
    left [prompt="Left."]
    right [prompt="Right."]
    join [shape=tripleoctagon]
    sum [prompt="Sum it up.", fidelity="summary:high"]
    start -> fan
    fan -> left -> join
    fan -> right -> join
    join -> sum -> done
}"""


def test_what_branches_cost_is_in_no_carried_context_that_a_replay_would_miss(tmp_path):
    def ask(node, prompt, context):
        return Response("seen", usage=Usage(1000, 10, 0.5, 1))

    place = {"cassette": tmp_path / "c.json", "durability": "none"}
    recorded = Pipeline(CARRIED).run(wait=True, backend=ask, cassette_mode="record", **place)
    assert recorded.is_success, recorded.reason
    assert "### Branches" in recorded["sum"].prompt
    replayed = Pipeline(CARRIED).run(wait=True, backend=ask, cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
