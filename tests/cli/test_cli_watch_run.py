"""`watch` of a run directory: as it stands, as it goes on, at a terminal and in a pipe."""

import io
import json
import os
import pty
import re
import signal
import sys
import threading

import pytest

from attractor_nb import FunctionBackend, Pipeline, Run, Usage, diagnose_run
from attractor_nb.cli import main, run_watching
from attractor_nb.cli.run_watched import RunFollower, WatchedRun, drawn_run
from attractor_nb.errors import RunNotFound, TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import PipelineStarted, StageStarted
from attractor_nb.model.states import NodeStatus
from attractor_nb.storage.log.event_log import read_log
from tests import warm
from tests.waiting import read_until, wait_until

PENDING = NodeStatus.PENDING.letter
GATES = """\
digraph Gates {
    start  [shape=Mdiamond]
    plan   [label="Plan the work", prompt="Plan"]
    first  [shape=hexagon, label="Good enough?"]
    second [shape=hexagon, label="Ship it?"]
    done   [shape=Msquare]
    start -> plan -> first
    first -> second [label="[A] Approve"]
    first -> plan   [label="[R] Again"]
    second -> done  [label="[S] Ship"]
}
"""
LOOP = """\
digraph Loop {
    start [shape=Mdiamond]
    work  [prompt="Work"]
    check [shape=hexagon, label="Good?"]
    done  [shape=Msquare]
    start -> work -> check
    check -> done [label="[Y] Yes"]
    check -> work [label="[N] No", loop_restart=true]
}
"""
STRAIGHT = """\
digraph Straight {
    start [shape=Mdiamond]
    write [label="Write it", prompt="Write"]
    done  [shape=Msquare]
    start -> write -> done
}
"""


@pytest.fixture
def gates(sources):
    """A run that waits at its first gate, in this process; ended at the end."""
    (sources / "gates.dot").write_text(GATES)
    run = Pipeline(sources / "gates.dot").run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("first", 60)
    yield run
    run.cancel()
    run.result(60)


def watched(logs_root):
    run = WatchedRun(Run.load(logs_root).graph)
    for batch in RunFollower(logs_root, is_once=True):
        for event in batch:
            run.take(event)
    return run


def drawn(run, **options):
    return drawn_run(
        run, lambda gate: f"answer {gate.stage}", **{"now": 0.0, "columns": 96} | options
    ).plain.splitlines()


def test_as_it_stands_a_live_run_shows_states_and_the_question_that_waits(command, gates):
    ended = command("watch", "out", "--once")
    assert (ended.code, ended.err) == (0, "")
    head, *rows = ended.out.splitlines()
    assert re.match(r"\? waiting   Gates   2 stages   .* s   simulated$", head)
    assert [row.split()[:2] for row in rows[:5]] == [
        ["✓", "success"], ["✓", "success"], ["?", "waiting"], [PENDING, "pending"], [PENDING, "pending"],
    ]  # fmt: skip
    assert rows[1].split()[2] == "plan"
    assert rows[5] == "? first   Good enough?   A: Approve   R: Again"
    assert rows[6] == "    attractor-nb answer out first CHOICE"


def test_of_a_run_that_stands_still_it_says_how_its_question_is_answered(command, waiting):
    ended = command("watch", "out", "--once")
    assert ended.code == 130
    assert "    attractor-nb answer out gate CHOICE" in ended.out
    assert "Resume with `attractor-nb resume out`" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "mark"),
    [(["straight.dot"], 0, "✓ completed"), (["failing.dot", "--trust"], 1, "✕ failed")],
    ids=["success", "failure"],
)
def test_the_exit_code_says_how_the_run_ended(command, sources, arguments, code, mark):
    command("run", *arguments, "--logs-root", "out")
    ended = command("watch", "out")
    assert ended.code == code
    assert ended.out.splitlines()[-1].startswith(mark)


def test_ruling_51_a_run_whose_stage_could_not_be_executed_ends_it_with_1(command, sources):
    """Code 130 is for a run that a user stopped."""

    def refuse(node, prompt, context):
        raise TerminalError("the account has no credit left", is_unmeasured=True)

    run = Pipeline(sources / "straight.dot").run(backend=FunctionBackend(refuse), logs_root=sources / "out")
    assert run.result(60).status == "interrupted"
    ended = command("watch", "out")
    assert ended.code == 1
    assert "no credit left" in ended.out


