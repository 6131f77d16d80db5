"""`run` and `resume`: what they print where, and what they end with."""

import json
import re
from collections import Counter

import pytest


def only_run(base):
    (directory,) = base.glob("[!.]*")
    return directory


def test_a_successful_pipeline_ends_with_0_and_its_result_is_on_stdout(command, sources):
    ended = command("run", "straight.dot")
    assert ended.code == 0
    assert ended.out.startswith("✓ completed   3 stages")
    assert f"run directory  .attractor/runs/{only_run(sources / '.attractor/runs').name}" in ended.out


def test_progress_is_one_line_for_each_stage_on_stderr(command, sources):
    lines = command("run", "straight.dot").err.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("✓")] == [
        ["✓", "start"],
        ["✓", "write"],
        ["✓", "done"],
    ]
    assert "Write it" in next(line for line in lines if "write" in line)


def test_durations_stand_in_one_column(command, sources):
    (sources / "two.dot").write_text(
        "digraph { start [shape=Mdiamond]; a [label=x]; b_long_name [label=y]; done [shape=Msquare]\n"
        "start -> a -> b_long_name -> done }"
    )
    timed = [line for line in command("run", "two.dot").err.splitlines() if line.endswith(" s")]
    assert len(timed) == 2
    assert len({len(line) for line in timed}) == 1


def test_piped_output_has_no_escape_sequences(command, sources):
    ended = command("run", "straight.dot", "-v")
    assert "\x1b" not in ended.out + ended.err


def test_a_run_that_nobody_configured_says_that_it_is_simulated(command, sources):
    assert "responses are simulated" in command("run", "straight.dot").err


def test_verbose_shows_responses(command, sources):
    assert "[Simulated] Response for stage: write" in command("run", "straight.dot", "-v").err


def test_quiet_shows_the_result_alone(command, sources):
    ended = command("run", "straight.dot", "--quiet")
    assert ended.err == ""
    assert ended.out.startswith("✓ completed")


def test_a_failed_pipeline_ends_with_1_and_says_why(command, sources):
    ended = command("run", "failing.dot", "--trust")
    assert ended.code == 1
    assert ended.out.startswith("✕ failed")
    assert "exit code 3" in ended.out
    assert "✕ check" in ended.err


def test_a_failed_pipeline_ends_with_its_failed_stage_and_the_command_that_reruns_it(command, sources):
    (sources / "failing.dot").write_text(
        "digraph { start [shape=Mdiamond]; done [shape=Msquare]; load [shape=parallelogram,"
        ' tool_command="seq 1 30; echo no such table >&2; exit 1"]; start -> load -> done }'
    )
    ended = command("run", "failing.dot", "--trust")
    lines = ended.err.splitlines()
    told = lines[lines.index("load failed: the command ended with exit code 1: no such table") :]
    assert told[1:4] == ["  output, last lines:", "    23", "    24"]
    assert told[-4:-2] == ["  errors:", "    no such table"]
    assert told[-2].startswith("A resume would run nothing: every stage is committed. A rewind to load runs it again;")
    place = f".attractor/runs/{only_run(sources / '.attractor/runs').name}"
    assert told[-1] == f"Rerun it with `attractor-nb resume {place} --from load`"
    assert "load failed" not in ended.out


def test_lint_errors_end_with_2_and_nothing_is_run(command, sources):
    ended = command("run", "broken.dot")
    assert ended.code == 2
    assert ended.out == ""
    assert "broken.dot:5:23" in ended.err
    assert "^^^" in ended.err
    assert not (sources / ".attractor").exists()


def test_simulate_runs_no_command(command, sources):
    ended = command("run", "failing.dot", "--simulate")
    assert ended.code == 0
    directory = only_run(sources / ".attractor/runs")
    assert "[Simulated] echo no" in json.loads((directory / "checkpoint.json").read_text())["context"]["tool.output"]


def test_simulate_and_a_model_contradict_each_other(command, sources):
    ended = command("run", "straight.dot", "--simulate", "--backend", "local")
    assert ended.code == 2
    assert "--simulate and --backend local contradict" in ended.err


