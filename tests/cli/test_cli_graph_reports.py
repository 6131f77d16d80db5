"""Commands that run nothing."""

import json
import os
import re
import stat

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.diagnostic import MOST_LISTED

GENEROUS = """\
// kept
digraph G {
    start [shape=Mdiamond]
    write [label="Write"; prompt="Write"]
    done [shape=Msquare]
    start -> write -> done
}
"""


def test_parse_prints_canonical_dot(command, sources):
    ended = command("parse", "review.dot")
    assert ended.code == 0
    assert parse_dot(ended.out) == parse_dot((sources / "review.dot").read_text())
    assert command("parse", "-", stdin=ended.out.encode()).out == ended.out


def test_parse_prints_json(command, sources):
    parsed = json.loads(command("parse", "review.dot", "--json").out)
    assert [node["id"] for node in parsed["nodes"]] == ["start", "plan", "gate", "done"]
    assert parsed["edges"][2]["attrs"]["label"] == "[A] Approve"


def test_parse_says_what_it_read_out_of_generosity(command, sources):
    (sources / "generous.dot").write_text(GENEROUS)
    generous = command("parse", "generous.dot")
    assert generous.code == 0
    assert "warning[attr_separator]" in generous.err
    strict = command("parse", "generous.dot", "--strict")
    assert strict.code == 2
    assert "generous.dot:4:25" in strict.err


def test_validate_without_findings_says_so(command, sources):
    ended = command("validate", "review.dot")
    assert (ended.code, ended.out) == (0, "✓ review.dot: no findings (4 nodes, 4 edges)\n")


def test_of_very_many_findings_the_gravest_are_printed_and_the_number_of_the_others(command, sources):
    odd = "".join(f"n{number} [promt=x; prompt=p]\nstart -> n{number} -> done\n" for number in range(600))
    (sources / "odd.dot").write_text(GENEROUS.replace("start -> write", f"{odd}start -> write"))
    listed = r"(?m)^(?:error|warning|info)\["
    for told in (command("validate", "odd.dot").out, command("parse", "odd.dot").err):
        assert len(re.findall(listed, told)) == MOST_LISTED
        assert re.search(r"(?m)^and \d+ more findings$", told)
    shown = command("run", "odd.dot", "--simulate", "--durability", "none", "--max-steps", "1").err
    assert len(re.findall(r"(?m)^! ", shown)) == MOST_LISTED
    assert re.search(r"(?m)^and \d+ more findings$", shown)
    assert len(json.loads(command("validate", "odd.dot", "--json").out)["diagnostics"]) > 2 * MOST_LISTED


def test_validate_expands_a_pattern_that_no_shell_has_expanded(command, sources):
    ended = command("validate", "stra*.dot", "re?iew.dot")
    assert ended.code == 0
    assert [line.split(":")[0] for line in ended.out.splitlines() if line.startswith("✓")] == [
        "✓ straight.dot",
        "✓ review.dot",
    ]
    ended = command("validate", "nothing*.dot")
    assert (ended.code, "no file matches nothing*.dot" in ended.err) == (2, True)
    (sources / "[1].dot").write_text((sources / "review.dot").read_text())
    assert command("validate", "[1].dot").code == 0


def test_validate_shows_place_carets_and_remedy(command, sources):
    ended = command("validate", "broken.dot")
    assert ended.code == 2
    assert "error[edge_target_exists]" in ended.out
    assert "broken.dot:5:23" in ended.out
    assert "^^^" in ended.out
    assert ended.out.splitlines()[-1].startswith("✕ broken.dot: ")


def test_validate_json_is_one_document(command, sources):
    ended = command("validate", "broken.dot", "--json")
    report = json.loads(ended.out)
    assert ended.code == 2
    assert report["is_valid"] is False
    found = next(entry for entry in report["diagnostics"] if entry["rule"] == "edge_target_exists")
    assert found["place"] == {"file": "broken.dot", "line": 5, "column": 23}
    assert found["edge"] == ["write", "dne"]


