"""A model that works with tools is told something meanwhile: real runs, the real loop, real HTTP."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend, Run
from attractor_nb.model.events import InstructionCarried, ModelCallEnded
from attractor_nb.storage.stored_run import read_run

SOURCE = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}"{graph}]
    start [shape=Mdiamond]  done [shape=Msquare]
    plan [prompt="Plan it", allowed_tools="list"{more}]
    build [prompt="Build it", fidelity=full, thread_id=t]
    start -> plan -> build -> done
}}"""
RETRIED = ", default_max_retries=1, retry_policy=linear"
LOOK = ("list_files", {})


@pytest.fixture
def go(serve, reply, models, tmp_path):
    """Run the pipeline; before each request is answered, what ``script`` has at its place is done."""

    def start(*script, shape="openai", more="", graph="", most=50):
        receipts, asked = [], []

        def choose(request):
            asked.append(json.dumps(request.body))
            said, answer = script[min(len(asked), len(script)) - 1]
            if said is not None:
                receipts.append(run.tell(*said))
            return answer

        server = serve(choose=choose)
        source = SOURCE.format(model=models[shape], url=server.base_url(shape), more=more, graph=graph)
        run = Pipeline(source).run(
            backend=ProviderBackend(max_requests=most), logs_root=tmp_path / "run", trust=True, workdir=tmp_path
        )
        return run.result(120), asked, receipts

    return start


@pytest.mark.parametrize("shape", ["openai", pytest.param("anthropic", marks=pytest.mark.campaign), "google"])
def test_the_next_request_of_its_loop_carries_it(shape, go, reply, tmp_path):
    result, asked, [receipt] = go(
        (("plan", "Use two nails"), reply(tool_calls=[LOOK])),
        (None, reply("planned")),
        (None, reply("built")),
        shape=shape,
    )
    assert result.status == "success", result.reason
    assert str(receipt) == "plan receives it with its next request"
    assert [("Use two nails" in body) for body in asked] == [False, True, False]
    assert "Message from a person" in asked[1]
    [carried] = read_run(tmp_path / "run").events.select(InstructionCarried)
    assert (carried.name, carried.numbers, carried.reach) == ("plan", (1,), "request")


def test_a_model_that_has_answered_by_then_is_asked_once_more(go, reply, tmp_path):
    result, asked, [receipt] = go(
        ((None, "Use two nails"), reply("planned")), (None, reply("planned with nails")), (None, reply("built"))
    )
    assert result.status == "success", result.reason
    assert receipt.reach == "request"
    assert [("Use two nails" in body) for body in asked] == [False, True, False]
    assert "planned" in asked[1]
    assert Run.load(tmp_path / "run")["plan"].response == "planned with nails"
    calls = read_run(tmp_path / "run").events.select(ModelCallEnded)
    assert [call.name for call in calls] == ["plan", "plan", "build"]
    assert result.usage.calls == 3


def test_several_are_carried_once_each_in_their_order(go, reply):
    _, asked, _ = go(
        (("plan", "First"), reply(tool_calls=[LOOK])),
        ((None, "Second"), reply(tool_calls=[LOOK])),
        (None, reply("planned")),
        (None, reply("built")),
    )
    assert [(body.count("First"), body.count("Second")) for body in asked] == [(0, 0), (1, 0), (1, 1), (0, 0)]
    assert asked[2].index("First") < asked[2].index("Second")


def test_the_next_attempt_has_what_a_failed_one_had(go, reply):
    result, asked, _ = go(
        (("plan", "Use two nails"), reply(tool_calls=[LOOK])),
        (None, reply(status=500, error="later")),
        (None, reply("planned")),
        (None, reply("built")),
        graph=RETRIED,
    )
    assert result.status == "success", result.reason
    assert [body.count("Use two nails") for body in asked] == [0, 1, 1, 0]


def test_a_fallback_has_what_the_model_before_it_was_told(go, reply):
    result, asked, _ = go(
        (("plan", "Use two nails"), reply(tool_calls=[LOOK])),
        (None, reply(status=404, error="no such model")),
        (None, reply("planned")),
        (None, reply("built")),
        more=', llm_fallback="gpt-5.1"',
    )
    assert result.status == "success", result.reason
    assert [body.count("Use two nails") for body in asked] == [0, 1, 1, 0]
    assert '"gpt-5.1"' in asked[2]


def test_a_model_without_tools_does_not_receive_it_before_its_next_attempt(go, reply, tmp_path):
    result, asked, [receipt] = go(
        (None, reply("planned")),
        (("build", "Use two nails"), reply(status=500, error="later")),
        (None, reply("built")),
        graph=RETRIED,
    )
    assert result.status == "success", result.reason
    assert str(receipt) == "queued for the next attempt of build"
    assert [body.count("Use two nails") for body in asked] == [0, 0, 1]


def test_the_thread_of_a_stage_keeps_what_it_was_told(go, reply):
    _, asked, _ = go(
        (("plan", "Use two nails"), reply(tool_calls=[LOOK])),
        (None, reply("planned")),
        (None, reply("built")),
        more=", fidelity=full, thread_id=t",
    )
    assert [body.count("Use two nails") for body in asked] == [0, 1, 1], "build goes on with the talk of plan"


def test_requests_after_it_count_against_the_bound_of_the_stage(go, reply):
    result, asked, _ = go(
        (("plan", "Use two nails"), reply("planned")), (None, reply(tool_calls=[LOOK])), (None, reply("more")), most=2
    )
    assert result.status == "fail"
    assert len(asked) == 2
