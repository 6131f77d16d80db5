"""Answers of providers are replayed without a server and without a key, threads and retries included."""

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Usage

SOURCE = """digraph talk {{
    graph [llm_model="{model}", llm.base_url="{url}"]
    node [fidelity="full", thread_id="talk", max_retries=1]
    start [shape=Mdiamond]
    done [shape=Msquare]
    plan [prompt="Plan it"]
    build [prompt="Build it"]
    start -> plan -> build -> done
}}"""


@pytest.mark.parametrize("shape", ["openai", "anthropic", "google"])
def test_a_recorded_talk_replays_without_server_and_key(shape, serve, reply, models, tmp_path, monkeypatch):
    server = serve(reply("", status=429), reply("A plan.", usage=(1000, 10)), reply("Built.", usage=(2000, 20)))
    pipeline = Pipeline(SOURCE.format(model=models[shape], url=server.base_url(shape)))
    place = {"cassette": tmp_path / "talk.json", "durability": "fast"}
    recorded = pipeline.run(wait=True, backend="llm", cassette_mode="record", **place)
    assert recorded.is_success, recorded.reason
    asked = len(server.asked)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    replayed = pipeline.run(wait=True, cassette_mode="replay", **place)
    assert replayed.is_success, replayed.reason
    assert len(server.asked) == asked == 3
    assert (replayed["plan"].response, replayed["build"].response) == ("A plan.", "Built.")
    assert replayed.cassette.usage.total_tokens == recorded.usage.total_tokens == 3030
    assert replayed.usage == Usage(cost_usd=0.0)
    other = Pipeline(SOURCE.format(model=models[shape], url=server.base_url(shape)).replace("Plan it", "Plan this"))
    missed = other.run(wait=True, cassette_mode="replay", **place)
    assert "its prompt changed" in missed.reason
    assert len(server.asked) == asked


def test_a_replay_without_the_providers_libraries_still_knows_one_model_from_another(
    serve, reply, models, tmp_path, monkeypatch
):
    server = serve(reply("A plan."), reply("Built."))
    source = SOURCE.format(model=models["openai"], url=server.base_url("openai"))
    place = {"cassette": tmp_path / "talk.json", "durability": "fast", "backend": "llm"}
    assert Pipeline(source).run(wait=True, cassette_mode="record", **place).is_success

    def missing():
        raise OptionError("the models of providers need pydantic_ai, which is not installed")

    monkeypatch.setattr("attractor_nb.backends.llm.provider_backend.check_installed", missing)
    monkeypatch.setattr("attractor_nb.backends.llm.client_libraries.check_installed", missing)
    assert Pipeline(source).run(wait=True, cassette_mode="replay", **place).is_success
    changed = Pipeline(source.replace(models["openai"], "gpt-4.1-nano"))
    assert "its model changed" in changed.run(wait=True, cassette_mode="replay", **place).reason
