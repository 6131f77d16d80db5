"""The magics in a real InteractiveShell."""

from __future__ import annotations

import atexit

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from attractor_nb import Pipeline, Run
from attractor_nb.errors import OptionError
from attractor_nb.notebook import load_ipython_extension, unload_ipython_extension
from attractor_nb.notebook.extension import read_params

HELLO = """digraph hello {
  graph [goal="Say hello"]
  start [shape=Mdiamond]
  greet [prompt="Do this: $goal"]
  done [shape=Msquare]
  start -> greet -> done
}
"""
BROKEN = "digraph g { start [shape=Mdiamond] start -> nowhere }\n"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"hist_file": ":memory:"}}))
    load_ipython_extension(shell)
    yield shell
    unload_ipython_extension(shell)
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    InteractiveShell.clear_instance()


def run(shell, code):
    result = shell.run_cell(code)
    assert result.success, result.error_before_exec or result.error_in_exec
    return result.result


def test_the_cell_magic_binds_and_returns_the_pipeline(shell):
    shown = run(shell, f"%%attractor hello\n{HELLO}")
    assert isinstance(shown, Pipeline)
    assert shell.user_ns["hello"] is shown


def test_without_a_name_the_graphs_own_is_used(shell):
    run(shell, f"%%attractor\n{HELLO}")
    assert isinstance(shell.user_ns["hello"], Pipeline)


def test_the_body_is_not_interpolated(shell):
    shell.user_ns["goal"] = "something else"
    pipeline = run(shell, f"%%attractor hello\n{HELLO}")
    assert pipeline.parsed.nodes["greet"].prompt == "Do this: $goal"


def test_lines_are_counted_from_the_magic(shell, capsys):
    result = shell.run_cell("%%attractor bad\ndigraph g {\n  a -- b\n}")
    assert not result.success
    out = capsys.readouterr().out
    assert "--> <cell>:3:5" in out
    assert "^^" in out
    assert "Traceback" not in out


def test_a_pipeline_with_errors_is_bound_and_shown_but_refuses_to_run(shell, capsys):
    pipeline = run(shell, f"%%attractor bad\n{BROKEN}")
    assert shell.user_ns["bad"] is pipeline
    assert "edge_target_exists" in str(pipeline)
    assert not shell.run_cell("bad.run()").success
    assert "ValidationError" in capsys.readouterr().out


def test_run_starts_the_run_and_binds_its_handle(shell):
    handle = run(shell, f"%%attractor hello --run\n{HELLO}")
    assert isinstance(handle, Run)
    assert shell.user_ns["hello_run"] is handle
    assert handle.result(timeout=60).is_success


def test_run_does_not_start_a_pipeline_with_errors(shell):
    run(shell, f"%%attractor bad --run\n{BROKEN}")
    assert "bad_run" not in shell.user_ns


def test_quiet_returns_nothing_unless_there_are_errors(shell):
    assert run(shell, f"%%attractor hello --quiet\n{HELLO}") is None
    assert run(shell, f"%%attractor bad --quiet\n{BROKEN}") is not None


def test_write_keeps_the_text_in_a_file(shell, tmp_path):
    run(shell, f"%%attractor hello --write hello.dot\n{HELLO}")
    assert (tmp_path / "hello.dot").read_text() == HELLO


def test_write_into_nowhere_is_refused_in_words(shell, capsys):
    assert not shell.run_cell(f"%%attractor hello --write no/such/hello.dot\n{HELLO}").success
    assert "StorageError: no/such/hello.dot cannot be written: No such file" in capsys.readouterr().out


def test_params_reach_the_context(shell):
    run(shell, f"%%attractor hello --param ticket=42 --param who='the team'\n{HELLO}")
    result = run(shell, "hello.run(wait=True)")
    assert result.context["ticket"] == 42
    assert result.context["who"] == "the team"


def test_a_quotation_that_is_not_closed_is_refused(shell, capsys):
    assert not shell.run_cell(f"%%attractor hello --param 'x=1\n{HELLO}").success
    assert "a quotation mark on the magic's line is not closed" in capsys.readouterr().out


def test_auto_approve_answers_gates(shell):
    gated = HELLO.replace("greet [", "greet [shape=hexagon, ")
    run(shell, f"%%attractor gated --auto-approve\n{gated}")
    assert run(shell, "gated.run(wait=True)").is_success


def test_gate_names_who_answers(shell, capsys):
    gated = HELLO.replace("greet [", "greet [shape=hexagon, ")
    run(shell, f"%%attractor gated --gate auto\n{gated}")
    assert run(shell, "gated.run(wait=True)").is_success
    assert not shell.run_cell(f"%%attractor other --gate widgets --auto-approve\n{gated}").success
    assert "--auto-approve and --gate widgets exclude each other" in capsys.readouterr().out


def test_a_wrong_option_is_one_line(shell, capsys):
    assert not shell.run_cell(f"%%attractor hello --nope\n{HELLO}").success
    captured = capsys.readouterr()
    assert "unrecognized arguments: --nope" in captured.out + captured.err