def test_ruling_34_validate_says_what_a_pipeline_is_given_and_a_run_checks_it(command, sources, tmp_path):
    text = 'digraph P { inputs="ticket, tone=plain" start [shape=Mdiamond] done [shape=Msquare] start -> done }'
    (sources / "given.dot").write_text(text)
    assert command("validate", "given.dot").out.splitlines()[-1] == "inputs: ticket, tone=plain"
    told = json.loads(command("validate", "given.dot", "--json").out)["inputs"]
    assert [each["name"] for each in told] == ["ticket", "tone"]
    runs = tmp_path / "none"
    for given in ((), ("--param", "tikcet=4")):
        ended = command("run", "given.dot", "--runs-dir", str(runs), *given)
        assert ended.code == 2
        assert "inputs of P: " in ended.err
        assert "its inputs: ticket, tone=plain" in ended.err
    assert not runs.exists()
    assert command("run", "given.dot", "--runs-dir", str(runs), "--param", "ticket=4").code == 0


def test_a_syntax_error_is_json_for_programs(command, sources):
    (sources / "bad.dot").write_text("digraph {\n  a -- b\n}")
    ended = command("validate", "bad.dot", "--json")
    error = json.loads(ended.out)["error"]
    assert ended.code == 2
    assert ended.err == ""
    assert error["type"] == "DotSyntaxError"
    assert error["place"] == {"file": "bad.dot", "line": 2, "column": 5}
    assert error["hint"]


def test_all_syntax_errors_are_shown_at_once(command, sources):
    (sources / "bad.dot").write_text("digraph {\n  a -- b\n  c [goal_gate=yes]\n  d [label=]\n}")
    ended = command("validate", "bad.dot")
    assert ended.code == 2
    places = [line.removeprefix("  --> ") for line in ended.err.splitlines() if line.startswith("  --> ")]
    assert places == ["bad.dot:2:5", "bad.dot:3:16", "bad.dot:4:6"]

    found = json.loads(command("validate", "bad.dot", "--json").out)["error"]["diagnostics"]
    assert [(each["rule"], each["place"]["line"]) for each in found] == [("syntax", 2), ("bad_value", 3), ("syntax", 4)]


def test_strict_counts_warnings(command, sources):
    (sources / "generous.dot").write_text(GENEROUS)
    assert command("validate", "generous.dot").code == 0
    assert command("validate", "generous.dot", "--strict").code == 2


def test_fix_prints_the_diff_and_changes_nothing(command, sources):
    (sources / "generous.dot").write_text(GENEROUS)
    ended = command("validate", "generous.dot", "--fix")
    assert ended.code == 0
    assert '+    write [label="Write", prompt="Write"]' in ended.out
    assert (sources / "generous.dot").read_text() == GENEROUS


def test_fix_write_changes_the_file_and_keeps_its_rights_and_comments(command, sources):
    path = sources / "generous.dot"
    path.write_text(GENEROUS)
    path.chmod(0o640)
    assert command("validate", "generous.dot", "--fix", "--write").code == 0
    assert path.read_text() == GENEROUS.replace("; ", ", ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert command("validate", "generous.dot", "--strict").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--write"], "--write needs --fix"), (["--fix", "--json"], "--fix prints a diff; remove --json")],
    ids=["write alone", "diff as JSON"],
)
def test_options_of_a_fix_that_do_not_go_together_change_nothing(command, sources, options, words):
    (sources / "generous.dot").write_text(GENEROUS)
    ended = command("validate", "generous.dot", *options)
    assert ended.code == 2
    assert words in ended.err + ended.out
    assert (sources / "generous.dot").read_text() == GENEROUS


def test_stdin_cannot_be_fixed_in_place(command, sources):
    ended = command("validate", "-", "--fix", "--write", stdin=GENEROUS.encode())
    assert ended.code == 2
    assert "--write cannot change stdin" in ended.err


@pytest.mark.parametrize(
    ("graph_format", "pattern"),
    [
        ("text", r"pipeline Review: 4 nodes, 4 edges"),
        ("svg", r"^<svg "),
        ("dot", r"^digraph Review \{"),
        ("json", r'"name": "Review"'),
        ("mermaid", r"flowchart"),
    ],
)
def test_graph_in_each_format(command, sources, graph_format, pattern):
    ended = command("graph", "review.dot", "--format", graph_format)
    assert ended.code == 0
    assert re.search(pattern, ended.out)


