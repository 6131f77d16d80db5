"""A run that asked models of providers is resumed with the same models at the same addresses, or refused."""

import json
import os
import subprocess
import sys

import pytest

from attractor_nb import Pipeline, ProviderBackend, Run
from attractor_nb.errors import OptionError

FRAME = """digraph talk {{
    graph [{graph}]
    start [shape=Mdiamond]  done [shape=Msquare]
    a [prompt="A"]  b [prompt="B"]
    start -> a -> b -> done
}}"""
KEY = "planted-key-0123456789"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTRACTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LOCAL_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def stop(tmp_path):
    """A run that stands before ``b``."""

    def start(backend, graph="label=talk"):
        pipeline = Pipeline(FRAME.format(graph=graph))
        pipeline.run(wait=True, logs_root=tmp_path / "run", backend=backend, stop_after=2)
        return tmp_path / "run"

    return start


def in_another_process(logs_root):
    """Resume as a new process does that knows the directory alone."""
    program = "import sys; from attractor_nb import Run; print(Run.load(sys.argv[1]).resume().result().status)"
    return subprocess.run(
        [sys.executable, "-c", program, str(logs_root)], capture_output=True, text=True, env={**os.environ}
    )


@pytest.mark.campaign
def test_options_given_in_python_are_found_again_by_another_process(serve, reply, stop):
    first = serve(reply("Hello"))
    backend = ProviderBackend(
        "local:qwen3",
        endpoints={"local": {"url": first.base_url("openai"), "key_env": "LOCAL_KEY", "requests_per_minute": 900}},
        system_prompt="Be brief",
        max_tokens=77,
        temperature=0,
        max_requests=3,
    )
    logs_root = stop(backend)
    assert len(first.asked) == 1
    done = in_another_process(logs_root)
    assert done.stdout.strip() == "success", done.stderr
    one, two = first.asked
    assert two.body == {**one.body, "messages": two.body["messages"]}
    assert (two.body["model"], two.body["max_tokens"], two.body["temperature"]) == ("qwen3", 77, 0)
    assert two.body["messages"][0] == one.body["messages"][0]
    assert two.headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in (logs_root / "manifest.json").read_text()


def test_endpoints_of_the_users_file_are_those_that_the_run_began_with(serve, reply, stop, tmp_path):
    first, other = serve(reply("Hello")), serve(reply("Elsewhere"))
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "endpoints.toml"
    file.write_text(f'[local]\nurl = "{first.base_url("openai")}"\n')
    logs_root = stop("llm", 'llm_model="local:qwen3"')
    file.write_text(f'[local]\nurl = "{other.base_url("openai")}"\n')
    assert Run.load(logs_root).resume().result().status == "success"
    assert (len(first.asked), len(other.asked)) == (2, 0)


@pytest.mark.parametrize("backend", ["llm", ProviderBackend("gpt-5.2")], ids=["name", "object"])
def test_another_address_in_the_environment_refuses_the_resume(backend, serve, reply, stop, monkeypatch):
    first, other = serve(reply("Hello")), serve(reply("Elsewhere"))
    monkeypatch.setenv("OPENAI_BASE_URL", first.base_url("openai"))
    logs_root = stop(backend, "llm_model=gpt-5.2")
    monkeypatch.setenv("OPENAI_BASE_URL", other.base_url("openai"))
    with pytest.raises(OptionError, match=r"OPENAI_BASE_URL is .*, and was .* when this run was started"):
        Run.load(logs_root).resume()
    assert other.asked == []
    assert Run.load(logs_root).resume(backend="llm").result().status == "success"
    assert len(other.asked) == 1


def test_an_address_of_a_provider_that_is_not_asked_does_not_matter(serve, reply, stop, monkeypatch):
    server = serve(reply("Hello"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    logs_root = stop("llm", "llm_model=gpt-5.2")
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:1/v1")
    assert Run.load(logs_root).resume().result().status == "success"


def test_what_is_secret_is_not_recorded_and_the_resume_is_refused(serve, reply, stop):
    server = serve(reply("Hello"))
    secret = "sk-proj-" + "a1B2" * 12
    backend = ProviderBackend("gpt-5.2", base_url=server.base_url("openai"), system_prompt=f"Use {secret}")
    logs_root = stop(backend)
    assert json.loads((logs_root / "manifest.json").read_text())["backend_facts"] == {"is_secret": True}
    with pytest.raises(OptionError, match="something secret"):
        Run.load(logs_root).resume()


def test_a_map_finds_its_models_again(serve, reply, tmp_path):
    server = serve(reply(status=401, error="no"), reply("Hello"))
    backend = ProviderBackend("gpt-5.2", base_url=server.base_url("openai"))
    pipeline = Pipeline(FRAME.format(graph="label=talk"))
    pipeline.map([{"x": 1}], map_dir=tmp_path / "map", backend=backend).result()
    found = pipeline.resume_map(tmp_path / "map", failed="retry").result()
    assert [row.status for row in found] == ["success"]
    assert {came.body["model"] for came in server.asked} == {"gpt-5.2"}
