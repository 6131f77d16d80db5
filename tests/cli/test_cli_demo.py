"""`demo`: with a model when there is one, and never pretending that there is."""

import json
import sys

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.extras import install_command


def test_without_the_model_the_demo_says_how_to_get_it_and_how_to_do_without(command, monkeypatch, tmp_path):
    from attractor_nb.cli import demonstration

    def missing():
        raise OptionError("the local model is not installed", hint="attractor-nb model install  (93 MB)")

    monkeypatch.setattr(demonstration, "find_model", missing)
    monkeypatch.setattr(demonstration, "check_server", lambda: None)
    ended = command("demo")
    assert ended.code == 2
    assert "attractor-nb model install  (93 MB); or without a model: attractor-nb demo --simulate" in ended.err
    assert not (tmp_path / ".attractor").exists()


def test_without_a_terminal_the_gate_is_approved_with_a_notice(command):
    ended = command("demo", "--simulate")
    assert ended.code == 0
    assert "the gate `review` is approved automatically" in ended.err
    assert "(auto-approved)" in ended.err
    assert "run directory  .attractor/runs/" in ended.out


def test_the_demo_visits_a_plan_a_tool_a_conditional_a_gate_and_the_exit(command):
    ended = command("demo", "--simulate", "--json", "--runs-dir", "kept")
    types = {stage["id"]: stage["type"] for stage in json.loads(ended.out)["stages"]}
    assert types == {
        "start": "start",
        "plan": "codergen",
        "implement": "codergen",
        "measure": "tool",
        "long_enough": "conditional",
        "review": "wait.human",
        "done": "exit",
    }


@pytest.mark.real_llm
@pytest.mark.timeout(600)
@pytest.mark.kind("a real model")
def test_the_demo_runs_on_the_real_model(command, tmp_path):
    ended = command("demo", "--json")
    summary = json.loads(ended.out)
    assert (ended.code, summary["status"]) == (0, "success")
    assert summary["usage"]["output_tokens"] > 0
    (directory,) = (tmp_path / ".attractor/runs").iterdir()
    response = (directory / "implement/response.md").read_text()
    assert response.strip()
    assert "[Simulated]" not in response


def test_without_the_engine_of_the_model_nothing_is_downloaded(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    ended = command("model", "install")
    assert ended.code == 2
    assert "the engine of local models is not installed; nothing was downloaded" in ended.err
    assert f"{install_command('local')}; then: attractor-nb model install" in ended.err


def test_the_model_is_not_installed_twice(command, monkeypatch, tmp_path):
    from attractor_nb.backends import local_model
    from attractor_nb.cli import demonstration

    monkeypatch.setattr(local_model, "find_model", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(demonstration, "check_server", lambda: None)
    ended = command("model", "install")
    assert ended.code == 0
    assert ended.out == f"{tmp_path / 'model.gguf'}\n"
    assert "93 MB" in ended.err.splitlines()[0]
    assert json.loads(command("model", "install", "--json").out) == {"path": str(tmp_path / "model.gguf")}
