"""Verdicts of providers: what the token limit cut off is no success, and a retry is told why (ruling 26)."""

import json
import subprocess
import sys

import pytest

from attractor_nb import Pipeline
from attractor_nb.testing import ManualClock

CUT = '{"outcome":"fail","checks":[{"outcome":"success"},{"outcome":"fail","notes":"tests mis'
SHAPES = ["openai", "anthropic", "google"]
SECTION = "## Your last answer was not accepted"
SCHEMA = '{"type": "object", "properties": {"score": {"type": "integer"}}}'


@pytest.fixture
def source(models):
    """A pipeline whose one stage is to give a verdict to a server."""

    def make(server, shape, more):
        return f"""digraph talk {{
            graph [llm_model="{models[shape]}", llm.base_url="{server.base_url(shape)}"]
            start [shape=Mdiamond]  done [shape=Msquare]
            judge [prompt="Judge it", {more}]
            start -> judge -> done
        }}"""

    return make


@pytest.fixture
def run(source, tmp_path):
    """Run it with the backend that asks providers."""

    def start(server, shape, more):
        pipeline = Pipeline(source(server, shape, more))
        return pipeline.run(wait=True, backend="llm", logs_root=tmp_path / "run", clock=ManualClock())

    return start


def said(asked):
    """All that a request tells its model, as one text."""
    return json.dumps(asked.body, ensure_ascii=False)


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_verdict_that_was_cut_off_passes_no_goal_gate(shape, finish, serve, reply, run):
    server = serve(reply(CUT, finish=finish))
    result = run(server, shape, "verdict=json, goal_gate=true")
    assert result.status == "fail"
    assert "cut off" in result.reason
    assert len(server.asked) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_a_whole_verdict_before_the_limit_is_not_believed_either(shape, serve, reply, run):
    server = serve(reply('{"outcome": "success"}\n\nOn second th', finish="length"))
    assert run(server, shape, "verdict=json, goal_gate=true").status == "fail"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_next_request_says_what_was_wrong_and_succeeds(shape, serve, reply, run, tmp_path):
    server = serve(reply(CUT, finish="length"), reply('{"outcome": "success"}'))
    result = run(server, shape, "verdict=json, goal_gate=true, max_retries=1")
    assert result.status == "success", result.reason
    first, second = server.asked
    assert SECTION not in said(first)
    assert SECTION in said(second)
    assert "cut off by the token limit" in said(second)
    assert json.dumps(CUT)[1:-1] in said(second)
    assert SECTION in (tmp_path / "run/judge/prompt.md").read_text("utf-8")


def test_a_value_that_breaks_its_schema_is_told_to_its_model(serve, reply, run):
    server = serve(reply('{"points": 7}'), reply('{"score": 7}'))
    schema = SCHEMA.replace('"', '\\"')
    result = run(server, "openai", f'response_schema="{schema}", max_retries=1')
    assert result.status == "success", result.reason
    assert result.context["judge.verdict"] == {"score": 7}
    assert "it has none of the properties score" in said(server.asked[1])


RUN = """
import sys
from attractor_nb import Pipeline

Pipeline(sys.argv[1]).run(wait=True, backend="llm", logs_root=sys.argv[2])
"""


@pytest.mark.campaign
def test_a_run_that_is_killed_while_it_asks_again_asks_that_again(serve, reply, source, tmp_path):
    server = serve(reply(CUT, finish="length"), reply("…", ends="hang"), reply('{"outcome": "success"}'))
    text = source(server, "openai", "verdict=json, goal_gate=true, max_retries=3")
    with subprocess.Popen([sys.executable, "-c", RUN, text, str(tmp_path / "run")]) as process:
        server.wait_for(2)
        process.kill()
    result = Pipeline(text).resume(tmp_path / "run", backend="llm").wait()
    assert result.status == "success", result.reason
    _, second, third = server.asked
    assert SECTION in said(second)
    assert third.body["messages"] == second.body["messages"]
