"""Own functions and MCP servers through the real backend and real HTTP: asked for, answered, recorded, replayed."""

import json
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline, ProviderBackend, Run
from attractor_nb.errors import OptionError

pytest.importorskip("mcp")
SERVER = Path(__file__).with_name("mcp_server.py")
SOURCE = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}", mcp.files.command="{command}"]
    start [shape=Mdiamond]  done [shape=Msquare]
    plan [prompt="Plan it", allowed_tools="lookup, mcp:files/where"]
    start -> plan -> done
}}"""


def source(models, server, shape="openai"):
    return SOURCE.format(model=models[shape], url=server.base_url(shape), command=f"{sys.executable} {SERVER}")


@pytest.fixture
def lookup():
    calls = []

    def function(order: str) -> str:
        """Look an order up."""
        calls.append(order)
        return f"order {order} is on its way"

    function.calls = calls
    return function


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
@pytest.mark.campaign
def test_a_provider_is_offered_and_asks_for_them(shape, serve, reply, models, lookup, tmp_path):
    server = serve(
        reply(tool_calls=[("lookup", {"order": "A-7"})]),
        reply(tool_calls=[("files_where", {})]),
        reply("It is on its way."),
    )
    result = Pipeline(source(models, server, shape), tools={"lookup": lookup}).run(
        backend=ProviderBackend(), logs_root=tmp_path / "run", trust=True, wait=True, workdir=tmp_path
    )
    assert result.status == "success", result.reason
    first, second, third = (json.dumps(asked.body) for asked in server.asked)
    assert "Look an order up." in first
    assert "files_where" in first
    assert "order A-7 is on its way" in second
    assert str(tmp_path) in third
    shown = str(Run.load(tmp_path / "run").inspect("plan").files)
    assert "tool_calls.jsonl" in shown
    lines = (tmp_path / "run/plan/tool_calls.jsonl").read_text().splitlines()
    assert [json.loads(line)["tool"] for line in lines] == ["lookup", "files_where"]


def test_a_cassette_replays_the_answer_and_calls_nothing(serve, reply, models, lookup, tmp_path):
    server = serve(reply(tool_calls=[("lookup", {"order": "A-7"})]), reply("It is on its way."))
    place = {"cassette": tmp_path / "talk.json", "durability": "fast", "trust": True, "wait": True}
    pipeline = Pipeline(source(models, server), tools={"lookup": lookup})
    assert pipeline.run(backend="llm", cassette_mode="record", **place).is_success
    replayed = pipeline.run(backend="llm", cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
    assert replayed["plan"].response == "It is on its way."
    assert lookup.calls == ["A-7"]
    assert len(server.asked) == 2

    def other(order: str, limit: int) -> str:
        """Look an order up."""
        return ""

    changed = Pipeline(source(models, server), tools={"lookup": other})
    assert "changed" in changed.run(backend="llm", cassette_mode="replay", **place).reason


def test_a_server_that_does_not_start_fails_the_stage_by_its_own_name(serve, reply, models, lookup, tmp_path):
    server = serve(reply("never asked"))
    text = source(models, server).replace(f"{sys.executable} {SERVER}", "echo out of order >&2; exit 4")
    result = Pipeline(text, tools={"lookup": lookup}).run(
        backend=ProviderBackend(), logs_root=tmp_path / "run", trust=True, wait=True
    )
    assert result.status == "fail"
    assert "the MCP server 'files'" in result.reason
    assert "out of order" in result.reason
    assert server.asked == []


def test_a_function_that_nobody_gives_is_refused_before_the_run(serve, reply, models, tmp_path):
    server = serve(reply("never asked"))
    with pytest.raises(OptionError, match="names 'lookup'"):
        Pipeline(source(models, server)).run(
            backend=ProviderBackend(), logs_root=tmp_path / "run", trust=True, wait=True
        )
    assert server.asked == []
    assert not (tmp_path / "run").exists()
