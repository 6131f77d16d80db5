"""Models of providers go on in their thread, and a thread that outgrows the window is made to fit (spec 5.4)."""

import json
from types import SimpleNamespace

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.thread_messages import read_messages
from attractor_nb.errors import TerminalError
from attractor_nb.model.events import RunWarning

SUMMARY_TITLE = "Earlier in this conversation (shortened, the newest last):"

LINE = """digraph talk {{ default_fidelity=full thread_id=t start [shape=Mdiamond] done [shape=Msquare]
node [llm.max_tokens=20{attrs}] a [prompt="{first}"] b [prompt="Name another."] c [prompt="Which was first?"]
start -> a -> b -> c -> done }}"""


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_model_is_asked_with_what_its_thread_has_said(serve, backend_for, reply, shape):
    server = serve(*(reply(text) for text in ("Red.", "Blue.", "Red was.")))
    dot = LINE.format(attrs="", first="Name a colour.")
    result = Pipeline(dot, backend=backend_for(server, shape)).run(wait=True, durability="none")
    assert result.status == "success", result.reason
    sent = json.dumps(server.asked[2].body)
    assert [sent.index(text) for text in ("Name a colour.", "Red.", "Name another.", "Blue.", "Which was")] == (
        sorted(sent.index(text) for text in ("Name a colour.", "Red.", "Name another.", "Blue.", "Which was"))
    )


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_thread_that_outgrows_the_window_is_made_to_fit_and_the_run_says_so(serve, backend_for, reply, shape):
    server = serve(*(reply(text) for text in ("Red.", "Blue.", "Red was.")))
    dot = LINE.format(attrs=", llm.context_tokens=400", first="Name a colour. " * 80)
    run = Pipeline(dot, backend=backend_for(server, shape)).run(durability="fast")
    assert run.result(60).status == "success"
    assert SUMMARY_TITLE in json.dumps(server.asked[2].body)
    assert len(json.dumps(server.asked[2].body)) < len(json.dumps(server.asked[0].body)) + 500
    warnings = [event.message for event in run.events() if isinstance(event, RunWarning)]
    assert any("b: thread t has outgrown the model's window: about " in message for message in warnings)


def test_a_thread_of_another_backend_is_refused_with_the_remedy():
    conversation = SimpleNamespace(thread="t", read=lambda: '[{"role": "user", "content": "Hello"}]')
    with pytest.raises(TerminalError, match="thread 't' belongs to another backend and cannot be continued") as told:
        read_messages(conversation, 1000, print)
    assert told.value.hint == "give the node another thread_id, or another fidelity"


@pytest.mark.parametrize("pieces", [("<think>musings</think>Red.",), ("<think>", "musings", "</think>", "Red.")])
def test_ruling_46_a_thread_carries_no_reasoning_that_stood_in_the_text(serve, backend_for, reply, pieces):
    server = serve(reply(pieces=pieces), reply("Blue."), reply("Red was."))
    dot = LINE.format(attrs="", first="Name a colour.")
    result = Pipeline(dot, backend=backend_for(server)).run(wait=True, durability="none")
    assert result.status == "success", result.reason
    assert "Red." in json.dumps(server.asked[1].body)
    assert "musings" not in json.dumps(server.asked[1].body)
