"""Commands from elsewhere at the command line: a question at a terminal, a refusal without one."""

import json
import os
import re
import subprocess
import sys

import pytest

from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.interviewers import ConsoleInterviewer
from attractor_nb.languages.dot import parse_dot
from tests import warm

TEXT = """digraph Build {
    start [shape=Mdiamond]
    build [shape=parallelogram, tool_command="touch \\"$ATTRACTOR_LOGS_ROOT/../built\\""]
    done  [shape=Msquare]
    start -> build -> done
}"""
HASH = executable_surface(parse_dot(TEXT)).full_hash
RUN = ("run", "build.dot", "--logs-root", "out/run")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "build.dot"
    path.write_text(TEXT)
    return path


@pytest.fixture
def at_a_terminal(tmp_path):
    """Run a command at a terminal, give it an answer when it asks, and say what it showed."""

    def run(*arguments, answer):
        master, slave = os.openpty()
        process = warm.Popen(
            [sys.executable, "-m", "attractor_nb", *arguments],
            cwd=tmp_path,
            stdin=slave,
            stderr=slave,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(slave)
        shown, is_answered = b"", False
        try:
            while data := read(master):
                shown += data
                if b"[y/N]" in shown and not is_answered:
                    os.write(master, answer)
                    is_answered = True
            process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            os.close(master)
        return process.returncode, shown.decode().replace("\r\n", "\n")

    def read(master):
        try:
            return os.read(master, 4096)
        except OSError:  # the other end is closed
            return b""

    return run


def test_without_a_terminal_a_file_with_commands_is_refused(command, file, tmp_path):
    ended = command(*RUN)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {file} runs 1 command (hash {HASH[:12]}) and needs your trust\n")
    assert '  build  tool_command  touch "$ATTRACTOR_LOGS_ROOT/../built"\n' in ended.err
    assert "--trust" in ended.err
    assert not (tmp_path / "out").exists()


def test_a_refusal_is_json_for_programs(command, file):
    ended = command(*RUN, "--json")
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["type"]) == (2, "UntrustedSource")


def test_trust_says_yes_for_one_call(command, file, tmp_path):
    assert command(*RUN, "--trust").code == 0
    assert (tmp_path / "out/built").exists()
    assert command("run", "build.dot").code == 2


def test_a_hash_lets_its_commands_run_and_no_others(command, file, tmp_path):
    refused = command("run", "build.dot", "--trust-hash", "0" * 12)
    assert refused.code == 2
    assert f"trust names {'0' * 12}" in refused.err
    assert not (tmp_path / "out").exists()
    assert command(*RUN, "--trust-hash", HASH[:12]).code == 0
    assert (tmp_path / "out/built").exists()


def test_a_hash_and_the_word_for_all_commands_contradict_each_other(command, file):
    ended = command("run", "build.dot", "--trust", "--trust-hash", HASH)
    assert ended.code == 2
    assert "--trust and --trust-hash contradict" in ended.err


def test_a_map_takes_a_hash(command, file, tmp_path):
    (tmp_path / "rows.jsonl").write_text("{}\n")
    given = ("map", "build.dot", "--params", "rows.jsonl", "--out", "many")
    assert command(*given, "--trust-hash", "0" * 12).code == 2
    assert command(*given, "--trust-hash", HASH).code == 0


def test_the_environment_says_yes_to_a_hash(command, file, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TRUST", HASH[:12])
    assert command(*RUN).code == 0


def test_a_rehearsal_asks_nobody(command, file, tmp_path):
    assert command(*RUN, "--simulate").code == 0
    assert not (tmp_path / "out/built").exists()


def test_what_comes_through_a_pipe_is_from_elsewhere(command):
    ended = command("run", "-", stdin=TEXT.encode())
    assert ended.code == 2
    assert ended.err.startswith("error: stdin runs 1 command")
    assert command("run", "-", "--trust", stdin=TEXT.encode()).code == 0


def test_lint_errors_are_said_before_anybody_is_asked(command, file):
    file.write_text(TEXT.replace("build -> done", "build -> dnoe"))
    ended = command("run", "build.dot")
    assert ended.code == 2
    assert "needs your trust" not in ended.err


def test_a_yes_at_the_terminal_runs_what_was_shown(at_a_terminal, command, file, tmp_path):
    code, shown = at_a_terminal(*RUN, answer=b"y\n")
    assert code == 0
    assert '\nnode build  tool_command\n  | touch "$ATTRACTOR_LOGS_ROOT/../built"\n' in shown
    assert "Run this 1 command (2 lines above)? [y/N]" in shown
    assert (tmp_path / "out/built").exists()
    assert command("run", "build.dot").code == 0, "a yes is remembered"


def test_settings_are_no_commands(at_a_terminal, command, tmp_path):
    (tmp_path / "build.dot").write_text(
        'digraph { endpoint.own.url="http://127.0.0.1:9/v1" endpoint.own.key_env="MY_KEY"\n'
        "start [shape=Mdiamond] done [shape=Msquare] start -> done }"
    )
    said = command(*RUN)
    assert said.code == 2
    assert re.match(r"error: .*build\.dot has 2 server settings \(hash .*\) and needs your trust\n", said.err)
    assert "commands run in" not in said.err
    assert "\n\n2 server settings, hash " in command("commands", "build.dot").out
    code, shown = at_a_terminal(*RUN, answer=b"y\n")
    assert (code, "Trust 2 server settings (4 lines above)? [y/N]" in shown) == (0, True)


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"yeah\n", b"\x04"], ids=["enter", "n", "yeah", "end"])
def test_every_other_answer_runs_nothing(at_a_terminal, command, file, tmp_path, answer):
    code, shown = at_a_terminal(*RUN, answer=answer)
    assert code == 2
    assert "error: nothing was run" in shown
    assert not (tmp_path / "out").exists()
    assert command("run", "build.dot").code == 2