def test_json_lists_only_the_visited_stages(command, sources):
    ended = command("run", "failing.dot", "--trust", "--json")
    summary = json.loads(ended.out)
    assert ended.code == 1
    assert summary["status"] == "fail"
    assert [stage["id"] for stage in summary["stages"]] == ["start", "check"]
    assert summary["stages"][1]["status"] == "fail"
    assert "exit code 3" in summary["stages"][1]["failure_reason"]


def test_params_are_text_or_json(command, sources):
    command("run", "straight.dot", "--param", "ticket=42", "--param", "tries:=3", "--logs-root", "out")
    context = json.loads((sources / "out/checkpoint.json").read_text())["context"]
    assert (context["ticket"], context["tries"]) == ("42", 3)


@pytest.mark.parametrize(
    ("param", "message"),
    [
        ("ticket", "is not a key and a value"),
        ("=42", "is not a key and a value"),
        ("tries:=three", "--param tries:= is not JSON: expecting value at 1:1"),
        ("tries:=" + "[" * 5000, "--param tries:= is nested deeper than 100 levels"),
        ('tries:={"a": 1, "a": 2}', "--param tries:= says the key 'a' twice"),
        ("text=@nowhere.md", "nowhere.md cannot be read: No such file or directory"),
    ],
    ids=["no value", "no key", "bad JSON", "too deep", "twice", "no file"],
)
def test_a_wrong_param_ends_with_2(command, sources, param, message):
    ended = command("run", "straight.dot", "--param", param)
    assert ended.code == 2
    assert message in ended.err
    assert re.search("hint: .*--param", ended.err)


def test_a_param_may_be_the_text_of_a_file(command, sources):
    (sources / "t.md").write_text("\ufeffPrinter\nbroken\n", "utf-8")
    (sources / "d.json").write_text('{"a": [1]}')
    given = ("--param", "text=@t.md", "--param", "user=@@ada", "--param", "deep:=@d.json", "--param", "mail=a@b")
    assert command("run", "straight.dot", *given, "--logs-root", "out").code == 0
    context = json.loads((sources / "out/checkpoint.json").read_text())["context"]
    assert [context[key] for key in ("text", "user", "deep", "mail")] == [
        "Printer\nbroken\n",
        "@ada",
        {"a": [1]},
        "a@b",
    ]


def test_a_file_that_is_no_text_is_no_param(command, sources):
    (sources / "t.bin").write_bytes(b"a\n\xff")
    ended = command("run", "straight.dot", "--param", "text=@t.bin")
    assert (ended.code, "--param text: t.bin is not UTF-8 text (line 2)" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"ticket": "41", "tries": 3, "deep": {"a": null}}'),
        ("p.toml", 'ticket = "41"\ntries = 3\n[deep]\na = [1]'),
    ],
)
def test_params_of_a_file_are_replaced_by_those_of_the_command_line(command, sources, name, text):
    (sources / name).write_text(text)
    assert command("run", "straight.dot", "--params", name, "--param", "ticket=42", "--logs-root", "out").code == 0
    context = json.loads((sources / "out/checkpoint.json").read_text())["context"]
    assert (context["ticket"], context["tries"], type(context["deep"])) == ("42", 3, dict)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("p.json", '{"a": 1,\n', "p.json is not JSON: "),
        ("p.json", '{"a": 1, "a": 2}', "p.json "),
        ("p.json", "[{}]", "p.json is an array, not an object"),
        ("p.toml", "a = 1\nb =\n", "--> p.toml:2:1"),
        ("p.toml", f"a = {'[' * 5000}{']' * 5000}", "p.toml is nested too deep"),
        ("p.toml", "day = 2026-01-01", "context key 'day' cannot keep this value"),
        ("p.csv", "a\n1\n", "attractor-nb map runs a pipeline over the rows of a file"),
        ("p.yaml", "a: 1", "read from .json and .toml files"),
        ("p.toml", None, "p.toml cannot be read"),
    ],
)
def test_a_file_of_params_that_is_none_is_named(command, sources, name, text, words):
    if text is not None:
        (sources / name).write_text(text)
    ended = command("run", "straight.dot", "--params", name)
    assert (ended.code, words in ended.err) == (2, True)
    assert not (sources / ".attractor").exists()