def test_in_a_pipe_stages_and_questions_are_lines_as_they_happen(started, gates):
    process = started("watch", "out")
    lines = iter(process.stdout.readline, b"")
    assert next(lines).decode().split()[:2] == ["✓", "start"]
    assert next(lines).decode().split()[:2] == ["✓", "plan"]
    assert next(lines).decode().startswith("? first   Good enough?")
    assert "attractor-nb answer out first CHOICE" in next(lines).decode()
    gates.answer("first", "A")
    assert "→ Approve" in next(lines).decode()
    assert next(lines).decode().startswith("? second   Ship it?")
    next(lines)
    gates.answer("second", "S")
    rest = [line.decode() for line in lines]
    assert [line.split()[:2] for line in rest] == [["✓", "second"], ["✓", "done"], ["✓", "completed"]]
    assert process.wait(60) == 0


def test_json_is_a_line_for_each_event_of_the_log(command, sources):
    command("run", "straight.dot", "--logs-root", "out")
    ended = command("watch", "out", "--json")
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 0
    assert [event["sequence"] for event in found] == list(range(1, len(found) + 1))
    events = read_log(sources / "out").events
    assert found == json.loads(json.dumps([event.to_plain() for event in events]))


def test_at_a_terminal_stages_are_lines_and_what_waits_moves_beneath_them(gates):
    end, other = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = warm.Popen(
        [sys.executable, "-m", "attractor_nb", "watch", "out"],
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": "90", "LINES": "30"},
        start_new_session=True,
    )
    os.close(other)
    try:
        read_until(end, "plan    Plan the work", "? first   Good enough?   A: Approve   R: Again", "waiting   Gates")
        gates.answer("first", "A")
        read_until(end, "Good enough? → Approve", "? second   Ship it?   S: Ship")
        gates.answer("second", "S")
        text = read_until(end, "completed   Gates", "\x1b[?25h")  # the cursor is back
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(end)
    assert "Traceback" not in text


def test_a_run_whose_process_is_gone_is_said_to_have_been_left(command, waiting):
    lines = (waiting / "events.jsonl").read_bytes().splitlines(keepends=True)
    (waiting / "events.jsonl").write_bytes(b"".join(line for line in lines if b"PipelineInterrupted" not in line))
    for name in ("manifest.json", "manifest.previous.json", "checkpoint.json", "checkpoint.previous.json"):
        (waiting / name).unlink(missing_ok=True)
    ended = command("watch", "out")
    assert ended.code == 130
    assert ended.out.splitlines()[-1].startswith("‖ stopped")
    assert "Resume with `attractor-nb resume out`" in ended.err


def test_following_ends_when_nobody_works_at_the_run(gates):
    looks = []

    def wait(seconds):
        looks.append(seconds)
        if len(looks) == 1:
            gates.answer("first", "A")
            gates.wait_for_gate("second", 60)
        elif len(looks) == 2:
            gates.answer("second", "S")
            gates.result(60)

    batches = [[event.type for event in batch] for batch in RunFollower(gates.logs_root, wait=wait)]
    assert [names[-1] for names in batches if names] == ["InterviewStarted", "InterviewStarted", "PipelineCompleted"]
    sequences = [event.sequence for event in read_log(gates.logs_root).events]
    assert sum(len(names) for names in batches) == len(sequences)


def test_a_restart_is_followed_into_its_directory(sources):
    run = Pipeline(LOOP).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("check", 60)
    run.answer("check", "N")
    run.wait_for_gate("check", 60)
    run.answer("check", "Y")
    assert run.result(60).status == "success"
    found = [event for batch in RunFollower(sources / "out") for event in batch]
    assert [event.type for event in found].count("PipelineStarted") == 2
    assert found[-1].type == "PipelineCompleted"


def test_what_a_rewind_sets_aside_is_shown_no_more(sources):
    Pipeline(sources / "straight.dot").run(wait=True, logs_root=sources / "out")
    again = Run.load(sources / "out").rewind("write")
    assert again.result(60).status == "success"
    run = watched(sources / "out")
    assert run.view.stages == 3
    assert run.view.nodes["write"].visits == 2


@pytest.mark.parametrize("columns", [30, 40, 60, 96])
def test_nothing_is_wider_than_the_terminal(gates, columns):
    run = watched(gates.logs_root)
    drawing = drawn_run(run, lambda gate: COMMAND, now=0.0, columns=columns).plain.splitlines()
    assert all(len(line) <= columns for line in drawing)


COMMAND = "attractor-nb answer some/where first CHOICE"


def test_where_there_is_little_room_words_give_way_and_times_stay(sources):
    text = STRAIGHT.replace("Write it", "Write it as well as you can, and a bit better")
    usage = Usage(input_tokens=1_200, output_tokens=34, cost_usd=0.0031, calls=1)
    backend = FunctionBackend(lambda node, prompt, context: Response("text", usage=usage))
    Pipeline(text, backend=backend).run(wait=True, logs_root=sources / "out")
    run = watched(sources / "out")
    wide, middle, narrow = (drawn(run, columns=columns)[2] for columns in (0, 80, 44))
    assert wide.endswith(" s  1,234 tokens, $0.0031")
    assert "and a bit better" in wide
    assert middle.endswith(" s  1,234 tokens, $0.0031")
    assert "and a bit better" not in middle
    assert "\N{HORIZONTAL ELLIPSIS}" in middle
    assert narrow.endswith(" s")
    assert len(narrow) <= 44


