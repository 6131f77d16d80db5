"""``--model NAME`` of the command line, over HTTP."""

import json
import re

import pytest

from attractor_nb.cli import main

DOT = """digraph G {
    start [shape=Mdiamond]
    own [prompt="First", llm_model="gpt-5-mini"]
    other [prompt="Second"]
    done [shape=Msquare]
    start -> own -> other -> done
}"""


@pytest.fixture
def server(serve, reply, monkeypatch, tmp_path):
    started = serve(reply(text="fine"))
    monkeypatch.setenv("OPENAI_BASE_URL", started.base_url("openai"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-anything-at-all-0123456789")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.dot").write_text(DOT)
    (tmp_path / "rows.csv").write_text("n\n1\n")
    return started


def models(server):
    return [asked.body["model"] for asked in server.asked]


@pytest.mark.parametrize(
    "arguments", [["run", "g.dot", "--trust"], ["map", "g.dot", "--params", "rows.csv", "--trust"]]
)
def test_the_model_answers_nodes_that_name_none(server, arguments):
    assert main([*arguments, "--backend", "llm", "--model", "gpt-5.2", "-q"]) == 0
    assert models(server) == ["gpt-5-mini", "gpt-5.2"]


def test_a_resume_keeps_the_model(server, capfd):
    run = ["run", "g.dot", "--trust", "--backend", "llm", "--model", "gpt-5.2", "--max-steps", "2", "-q"]
    assert main([*run, "--logs-root", "out"]) == 1
    hint = re.search(r"`attractor-nb (resume .*)`", capfd.readouterr().err)[1]
    assert hint == "resume out --backend llm --model gpt-5.2 --max-steps N"
    assert main(["resume", "out", "--max-steps", "9", "--trust", "-q"]) == 0
    assert models(server) == ["gpt-5-mini", "gpt-5.2"]


def test_doctor_looks_at_the_model(server, capfd):
    assert main(["doctor", "g.dot", "--backend", "llm"]) == 1
    assert "model of other" in capfd.readouterr().out
    assert main(["doctor", "g.dot", "--backend", "llm", "--model", "gpt-5.2", "--json"]) == 0
    assert "gpt-5.2" in json.dumps(json.loads(capfd.readouterr().out))


@pytest.mark.parametrize("backend", [[], ["--backend", "claude"], ["--backend", "local"]])
def test_a_model_needs_the_backend_that_asks_it(server, capfd, tmp_path, backend):
    assert main(["run", "g.dot", "--model", "gpt-5.2", *backend]) == 2
    assert "--model needs --backend llm" in capfd.readouterr().err
    assert not (tmp_path / ".attractor").exists()
