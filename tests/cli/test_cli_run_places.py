"""The places where a command looks for a run: in a directory here, on the server that is named, on the usual one."""

import pytest

from attractor_nb.cli.remote_runs.server_client import ServerAddress, in_commands, read_run_address
from attractor_nb.cli.run_places import run_address

USUAL = "http://usual:1/#token=abc"


@pytest.fixture
def usual(monkeypatch):
    """A shell with a server of its own."""
    monkeypatch.setenv("ATTRACTOR_SERVER", USUAL)


@pytest.mark.parametrize(
    ("place", "server", "token", "found"),
    [
        ("r1", "http://h/p", "t", ServerAddress("http://h/p", "t", "r1")),
        ("http://h/pipelines/r1?token=t", None, None, ServerAddress("http://h", "t", "r1")),
        ("r1", None, None, ServerAddress("http://usual:1", "abc", "r1")),
        ("here", None, None, None),
        ("here", "http://h", "t", ServerAddress("http://h", "t", "here")),
        ("", None, None, None),
    ],
    ids=["named server", "URL", "usual server", "directory", "directory and a named server", "nothing"],
)
def test_the_nearest_word_decides(usual, tmp_path, place, server, token, found):
    (tmp_path / "here").mkdir()
    assert run_address(place, server, token) == found


@pytest.mark.parametrize("place", ["nowhere", "here", "", "x" * 5_000, "a\0b"])
def test_without_a_server_every_name_is_a_place_here(monkeypatch, tmp_path, place):
    monkeypatch.delenv("ATTRACTOR_SERVER", raising=False)
    (tmp_path / "here").mkdir()
    assert run_address(place, None, None) is None


def test_of_several_tokens_the_one_that_was_typed_counts_then_that_of_the_url(monkeypatch):
    monkeypatch.setenv("ATTRACTOR_TOKEN", "of-the-shell")
    url = "http://h/#token=of-the-url"
    assert run_address("r1", url, "typed").token == "typed"
    assert run_address("r1", url, None).token == "of-the-url"
    assert run_address("r1", "http://h/", None).token == "of-the-shell"


@pytest.mark.parametrize(
    ("place", "server", "token"),
    [
        ("http://usual:1/pipelines/r1", None, "abc"),
        ("r1", "http://usual:1", "abc"),
        ("r1", "http://usual:1/#token=own", "own"),
        ("r1", "http://usual:2", "of-the-shell"),
        ("r1", "http://usual:1/lab", "of-the-shell"),
        ("r1", "https://usual:1", "of-the-shell"),
        ("http://usual:1@evil.example/pipelines/r1", None, "of-the-shell"),
    ],
)
def test_a_url_that_a_command_printed_has_the_token_of_the_usual_server_and_no_other(
    usual, monkeypatch, place, server, token
):
    monkeypatch.setenv("ATTRACTOR_TOKEN", "of-the-shell")
    assert run_address(place, server, None).token == token


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("resume", "r1", "--simulate"), "--simulate applies to local runs"),
        (("resume", "r1", "--trust"), "--trust-hash HASH"),
        (("resume", "r1", "--gates", "auto"), "--gates applies to local runs"),
        (("resume", "r1", "--durability", "fast"), "--durability applies to local runs"),
        (("resume", "r1", "--cache"), "--cache applies to local runs"),
        (("resume", "r1", "--take-over"), "--take-over apply to local runs"),
        (("resume", "r1", "--graph", "a.dot"), "--graph and --take-over"),
        (("fork", "r1", "plan", "--workdir", "."), "--workdir applies to local runs"),
        (("fork", "r1", "plan", "--logs-root", "out"), "--logs-root apply to local runs"),
        (("fork", "r1", "plan", "--verbose"), "--verbose applies to local runs"),
    ],
)
def test_what_a_server_would_not_hear_of_is_refused_in_place_of_passed_over(command, stub, arguments, words):
    ended = command(*arguments, "--server", stub.url)
    assert ended.code == 2
    assert words in ended.err
    assert stub.asked == []


def test_only_what_was_said_is_sent(command, stub):
    stub.says("POST", "/pipelines/r1/resume", {"id": "r1", "status": "running"}, status=202)
    given = ("--from", "plan", "--visit", "2", "--on-interrupted", "rerun", "--max-steps", "9", "--backend", "llm")
    ended = command("resume", "r1", "--server", stub.url, "--trust-hash", "0" * 12, *given)
    assert ended.code == 0, ended.err
    assert stub.asked[0].body == {
        "on_graph_change": "error",
        "on_interrupted": "rerun",
        "rewind_to": "plan",
        "visit": 2,
        "backend": "llm",
        "trust": "0" * 12,
        "max_steps": 9,
    }


def test_a_run_is_stopped_only_where_a_server_is_named(command, waiting, monkeypatch):
    monkeypatch.delenv("ATTRACTOR_SERVER", raising=False)
    ended = command("cancel", "out")
    assert ended.code == 2
    assert "no server is given" in ended.err
    assert "Ctrl-C" in ended.err


def test_a_question_of_another_process_is_shown_with_the_way_to_answer_it(command, stub):
    question = {
        "id": "q1", "stage": "gate", "text": "Ship it?", "type": "multiple_choice",
        "options": [{"key": "A", "label": "[A] Approve"}], "branch": "",
        "how": "POST /pipelines/r1/resume asks it again",
    }  # fmt: skip
    stub.says("GET", "/pipelines/r1/graph?format=dot", "digraph { gate }", kind="text/vnd.graphviz")
    stub.says("GET", "/pipelines/r1", {"id": "r1", "status": "interrupted"})
    stub.says("GET", "/pipelines/r1/questions", {"questions": [question]})
    ended = command("watch", "r1", "--server", stub.url, "--once")
    assert ended.code == 130
    assert f"    `attractor-nb resume r1 --server {stub.url}` asks it again\n" in ended.out


def test_other_words_of_a_hint_stay():
    assert in_commands("GET /openapi.json describes it", "http://h") == ("GET /openapi.json describes it")


def test_a_usual_server_that_is_no_address_gives_no_token(monkeypatch):
    monkeypatch.setenv("ATTRACTOR_SERVER", "http://[::1")
    address = read_run_address("http://127.0.0.1:8765/pipelines/a", None)
    assert (address.run_id, address.token) == ("a", "")