def test_durations_may_be_fractions(command, sources):
    (sources / "nap.dot").write_text(
        "digraph { start [shape=Mdiamond] done [shape=Msquare] start -> nap -> done\n"
        'nap [shape=parallelogram, tool_command="sleep 60", timeout="0.1s"] }'
    )
    ended = command("run", "nap.dot", "--trust", "--max-duration", "0.5h", "--json", "-q")
    assert (ended.code, "timed out after 100ms" in json.loads(ended.out)["reason"]) == (1, True)


def test_logs_root_is_the_run_s_own_directory(command, sources):
    assert "run directory  out/mine" in command("run", "straight.dot", "--logs-root", "out/mine").out
    assert (sources / "out/mine/manifest.json").is_file()


def test_runs_dir_is_where_run_directories_are_made(command, sources):
    command("run", "straight.dot", "--runs-dir", "kept")
    assert (only_run(sources / "kept") / "manifest.json").is_file()


def test_a_directory_that_holds_a_run_is_not_used_for_another(command, sources):
    command("run", "straight.dot", "--logs-root", "out")
    before = sorted(path.name for path in (sources / "out").iterdir())
    ended = command("run", "straight.dot", "--logs-root", "out")
    assert ended.code == 2
    assert "out holds a run already" in ended.err
    assert sorted(path.name for path in (sources / "out").iterdir()) == before


def test_a_disk_that_refuses_during_the_run_ends_with_1(command, sources, monkeypatch):
    from attractor_nb.errors import StorageError
    from attractor_nb.pipeline.run import Run

    def refuse(self, timeout=None):
        raise StorageError("cannot write events.jsonl: no space left")

    monkeypatch.setattr(Run, "result", refuse)
    ended = command("run", "straight.dot")
    assert ended.code == 1
    assert "error: cannot write events.jsonl: no space left" in ended.err


def test_logs_root_and_runs_dir_contradict_each_other(command, sources):
    assert command("run", "straight.dot", "--logs-root", "a", "--runs-dir", "b").code == 2


def test_a_source_comes_from_stdin(command, sources):
    ended = command("run", "-", "--json", "-q", stdin=(sources / "straight.dot").read_bytes())
    assert json.loads(ended.out)["pipeline"] == "Straight"


def test_max_steps_ends_a_run_that_a_higher_bound_continues(command, sources):
    first = command("run", "straight.dot", "--max-steps", "1", "--logs-root", "out")
    assert first.code == 1
    assert "attractor-nb resume out" in first.err
    second = command("resume", "out", "--max-steps", "9", "--json")
    summary = json.loads(second.out)
    assert (second.code, summary["status"]) == (0, "success")
    assert [stage["id"] for stage in summary["stages"]] == ["start", "write", "done"]


@pytest.mark.parametrize("kept", [["--simulate"], ["--backend", "simulated"]], ids=" ".join)
def test_the_command_that_continues_keeps_what_answers_prompts(command, sources, kept):
    ended = command("run", "straight.dot", "--max-steps", "1", "--logs-root", "out", *kept)
    assert f"`attractor-nb resume out {' '.join(kept)} --max-steps N`" in ended.err


