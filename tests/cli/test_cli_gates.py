"""Gates on the command line: asked, answered over a pipe, or failed; never approved by accident."""

import json
import re

import pytest

from attractor_nb import parse_dot
from attractor_nb.cli.run_watched import WatchedRun
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, PipelineStarted


def stages(ended):
    return {stage["id"]: stage for stage in json.loads(ended.out)["stages"]}


def test_without_a_terminal_a_gate_fails_and_says_what_to_do(command, sources):
    ended = command("run", "review.dot")
    assert ended.code == 1
    assert "gate `gate` needs an answer, and there is no terminal" in ended.out
    assert "--gates pause" in ended.out
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


def test_gates_pause_stops_the_run_there_and_says_how_it_goes_on(command, sources):
    ended = command("run", "review.dot", "--gates", "pause", "--logs-root", "out")
    assert (ended.code, ended.out.split()[:2]) == (3, ["‖", "paused"])
    assert "? gate   Good enough?   A: Approve   R: Again\n    attractor-nb answer out gate CHOICE\n" in ended.err
    assert "Stopped at `gate`; resume with `attractor-nb resume out --gates pause`" in ended.err

    assert command("watch", "out", "--once").code == 3
    assert command("resume", "out", "--gates", "pause").code == 3, "nobody has answered"
    assert command("answer", "out", "gate", "r").code == 0
    again = command("resume", "out", "--gates", "pause", "--json")
    assert (again.code, json.loads(again.out)["status"], stages(again)["plan"]["visits"]) == (3, "paused", 2)
    assert command("answer", "out", "gate", "a").code == 0
    assert command("resume", "out", "--gates", "pause").code == 0


def test_a_gate_that_was_answered_while_the_run_is_paused_is_pending_with_its_answer(command, sources):
    command("run", "review.dot", "--gates", "pause", "--logs-root", "there")
    assert command("answer", "there", "gate", "a").code == 0
    shown = command("watch", "there", "--once")
    (line,) = [line for line in shown.out.splitlines() if re.search(r"\bgate\b", line)]
    assert re.match(r". pending +gate .*answered: \S", line)
    assert not re.search(r"[\d.]+ s", line)
    assert "is answered" in command("doctor", "there").out
    assert json.loads(command("doctor", "there", "--json").out)["answered_gate"] == "gate"


def test_the_time_until_an_answer_is_no_time_of_a_run_whose_process_is_gone():
    run = WatchedRun(parse_dot("digraph { start [shape=Mdiamond] g [shape=hexagon] done [shape=Msquare] }"))
    run.take(PipelineStarted(name="p", id="1", time=10.0))
    run.take(InterviewStarted(question="ok?", stage="g", question_id="g:1", time=11.0))
    run.take(InterviewCompleted(question="ok?", stage="g", question_id="g:1", answer="Y", duration=89, time=100.0))
    run.lose("abandoned")
    assert run.elapsed(200.0) == 1.0


def test_a_paused_map_says_how_it_goes_on(command, sources):
    (sources / "rows.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    ended = command("map", "review.dot", "--params", "rows.jsonl", "--gates", "pause", "--out", "all", "--json")
    rows = json.loads(ended.out)["rows"]
    assert (ended.code, [row["status"] for row in rows]) == (3, ["interrupted", "interrupted"])
    assert "attractor-nb map --resume all --gates pause" in ended.err
    for row in rows:
        assert command("answer", sources / "all" / row["directory"], "gate", "a").code == 0
    assert command("map", "--resume", "all", "--gates", "pause").code == 0


def test_a_process_that_is_paused_ends_by_itself_and_leaves_the_run_free(started, command, sources):
    process = started("run", "review.dot", "--gates", "pause", "--logs-root", "out")
    shown = process.communicate(timeout=60)
    assert process.returncode == 3, shown
    assert command("answer", "out", "gate", "a").code == 0
    assert command("resume", "out", "--gates", "refuse").code == 0


def test_a_paused_run_is_paused_again_where_nobody_can_be_asked(command, sources):
    """The command that `answer` and `watch` print must not end the run for good at its next gate."""
    assert command("run", "review.dot", "--gates", "pause", "--logs-root", "out").code == 3
    shown = command("watch", "out", "--once")
    assert shown.out.startswith("‖ paused   "), shown.out
    assert command("resume", "out").code == 3
    assert command("answer", "out", "gate", "r").code == 0
    again = command("resume", "out")
    assert (again.code, "Stopped at `gate`" in again.err) == (3, True)
    assert command("resume", "out", "--gates", "refuse").code == 1


def test_paused_rows_of_a_map_are_paused_again(command, sources):
    (sources / "rows.jsonl").write_text('{"a": 1}\n')
    assert command("map", "review.dot", "--params", "rows.jsonl", "--gates", "pause", "--out", "all").code == 3
    assert command("map", "--resume", "all").code == 3
    assert command("answer", sources / "all" / "row-00000", "gate", "a").code == 0
    assert command("map", "--resume", "all").code == 0
