"""Gates on the command line: asked, answered over a pipe, or failed; never approved by accident."""

import json

import pytest


def stages(ended):
    return {stage["id"]: stage for stage in json.loads(ended.out)["stages"]}


def test_without_a_terminal_a_gate_fails_and_says_what_to_do(command, sources):
    ended = command("run", "review.dot")
    assert ended.code == 1
    assert "gate `gate` needs an answer, and there is no terminal" in ended.out
    assert "--auto-approve" in ended.out


def test_auto_approve_takes_the_first_choice_and_says_so(command, sources):
    ended = command("run", "review.dot", "--auto-approve")
    assert ended.code == 0
    assert "Good enough? → Approve (auto-approved)" in ended.err


def test_answers_come_one_a_line_over_a_pipe(command, sources):
    ended = command("run", "review.dot", "--gates", "console", "--json", stdin=b"r\na\n")
    assert ended.code == 0
    assert stages(ended)["gate"]["visits"] == 2
    assert stages(ended)["plan"]["visits"] == 2


def test_a_wrong_answer_is_asked_again(command, sources):
    ended = command("run", "review.dot", "--gates", "console", stdin=b"perhaps\na\n")
    assert ended.code == 0
    assert "perhaps" in ended.err


@pytest.mark.parametrize("stdin", [b"", b"\n", b"perhaps"], ids=["nothing", "an empty line", "a wrong answer"])
def test_the_end_of_stdin_never_approves(command, sources, stdin):
    ended = command("run", "review.dot", "--gates", "console", stdin=stdin)
    assert ended.code == 1
    assert "done" not in [line.split()[1] for line in ended.err.splitlines() if line.startswith("✓")]


def test_gates_refuse_asks_nobody(command, sources):
    assert command("run", "review.dot", "--gates", "refuse", stdin=b"a\n").code == 1


def test_auto_approve_and_another_mode_contradict_each_other(command, sources):
    ended = command("run", "review.dot", "--auto-approve", "--gates", "console")
    assert ended.code == 2
    assert "contradict" in ended.err