def test_where_there_is_little_room_choices_and_command_are_whole(gates):
    run = watched(gates.logs_root)
    shown = drawn_run(run, lambda gate: COMMAND, now=0.0, columns=40).plain
    question = shown[shown.index("\n? first   ") + 1 :].splitlines()
    assert question[:2] == ["? first   Good enough?", "    A: Approve   R: Again"]
    assert "\n".join(question[2:]).replace("\\\n", " ").split() == COMMAND.split()
    assert len(question) == 4


def test_what_may_be_old_is_said_to_be(gates):
    run = watched(gates.logs_root)
    before = drawn(run)
    run.report_trouble("the stream broke")
    assert "! the stream broke" in drawn(run)
    run.report_trouble("")
    assert drawn(run) == before


def test_in_a_pipe_nothing_is_folded(gates):
    assert drawn(watched(gates.logs_root), columns=0)[-1] == "    answer first"


@pytest.fixture
def many(command, sources):
    """A map of three rows, of which the second fails."""
    (sources / "some.dot").write_text(
        "digraph Some { start [shape=Mdiamond] done [shape=Msquare] start -> check -> done\n"
        "check [shape=parallelogram, tool_command=\"! grep -Eq 'ticket[^0-9]+2' $ATTRACTOR_CONTEXT_FILE\"] }"
    )
    (sources / "rows.jsonl").write_text("".join(f'{{"ticket": {number}}}\n' for number in (1, 2, 3)))
    assert command("map", "some.dot", "--params", "rows.jsonl", "--out", "many", "--trust").code == 1
    return sources / "many"


def test_a_map_is_no_run_to_be_diagnosed_and_nothing_to_be_salvaged(command, many):
    with pytest.raises(RunNotFound, match="is a map, and not the run of one of its rows"):
        diagnose_run(many)
    refused = command("doctor", "many", "--salvage", "new")
    assert refused.code == 2
    assert "--salvage needs the run directory of a row, such as MAP_DIR/row-00000" in refused.err
    assert not (many.parent / "new").exists()


def test_a_map_is_shown_with_its_totals_and_its_failures_first(command, many):
    shown = command("watch", "--once", "many")
    assert shown.code == 1
    lines = shown.out.splitlines()
    assert lines[0].startswith("✕ failed   3 of 3 rows   2 completed, 1 failed")
    assert lines[1].startswith("failed in check")
    assert [line.split()[:3] for line in lines[4:]] == [
        ["1", "✕", "failed"],
        ["0", "✓", "completed"],
        ["2", "✓", "completed"],
    ]
    assert "exit code 1" in lines[4]
    assert "`attractor-nb map --resume many --failed retry`" in shown.err
    plain = json.loads(command("watch", "--once", "--json", "many").out)
    assert plain["counts"] == {"success": 2, "fail": 1, "interrupted": 0, "not_started": 0, "running": 0}
    assert [row["row"] for row in plain["rows"]] == [1, 0, 2]


def test_a_map_that_has_ended_is_a_line_of_json_for_each_row_and_one_for_all(command, many):
    *rows, whole = map(json.loads, command("watch", "--json", "many").out.splitlines())
    assert sorted((row["row"], row["status"]) for row in rows) == [(0, "success"), (1, "fail"), (2, "success")]
    assert (whole["status"], whole["counts"]["fail"]) == ("fail", 1)


