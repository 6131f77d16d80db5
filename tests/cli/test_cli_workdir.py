"""`--workdir`: where the commands of a pipeline run."""

import json

import pytest

WHERE = 'digraph { start [shape=Mdiamond] where [shape=parallelogram, tool_command="pwd"] done [shape=Msquare] start -> where -> done }'


@pytest.fixture
def place(sources):
    (sources / "where.dot").write_text(WHERE)
    (sources / "repo").mkdir()
    return sources / "repo"


def test_commands_run_in_the_directory_that_is_named_and_a_resume_finds_it_again(command, place):
    ended = command(
        "run", "where.dot", "--trust", "--workdir", "repo", "--logs-root", "out", "--max-steps", "1"
    )
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
    assert (ended.code, "workdir none is no directory" in ended.err) == (2, True)
    assert not (place.parent / "out").exists()
