"""Remedies at the command line: they name its options and commands, and Python only where it has none."""

import json
import re

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.cli.reporting import in_options, reason_in_options, report_in_options

PYTHON = re.compile(r'\b(?:run|pipeline|Run|Pipeline)\b\.?\w*\(|\w+=(?:True|\[|\{|…|"[^"]*")|ProviderBackend')


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ('pipeline.dot, or say on_graph_change="accept" or "warn"', "or say --on-graph-change accept or warn"),
        ("resume it: run.resume()", "resume it: `attractor-nb resume DIR`"),
        ('resume with Run.load("kept").resume()', "resume with `attractor-nb resume DIR`"),
        (
            "continue from an earlier stage: run.rewind(node), or run.fork(node)",
            "`attractor-nb resume DIR --from NODE`, or",
        ),
        (
            "go back with run.rewind('fix') or `attractor-nb resume kept --from fix`, or start",
            "go back with `attractor-nb resume kept --from fix`, or start",
        ),
        ("resume with your own pipeline, Pipeline(…).resume(directory)", "`attractor-nb resume DIR --graph FILE`"),
        ("your own pipeline, Pipeline(…).resume_map(directory)", "`attractor-nb map FILE --resume DIR`"),
        ('run.answer("review", "Y", form={"score": 7})', "`attractor-nb answer DIR GATE CHOICE`"),
        ('run.tell("plan", "Use two nails")', '`attractor-nb tell DIR "TEXT"`'),
        ("resume(…, backend=…) with the same", "`attractor-nb resume DIR --backend NAME` with the same"),
        (
            'give it again, backend=…, or replay: cassette_mode="replay"',
            "--backend NAME, or replay: --cassette-mode replay",
        ),
        ("or allow it: allow_remote=True", "or allow it: --allow-remote"),
        ("name another: resume(…, workdir=DIR), --workdir DIR on the command line", "name another: --workdir DIR"),
        ("a run can name one: workdir=, --workdir DIR", "a run can name one: --workdir DIR"),
        ('and an interviewer is asked: interviewer="console"', "is asked: --gates console"),
        ("see pipeline.lint()", "`attractor-nb validate FILE`"),
    ],
)
def test_a_remedy_in_python_has_its_command(python, words):
    assert words in in_options(python)
    assert not PYTHON.search(in_options(python))


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ('register it: Pipeline(…, functions={"count": count})', "register it in Python: Pipeline(…, functions="),
        ('Pipeline(…, guards={"sprint": …})', "in Python: Pipeline(…, guards="),
        ("wait longer: ProviderBackend(read_timeout_seconds=…)", "wait longer in Python: ProviderBackend("),
    ],
)
def test_what_the_command_line_has_no_option_for_is_said_to_be_python(python, words):
    assert in_options(python).startswith(words)


REASON = 'a calls the function "count", which is not registered (Pipeline(…, functions={"count": count}))'


def test_the_reason_of_a_stage_that_failed_says_what_is_python(command, sources):
    (sources / "own.dot").write_text(
        "digraph { start [shape=Mdiamond] a [function=count] done [shape=Msquare] start -> a -> done }"
    )
    Pipeline((sources / "own.dot"), severity={"function_known": "warning"}).run(
        wait=True, trust=True, logs_root=sources / "kept"
    )
    assert Run.load(sources / "kept").result().reason == REASON
    shown = command("watch", "kept", "--once").out
    assert "not registered (in" in shown  # the line is cut behind it


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (REASON, REASON.replace("(Pipeline", "(in Python: Pipeline")),
        ("max_steps=3 reached; the last failure: a: no", "max_steps=3 reached; the last failure: a: no"),
        ("the log says max_steps=3 (run.resume())", "the log says max_steps=3 (`attractor-nb resume DIR`)"),
        (") unbalanced )", ") unbalanced )"),
        ("", ""),
    ],
)
def test_a_reason_keeps_its_words_and_its_remedy_is_said_in_options(reason, shown):
    assert reason_in_options(reason) == shown


def test_what_is_quoted_from_a_source_stays():
    lines = ["wrong", ' 3 |  a [backend="llm", max_steps=3]', ' hint: give backend="llm"']
    assert list(report_in_options(lines)) == [*lines[:2], " hint: give --backend llm"]


def hints(ended):
    return [line for line in ended.err.splitlines() + ended.out.splitlines() if re.match(" (?:hint|fix): ", line)]


def test_hints_that_commands_show_name_no_python(command, sources):
    command("run", "review.dot", "--logs-root", "kept")
    (sources / "other.dot").write_text((sources / "review.dot").read_text().replace("Plan the work", "Plan it"))
    situations = (
        ("resume", "kept", "--graph", "other.dot"),
        ("run", "failing.dot", "--max-duration", "soon"),
        ("run", "straight.dot", "--workdir", "nowhere"),
        ("run", "straight.dot", "--workspace-from", "nowhere"),
        ("run", "straight.dot", "--cassette", "c.json", "--cassette-mode", "replay"),
        ("answer", "kept", "nowhere", "A"),
        ("tell", "kept", "hello"),
        ("serve", "--host", "0.0.0.0"),
        ("map", "straight.dot", "--params", "nowhere.jsonl"),
        ("fork", "kept", "nowhere"),
    )
    for arguments in situations:
        ended = command(*arguments)
        assert ended.code == 2, arguments
        assert not [line for line in (*hints(ended), ended.err.splitlines()[0]) if PYTHON.search(line)], arguments


def test_trust_is_given_in_options(command, sources):
    ended = command("run", "-", stdin=(sources / "failing.dot").read_bytes())
    (hint,) = hints(ended)
    assert re.search(r"then trust them: --trust-hash [0-9a-f]{12}, --trust, or ATTRACTOR_TRUST=", hint)


def test_findings_say_what_is_python(command, sources):
    (sources / "own.dot").write_text(
        "digraph { start [shape=Mdiamond] a [function=count] done [shape=Msquare] start -> a -> done }"
    )
    assert " fix: register it in Python: Pipeline(…, functions=" in command("validate", "own.dot").out
    (finding,) = json.loads(command("validate", "own.dot", "--json").out)["diagnostics"]
    assert finding["fix"].startswith("register it in Python: ")


def test_an_option_is_named_as_it_was_given(command, sources):
    ended = command("run", "straight.dot", "--max-duration", "soon")
    assert ended.err.startswith("error: --max-duration cannot be 'soon'\n")
