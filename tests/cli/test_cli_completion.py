"""Shell completion: the scripts, and what a shell is told when it asks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from attractor_nb.cli.command_tree import RootCommands
from attractor_nb.cli.shared_options import complete_inputs, complete_maps, complete_runs
from tests import warm


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_a_script(command, shell):
    ended = command("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert "_ATTRACTOR_NB_COMPLETE" in ended.out
    assert json.loads(command("completion", shell, "--json").out) == {"shell": shell, "script": ended.out[:-1]}


def test_another_shell_is_refused_with_those_there_are(command):
    ended = command("completion", "tcsh")
    assert ended.code == 2
    assert "fish" in ended.err


def asked(words, position):
    """The words that bash offers after these words."""
    environment = {"_ATTRACTOR_NB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(position)}
    done = warm.run(
        [sys.executable, "-m", "attractor_nb"],
        cwd=Path.cwd(),
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "position", "offered"),
    [
        ("attractor-nb su", 1, ["submit"]),
        ("attractor-nb run --back", 2, ["--backend"]),
        ("attractor-nb run a.dot --backend cl", 4, ["claude"]),
        ("attractor-nb model ", 2, ["install"]),
    ],
    ids=["command", "option", "value", "command of a command"],
)
def test_what_could_come_next_is_offered(words, position, offered):
    assert asked(words, position) == offered


def test_directories_of_runs_and_maps_are_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, name in (("a-run", "events.jsonl"), ("a-map", "map.json"), ("a-map/row-00000", "events.jsonl")):
        (tmp_path / ".attractor/runs" / place).mkdir(parents=True)
        (tmp_path / ".attractor/runs" / place / name).touch()
    (tmp_path / ".attractor/runs/neither").mkdir()
    base = ".attractor/runs/"
    assert asked("attractor-nb watch .att", 2) == [f"{base}a-run", f"{base}a-map"]
    assert asked(f"attractor-nb doctor {base}a-m", 2) == [f"{base}a-map"]
    assert complete_maps("") == [f"{base}a-map"]
    assert complete_runs(f"{base}a-map/") == [f"{base}a-map/row-00000"]
    assert complete_runs("nowhere/") == []


@pytest.mark.parametrize("command", ["watch", "answer", "tell", "doctor", "diff", "export", "resume", "fork", "map"])
def test_each_command_that_takes_a_directory_of_runs_completes_it(command):
    own = next(each for each in RootCommands.own if each.name == command)
    parameters = own.get_params(typer.Context(own))
    offering = {each.name for each in parameters if each._custom_shell_complete is not None}
    assert offering & {"place", "first", "run_dir", "resumed"}


@pytest.mark.campaign
def test_ruling_34_the_inputs_that_the_file_declares_are_offered(tmp_path):
    file = tmp_path / "a.dot"
    file.write_text('digraph { inputs="ticket, tone=plain, product" }')
    assert asked(f"attractor-nb run {file} --param t", 4) == ["ticket=", "tone="]
    assert asked(f"attractor-nb estimate {file} --param p", 4) == ["product="]
    file.write_text("digraph { -- }")
    assert asked(f"attractor-nb run {file} --param t", 4) == []


@pytest.mark.parametrize("text", ["digraph { -- }", 'digraph { inputs="ticket, ticket" }', None])
def test_of_a_file_that_cannot_be_read_nothing_is_offered(tmp_path, text):
    file = tmp_path / "a.dot"
    if text is not None:
        file.write_text(text)
    assert complete_inputs(SimpleNamespace(params={"file": str(file)}, args=[]), "t") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_understands(command, shell, tmp_path):
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed here")
    script = tmp_path / "script"
    script.write_text(command("completion", shell).out)
    checked = subprocess.run([found, "-n", str(script)], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_bash_completes_with_what_the_script_defines(command, tmp_path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed here")
    (tmp_path / "script").write_text(command("completion", "bash").out)
    asked = (
        "source ./script; COMP_WORDS=(attractor-nb watch --tok); COMP_CWORD=2; "
        '_attractor_nb_completion attractor-nb; echo "${COMPREPLY[@]}"'
    )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [bash, "--norc", "-c", asked], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("--token\n", "")