def test_the_command_that_continues_keeps_the_bounds_that_were_given(command, sources):
    given = ["--max-tokens-total", "900", "--max-budget-usd", "0.5"]
    ended = command("run", "straight.dot", "--max-steps", "1", "--logs-root", "out", *given)
    hint = ended.err.rpartition("attractor-nb resume out ")[2]
    assert hint.strip(" `\n") == "--max-steps N --max-budget-usd 0.5 --max-tokens-total 900"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-node-visits", "9"),
        ("--max-restarts", "0"),
        ("--max-goal-gate-redirects", "0"),
        ("--max-budget-usd", "0.5"),
        ("--max-tokens-total", "100"),
        ("--max-duration", "15m"),
    ],
)
def test_each_bound_has_its_option_for_run_and_for_resume(command, sources, option, value):
    command("run", "straight.dot", "--max-steps", "1", "--logs-root", "out", option, value)
    assert command("resume", "out", "--max-steps", "9", option, value).code == 0


def test_a_bound_that_is_none_is_refused_in_words(command, sources):
    ended = command("run", "straight.dot", "--max-duration", "soon")
    assert ended.code == 2
    assert "give a duration such as 15m or 1.5h, or seconds" in ended.err


def test_a_finished_run_is_not_resumed(command, sources):
    command("run", "straight.dot", "--logs-root", "out")
    ended = command("resume", "out")
    assert ended.code == 2
    assert "nothing to resume" in ended.err


def test_resuming_nothing_ends_with_2(command, sources):
    ended = command("resume", "nowhere")
    assert ended.code == 2
    assert "there is no run directory" in ended.err


def test_a_changed_graph_is_refused_until_it_is_accepted(command, sources):
    command("run", "straight.dot", "--max-steps", "1", "--logs-root", "out")
    (sources / "straight.dot").write_text((sources / "straight.dot").read_text().replace("Write it", "Write more"))
    refused = command("resume", "out", "--graph", "straight.dot")
    assert refused.code == 2
    assert "--on-graph-change accept" in refused.err
    accepted = command("resume", "out", "--graph", "straight.dot", "--on-graph-change", "accept", "--max-steps", 9)
    assert accepted.code == 0


def test_warnings_are_said_before_the_run(command, sources):
    (sources / "warned.dot").write_text(
        "digraph { start [shape=Mdiamond]; a [prompt=x]; b [prompt=y]; done [shape=Msquare]\n"
        "start -> a -> done; start -> b }"
    )
    warned = [line for line in command("run", "warned.dot").err.splitlines() if line.startswith("! ")]
    assert any("[dead_end]" in line for line in warned)


def test_json_and_quiet_say_that_responses_are_simulated(command, sources):
    plain = json.loads(command("run", "straight.dot", "--json", "-q").out)
    assert plain["is_simulated"] is True
    assert "simulated" in command("run", "straight.dot", "-q").out


def test_made_up_answers_are_told_wherever_the_run_is_seen(command, sources):
    command("run", "straight.dot", "--max-steps", "2", "--logs-root", ".attractor/runs/first")
    assert "simulated" in command("runs").out
    assert json.loads(command("runs", "--json").out)[0]["is_simulated"] is True
    assert "   simulated" in command("watch", ".attractor/runs/first", "--once").out
    resumed = command("resume", ".attractor/runs/first", "-q", "--max-steps", "9", "--backend", "simulated")
    assert "simulated" in resumed.out
    command("run", "failing.dot", "--trust", "--logs-root", "out/tools")
    assert "simulated" not in command("watch", "out/tools", "--once").out


def test_a_model_that_nobody_names_is_asked_for_in_words_of_the_command_line(command, sources):
    ended = command("run", "straight.dot", "--backend", "llm")
    assert ended.code == 2
    assert ended.err == (
        "error: node 'write' names no model\n"
        ' hint: write llm_model="…" on the node or the graph, or model_stylesheet="* { llm_model: …; }"\n'
    )


def test_a_resume_says_that_the_file_was_edited_and_how_to_run_it(command, sources):
    command("run", "failing.dot", "--trust", "--max-steps", "1", "--logs-root", "out/run")
    assert "has changed" not in command("resume", "out/run", "--trust", "--max-steps", "1").err
    (sources / "failing.dot").write_text((sources / "failing.dot").read_text().replace("echo no", "echo yes"))
    refused = command("resume", "out/run", "--trust", "--from", "nowhere")
    assert refused.code == 2
    assert "has changed" not in refused.err
    ended = command("resume", "out/run", "--trust", "--max-steps", "9")
    line = "attractor-nb resume out/run --graph failing.dot --on-graph-change accept"
    assert f"hint: `{line}` resumes with the current failing.dot\n" in ended.err
    assert "failing.dot has changed since this run began" in " ".join(ended.err.split())
    assert "exit code 3: no" in ended.out


