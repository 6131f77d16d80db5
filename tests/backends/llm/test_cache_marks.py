"""The parts of a request that a provider may cache, and the lower price of cached parts."""

import json

import pytest

from attractor_nb import Pipeline, ProviderBackend, Usage
from attractor_nb.backends.llm.metered_requests import price_of
from attractor_nb.model.calls.providers import read_model
from attractor_nb.views.summary_line import usage_words

MANUAL = "\n".join(f"Rule {number}: never promise what rule {number + 1} forbids." for number in range(200))
GRAPH = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}", goal="Answer tickets"]
    start [shape=Mdiamond]  done [shape=Msquare]
    plan [prompt="Plan it"]  write [prompt="Write it"{more}]  start -> plan -> write -> done
}}"""


def run(server, models, tmp_path, shape="anthropic", more="", **params):
    text = GRAPH.format(model=models[shape], url=server.base_url(shape), more=more)
    result = Pipeline(text).run(wait=True, backend=ProviderBackend(), logs_root=tmp_path / "run", params=params)
    assert result.status == "success", result.reason
    return result


def marked(request):
    """The texts that a request marks, in the order in which they are sent."""
    blocks = [block for message in request.body["messages"] for block in message["content"]]
    return [block["text"] for block in blocks if isinstance(block, dict) and "cache_control" in block]


def test_what_the_prompts_of_a_run_share_is_marked_and_the_same_in_each(serve, reply, models, tmp_path):
    server = serve(reply("A plan"), reply("Done"))
    run(server, models, tmp_path, manual=MANUAL)
    (first,), (second,) = map(marked, server.asked)
    assert first == second
    assert first.startswith("## Context\n\nGoal: Answer tickets\n\n### Inputs\n\n- manual")


def test_the_prompt_is_sent_whole_with_its_mark(serve, reply, models, tmp_path):
    server = serve(reply("A plan"), reply("Done"))
    result = run(server, models, tmp_path, manual=MANUAL)
    (message,) = server.asked[1].body["messages"]
    sent = "".join(block["text"] for block in message["content"])
    assert sent == (result.logs_root / "write/prompt.md").read_text()


def test_what_is_too_short_to_be_kept_is_not_marked(serve, reply, models, tmp_path):
    server = serve(reply("A plan"), reply("Done"))
    run(server, models, tmp_path, ticket="printer broken")
    assert [marked(request) for request in server.asked] == [[], []]


def test_a_talk_is_kept_as_it_grows(serve, reply, models, tmp_path):
    server = serve(reply("A plan"), reply("Done"))
    run(server, models, tmp_path, more=", fidelity=full, thread_id=work")
    assert "cache_control" not in json.dumps(server.asked[0].body)
    assert "cache_control" in json.dumps(server.asked[1].body)


@pytest.mark.parametrize("shape", ["openai", "google"])
def test_providers_that_keep_prefixes_by_themselves_get_no_marks(shape, serve, reply, models, tmp_path):
    server = serve(reply("A plan"), reply("Done"))
    run(server, models, tmp_path, shape, manual=MANUAL)
    assert "cache_control" not in json.dumps([request.body for request in server.asked])


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
def test_cached_tokens_are_counted_and_cost_less(shape, serve, reply, models, tmp_path):
    server = serve(reply("A plan", usage=(2000, 100)), reply("Done", usage=(2000, 100), cached=1500))
    result = run(server, models, tmp_path, shape)
    plan, write = result.usage_by_node["plan"], result.usage_by_node["write"]
    assert (plan.cached_tokens, write.cached_tokens, result.usage.cached_tokens) == (0, 1500, 1500)
    assert write.input_tokens == plan.input_tokens == 2000
    assert write.cost_usd < plan.cost_usd
    assert write.cost_usd == price_of(read_model(models[shape]), write)


def test_cached_tokens_are_shown_and_survive_the_log(serve, reply, models, tmp_path):
    server = serve(reply("A plan", usage=(2000, 100)), reply("Done", usage=(2000, 100), cached=1500))
    result = run(server, models, tmp_path)
    assert "(1,500 cached)" in usage_words(result.usage)[0]
    assert json.loads((result.logs_root / "checkpoint.json").read_text())["usage"]["cached_tokens"] == 1500
    assert json.loads((result.logs_root / "write/status.json").read_text())["usage"]["cached_tokens"] == 1500
    assert Usage.from_plain(result.usage.to_plain()) == result.usage
