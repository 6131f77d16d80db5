"""Every code block of the README does what the README says."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb.cli.remote_runs.remote import follow_events
from attractor_nb.cli.remote_runs.server_client import Client, read_address
from attractor_nb.runtime.handles.handle import live_jobs, stop_jobs

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON_BLOCKS = [text for language, text in BLOCKS if language == "python"]
SHELL_LINES = [
    shlex.split(line, comments=True) for language, text in BLOCKS if language == "sh" for line in text.splitlines()
]
OF_A_SERVER = {"serve", "watch", "answer"}
COMMANDS = [line[1:] for line in SHELL_LINES if line[0] == "attractor-nb" and line[1] not in OF_A_SERVER | {"model"}]


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """A real IPython shell with nothing in it."""
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shell = InteractiveShell.instance()
    yield shell
    stop_jobs(live_jobs(), "the README has been read")  # the run that is rewound waits at its gate
    shell.run_line_magic("unload_ext", "attractor_nb")
    InteractiveShell.clear_instance()


def test_each_block_says_its_language():
    assert {language for language, _ in BLOCKS} == {"python", "sh"}
    assert README.count("\n```") == 2 * len(BLOCKS)


def test_the_python_blocks_run_top_to_bottom_in_one_notebook(shell):
    for block in PYTHON_BLOCKS:
        shell.run_cell(block).raise_error()
    names = shell.user_ns
    assert type(names["review"]).__name__ == "Pipeline"
    assert names["result"].status == "success"
    assert names["resumed"].status == "completed"
    assert names["fork"].status == "completed"
    assert names["fork"]["write"].prompt.endswith("in one sentence: A release note for version 2")
    assert "<svg" in Path("run.html").read_text()
    assert names["resumed"].visits == dict.fromkeys(["start", "plan", "write", "gate", "done"], 1)


@pytest.mark.parametrize("target", [line[1] for line in SHELL_LINES if line[0] == "make"])
def test_each_make_target_exists(target):
    done = subprocess.run(["make", "-n", target], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS, ids=[" ".join(arguments[:2]) for arguments in COMMANDS])
def test_each_command_succeeds(arguments, tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    done = subprocess.run(
        [sys.executable, "-m", "attractor_nb", *arguments],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.kind("a server")
def test_a_server_is_started_asked_and_answered_as_the_readme_says(tmp_path):
    """Its lines one by one, in a shell each; before the answer the question is waited for, as a person would."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    block = README.partition("## Serve it")[2].partition("\n## ")[0]
    assert "\nattractor-nb serve " in block
    lines = re.search(r"^export .*?(?=^```)", block, re.MULTILINE | re.DOTALL)[0].splitlines()
    assert [line.split()[1] for line in lines[2:]] == ["watch", "answer", "watch"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with subprocess.Popen(
        ["attractor-nb", "serve", "--port", "0"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            address = server.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]+", address)
            environment = os.environ | {"PATH": path, "ATTRACTOR_SERVER": address}

            def shell(line):
                done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                return done.stdout

            environment["RUN"] = shell(lines[1] + '; printf %s "$RUN"')
            wait_for_question(address, environment["RUN"])
            assert "? merge_gate   Merge this change?" in shell(lines[2])
            assert shell(lines[3]) == "✓ merge_gate: Merge\n"
            assert shell(lines[4]).splitlines()[-1].startswith("✓ success   Code review loop")
        finally:
            server.send_signal(signal.SIGINT)


def wait_for_question(address, run_id):
    client = Client(read_address(address))
    assert any(event.type == "InterviewStarted" for event in follow_events(client, run_id))


def test_the_install_lines_name_an_extra_and_a_command_that_exist():
    import tomllib

    from attractor_nb.cli import main

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    others = [line for line in SHELL_LINES if line[0] == "pip" or line[1] == "model"]
    assert others == [
        ["pip", "install", ".[local]"],
        ["attractor-nb", "model", "install"],
        ["pip", "install", ".[server]"],
    ]
    assert project["name"] == "attractor_nb"
    assert {"local", "server"} <= set(project["optional-dependencies"])
    assert main(["model", "install", "--help"]) == 0


def test_each_file_that_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 7
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_the_message_that_the_readme_quotes_is_what_lint_says():
    from attractor_nb import Pipeline

    wrong = re.search(r"%%attractor review\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    pipeline = Pipeline(wrong[1].replace("start -> plan -> write", "start -> plan -> wrte"))
    quoted = re.search(r"``(the edge.*?)``", README)
    assert quoted[1] in [found.message for found in pipeline.diagnostics]