def test_graph_writes_a_file(command, sources):
    ended = command("graph", "review.dot", "-f", "svg", "-o", "review.svg")
    assert (ended.code, ended.out) == (0, "")
    assert (sources / "review.svg").read_text().startswith("<svg ")
    assert stat.S_IMODE((sources / "review.svg").stat().st_mode) == 0o666 & ~_mask()


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("x.svg", b"<svg "),
        ("X.SVG", b"<svg "),
        ("x.png", b"\x89PNG"),
        ("x.dot", b"digraph Review {"),
        ("x.gv", b"digraph Review {"),
        ("x.json", b'{\n  "name": "Review"'),
        ("x.mmd", b"flowchart"),
        ("x.txt", b"pipeline Review"),
        ("x", b"pipeline Review"),
    ],
)
def test_the_suffix_of_the_file_decides_its_format(command, sources, name, beginning):
    assert command("graph", "review.dot", "-o", name).code == 0
    assert beginning in (sources / name).read_bytes()[:40]


@pytest.mark.parametrize("arguments", [["-f", "dot", "-o", "x.graph"], ["-f", "dot", "-o", "x.txt"]])
def test_a_named_format_needs_no_suffix_of_its_own(command, sources, arguments):
    assert command("graph", "review.dot", *arguments).code == 0
    assert (sources / arguments[-1]).read_text().startswith("digraph Review {")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x.svgg"], '.svgg is the suffix of no format; did you mean ".svg"?'),
        (["-o", "x.docx"], "use one of .svg, .png, .dot, .gv, .json, .mmd, .mermaid, .txt, .pdf, .ps, .eps, .jpg"),
        (["-o", "x.pdf"], "name its layout engine: --engine dot"),
        (["--engine", "dot", "-f", "text"], "--engine and --format text contradict each other"),
        (["--engine", "dot", "-f", "pdf"], "a PDF picture needs a file"),
        (["-f", "svg", "-o", "x.png"], "--format svg and -o x.png contradict each other"),
        (["--json", "-o", "x.dot"], "--format json and -o x.dot contradict each other"),
        (["-f", "png"], "a PNG picture needs a file"),
    ],
)
def test_a_file_whose_suffix_says_something_else_is_not_written(command, sources, arguments, words):
    before = sorted(sources.iterdir())
    ended = command("graph", "review.dot", *arguments)
    assert (ended.code, sorted(sources.iterdir())) == (2, before)
    assert words in ended.err + ended.out


def _mask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("arguments", "beginning"),
    [
        (["--engine", "neato", "-o", "x.pdf"], b"%PDF"),
        (["--engine", "circo", "-o", "x.png"], b"\x89PNG"),
        (["--engine", "dot", "-o", "x"], b"<?xml"),
        (["--engine", "twopi", "-f", "dot", "-o", "x"], b"digraph"),
    ],
    ids=["pdf", "png", "svg by default", "dot with places"],
)
def test_graphviz_draws_with_its_engines(command, sources, arguments, beginning):
    ended = command("graph", "review.dot", *arguments)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert (sources / arguments[-1]).read_bytes().startswith(beginning)


def test_a_picture_of_graphviz_goes_to_standard_output(command, sources):
    assert command("graph", "review.dot", "--engine", "dot").out.startswith("<?xml")


def test_analyse_prints_tables_or_json(command, sources):
    assert "every run passes" in command("analyse", "review.dot").out
    plain = json.loads(command("analyse", "review.dot", "--json").out)
    assert {"must_pass", "critical_path", "loops", "diagnostics"} <= plain.keys()
    assert command("analyse", "broken.dot").code == 2


def test_graph_into_no_directory_is_our_error(command, sources):
    ended = command("graph", "review.dot", "-o", "no/where.txt")
    assert ended.code == 2
    assert "no/where.txt cannot be written" in ended.err


def test_a_graph_with_errors_is_drawn(command, sources):
    assert command("graph", "broken.dot", "-f", "svg").code == 0


def test_handlers_lists_types_shapes_and_meanings(command):
    rows = {row["type"]: row for row in json.loads(command("handlers", "--json").out)}
    assert rows["wait.human"]["shape"] == "hexagon"
    assert rows["parallel.fan_in"]["shape"] == "tripleoctagon"
    assert "parallelogram" in command("handlers").out


def test_runs_lists_runs_newest_first_and_how_to_go_on(command, sources):
    command("run", "straight.dot")
    command("run", "failing.dot", "--trust")
    listed = command("runs")
    assert {"completed", "failed"} <= set(listed.out.split())
    rows = json.loads(command("runs", "--json").out)
    assert {row["pipeline"] for row in rows} == {"Straight", "Failing"}
    assert not any(row["is_resumable"] for row in rows)


