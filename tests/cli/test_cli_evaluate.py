"""``attractor-nb evaluate``: a pipeline scored on the rows of a file, judged by gates, compared with a baseline."""

import csv
import json
import signal
import subprocess
import sys

import pytest

TRIAGE = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}
"""
CHECKS = """
from attractor_nb.evaluation import Scorer, contains, json_schema, judge

limit = 3

def strict(limit: int = 2) -> Scorer:
    return contains(str(limit))

def good(row):
    return row["good"]

def moody(row):
    if row["id"] == "b":
        raise ConnectionError("no network")
    return True

def _length(output):
    return len(output)

def parts(output):
    return {"size": len(output)}

def model(prompt):
    return '{"reason": "it is polite", "verdict": true}'

scorers = [json_schema({"type": "object"}), judge("Is it polite?", model="m", backend=model)]
several = [good, contains("Simulated")]
named = {"first": good, "size": _length}
made = contains("classify")
"""
ROWS = [{"id": name, "ticket": f"ticket {name}", "good": name != "d", "expected": "SECRET"} for name in "abcd"]
RUN = ("evaluate", "triage.dot", "--rows", "rows.jsonl", "-q", "--scorers")


def write_rows(place, rows):
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def tickets(sources, monkeypatch):
    (sources / "triage.dot").write_text(TRIAGE)
    (sources / "own_checks.py").write_text(CHECKS)
    write_rows(sources, ROWS)
    yield sources
    sys.modules.pop("own_checks", None)


def test_rows_are_scored_by_a_function_of_the_working_directory(command, tickets):
    before = list(sys.path)
    ended = command("evaluate", "triage.dot", "--rows", "rows.jsonl", "--scorers", "own_checks:good")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("4 rows   good 3 of 4 = 75 % (30 to 95 %)   simulated\n")
    assert "Failures: 1 of 4 rows" in ended.out
    assert "evaluation directory  .attractor/runs/" in ended.out
    assert ended.err.startswith("triage   4 runs to score\n")
    assert sys.path == before, "the working directory is importable for that module alone"


@pytest.mark.parametrize(
    ("given", "columns"),
    [
        (["own_checks:several"], ["good", "contains"]),
        (["own_checks:named"], ["first", "size"]),
        (["own_checks:made", "own_checks:good"], ["contains", "good"]),
        (["own_checks:scorers"], ["json_schema", "judge"]),
        (["contains:a", "contains:b"], ["contains:a", "contains:b"]),
        (
            ["equals", "equals:good", "matches:^\\[Sim", "route:classify", "visits:classify", "cost", "latency"],
            ["equals", "equals:good", "matches:^\\[Sim", "route:classify", "visits:classify", "cost", "latency"],
        ),
    ],
    ids=["a list", "a dict", "a factory's result", "those that need arguments", "two of a kind", "the ready ones"],
)
def test_scorers_are_named(command, tickets, given, columns):
    options = [part for each in given for part in ("--scorers", each)]
    ended = command(*RUN[:-1], *options, "--json")
    assert ended.code == 0, ended.err
    assert list(json.loads(ended.out)["scores"]) == columns


@pytest.mark.parametrize(
    ("scorer", "words", "hint"),
    [
        ("own_cheks:good", 'there is no module "own_cheks"; did you mean "own_checks"?', "own_cheks.py in "),
        (
            "own_checks:god",
            'the module own_checks has no "god"; did you mean "good"?',
            "it has: strict, good, moody, parts, model, scorers, several",
        ),
        (
            "own_checks:strict",
            "own_checks:strict: strict makes a scorer and is none itself",
            "scorers = [strict(…)], and",
        ),
        ("own_checks:judge", "judge makes a scorer and is none itself", "scorers = [judge(…)], and name the list"),
        ("judge", "judge makes a scorer and is none itself", "scorers = [judge(…)], and name the list: --"),
        ("json_schema:s.json", "json_schema makes a scorer and is none itself", "scorers = [json_schema(…)], and"),
        ("own_checks:limit", "--scorers own_checks:limit: a scorer must be a function, not int", "def correct("),
        ("own_checks.py:good", '"own_checks.py" is not the name of a module', "--scorers own_checks:NAME"),
        ("broken_checks:good", "the module broken_checks cannot be imported: ValueError: two lines", "python -c"),
        ("needy_checks:good", "the module needy_checks cannot be imported: ModuleNotFoundError", "python -c"),
        ("equal", 'there is no scorer "equal"; did you mean "equals"?', "MODULE:NAME"),
        ("cost:usd", "--scorers cost:usd: cost takes nothing", "--scorers cost"),
        ("matches", "--scorers matches: matches needs its REGEX", "--scorers matches:REGEX"),
        ("matches:(", "is no regular expression", "matches("),
        ("route:clasify", "has no node 'clasify'; did you mean \"classify\"?", "nodes: start, classify, done"),
    ],
)
def test_an_unusable_scorer_is_one_line_and_a_hint_before_anything_runs(command, tickets, scorer, words, hint):
    (tickets / "broken_checks.py").write_text('raise ValueError("two\\nlines")\n')
    (tickets / "needy_checks.py").write_text("import no_such_library\n")
    ended = command(*RUN, scorer)
    assert (ended.code, ended.out) == (2, "")
    message, remedy = ended.err.splitlines()
    assert message.startswith("error: ")
    assert words in message
    assert remedy.startswith(" hint: ")
    assert hint in remedy
    assert not (tickets / ".attractor").exists()


def test_two_scorers_of_one_name_are_refused_with_a_way_to_name_them(command, tickets):
    ended = command(*RUN, "own_checks:good", "--scorers", "own_checks:several")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        'error: two scorers have the name "good"\n hint: a dict of them in your module names each: MODULE:NAME\n'
    )
    assert not (tickets / ".attractor").exists()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["own_checks:good", "--at-least", "good=0.75"], 0, ""),
        (["own_checks:good", "--at-least", "good=0.8"], 1, "failed: good is 0.75, and at least 0.8 is asked for\n"),
        (["own_checks:parts", "--at-least", "parts.size=1"], 0, ""),
        (["own_checks:parts", "--at-least", "parts.siz=1"], 1, 'failed: there is no score "parts.siz"; did you mean'),
        (["own_checks:moody"], 1, "failed: 1 run unmeasured, and at most 0 allowed\n"),
        (["own_checks:moody", "--max-unmeasured", "1"], 0, ""),
        (["own_checks:moody", "--max-unmeasured", "1", "--at-least", "moody=1"], 0, ""),
    ],
)
def test_a_gate_makes_the_exit_code_and_says_why(command, tickets, options, code, words):
    ended = command(*RUN, *options)
    assert ended.code == code, ended.err
    assert ended.err.count("failed: ") == bool(words)
    assert words in ended.err


def test_rows_that_the_pipeline_failed_are_a_result_and_no_error(command, tickets):
    (tickets / "failing.dot").write_text((tickets / "failing.dot").read_text().replace("{", '{ inputs="ticket"', 1))
    ended = command("evaluate", "failing.dot", "--rows", "rows.jsonl", "--scorers", "equals", "--trust", "-q")
    assert ended.code == 0, ended.err
    assert "equals 0 of 4" in ended.out
    assert "exit code 3" in ended.out


def test_an_unmeasured_score_is_made_again_by_the_command_that_is_shown(command, tickets):
    ended = command(*RUN, "own_checks:moody", "--out", "kept")
    assert "Resume with `attractor-nb evaluate --resume kept --scorers own_checks:moody`" in ended.err
    (tickets / "own_checks.py").write_text(CHECKS.replace('== "b"', '== "never"'))
    del sys.modules["own_checks"]
    again = command(*ended.err.split("`")[1].split()[1:])
    assert again.code == 0, again.err
    assert "moody 4 of 4" in again.out
    assert again.err.count("had ended before") == 4


def test_results_are_written_as_lines_and_as_csv(command, tickets):
    assert command(*RUN, "own_checks:good", "--repeat", "2", "--out", "r.jsonl").code == 0
    lines = [json.loads(line) for line in (tickets / "r.jsonl").read_text().splitlines()]
    assert [(line["id"], line["repeat"], line["good"]) for line in lines][:3] == [
        ("a", 0, True),
        ("a", 1, True),
        ("b", 0, True),
    ]
    assert len(lines) == 8
    assert command(*RUN, "own_checks:good", "--out", "r.csv").code == 0
    with (tickets / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["good"], row["good.state"]) for row in rows][2:] == [
        ("c", "true", "scored"),
        ("d", "false", "scored"),
    ]


def test_the_columns_that_are_inputs_and_the_value_that_is_judged_are_named(command, tickets):
    refused = command("evaluate", "straight.dot", "--rows", "rows.jsonl", "--scorers", "equals")
    assert (refused.code, "declares no inputs" in refused.err) == (2, True)
    ended = command(
        *("evaluate", "straight.dot", "--rows", "rows.jsonl", "--inputs", "ticket, good", "--output", "ticket"),
        *("--scorers", "matches:^ticket", "--out", "kept", "-q"),
    )
    assert ended.code == 0, ended.err
    assert "matches:^ticket 4 of 4" in ended.out
    assert "SECRET" not in (tickets / "kept" / "inputs.jsonl").read_text()


def test_a_param_is_an_input_of_the_rows_that_lack_it(command, tickets):
    (tickets / "guided.dot").write_text(TRIAGE.replace('inputs="ticket"', 'inputs="ticket, guide"'))
    write_rows(tickets, [ROWS[0], {**ROWS[1], "guide": "its own"}])
    arguments = ("evaluate", "guided.dot", "--rows", "rows.jsonl", "--scorers", "cost", "-q")
    refused = command(*arguments)
    assert (refused.code, 'row 0 has no column "guide"' in refused.err) == (2, True)
    misspelt = command(*arguments, "--param", "guid=style")
    assert (misspelt.code, 'row 0 has no column "guide"' in misspelt.err) == (2, True)
    assert command(*arguments, "--param", "guide=style", "--out", "kept").code == 0
    lines = (tickets / "kept" / "inputs.jsonl").read_text().splitlines()
    assert [json.loads(line)["guide"] for line in lines] == ["style", "its own"]
    again = command("evaluate", "--resume", "kept", "--scorers", "cost", "--param", "guide=another")
    assert (again.code, "leave --param out" in again.err) == (2, True)
    assert command("evaluate", "--resume", "kept", "--scorers", "cost", "-q").code == 0


@pytest.fixture
def baseline(command, tickets):
    rows = [{**ROWS[number % 3], "id": f"r{number}", "ticket": f"ticket {number}"} for number in range(20)]
    write_rows(tickets, rows)
    assert command(*RUN, "own_checks:good", "--save-baseline", "base.jsonl").code == 0
    return rows


def test_a_worse_pipeline_fails_the_gate_and_the_summary_names_the_rows_that_it_lost(command, tickets, baseline):
    saved = (tickets / "base.jsonl").read_bytes()
    worse = [{**row, "good": number >= 8} for number, row in enumerate(baseline)]
    worse[19]["ticket"] = "another"
    write_rows(tickets, worse)
    ended = command(
        *(*RUN, "own_checks:good", "--baseline", "base.jsonl", "--max-worse", "0.02"),
        *("--markdown", "summary.md", "--save-baseline", "base.jsonl"),
    )
    assert ended.code == 1
    assert "failed: good: triage may be worse by more than 0.02: it lost 8 of 19 rows" in ended.err
    assert "base.jsonl is not written: a gate failed" in ended.err
    assert (tickets / "base.jsonl").read_bytes() == saved
    summary = (tickets / "summary.md").read_text()
    assert summary.startswith("**20 rows   good 12 of 20 = 60 %")
    assert "**good: triage is worse, \N{MINUS SIGN}42 points" in summary
    assert "| good | triage | 100 % | 58 % |" in summary
    assert "- good: triage lost 8 rows: r0, r1, r2, r3, r4, r5, r6, r7\n" in summary
    assert "- triage: 1 row with other inputs, not compared: r19\n" in summary
    for line in summary.splitlines()[-2:]:
        assert line.removeprefix("- ") in ended.out


def test_an_equal_pipeline_passes_the_gate_and_replaces_the_baseline(command, tickets, baseline):
    write_rows(tickets, [*baseline, {**ROWS[0], "id": "new"}])
    options = ("--baseline", "base.jsonl", "--max-worse", "good=0.02", "--save-baseline", "base.jsonl")
    ended = command(*RUN, "own_checks:good", *options)
    assert ended.code == 0, ended.err
    assert "good: triage is not decided" in ended.out
    assert len((tickets / "base.jsonl").read_text().splitlines()) == 22


def test_a_gate_fails_when_nothing_can_be_compared(command, tickets, baseline):
    write_rows(tickets, [{**row, "ticket": "changed"} for row in baseline])
    ended = command(*RUN, "own_checks:good", "--baseline", "base.jsonl", "--max-worse", "0.02")
    assert ended.code == 1
    assert "failed: good: no row of triage can be compared with base.jsonl" in ended.err
    assert command(*RUN, "own_checks:good", "--baseline", "base.jsonl").code == 0, "without the gate it is a result"


def test_a_scorer_of_another_version_is_said(command, tickets, baseline):
    (tickets / "own_checks.py").write_text(CHECKS.replace('row["good"]', 'bool(row["good"])'))
    del sys.modules["own_checks"]
    ended = command(*RUN, "own_checks:good", "--baseline", "base.jsonl")
    assert "good: the scorer of triage is not that of base.jsonl: its version differs" in ended.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at-least", "god=0.8"], "has no score 'god'; did you mean \"good\"?"),
        (["--at-least", "0.8"], "--at-least 0.8 names no score"),
        (["--at-least", "good=much"], "--at-least: 'much' is not a number"),
        (["--at-least", "good=nan"], "--at-least: 'nan' is not a number"),
        (["--max-worse", "0.02"], "--max-worse needs a baseline"),
        (["--max-worse", "-1", "--baseline", "base.jsonl"], "--max-worse: '-1' is not a number that it takes"),
        (["--max-worse", "god=0.1", "--baseline", "base.jsonl"], "has no score 'god'"),
        (
            ["--scorers", "cost", "--max-worse", "cost=0.1", "--baseline", "base.jsonl"],
            "base.jsonl has no score 'cost'\n hint: scores: good\n",
        ),
        (["--baseline", "nowhere.jsonl", "--max-worse", "1"], "nowhere.jsonl cannot be read"),
        (["--baseline", "rows.jsonl", "--max-worse", "1"], "rows.jsonl is no baseline"),
        (["--baseline", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["--markdown", "rows.jsonl"], "rows.jsonl is an input file"),
        (["--save-baseline", "nowhere/base.jsonl"], "there is no directory nowhere"),
        (["--out", "r.xlsx"], "results are not written as .xlsx"),
        (["--repeat", "0"], "--repeat"),
        (["--repeat", "2", "--cache"], "one answer, read again"),
        (["--durability", "none"], "keeps its runs and scores"),
        (["--simulate", "--gates", "console"], "the console cannot ask the gates of many rows"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(command, tickets, options, words):
    (tickets / "base.jsonl").write_text(
        '{"pipeline":"triage","graph":"0","data":"0","columns":{"good":{}}}\n'
        '{"id":"a","inputs":"0","scores":{"good":[{"value":true}]}}\n'
    )
    ended = command(*RUN, "own_checks:good", *options)
    assert (ended.code, words in ended.err) == (2, True), ended.err
    assert not (tickets / ".attractor").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the pipeline's FILE, or an evaluation to resume: --resume DIR"),
        (["triage.dot", "--scorers", "equals"], "evaluate needs rows: --rows FILE.jsonl"),
        (["triage.dot", "--rows", "rows.jsonl"], "evaluate needs scorers"),
        (["--resume", "kept"], "evaluate needs scorers"),
        (["--resume", "kept", "--scorers", "equals", "--rows", "rows.jsonl"], "leave --rows out"),
        (["--resume", "kept", "--scorers", "equals", "--repeat", "2"], "leave --repeat out"),
        (["--resume", "kept", "--scorers", "equals", "--out", "other"], "is resumed in its own directory"),
        (["--resume", "a map", "--scorers", "equals"], "a map holds no evaluation"),
        (["--resume", "nowhere", "--scorers", "equals"], "nowhere"),
    ],
)
def test_a_wrong_command_line_says_what_is_missing(command, tickets, arguments, words):
    if "kept" in arguments:
        command(*RUN, "equals", "--out", "kept")
    if "a map" in arguments:
        command("map", "straight.dot", "--params", "rows.jsonl", "--out", "a map", "-q")
    ended = command("evaluate", *arguments)
    assert ended.code == 2
    assert words in ended.err


def test_json_has_the_scores_the_comparison_and_the_gates(command, tickets, baseline):
    write_rows(tickets, [{**row, "good": False} for row in baseline])
    ended = command(
        *RUN, "own_checks:good", "--json", "--baseline", "base.jsonl", "--max-worse", "0.1", "--at-least", "good=0.5"
    )
    said = json.loads(ended.out)
    assert ended.code == 1
    assert said["scores"]["good"]["mean"] == 0.0
    assert said["comparison"]["differences"]["good"]["verdict"] == "worse"
    assert len(said["comparison"]["differences"]["good"]["lost"]) == 20
    assert [gate.split(":")[0] for gate in said["failed_gates"]] == ["good is 0, and at least 0.5 is asked for", "good"]
    assert len(said["rows"]) == 20


def test_bounds_of_all_rows_leave_runs_that_the_shown_command_continues(command, tickets):
    ended = command(*RUN, "own_checks:good", "--max-duration-all", "0s", "--save-baseline", "base.jsonl")
    assert ended.code == 1
    assert "runs unmeasured" in ended.err
    assert "4 runs left (max_duration_all=0s reached" in ended.out
    assert "pipeline." not in ended.out, "Python is not what the reader of a terminal types"
    assert not (tickets / "base.jsonl").exists()
    again = command(*ended.err.split("Resume with `")[1].split("`")[0].split()[1:])
    assert again.code == 0, again.err
    assert "good 3 of 4" in again.out


def test_an_evaluation_that_pauses_at_gates_ends_with_3(command, tickets):
    ended = command(
        *("evaluate", "review.dot", "--rows", "rows.jsonl", "--inputs", "ticket", "--scorers", "own_checks:good"),
        *("--gates", "pause", "--at-least", "good=1", "-q"),
    )
    assert ended.code == 3
    assert "failed: " not in ended.err, "what is not finished is not judged"
    assert "--scorers own_checks:good --gates pause`" in ended.err


def test_ctrl_c_stops_the_evaluation_and_says_how_to_go_on(started, tickets):
    (tickets / "slow.dot").write_text((tickets / "slow.dot").read_text().replace("{", '{ inputs="ticket"', 1))
    process = started(
        *("evaluate", "slow.dot", "--rows", "rows.jsonl", "--scorers", "own_checks:good", "--trust", "--out", "kept"),
        text=True,
    )
    assert process.stderr.readline() == "Slow   4 runs to score\n"
    for _ in range(3_000):
        if list(tickets.glob("kept/row-*/nap/began")) or list(tickets.glob("began")):
            break
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "4 unmeasured" in out
    assert "Resume with `attractor-nb evaluate --resume kept --scorers own_checks:good`" in err
    assert "Traceback" not in out + err


def test_commands_on_the_directory_of_an_evaluation_know_what_it_is(command, tickets):
    assert command(*RUN, "own_checks:moody", "--out", "kept", "--max-duration-all", "0s").code == 1
    resume = "attractor-nb evaluate --resume kept --scorers MODULE:NAME"
    watched = command("watch", "kept", "--once")
    assert f"Resume with `{resume}`" in watched.err
    examined = command("doctor", "kept")
    assert ": kept, an evaluation\n" in examined.out
    assert f"Resume with `{resume}`" in examined.out
    assert "  evaluation; max_duration_all" in command("runs", "--runs-dir", ".").out
    resumed = command("resume", "kept")
    assert resumed.code == 2
    assert "kept is an evaluation, and not the run of one of its rows" in resumed.err
    assert "evaluate --resume" in resumed.err


def test_an_evaluation_is_not_continued_as_a_map(command, tickets):
    """Its rows would run, and be paid, without being scored."""
    command(*RUN, "own_checks:good", "--out", "kept", "--max-duration-all", "0s")
    ended = command("map", "--resume", "kept", "-q")
    assert ended.code == 2
    assert "kept is an evaluation: as a map its rows would run without being scored" in ended.err
    assert "hint: `attractor-nb evaluate --resume DIR --scorers MODULE:NAME`" in ended.err
    assert not [place for place in (tickets / "kept").glob("row-*") if (place / "events.jsonl").exists()]


def test_runs_lists_an_evaluation_as_one(command, tickets):
    assert command(*RUN, "own_checks:good", "--out", "kept/scored").code == 0
    (listed,) = json.loads(command("runs", "--runs-dir", "kept", "--json").out)
    assert (listed["kind"], listed["stages"]) == ("evaluation", 4)


def test_watch_and_export_of_an_evaluation_show_its_verdict(command, tickets):
    assert command(*RUN, "own_checks:good", "--out", "kept").code == 0
    watched = command("watch", "kept", "--once").out
    assert "4 rows   good 3 of 4 = 75 % (30 to 95 %)" in watched
    assert "Failures: 1 of 4 rows" in watched
    assert command("export", "kept", "-o", "scores.html").code == 0
    assert "Evaluation of triage" in (tickets / "scores.html").read_text()
    refused = command("export", "kept", "--rows", "failed")
    assert refused.code == 2
    assert "--rows is for a map" in refused.err
