"""Bounds on money over real HTTP: in fan-outs, in maps, and of calls that a kill cut off (ruling 18)."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from attractor_nb import Pipeline, Run, Usage
from attractor_nb.backends.llm.metered_requests import price_of
from attractor_nb.model.calls.providers import read_model

NAMES = [f"b{number}" for number in range(10)]
FAN = (
    "digraph { start [shape=Mdiamond] fan [shape=component, max_parallel=10] join [shape=tripleoctagon] "
    "done [shape=Msquare] "
    + " ".join(f"{name} [prompt=x, llm.max_tokens=1000]" for name in NAMES)
    + " ".join(f" fan -> {name} -> join" for name in NAMES)
    + " start -> fan join -> done }"
)


def test_ruling_18_ten_branches_spend_to_within_one_request(serve, reply, backend_for, models, tmp_path):
    server = serve(reply(text="done", usage=(10, 1000)))
    price = price_of(read_model(models["openai"]), Usage(10, 1000))
    result = Pipeline(FAN).run(
        wait=True, backend=backend_for(server), logs_root=tmp_path / "run", max_budget_usd=2.3 * price
    )
    assert (result.bound, len(server.asked)) == ("max_budget_usd", 3)
    assert result.usage.cost_usd == pytest.approx(3 * price)


def test_a_bound_on_tokens_holds_within_one_request_whatever_is_asked_at_once(serve, reply, backend_for, tmp_path):
    server = serve(reply(text="done", usage=(10, 990)))
    result = Pipeline(FAN).run(
        wait=True, backend=backend_for(server), logs_root=tmp_path / "run", max_tokens_total=3500
    )
    assert result.bound == "max_tokens_total"
    assert len(server.asked) == 4
    assert result.usage.total_tokens == 4000


def test_a_server_that_reports_no_usage_is_bounded_by_our_estimate(serve, reply, backend_for, tmp_path):
    server = serve(reply(text="word " * 900, usage=None))
    result = Pipeline(FAN).run(
        wait=True, backend=backend_for(server), logs_root=tmp_path / "run", max_tokens_total=3000
    )
    assert result.bound == "max_tokens_total"
    assert result.usage.estimated_calls == result.usage.calls == len(server.asked) < 10


def test_a_map_of_fan_outs_is_bounded_as_a_whole(serve, reply, backend_for, tmp_path):
    server = serve(reply(text="done", usage=(10, 990)))
    result = Pipeline(FAN).map(
        [{} for _ in range(5)],
        wait=True,
        backend=backend_for(server),
        map_dir=tmp_path / "map",
        max_parallel=5,
        max_tokens_all=15_000,
    )
    assert 15_000 <= result.usage.total_tokens <= 16_000
    assert len(server.asked) in {15, 16}


KILLED = """
    import sys
    from pathlib import Path
    from attractor_nb import Pipeline
    from attractor_nb.backends import ProviderBackend
    backend = ProviderBackend("gpt-4o-mini", base_url=sys.argv[1])
    Pipeline(Path(sys.argv[2]).read_text()).run(wait=True, backend=backend, logs_root=sys.argv[3])
"""


@pytest.mark.campaign
def test_calls_that_a_kill_cut_off_are_counted_as_asked_at_an_unknown_cost(serve, reply, backend_for, tmp_path):
    server = serve(reply(text="done", usage=(10, 5)), reply(text="done", ends="hang", after=1))
    source = tmp_path / "fan.dot"
    source.write_text(FAN.replace("start -> fan", "first [prompt=x] start -> first -> fan"))
    command = [sys.executable, "-c", textwrap.dedent(KILLED), server.base_url("openai"), source, tmp_path / "run"]
    process = subprocess.Popen(command, env={**os.environ, "OPENAI_API_KEY": "sk-none"})
    try:
        server.wait_for(11)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    well = serve(reply(text="done", usage=(10, 5)))
    pipeline = Pipeline(source.read_text())
    result = pipeline.resume(tmp_path / "run", backend=backend_for(well)).result()
    assert result.status == "success"
    assert result.usage.calls == len(server.asked) + len(well.asked) == 21
    assert result.usage.unpriced_calls == 10
    assert result.usage.total_tokens == 11 * 15
    assert Run.load(tmp_path / "run").view.usage == result.usage


@pytest.mark.parametrize(
    ("shape", "tools"), [("openai", ""), ("anthropic", ""), ("google", ""), ("openai", 'allowed_tools="read",')]
)
def test_ruling_18_a_request_that_its_stage_cuts_off_counts_as_far_as_it_was_read(
    serve, reply, backend_for, shape, tools
):
    server = serve(reply(text="word " * 300, ends="hang", after=4, usage=None))
    events = []
    source = (
        "digraph { start [shape=Mdiamond] a [prompt=x, %s timeout=1500ms] done [shape=Msquare] start -> a -> done }"
    )
    options = {"backend": backend_for(server, shape), "observers": [events.append]}
    result = Pipeline(source % tools).run(wait=True, trust=True, **options)
    assert "timeout: a took more than 1500ms" in result.reason
    (ended,) = [event for event in events if type(event).__name__ == "ModelCallEnded"]
    assert (ended.error, ended.usage) == ("it was cut off", result.usage)
    assert (result.usage.calls, result.usage.estimated_calls) == (1, 1)
    assert result.usage.output_tokens > 10
