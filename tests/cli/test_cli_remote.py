"""`serve`, and all commands that speak to it: a real server, in a process of its own."""

import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys

import pytest

from attractor_nb import Run
from attractor_nb.account import signed_here
from attractor_nb.cli.remote_runs.remote import follow_events
from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress
from attractor_nb.storage.log.event_log import read_log
from tests import warm
from tests.waiting import read_until

DEFAULT_MAX_RUNS = 1_000
DEFAULT_MAX_STREAMS = 2_000

pytestmark = pytest.mark.timeout(180)
TOOL = """\
digraph Tool {
    start [shape=Mdiamond]
    check [shape=parallelogram, tool_command="echo hello"]
    done  [shape=Msquare]
    start -> check -> done
}
"""


class Served:
    """A server that was started by the command."""

    def __init__(self, process, root):
        line = process.stdout.readline()
        assert line, process.communicate()
        address = json.loads(line)
        self.process, self.root = process, root
        self.url, self.token = address["server"], address["token"]
        self.at = ("--server", self.url, "--token", self.token)

    def log(self, run_id):
        return read_log(self.root / run_id).events


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server for all tests here; what each finds of the others' runs must not matter to it."""
    root = tmp_path_factory.mktemp("served") / "runs"
    arguments = ["serve", "--port", "0", "--runs-dir", str(root), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "attractor_nb", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield Served(process, root)
        finally:
            process.send_signal(signal.SIGINT)


def wait_for(served, run_id, *types):
    """Follow a run until events of these types have happened, in this order."""
    left = list(types)
    events = follow_events(Client(ServerAddress(served.url, served.token)), run_id)
    for event in events:
        if event.type == left[0]:
            left.pop(0)
            if not left:
                events.close()
                return event
    raise AssertionError(f"the run has ended without {left[0]}")


@pytest.fixture
def asking(served, command, sources):
    """The id of a run on the server that waits at its gate."""
    submitted = command("submit", "review.dot", *served.at, "--json")
    assert submitted.code == 0, submitted.err
    run_id = json.loads(submitted.out)["id"]
    wait_for(served, run_id, "InterviewStarted")
    return run_id


def test_stdout_is_the_whole_address_with_the_token_and_nothing_else(started, sources):
    process = started("serve", "--port", "0", "--runs-dir", "runs")
    url = process.stdout.readline().decode().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", url)
    said = process.stderr.readline().decode()
    assert said == "serving the runs in runs: open that address, or give it to --server; Ctrl-C stops\n"
    address = url.partition("/#token=")[0]
    curl = f'curl -H "Authorization: Bearer ${{URL#*=}}" {address}/pipelines'
    assert process.stderr.readline().decode() == f"with that address in URL: {curl}\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert b"Traceback" not in err
    assert stat.S_IMODE((sources / "runs").stat().st_mode) == 0o700


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_each_user_has_an_address_and_answers_under_the_own_name(started, command, sources, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TOKEN", "the-secret-of-this-server")
    process = started("serve", "--port", "0", "--runs-dir", "runs", "--user", "ada", "--user", "grace")
    addresses = dict(process.stdout.readline().decode().split() for _ in range(2))
    assert list(addresses) == ["ada", "grace"]
    assert process.stderr.readline().decode() == (
        "serving the runs in runs: open the address of your name, or give it to --server; Ctrl-C stops\n"
    )
    monkeypatch.setenv("ATTRACTOR_SERVER", addresses["grace"])
    run_id = command("submit", "review.dot").out.split()[0]
    assert command("watch", run_id, "--once").code == 0
    answered = command("answer", run_id, "gate", "approve")
    assert (answered.code, answered.out) == (0, "✓ gate: approve\n")
    ended = command("watch", run_id, "--json").out.splitlines()
    [completed] = [event for event in map(json.loads, ended) if event["type"] == "InterviewCompleted"]
    assert completed["answered_by"] == "grace (command line)"
    monkeypatch.setenv("ATTRACTOR_SERVER", addresses["grace"].partition("#")[0])
    assert "refused the token" in command("runs").err  # the secret alone opens nothing
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    tokens = [address.partition("#token=")[2].encode() for address in addresses.values()]
    files = [file.read_bytes() for file in (sources / "runs").rglob("*") if file.is_file()]
    assert not [
        secret for secret in (*tokens, b"the-secret-of-this-server") for text in (*files, err) if secret in text
    ]


def test_the_addresses_of_users_are_one_line_of_json_each(started, sources):
    process = started("serve", "--port", "0", "--runs-dir", "runs", "--json", "--user", "ada", "--user", "grace")
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [line["user"] for line in lines] == ["ada", "grace"]
    assert [line["url"] for line in lines] == [f"{line['server']}/#token={line['token']}" for line in lines]


def test_the_printed_curl_command_works_and_curl_with_the_url_says_what_to_send(started, sources):
    process = started("serve", "--port", "0", "--runs-dir", "runs")
    url = process.stdout.readline().decode().strip()
    hint = next(line for line in process.stderr if b"curl" in line).decode()
    curl = hint.partition("URL: ")[2]
    answer = subprocess.run(
        curl, shell=True, capture_output=True, text=True, timeout=60, env={**os.environ, "URL": url}
    )
    assert json.loads(answer.stdout)["pipelines"] == []
    page = subprocess.run(["curl", "-s", url], capture_output=True, text=True, timeout=60)
    assert "curl -H 'Authorization: Bearer TOKEN' ADDRESS/pipelines" in page.stdout.splitlines()[1]


@pytest.mark.parametrize("outward", ["192.0.2.7", ""])
def test_a_server_that_listens_everywhere_says_how_other_machines_reach_it(command, sources, monkeypatch, outward):
    from attractor_nb.cli import serve_until_stopped

    monkeypatch.setattr(serve_until_stopped, "outward_address", lambda host: outward)
    url = "http://127.0.0.1:8765/lab/#token=" + "x" * 43
    monkeypatch.setattr(serve_until_stopped, "serve", lambda *_, on_ready, **__: on_ready(url))
    said = command("serve", "--host", "0.0.0.0", "--allow-remote").err
    assert "--allow-host NAME:8765" in said
    assert ("from other machines: http://192.0.2.7:8765/lab/ with the same #token=…" in said) is bool(outward)
    assert "x" * 43 not in said
    assert "from other machines" not in command("serve").err


def test_the_printed_line_is_all_that_the_other_commands_need(started, command, sources):
    process = started("serve", "--port", "0", "--runs-dir", "runs")
    url = process.stdout.readline().decode().strip()
    assert command("runs", "--server", url, "--json").out == "[]\n"
    assert "no runs on http" in command("runs", "--server", url).err
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    ended = command("runs", "--server", url)
    assert ended.code == 2
    assert "no server answers at http" in ended.err
    assert "attractor-nb serve" in ended.err


def test_the_limits_in_the_help_are_those_of_the_server(command):
    shown = command("serve", "--help").out
    assert f"({DEFAULT_MAX_RUNS})" in shown
    assert f"({DEFAULT_MAX_STREAMS})" in shown


@pytest.mark.campaign
def test_no_more_runs_are_taken_than_were_allowed(started, command, sources):
    process = started("serve", "--port", "0", "--runs-dir", "runs", "--max-runs", "1")
    url = process.stdout.readline().decode().strip()
    first = command("submit", "review.dot", "--server", url)
    second = command("submit", "review.dot", "--server", url)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert first.code == 0, first.err
    assert (second.code, second.out) == (2, "")
    assert "1 run" in second.err, second.err


def test_a_run_is_submitted_watched_answered_and_listed(command, started, served, sources):
    submitted = command("submit", "review.dot", *served.at)
    run_id, url = submitted.out.split()
    assert (submitted.code, url) == (0, f"{served.url}/pipelines/{run_id}")
    assert f"attractor-nb watch {url}" in submitted.err

    watching = started("watch", url, "--token", served.token)
    lines = iter(watching.stdout.readline, b"")
    asked = next(line.decode() for line in lines if line.startswith(b"?"))
    assert asked == "? gate   Good enough?   A: Approve   R: Again\n"
    assert next(lines).decode() == f"    attractor-nb answer {run_id} gate CHOICE --server {served.url}\n"

    answered = command("answer", run_id, "gate", "approve", *served.at)
    assert (answered.code, answered.out) == (0, "✓ gate: approve\n")
    rest = [line.decode() for line in lines]
    assert "→ Approve" in rest[0]
    assert rest[-1].startswith("✓ completed   Review")
    assert watching.wait(60) == 0

    (row,) = [row for row in json.loads(command("runs", *served.at, "--json").out) if row["id"] == run_id]
    assert (row["status"], row["pipeline"], row["url"]) == ("completed", "Review", url)
    assert next(event for event in served.log(run_id) if event.type == "InterviewCompleted").answered_by == signed_here(
        "command line"
    )


def test_at_a_terminal_a_run_of_a_server_moves_as_it_is_answered(command, served, asking):
    end, other = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "90", "LINES": "30", "ATTRACTOR_TOKEN": served.token}
    process = warm.Popen(
        [sys.executable, "-m", "attractor_nb", "watch", asking, "--server", served.url],
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment,
        start_new_session=True,
    )
    os.close(other)
    try:
        read_until(end, "? gate   Good enough?   A: Approve", "waiting   Review")
        assert command("answer", asking, "gate", "A", *served.at).code == 0
        text = read_until(end, "completed   Review", "\x1b[?25h")  # the cursor is back
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(end)
    assert "Traceback" not in text
    assert served.token not in text


def test_json_events_are_those_of_the_log(command, served, asking):
    command("answer", asking, "gate", "A", *served.at)
    ended = command("watch", asking, *served.at, "--json")
    assert ended.code == 0
    log = json.loads(json.dumps([event.to_plain() for event in served.log(asking)]))
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [event for event in found if event["type"] in {entry["type"] for entry in log}] == log


def test_as_it_stands_a_run_shows_its_states_and_its_question(command, served, asking):
    ended = command("watch", asking, *served.at, "--once")
    assert ended.code == 0
    head, *rows = ended.out.splitlines()
    assert head.startswith("? waiting   Review   2 stages")
    assert [row.split()[1:3] for row in rows[:4]] == [
        ["success", "start"], ["success", "plan"], ["waiting", "gate"], ["pending", "done"],
    ]  # fmt: skip
    assert rows[4].startswith("? gate   Good enough?")
    assert rows[5].startswith(f"    attractor-nb answer {asking} gate CHOICE --server")


def test_the_first_answer_counts_and_a_wrong_one_is_refused(command, served, asking):
    wrong = command("answer", asking, "gate", "perhaps", *served.at)
    assert wrong.code == 2
    assert "Approve" in wrong.err
    assert command("answer", asking, "gate", "A", *served.at).code == 0
    command("watch", asking, *served.at)
    late = command("answer", asking, "gate", "R", *served.at, "--json")
    assert late.code == 2
    assert json.loads(late.out)["error"]["type"] == "AlreadyAnswered"


def test_a_run_is_stopped_resumed_and_asks_its_question_again(command, served, asking):
    url = f"{served.url}/pipelines/{asking}"
    stopped = command("cancel", asking, *served.at)
    assert (stopped.code, stopped.out) == (0, f"{asking} is stopped\n")
    assert stopped.err == f"Resume with `attractor-nb resume {url}`\n"
    watched = command("watch", asking, *served.at)
    assert watched.code == 130
    assert f"Resume with `attractor-nb resume {url}`" in watched.err

    late = command("cancel", url, "--token", served.token)
    assert late.code == 2
    assert "stopped" in late.err
    unheard = command("answer", asking, "gate", "A", *served.at)
    assert unheard.code == 2
    assert f"resume it first: `attractor-nb resume {asking} --server {served.url}`" in unheard.err

    resumed = command("resume", asking, *served.at, "--json")
    assert resumed.code == 0, resumed.err
    assert {name: json.loads(resumed.out)[name] for name in ("id", "url")} == {"id": asking, "url": url}
    wait_for(served, asking, "PipelineResumed", "InterviewStarted")
    answered = json.loads(command("answer", url, "gate", "A", "--token", served.token, "--json").out)
    assert (answered["gate"], answered["id"], answered["answer"]) == ("gate", asking, "A")
    assert command("watch", asking, *served.at).code == 0
    started = [event.name for event in served.log(asking) if event.type == "StageStarted"]
    assert started.count("plan") == 1


def test_a_run_goes_back_to_before_a_visit(command, served, sources):
    run_id = json.loads(command("submit", "straight.dot", *served.at, "--json").out)["id"]
    assert command("watch", run_id, *served.at).code == 0
    again = command("resume", run_id, *served.at, "--from", "write", "--visit", "1", "-q")
    assert (again.code, again.err) == (0, "")
    assert again.out.split() == [run_id, f"{served.url}/pipelines/{run_id}"]
    assert command("watch", run_id, *served.at).code == 0
    assert [event.node for event in served.log(run_id) if event.type == "PipelineRewound"] == ["write"]


def test_a_fork_is_a_run_of_the_server_that_goes_another_way(command, served, sources):
    run_id = json.loads(command("submit", "straight.dot", *served.at, "--json").out)["id"]
    assert command("watch", run_id, *served.at).code == 0
    (sources / "better.txt").write_text("Write it better")
    given = ("--set", "tests:=3", "--prompt", "better.txt", "--json")
    forked = command("fork", run_id, "write", *served.at, *given)
    assert forked.code == 0, forked.err
    fork_id = json.loads(forked.out)["id"]
    assert fork_id != run_id
    assert command("watch", fork_id, *served.at).code == 0
    fork = Run.load(served.root / fork_id)
    assert fork["write"].prompt.endswith("- tests: 3\n\n## Task\n\nWrite it better")
    assert fork.result().context["tests"] == 3
    wrong = command("fork", run_id, "wrote", *served.at)
    assert wrong.code == 2
    assert 'did you mean "write"' in wrong.err


def test_the_address_may_come_from_the_environment(command, served, asking, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_SERVER", f"{served.url}/#token={served.token}")
    assert asking in command("runs").out
    assert "? gate   Good enough?" in command("watch", asking, "--once").out
    assert command("cancel", asking).code == 0
    assert command("resume", asking).code == 0  # at once: it stands when `cancel` returns
    wait_for(served, asking, "PipelineResumed", "InterviewStarted")
    assert command("answer", asking, "gate", "A").code == 0
    assert command("watch", asking).code == 0
    assert command("fork", asking, "plan").code == 0
    assert command("submit", "straight.dot").code == 0


PEEPING = """\
digraph Peeping {
    start [shape=Mdiamond]
    peep  [shape=parallelogram, tool_command="env; sys.executable -m attractor_nb answer run_id gate A 2>&1"]
    tell  [prompt="Said: $tool.output"]
    done  [shape=Msquare]
    start -> peep -> tell -> done
    peep -> done [condition="outcome=fail"]
}
"""


def test_ruling_43_a_command_neither_gets_the_servers_token_nor_can_answer_its_gates(
    command, served, asking, sources, monkeypatch
):
    monkeypatch.setenv("ATTRACTOR_SERVER", f"{served.url}/#token={served.token}")
    text = PEEPING.replace("sys.executable", sys.executable).replace("run_id", asking)
    (sources / "peeping.dot").write_text(text)
    ended = command("run", "peeping.dot", "--trust", "--logs-root", "peeped", "--json")
    assert json.loads(ended.out)["status"] == "success", ended.out
    said = "".join((sources / "peeped/peep/stdout.txt").read_text())
    assert "PATH=" in said, "the rest of the environment is inherited"
    assert "ATTRACTOR_SERVER" not in said
    files = [file for file in (sources / "peeped").rglob("*") if file.is_file()]
    assert [file for file in files if served.token.encode() in file.read_bytes()] == []
    assert served.token not in ended.out + ended.err
    assert "? gate   Good enough?" in command("watch", asking, "--once").out, "it still waits for a person"


def test_what_is_a_directory_here_is_meant_before_a_run_of_the_server(command, served, waiting, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_SERVER", f"{served.url}/#token={served.token}")
    assert "attractor-nb answer out gate CHOICE" in command("watch", "out", "--once").out
    assert command("answer", "out", "gate", "A").code == 0
    assert command("resume", "out").code == 0
    assert "run directory" in command("runs", "--runs-dir", ".").out


def test_runs_of_a_server_and_of_a_directory_are_the_same_json(command, served, asking):
    (there,) = [row for row in json.loads(command("runs", *served.at, "--json").out) if row["id"] == asking]
    here = json.loads(command("runs", "--runs-dir", served.root, "--json").out)
    (same,) = [row for row in here if row["logs_root"].endswith(asking)]
    assert set(there) - {"id", "url"} == set(same) - {"logs_root"}
    assert (there["run_id"], there["pipeline"]) == (same["run_id"], same["pipeline"])


def test_a_run_of_the_server_is_watched_in_its_directory_too(command, served, asking, monkeypatch):
    ended = command("watch", served.root / asking, "--once")
    assert "? gate   Good enough?" in ended.out
    monkeypatch.setattr("attractor_nb.storage.answer_box.AnswerBox.is_usable", False)  # others may write there
    refused = command("answer", served.root / asking, "gate", "A")
    assert refused.code == 2
    assert "over its server with --server URL" in refused.err


def test_a_wrong_token_is_let_in_nowhere(command, served, sources):
    for arguments in (
        ["runs"],
        ["submit", "review.dot"],
        ["watch", "r1"],
        ["answer", "r1", "gate", "A"],
        ["resume", "r1"],
        ["fork", "r1", "plan"],
        ["cancel", "r1"],
    ):
        ended = command(*arguments, "--server", served.url, "--token", "x" * 43)
        assert ended.code == 2
        assert "refused the token" in ended.err


def test_the_token_may_come_from_the_environment(command, served, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TOKEN", served.token)
    assert command("runs", "--server", served.url).code == 0


def test_the_token_is_in_nothing_that_the_other_commands_print(command, served, asking):
    for arguments in (["runs"], ["watch", asking, "--once"], ["watch", asking, "--once", "--json"]):
        ended = command(*arguments, *served.at)
        assert served.token not in ended.out + ended.err


def test_a_source_with_errors_is_refused_with_what_lint_says(command, served, sources):
    ended = command("submit", "broken.dot", *served.at)
    assert ended.code == 2
    assert "dne" in ended.err
    assert "^^^" in ended.err


def test_commands_are_run_by_a_server_only_with_their_hash(command, served, sources):
    (sources / "tool.dot").write_text(TOOL)
    refused = command("submit", "tool.dot", *served.at, "--json")
    assert refused.code == 2
    error = json.loads(refused.out)["error"]
    assert error["type"] == "UntrustedSource"
    assert "echo hello" in error["message"]
    surface = json.loads(command("commands", "tool.dot", "--json").out)["hash"]
    assert f"--trust-hash {surface[:12]}" in error["hint"]
    run_id = json.loads(command("submit", "tool.dot", *served.at, "--trust-hash", surface, "--json").out)["id"]
    assert command("watch", run_id, *served.at).code == 0


def test_inputs_and_bounds_travel_with_the_source(command, served, sources):
    given = ("--param", "ticket=42", "--param", "tries:=3", "--max-steps", "1")
    run_id = json.loads(command("submit", "straight.dot", *served.at, *given, "--json").out)["id"]
    assert command("watch", run_id, *served.at).code == 1
    assert dict(served.log(run_id)[0].inputs) == {"ticket": "42", "tries": 3}


def test_a_source_travels_with_the_texts_of_its_files(command, served, sources):
    (sources / "prompts").mkdir()
    (sources / "prompts" / "plan.md").write_text("Plan for everybody.")
    (sources / "filed.dot").write_text(
        'digraph { s [shape=Mdiamond] plan [prompt="@prompts/plan.md"] e [shape=Msquare] s -> plan -> e }'
    )
    ended = command("submit", "filed.dot", *served.at, "--json")
    assert ended.code == 0, ended.err
    run_id = json.loads(ended.out)["id"]
    assert command("watch", run_id, *served.at).code == 0
    assert Run.load(served.root / run_id)["plan"].prompt.endswith("Plan for everybody.")
    (sources / "prompts" / "plan.md").unlink()
    ended = command("submit", "filed.dot", *served.at)
    assert ended.code == 2
    assert "is not there" in ended.err


def test_runs_of_a_server_are_chosen_as_those_of_a_directory(command, served, asking):
    named = json.loads(command("runs", *served.at, "--pipeline", "review", "--json").out)
    assert asking in [row["id"] for row in named]
    assert {row["pipeline"] for row in named} == {"Review"}
    failed = json.loads(command("runs", *served.at, "--status", "failed", "--json").out)
    assert asking not in [row["id"] for row in failed]
    assert "none of the" in command("runs", *served.at, "--since", "2100-01-01").err
    assert asking in command("runs", *served.at).out


@pytest.mark.parametrize("answer", [{}, [], {"id": ""}], ids=["no id", "no object", "an empty id"])
def test_a_server_that_does_not_say_which_run_has_begun_is_named(command, stub, sources, answer):
    stub.says("POST", "/pipelines", answer)
    ended = command("submit", "straight.dot", "--server", stub.url)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: the server at {stub.url} did not return the id of the run\n")


def test_a_submission_has_the_inputs_of_files(command, stub, sources):
    (sources / "p.json").write_text('{"ticket": "41", "tries": 3}')
    (sources / "t.md").write_text("broken\n")
    stub.says("POST", "/pipelines", {"id": "r1"})
    given = ("--params", "p.json", "--param", "ticket=42", "--param", "text=@t.md")
    assert command("submit", "straight.dot", "--server", stub.url, *given).code == 0
    assert stub.asked[0].body["params"] == {"ticket": "42", "tries": 3, "text": "broken\n"}


def test_a_place_here_and_a_server_contradict_each_other(command):
    ended = command("runs", "--server", "http://127.0.0.1:1", "--runs-dir", "out")
    assert ended.code == 2
    assert "--runs-dir names a local folder" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--host", "0.0.0.0"], "other machines"), (["--token", "short"], "token"), (["--prefix", "../up"], "prefix")],
    ids=["bind", "token", "prefix"],
)
def test_what_would_not_be_safe_is_refused_before_anything_listens(command, sources, arguments, words):
    ended = command("serve", "--port", "0", *arguments)
    assert ended.code == 2
    assert words in ended.err
