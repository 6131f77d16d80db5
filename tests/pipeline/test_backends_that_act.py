"""Ruling 43: a backend that may write or execute for any stage is told nothing of another's file without trust."""

import sys

import pytest

from attractor_nb import ClaudeBackend, CommandLineBackend, Pipeline, Run
from attractor_nb.errors import UntrustedSource
from attractor_nb.protocols import acts_unasked

PLAIN = 'digraph G { inputs="x=1" start [shape=Mdiamond] a [prompt="a $x"] done [shape=Msquare] start -> a -> done }'
SILENT = "digraph G { start [shape=Mdiamond] note [shape=parallelogram] done [shape=Msquare] start -> done }"


@pytest.fixture
def program(tmp_path):
    """A program of the command line that leaves a file when it is asked."""
    code = f"import pathlib; pathlib.Path({str(tmp_path / 'acted')!r}).touch(); print('ok')"
    return CommandLineBackend([sys.executable, "-c", code])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "theirs.dot"
    path.write_text(PLAIN)
    return path


def test_the_prompts_of_a_file_need_trust_with_a_program_of_the_command_line(file, program, tmp_path):
    with pytest.raises(UntrustedSource) as caught:
        Pipeline(file).run(wait=True, backend=program)
    assert "a $x" in str(caught.value)
    assert not (tmp_path / "acted").exists()
    result = Pipeline(file).run(wait=True, backend=program, trust=caught.value.surface_hash)
    assert (result.status, (tmp_path / "acted").exists()) == ("success", True)


def test_what_only_answers_needs_no_trust(file):
    assert Pipeline(file).run(wait=True, backend="simulated").status == "success"
    assert Pipeline(file).run(wait=True, backend=lambda prompt: "ok").status == "success"


def test_the_callers_own_text_needs_no_trust(program):
    assert Pipeline(PLAIN).run(wait=True, backend=program).status == "success"


def test_a_child_from_a_file_needs_trust(file, program):
    text = f'digraph P {{ start [shape=Mdiamond] sub [type="pipeline", pipeline.dotfile="{file}"] done [shape=Msquare]'
    pipeline = Pipeline(text + " start -> sub -> done }")
    with pytest.raises(UntrustedSource, match=r"sub/a"):
        pipeline.run(wait=True, backend=program)
    assert pipeline.run(wait=True, backend="simulated").status == "success"


def test_a_map_of_a_file_needs_trust(file, program):
    with pytest.raises(UntrustedSource):
        Pipeline(file).map([{"x": "1"}], backend=program, wait=True)


def test_what_a_directory_of_another_user_holds_needs_trust(program, monkeypatch, tmp_path):
    run = Pipeline(PLAIN).run(logs_root="run", stop_after=1, backend="simulated")
    run.result(60)
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))
    with pytest.raises(UntrustedSource, match=r"directory\.files"):
        Run.load("run").resume(backend=program)
    assert not (tmp_path / "acted").exists()


def test_what_a_user_began_goes_on_unasked(program, tmp_path):
    run = Pipeline(PLAIN).run(logs_root="run", stop_after=1, backend=program)
    run.result(60)
    assert Run.load("run").resume(backend=program).result(60).status == "success"
    assert (tmp_path / "acted").exists()


def test_a_graph_that_asks_no_model_has_nothing_to_trust(tmp_path, program):
    path = tmp_path / "silent.dot"
    path.write_text(SILENT.replace("note [shape=parallelogram]", ""))
    assert Pipeline(path).run(wait=True, backend=program).status == "success"


def test_an_agent_acts_unasked_when_it_is_unrestricted():
    python = sys.executable
    assert acts_unasked(ClaudeBackend(executable=python, is_unrestricted=True))
    assert not acts_unasked(ClaudeBackend(executable=python))
    assert not acts_unasked("claude")