def test_a_map_of_another_process_is_watched_until_it_stops(command, started, sources):
    (sources / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    working = started("map", "slow.dot", "--params", "rows.jsonl", "--out", "many", "--trust", text=True)
    wait_until((sources / "began").exists)
    wait_until(lambda: command("watch", "--once", "many").out.count("● running") == 3)
    shown = command("watch", "--once", "many")
    assert shown.code == 0
    assert shown.out.startswith("● running   0 of 2 rows")
    watching = started("watch", "many", text=True)
    assert "Slow   2 rows" in watching.stderr.readline()
    working.send_signal(signal.SIGINT)
    assert working.wait(60) == 130
    out, err = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert "stopped   0 of 2 rows   2 stopped" in out
    assert "Resume with `attractor-nb map --resume many`" in err


@pytest.mark.parametrize(
    "arguments",
    [("resume", "many"), ("fork", "many", "check"), ("answer", "many", "check", "A"), ("tell", "many", "hurry")],
    ids=lambda arguments: arguments[0],
)
def test_a_command_for_one_run_names_those_for_a_map(command, many, arguments):
    refused = command(*arguments)
    assert refused.code == 2
    assert "many is a map, and not the run of one of its rows" in refused.err
    assert "many/row-00000" in refused.err
    assert "`attractor-nb watch`" in refused.err
    assert "`attractor-nb map --resume`" in refused.err


def test_the_doctor_of_a_map_says_how_its_rows_are_and_how_it_goes_on(command, many):
    found = command("doctor", "many")
    assert found.code == 0
    assert found.out.startswith("✓ healthy: many, a map\n\n✕ failed   3 of 3 rows   2 completed, 1 failed")
    assert "Try the failed rows again with `attractor-nb map --resume many --failed retry`" in found.out
    assert command("doctor", "many", "--salvage", "saved").code == 2


def test_the_doctor_of_a_map_names_what_is_damaged(command, many):
    (many / "row-00002" / "events.jsonl").write_text("nonsense\n{}\n")
    for name in ("manifest.json", "manifest.previous.json"):
        (many / "row-00002" / name).unlink(missing_ok=True)
    (many / "inputs.jsonl").write_text('{"ticket": 9}\n')
    found = command("doctor", "many")
    assert found.code == 1
    assert found.out.startswith("✕ damaged: many, a map")
    assert "damaged   row-00002" in found.out
    assert "damaged   inputs.jsonl   has 1 rows, and map.json has 3" in found.out
    plain = json.loads(command("doctor", "many", "--json").out)
    assert (plain["verdict"], sorted(plain["damages"])) == ("damaged", ["inputs.jsonl", "row-00002"])


def test_ctrl_c_ends_the_watching_and_not_the_run(started, gates):
    process = started("watch", "out")
    process.stdout.readline()
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")
    assert gates.status == "waiting"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "events"])
def test_a_reader_that_goes_away_ends_the_watching(started, gates, options):
    process = started("watch", "out", *options)
    process.stdout.readline()
    process.stdout.close()
    gates.answer("first", "A")
    assert process.wait(60) == 0
    assert process.stderr.read() == b""


def test_when_the_reader_of_lines_has_gone_nothing_more_is_awaited(gates, monkeypatch):
    class Once(RunFollower):
        def __iter__(self):
            yield next(super().__iter__())
            pytest.fail("the run was watched on")

    monkeypatch.setattr(run_watching, "RunFollower", Once)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with io.TextIOWrapper(os.fdopen(write_end, "wb")) as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(["watch", "out"]) == 0
        monkeypatch.undo()


def test_a_run_whose_source_is_damaged_is_shown_as_its_events_tell(command, waiting):
    (waiting / "pipeline.dot").write_text("digraph { -- }")
    ended = command("watch", "out", "--once")
    assert ended.code == 130
    assert "plan" in ended.out
    assert "attractor-nb answer out gate CHOICE" in ended.out


def test_a_run_on_a_server_is_shown_without_its_graph_and_the_fault_that_ends_it_is_said(command, stub):
    events = [PipelineStarted(name="p", id="r"), StageStarted(name="write", index=0)]
    frames = "".join(f"id: 0.{number}\ndata: {json.dumps(event.to_plain())}\n\n" for number, event in enumerate(events))
    stub.says("GET", "/pipelines/r", {"status": "running"})
    stub.says("GET", "/pipelines/r/graph?format=dot", "digraph { -- }", kind="text/vnd.graphviz")
    stub.says("GET", "/pipelines/r/events", frames + 'event: fault\ndata: {"detail": "the log is damaged"}\n\n')
    ended = command("watch", "r", "--server", stub.url, "--json")
    *seen, last = [json.loads(line) for line in ended.out.splitlines()]
    assert [event["type"] for event in seen] == ["PipelineStarted", "StageStarted"]
    assert last["error"]["message"] == "the server cannot read run r any more: the log is damaged"
    assert (ended.code, ended.err) == (2, "")


def test_a_damaged_log_is_reported(command, waiting):
    lines = (waiting / "events.jsonl").read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"type"', b'"tipe"')
    (waiting / "events.jsonl").write_bytes(b"".join(lines))
    ended = command("watch", "out", "--json")
    assert ended.code == 2
    assert json.loads(ended.out)["error"]["type"] == "CheckpointCorrupt"


def test_two_may_watch_one_run(gates):
    seen = [[], []]

    def follow(events):
        for batch in RunFollower(gates.logs_root):
            events += [event.sequence for event in batch]

    threads = [threading.Thread(target=follow, args=(events,)) for events in seen]
    for thread in threads:
        thread.start()
    gates.answer("first", "A")
    gates.wait_for_gate("second", 60)
    gates.answer("second", "S")
    gates.result(60)
    for thread in threads:
        thread.join(60)
    whole = [event.sequence for event in read_log(gates.logs_root).events]
    assert seen == [whole, whole]