def test_a_name_that_is_no_identifier_is_refused(shell, capsys):
    assert not shell.run_cell(f"%%attractor my-pipeline\n{HELLO}").success
    assert "`my-pipeline` cannot be a variable's name" in capsys.readouterr().out


def test_the_line_magic_runs_a_pipeline_by_name(shell):
    run(shell, f"%%attractor hello\n{HELLO}")
    assert run(shell, "%attractor_run hello --param x=1").result(timeout=60).context["x"] == 1


def test_a_misspelt_pipeline_is_suggested(shell, capsys):
    run(shell, f"%%attractor hello --quiet\n{HELLO}")
    assert not shell.run_cell("%attractor_run helo").success
    assert 'there is no pipeline `helo`; did you mean "hello"?' in capsys.readouterr().out


def test_a_variable_that_is_no_pipeline_is_refused(shell, capsys):
    shell.user_ns["number"] = 3
    assert not shell.run_cell("%attractor_lint number").success
    out = capsys.readouterr().out
    assert "`number` is not a pipeline" in out
    assert "make one with %%attractor NAME" in out


@pytest.mark.shows("IPython", "lint")
def test_the_lint_magic_returns_the_findings(shell):
    run(shell, f"%%attractor bad --quiet\n{BROKEN}")
    assert "edge_target_exists" in {found.rule for found in run(shell, "%attractor_lint bad")}


def test_the_load_magic_reads_a_file(shell, tmp_path):
    (tmp_path / "hello.dot").write_text(HELLO)
    pipeline = run(shell, "%attractor_load hello.dot greeting")
    assert shell.user_ns["greeting"] is pipeline


TOOL = """digraph tooled { start [shape=Mdiamond]
    build [shape=parallelogram, tool_command="true"]
    done [shape=Msquare]
    start -> build -> done }"""


def test_commands_of_a_cell_are_the_users_own(shell):
    run(shell, f"%%attractor tooled --run --quiet\n{TOOL}")
    assert run(shell, "tooled_run.result(30).status") == "success"


def test_commands_of_a_loaded_file_run_when_the_user_says_so(shell, tmp_path):
    (tmp_path / "tooled.dot").write_text(TOOL)
    run(shell, "%attractor_load tooled.dot")
    refusal = shell.run_cell("%attractor_run tooled").error_in_exec
    assert type(refusal).__name__ == "UntrustedSource"
    text = "\n".join(refusal._render_traceback_())
    assert "  build  tool_command  true" in text
    assert f'run(trust="{refusal.surface_hash[:12]}")' in text
    assert run(shell, "%attractor_run tooled --trust").result(30).status == "success"


def test_the_runs_magic_lists_the_kept_runs(shell):
    assert repr(run(shell, "%attractor_runs")) == "no runs"
    run(shell, f"%%attractor hello --quiet\n{HELLO}")
    run(shell, "hello.run(wait=True)")
    listed = run(shell, "%attractor_runs")
    assert len(listed) == 1
    assert "completed" in repr(listed)
    assert "hello" in repr(listed)


def test_loading_twice_and_unloading_leaves_nothing_behind(shell):
    load_ipython_extension(shell)
    matchers = len(shell.Completer.custom_matchers)
    unload_ipython_extension(shell)
    assert len(shell.Completer.custom_matchers) == matchers - 1
    assert "attractor" not in shell.magics_manager.magics["cell"]
    assert "attractor_run" not in shell.magics_manager.magics["line"]
    unload_ipython_extension(shell)


@pytest.mark.parametrize("text", ["", "x", "=3", " =3"])
def test_a_param_without_name_or_value_is_refused(text):
    with pytest.raises(OptionError, match="name=value"):
        read_params([text])


CALLING = HELLO.replace('prompt="Do this: $goal"', "function=count")


def test_a_cell_finds_the_functions_that_the_notebook_defines(shell):
    run(shell, "def count():\n    return {'n': 3}")
    pipeline = run(shell, f"%%attractor hello\n{CALLING}")
    assert [found.rule for found in pipeline.diagnostics if found.is_error] == []
    assert pipeline.run(wait=True).context["greet.n"] == 3


def test_a_cell_finds_no_function_that_the_notebook_imports(shell):
    run(shell, "from shutil import rmtree as count")
    pipeline = run(shell, f"%%attractor hello\n{CALLING}")
    assert [found.rule for found in pipeline.diagnostics if found.is_error] == ["function_known"]


def test_a_cell_finds_the_pydantic_models_of_the_notebook_that_it_names(shell):
    shell.run_cell("import pydantic\nclass Review(pydantic.BaseModel):\n    level: str\nclass Other(Review): ...")
    body = HELLO.replace('prompt="Do this: $goal"', "prompt=x, response_schema=Review")
    pipeline = shell.run_cell_magic("attractor", "", body)
    assert not [found for found in pipeline.diagnostics if found.is_error]
    assert list(pipeline.schemas) == ["Review"]


def test_a_loaded_file_finds_no_function_of_the_notebook(shell, tmp_path):
    (tmp_path / "hello.dot").write_text(CALLING)
    run(shell, "def count():\n    return True")
    pipeline = run(shell, "%attractor_load hello.dot")
    assert [found.rule for found in pipeline.diagnostics if found.is_error] == ["function_known"]
