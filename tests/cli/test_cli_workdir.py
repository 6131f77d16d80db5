"""`--workdir`: where the commands of a pipeline run."""

import json
import subprocess

import pytest

WHERE = 'digraph { start [shape=Mdiamond] where [shape=parallelogram, tool_command="pwd"] done [shape=Msquare] start -> where -> done }'


@pytest.fixture
def place(sources):
    (sources / "where.dot").write_text(WHERE)
    (sources / "repo").mkdir()
    return sources / "repo"


def test_commands_run_in_the_directory_that_is_named_and_a_resume_finds_it_again(command, place):
    ended = command("run", "where.dot", "--trust", "--workdir", "repo", "--logs-root", "out", "--max-steps", "1")
    assert ended.code == 1, ended.err
    ended = command("resume", "out", "--trust", "--max-steps", "10")
    assert ended.code == 0, ended.err
    assert (place.parent / "out" / "where" / "stdout.txt").read_text() == f"{place}\n"


def test_rows_of_a_map_work_there_too(command, place):
    (place.parent / "rows.jsonl").write_text("{}\n")
    ended = command(
        "map", "where.dot", "--params", "rows.jsonl", "--trust", "--workdir", "repo", "--out", "out", "--json"
    )
    assert json.loads(ended.out)["status"] == "success", ended.err
    assert (place.parent / "out" / "row-00000" / "where" / "stdout.txt").read_text() == f"{place}\n"


def test_a_directory_that_there_is_not_ends_with_2_and_nothing_is_made(command, place):
    ended = command("run", "where.dot", "--trust", "--workdir", "none", "--logs-root", "out")
    assert (ended.code, "workdir none is not a directory" in ended.err) == (2, True)
    assert not (place.parent / "out").exists()


def test_verbose_shows_the_output_of_commands_as_it_comes_by_the_node_with_escapes(command, sources):
    (sources / "says.dot").write_text(
        r"""digraph { start [shape=Mdiamond] done [shape=Msquare]
        say [shape=parallelogram, tool_command="printf 'one\ntwo\033[2J\n'; printf 'no end' >&2"] start -> say -> done }"""
    )
    ended = command("run", "says.dot", "--trust", "-v")
    assert "    say | one\n" in ended.err
    assert "    say | two\\x1b[2J\n" in ended.err
    assert "    say | no end\n" in ended.err
    assert "\x1b[2J" not in ended.err
    assert "say |" not in command("run", "says.dot", "--trust").err


def test_isolation_and_what_a_workspace_begins_with_are_options(command, place):
    (place / "data.csv").write_text("1")
    (place.parent / "look.dot").write_text(WHERE.replace("pwd", "pwd; ls"))
    options = ("--isolation", "workspace", "--workspace-from", "repo")
    ended = command("run", "look.dot", "--trust", *options, "--logs-root", "out", "--json")
    assert ended.code == 0, ended.err
    there = place.parent / "out" / "workspace"
    assert (place.parent / "out" / "where" / "stdout.txt").read_text() == f"{there}\ndata.csv\n"
    assert json.loads(ended.out)["workdir"] == str(there)


def test_a_run_with_a_worktree_tells_its_branch_at_the_end(command, sources):
    (sources / "where.dot").write_text(WHERE)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], check=True, cwd=sources)
    ended = command("run", "where.dot", "--trust", "--isolation", "worktree")
    assert ended.code == 0, ended.err
    assert "changes on branch  attractor/" in ended.out
    assert "nothing is merged: git merge attractor/" in ended.out
