"""The frame: help, usage errors, codes, faults; and nothing slow before it is needed."""

import json

import pytest


def test_model_install_has_help_that_says_the_size(command):
    assert "93 MB" in command("model", "install", "--help").out


def test_the_list_of_commands_says_what_each_is_for_without_a_cut(command):
    listed = command("--help").out.partition("Commands:\n")[2].splitlines()
    assert len(listed) > 20
    assert [line for line in listed if line.endswith("...") or not line.endswith(".")] == []


def test_version(command):
    assert command("--version").out.startswith("attractor-nb 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["runn"],
        ["run"],
        ["run", "a.dot", "--no-such"],
        ["run", "a.dot", "--backend", "cloud"],
        ["graph", "a.dot", "-f", "bmp"],
    ],
    ids=["command", "argument", "option", "backend", "format"],
)
def test_a_usage_error_ends_with_2_and_names_the_help(command, arguments):
    ended = command(*arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert "--help" in ended.err


def test_a_choice_that_is_none_lists_the_choices_and_the_nearest(command):
    done = command("run", "pipeline.dot", "--backend", "simulate")
    assert done.code == 2
    choices = "simulated, local, llm, claude, codex, gemini"
    assert f'\'--backend\': "simulate" is not one of {choices}; did you mean "simulated"?' in done.err
    assert "Value error" not in done.err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--timeout", "--max-duration"),
        ("--inputs", "--param"),
        ("--budget", "--max-budget-usd"),
        ("--max-step", "--max-steps"),
    ],
)
def test_an_unknown_option_names_the_one_that_was_meant(command, given, meant):
    assert f'no such option: {given}; did you mean "{meant}"?' in command("run", "pipeline.dot", given, "3").err


def test_a_usage_error_is_json_for_programs(command):
    assert json.loads(command("run", "--json").out)["error"]["type"] == "OptionError"


def test_without_a_command_the_help_is_shown(command):
    ended = command()
    assert ended.code == 2
    assert "Commands:" in ended.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.dot", None, "cannot be read: No such file or directory"),
        ("latin.dot", b'digraph { a [label="\xe9"] }', "is not UTF-8 text (line 1)"),
        ("empty.dot", b"", "error: "),
    ],
    ids=["missing", "not UTF-8", "empty"],
)
def test_an_unreadable_source_ends_with_2(command, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ended = command("run", name)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_stdin_that_is_not_utf_8_ends_with_2(command):
    ended = command("parse", "-", stdin=b"\xff")
    assert (ended.code, ended.out) == (2, "")
    assert "stdin is not UTF-8 text" in ended.err


def test_a_fault_of_ours_is_a_report_and_no_traceback(command, sources, monkeypatch):
    from attractor_nb.cli import graph_reports as looking

    def fail(file):
        raise KeyError("x")

    monkeypatch.setattr(looking, "read_text", fail)
    ended = command("parse", "review.dot")
    assert ended.code == 1
    assert ended.err.startswith("error: internal error: KeyError: 'x'\n hint: set ATTRACTOR_TRACEBACK=1")
    assert "Traceback" not in ended.err


def test_a_traceback_that_was_asked_for_steers_no_terminal(command, sources, monkeypatch):
    from attractor_nb.cli import graph_reports as looking

    def fail(_path):
        raise RuntimeError("x\x1b]0;PWN\x07")  # its text is shown as it is

    monkeypatch.setenv("ATTRACTOR_TRACEBACK", "1")
    monkeypatch.setattr(looking, "read_text", fail)
    ended = command("parse", "review.dot")
    assert "Traceback" in ended.err
    assert "\x1b" not in ended.err


def test_an_interrupt_that_no_command_handles_ends_with_130_and_no_traceback(command, monkeypatch):
    def interrupted(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("attractor_nb.cli.entry.run_command_line", interrupted)
    ended = command("runs")
    assert (ended.code, ended.out, ended.err) == (130, "", "")