FAILS_ONCE = 'tool_command="test -e mended || exit 3"'
FOR_GOOD = {
    "failed_stage": f"check [shape=parallelogram, {FAILS_ONCE}]  start -> check -> done",
    "behind_a_diamond": f"""check [shape=parallelogram, {FAILS_ONCE}]  sure [shape=diamond]
        start -> check -> sure  sure -> done [condition="outcome=success"]""",
    "gate": f"""on_fail=continue  check [shape=parallelogram, goal_gate=true, {FAILS_ONCE}]  tidy [label=Tidy]
        start -> check -> tidy -> done""",
}


@pytest.mark.parametrize("body", FOR_GOOD.values(), ids=FOR_GOOD)
def test_a_run_that_failed_for_good_names_the_command_that_goes_back(command, sources, body):
    (sources / "for_good.dot").write_text(f"digraph {{ start [shape=Mdiamond] done [shape=Msquare] {body} }}")
    run = ["run", "for_good.dot", "--trust", "--workdir", str(sources), "--logs-root", "out/run"]
    assert command(*run).code == 1
    refused = command("resume", "out/run", "--trust")
    assert refused.code == 2
    line = f"`attractor-nb resume {sources / 'out/run'} --from check`"
    assert line in refused.err
    (sources / "mended").touch()
    again = command(*line.strip("`").split()[1:], "--trust")
    assert again.out.startswith("✓ completed")


def test_a_gate_over_a_pipe_shows_each_key_once(command, sources):
    ended = command("run", "review.dot", "--gates", "console", stdin=b"A\n")
    assert "  [A] Approve\n  [R] Again\n" in ended.err


IN_BRANCHES = """\
digraph InBranches {
    graph [default_max_retries=0]
    start [shape=Mdiamond]
    split [shape=component]
    left  [shape=parallelogram, max_retries=2, retry_policy="none",
           tool_command="echo x >> left; test $(wc -l < left) -gt 1"]
    right [shape=parallelogram, tool_command="echo x >> right; test $(wc -l < right) -gt 2"]
    join  [shape=tripleoctagon]
    done  [shape=Msquare]
    start -> split
    split -> left
    split -> right
    left -> join
    right -> right [condition="outcome=fail"]
    right -> join [condition="outcome=success"]
    join -> done
}
"""


def test_json_counts_visits_and_attempts_of_branches_as_the_log_does(command, sources):
    (sources / "branches.dot").write_text(IN_BRANCHES)
    ended = command("run", "branches.dot", "--trust", "--json", "--logs-root", "out")
    log = [json.loads(line) for line in (sources / "out/events.jsonl").read_text().splitlines()]
    starts = Counter(
        (entry["branch"], entry["name"]) for entry in log if entry["type"] == "StageStarted" and entry.get("branch")
    )
    stages = [(branch["path"], stage) for branch in json.loads(ended.out)["branches"] for stage in branch["stages"]]
    counted = {(path, stage["id"]): stage["attempts"] for path, stage in stages}
    assert counted == starts
    assert {stage["id"]: (stage["visits"], stage["attempts"]) for _, stage in stages} == {
        "left": (1, 2),
        "right": (3, 3),
    }


def test_ruling_48_a_simulated_run_of_which_nothing_is_kept_is_marked(command, sources):
    ran = command("run", "straight.dot", "--durability", "none", "-q")
    assert "simulated" in ran.out.splitlines()[0]
    plain = json.loads(command("run", "straight.dot", "--durability", "none", "-q", "--json").out)
    assert (plain["is_simulated"], plain["mark"]) == (True, "simulated")
