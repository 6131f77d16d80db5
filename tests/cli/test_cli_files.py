"""Files that a command reads whole: a pipe without a writer, a device without an end, a directory."""

import json
import os

import pytest

READS_A_FILE = {
    "validate": ["validate", "FILE"],
    "parse": ["parse", "FILE"],
    "graph": ["graph", "FILE"],
    "run": ["run", "FILE"],
    "submit": ["submit", "FILE", "--server", "http://127.0.0.1:9"],
    "run --params": ["run", "straight.dot", "--params", "FILE"],
    "map --params": ["map", "straight.dot", "--params", "FILE"],
    "--param": ["run", "straight.dot", "--param", "text=@FILE"],
    "--param as JSON": ["run", "straight.dot", "--param", "text:=@FILE"],
    "map --param": ["map", "straight.dot", "--params", "rows.jsonl", "--param", "text=@FILE"],
    "resume --graph": ["resume", "old", "--graph", "FILE"],
    "fork --graph": ["fork", "old", "write", "--graph", "FILE"],
    "fork --prompt": ["fork", "old", "write", "--prompt", "FILE"],
    "fork --set": ["fork", "old", "write", "--set", "text=@FILE"],
}
NO_FILE = {
    "pipe": (os.mkfifo, "it is a pipe, and nobody writes to it", "start the command that writes to it first"),
    "device": (lambda place: place.symlink_to("/dev/zero"), "has more than ", "name a smaller file"),
    "directory": (os.mkdir, "it is a directory", "name a file"),
}


@pytest.mark.parametrize("kind", NO_FILE)
@pytest.mark.parametrize("arguments", READS_A_FILE.values(), ids=list(READS_A_FILE))
def test_what_is_no_file_to_read_whole_ends_with_2_and_a_remedy(command, sources, tmp_path, arguments, kind):
    make, message, remedy = NO_FILE[kind]
    name = "given.json" if "--params" in arguments else "given.dot"
    make(tmp_path / name)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    if "old" in arguments:
        assert command("run", "straight.dot", "--logs-root", "old", "--quiet").code == 0
    done = command(*[each.replace("FILE", name) for each in arguments])
    assert done.code == 2
    assert f"{name} " in done.err
    assert message in done.err
    assert f"hint: {remedy}" in done.err


@pytest.mark.parametrize("arguments", [["parse", "-"], ["tell", "old", "-"]], ids=["source", "message"])
def test_stdin_is_read_within_a_bound(command, sources, monkeypatch, arguments):
    assert command("run", "straight.dot", "--logs-root", "old", "--quiet").code == 0
    monkeypatch.setattr("attractor_nb.cli.source_inputs.MAX_SOURCE_BYTES", 1000)
    done = command(*arguments, stdin=b" " * 1001)
    assert done.code == 2
    assert "stdin has more than 1,000 bytes" in done.err


def test_a_pipe_to_which_a_command_writes_is_read(command, sources):
    reads, writes = os.pipe()
    os.write(writes, json.dumps({"text": "a"}).encode())
    os.close(writes)
    (sources / "given.json").symlink_to(f"/dev/fd/{reads}")
    assert command("run", "straight.dot", "--params", "given.json").code == 0
    os.close(reads)
