"""Windows, simulated: what works without the modules and calls of POSIX, and the sentence for the rest."""

import subprocess
import sys
from pathlib import Path

import pytest

SIMULATION = Path(__file__).with_name("like_windows.py")
DOT = """digraph review {
    start [shape=Mdiamond]; done [shape=Msquare]
    plan [prompt="Plan $goal."]
    ok [shape=hexagon, label="Publish?"]
    start -> plan -> ok
    ok -> done [label="[Y] Yes"]
}
"""
SENTENCE = "run directories, cassettes, commands and the server need calls of POSIX, which this system lacks"
COMMAND_LINE = "import sys; from attractor_nb.cli import main; sys.exit(main(sys.argv[1:]))"


def like_windows(tmp_path, program, *words):
    """A program's end, by a Python without POSIX."""
    (tmp_path / "review.dot").write_text(DOT)
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, SIMULATION, "program.py", *words]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)


def succeeded(ended):
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_simulation_takes_away_what_windows_lacks(tmp_path):
    program = """
import os, signal
for module in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    try:
        __import__(module)
    except ImportError:
        continue
    raise SystemExit(module)
assert not {"O_NOFOLLOW", "O_DIRECTORY", "fork", "geteuid", "getuid", "killpg", "setsid"} & set(vars(os))
assert not hasattr(signal, "SIGKILL")
assert not os.supports_dir_fd
"""
    assert succeeded(like_windows(tmp_path, program)) == ""


def test_a_pipeline_is_read_checked_drawn_estimated_and_exported(tmp_path):
    program = """
from pathlib import Path
from attractor_nb import Pipeline
for pipeline in (Pipeline(Path("review.dot").read_text()), Pipeline(Path("review.dot"))):
    assert not pipeline.lint()
    assert pipeline.to_svg().startswith("<svg")
    assert pipeline.to_mermaid().startswith("flowchart")
    assert "plan" in pipeline.to_graphviz().source
    assert len(pipeline.to_networkx()) == 4
    assert Pipeline(pipeline.to_dot()).to_dot() == pipeline.to_dot()
    assert "plan" in str(pipeline.estimate())
    assert "plan" in str(pipeline.analyse())
    assert "text/html" in pipeline._repr_mimebundle_()
assert [each.rule for each in Pipeline("digraph { a -> b }").lint()]
"""
    succeeded(like_windows(tmp_path, program))


def test_a_run_in_memory_ends_with_its_gates_and_functions(tmp_path):
    program = """
from pathlib import Path
from attractor_nb import Pipeline
pipeline = Pipeline(Path("review.dot"))
for backend in ("simulated", lambda prompt: prompt.upper()):
    run = pipeline.run(durability="none", backend=backend, interviewer="auto")
    print(run.wait().status)
print(run["plan"].response)
"""
    assert succeeded(like_windows(tmp_path, program)).splitlines()[:2] == ["success", "success"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param(["validate", "review.dot"], "no findings", id="validate"),
        pytest.param(["parse", "review.dot"], "digraph review", id="parse"),
        pytest.param(["graph", "review.dot", "-o", "review.svg"], "", id="graph"),
        pytest.param(["estimate", "review.dot"], "plan", id="estimate"),
        pytest.param(["analyse", "review.dot"], "every run passes", id="analyse"),
        pytest.param(
            ["run", "review.dot", "--simulate", "--durability", "none", "--auto-approve"], "completed", id="simulate"
        ),
        pytest.param(["doctor"], "WSL", id="doctor"),
    ],
)
def test_a_command_without_run_directories_works(tmp_path, words, shown):
    ended = like_windows(tmp_path, COMMAND_LINE, *words)
    assert ended.returncode == 0, ended.stderr
    assert shown in ended.stdout
    assert "Traceback" not in ended.stderr
    if "-o" in words:
        assert (tmp_path / "review.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["run", "review.dot", "--simulate", "--auto-approve"], id="run"),
        pytest.param(
            [
                "run",
                "review.dot",
                "--backend",
                "simulated",
                "--auto-approve",
                "--durability",
                "none",
                "--cassette",
                "tape.json",
            ],
            id="cassette",
        ),
        pytest.param(["runs"], id="runs"),
        pytest.param(["serve", "--port", "0"], id="serve"),
    ],
)
def test_a_command_with_run_directories_says_what_works_and_where(tmp_path, words):
    ended = like_windows(tmp_path, COMMAND_LINE, *words)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-2:] == [
        f"error: {SENTENCE}",
        " hint: run in memory with --durability none; on Windows, WSL (the Windows Subsystem for Linux) has all",
    ]
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / ".attractor").exists()


def test_a_run_with_files_is_refused_by_one_option_error(tmp_path):
    program = """
from pathlib import Path
from attractor_nb import Pipeline, runs
from attractor_nb.errors import OptionError
for refused in (lambda: Pipeline(Path("review.dot")).run(), runs):
    try:
        refused()
    except OptionError as error:
        print(error.message, "WSL" in error.hint)
"""
    assert succeeded(like_windows(tmp_path, program)) == f"{SENTENCE} True\n" * 2


def test_a_command_of_a_pipeline_fails_with_the_sentence(tmp_path):
    program = """
from attractor_nb import Pipeline
dot = 'digraph { start [shape=Mdiamond]; done [shape=Msquare]; start -> say -> done; say [shape=parallelogram, tool_command="echo hello"] }'
run = Pipeline(dot).run(durability="none", trust=True)
run.wait()
print(run)
"""
    ended = like_windows(tmp_path, program)
    assert SENTENCE in ended.stdout, ended.stderr
    assert "Traceback" not in ended.stderr