@pytest.mark.parametrize("answer", [b"n\n", b""], ids=["n", "end"])
def test_after_a_no_nothing_is_remembered(command, file, tmp_path, monkeypatch, answer):
    with monkeypatch.context() as patch:
        patch.setattr(ConsoleInterviewer, "is_terminal", True)
        ended = command(*RUN, "--json", stdin=answer)
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["type"], error["message"]) == (2, "UntrustedSource", "nothing was run")
    assert not (tmp_path / "out").exists()
    assert "needs your trust" in command(*RUN).err


@pytest.mark.campaign
def test_a_change_is_asked_about_with_a_diff(at_a_terminal, file, tmp_path):
    at_a_terminal(*RUN, answer=b"y\n")
    file.write_text(TEXT.replace("touch ", "echo evil; touch "))
    code, shown = at_a_terminal("run", "build.dot", answer=b"n\n")
    assert code == 2
    assert "not those that were trusted before" in shown
    assert '\n-  | touch "$ATTRACTOR_LOGS_ROOT/../built"\n+  | echo evil; touch' in shown


def test_the_users_own_run_is_resumed_without_a_question(command, file):
    assert command(*RUN, "--trust", "--max-steps", "1").code != 0
    assert command("resume", "out/run", "--max-steps", "50").code == 0


def test_a_run_directory_from_elsewhere_is_asked_about(command, file, monkeypatch, tmp_path):
    command(*RUN, "--trust", "--max-steps", "1")
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another-user"))
    ended = command("resume", "out/run", "--max-steps", "50")
    assert (ended.code, "pipeline.dot runs 1 command" in ended.err) == (2, True)
    ended = command("resume", "out/run", "--max-steps", "50", "--graph", "build.dot")
    assert (ended.code, "build.dot runs 1 command" in ended.err) == (2, True)
    assert command("resume", "out/run", "--max-steps", "50", "--trust").code == 0


def test_the_demonstration_is_trusted_by_installation():
    from attractor_nb.cli.demonstration import demo_source
    from attractor_nb.pipeline.pipeline import Pipeline

    assert Pipeline(demo_source()).origin is None


# -- attractor-nb commands ---------------------------------------------------------------------------


def test_commands_are_listed_without_being_run(command, file, tmp_path):
    ended = command("commands", "build.dot")
    assert ended.code == 0
    assert ended.out == (
        f'node build  tool_command\n  | touch "$ATTRACTOR_LOGS_ROOT/../built"\n\n1 command, hash {HASH}\n'
    )
    assert ended.err.startswith("not trusted yet")
    assert not (tmp_path / ".attractor").exists()


def test_commands_of_a_run_directory_are_listed(command, file):
    command(*RUN, "--trust")
    plain = json.loads(command("commands", "out/run", "--json").out)
    assert plain == {
        "file": "out/run",
        "hash": HASH,
        "is_trusted": True,
        "commands": [{"node": "build", "attribute": "tool_command", "text": 'touch "$ATTRACTOR_LOGS_ROOT/../built"'}],
    }


def test_a_pipeline_without_commands_says_so(command, sources):
    assert command("commands", "straight.dot").out == "no commands\n"
    plain = json.loads(command("commands", "straight.dot", "--json").out)
    assert (plain["hash"], plain["is_trusted"], plain["commands"]) == (None, True, [])