def test_no_runs_is_no_error(command, sources):
    ended = command("runs")
    assert (ended.code, ended.out) == (0, "")
    assert "no runs in .attractor/runs" in ended.err


@pytest.mark.parametrize("arguments", [["review.dot"], ["broken.dot"], ["broken.dot", "--json"]])
def test_lint_is_another_name_of_validate(command, sources, arguments):
    assert command("lint", *arguments) == command("validate", *arguments)


@pytest.mark.parametrize("output", ["review.dot", "./review.dot", "link.dot"])
def test_graph_never_writes_over_its_input(command, sources, output):
    before = (sources / "review.dot").read_text()
    (sources / "link.dot").symlink_to("review.dot")
    ended = command("graph", "review.dot", "-f", "svg", "-o", output)
    assert (ended.code, (sources / "review.dot").read_text()) == (2, before)
    assert "is an input file" in ended.err


@pytest.mark.parametrize("body", ['a [type="wait_human", prompt="x"]', 'a [shape=parallelogram, type="verification"]'])
def test_validate_refuses_what_run_refuses(command, sources, body):
    """The command line has no handlers but the built-in ones."""
    (sources / "own.dot").write_text(
        f"digraph G {{ start [shape=Mdiamond] done [shape=Msquare] {body} start -> a -> done }}"
    )
    for ended in (command("validate", "own.dot"), command("run", "own.dot", "--simulate", "--durability", "none")):
        assert ended.code == 2
        assert "error[handler_missing]" in ended.out + ended.err


def test_validate_takes_several_files_and_one_that_cannot_be_read_hides_no_other(command, sources):
    (sources / "broken.dot").write_text("digraph {")
    ended = command("validate", "review.dot", "broken.dot", "nowhere.dot", "straight.dot")
    assert ended.code == 2
    assert [name in ended.out for name in ("review.dot: ", "straight.dot: ")] == [True, True]
    assert ["broken.dot" in ended.err, "nowhere.dot" in ended.err] == [True, True]
    assert command("validate", "review.dot", "straight.dot").code == 0
    plain = json.loads(command("validate", "review.dot", "straight.dot", "--json").out)
    assert [(each["file"], each["is_valid"]) for each in plain] == [("review.dot", True), ("straight.dot", True)]


def test_validate_as_json_keeps_the_findings_of_the_files_beside_one_that_cannot_be_read(command, sources):
    ended = command("validate", "review.dot", "nowhere.dot", "--json")
    good, missing = json.loads(ended.out)
    assert (ended.code, good["file"], good["is_valid"], missing["is_valid"]) == (2, "review.dot", True, False)
    assert missing["error"]["message"] == "nowhere.dot cannot be read: No such file or directory"


@pytest.mark.parametrize("columns", [60, 80])
def test_runs_at_a_narrow_terminal_have_a_block_of_whole_lines_each(command, sources, monkeypatch, columns):
    command("run", "straight.dot", "--simulate", "--runs-dir", "kept")
    (sources / "long.dot").write_text(
        "digraph A_pipeline_whose_name_is_rather_long { start [shape=Mdiamond] done [shape=Msquare]\n"
        'bad [shape=parallelogram, tool_command="echo one reason that takes more than a line of 60 >&2; exit 3"]\n'
        "start -> bad -> done }"
    )
    command("run", "long.dot", "--trust", "--runs-dir", "kept")
    wide = command("runs", "--runs-dir", "kept").out
    assert len(wide.splitlines()) == 3, "a pipe has a line for each run"
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("attractor_nb.cli.runs_list.is_terminal", lambda: True)
    shown = command("runs", "--runs-dir", "kept").out
    assert max(map(len, shown.splitlines())) <= columns
    first = shown.splitlines()[0]
    assert first == "0  ✕ failed  A_pipeline_whose_name_is_rather_long"
    assert re.search(r"\n   \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  .* s  2 stages\n   kept/\S+\n", shown)
    assert "exit code 3: one reason that takes more than a line of 60" in " ".join(shown.split())
    monkeypatch.setenv("COLUMNS", "300")
    assert command("runs", "--runs-dir", "kept").out == wide
