"""The local model goes on in its thread, under ``full`` fidelity (spec 5.4)."""

import json

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.local_model import Completion, LocalModelBackend
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Usage
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.stages.thread_files import ThreadDirectory

SUMMARY_TITLE = "Earlier in this conversation (shortened, the newest last):"

LINE = """digraph talk { goal="Ship" default_fidelity=full thread_id=t start [shape=Mdiamond] done [shape=Msquare]
a [prompt="Name a colour."] b [prompt="Name another."] c [prompt="Which was first?"]
start -> a -> b -> c -> done }"""


class Local(LocalModelBackend):
    """The backend without its server."""

    async def address(self):
        return "http://nowhere"


@pytest.fixture
def asked(monkeypatch):
    """The requests to the server; the answers are counted."""
    requests = []

    async def complete(address, request, on_text, **options):
        requests.append(json.loads(json.dumps(request["messages"])))
        text = f"<think>musings</think>answer {len(requests)}"  # ruling 46: a thread carries no reasoning
        return Completion(text, is_truncated=False, usage=Usage(1, 1, None, 1))

    monkeypatch.setattr("attractor_nb.backends.local_model.complete_chat", complete)
    return requests


def said(messages):
    return [(message["role"], message["content"]) for message in messages]


def test_a_stage_is_asked_with_all_that_its_thread_has_said(asked):
    assert Pipeline(LINE, backend=Local()).run(wait=True).status == "success"
    assert [message["role"] for message in asked[2]] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert said(asked[2][1:]) == [
        ("user", "Name a colour."),
        ("assistant", "answer 1"),
        ("user", "Name another."),
        ("assistant", "answer 2"),
        ("user", "Which was first?"),
    ]


def test_another_mode_asks_afresh(asked):
    Pipeline(LINE.replace("=full", "=truncate"), backend=Local()).run(wait=True)
    assert [len(messages) for messages in asked] == [2, 2, 2]
    assert "Goal: Ship" in asked[2][0]["content"]


def test_a_thread_that_outgrows_the_window_is_made_to_fit_and_the_run_says_so(asked):
    long = LINE.replace("Name a colour.", "Name a colour. " * 100)
    run = Pipeline(long, backend=Local(max_tokens=50)).run()
    assert run.result(60).status == "success"
    assert len(said(asked[2])) == 6, "a window of 4096 tokens has room for all"
    asked.clear()
    run = Pipeline(long, backend=Local(max_tokens=50, context_tokens=400)).run()
    assert run.result(60).status == "success"
    roles = [role for role, _ in said(asked[2])]
    assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
    assert any(content.startswith(SUMMARY_TITLE) for _, content in said(asked[2]))
    warnings = [event.message for event in run.events() if isinstance(event, RunWarning)]
    assert "b: thread t has outgrown the model's window: about " in warnings[0]


def test_a_thread_of_another_backend_is_refused(asked, tmp_path):
    pipeline = Pipeline(LINE, backend=Local())
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=2)
    root = RunDirectory(Disk(), tmp_path / "run")
    ThreadDirectory(Disk(), root, is_synced=False).save("t", "a:1.1", '{"session": "of an agent"}', after="")
    root.close()
    result = pipeline.resume(tmp_path / "run").result(60)
    assert result.status == "fail"
    assert "thread 't' belongs to another backend" in result.reason
