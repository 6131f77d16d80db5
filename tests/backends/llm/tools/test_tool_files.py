"""The file tools of models: only below the working directory, only text, only so much."""

import errno
import os

import pytest

from attractor_nb.backends.llm.tools import file_tools
from attractor_nb.backends.llm.tools.file_tools import ToolProblem, list_files, parts_of, read_file, write_file
from attractor_nb.redaction import learn
from attractor_nb.storage.files.disk import Disk

MAX_LISTED = 1000
MAX_WRITTEN_BYTES = 1024 * 1024
MAX_RESULT_CHARACTERS = 50_000


@pytest.fixture
def root(tmp_path):
    """A working directory, with a stranger's file beside it."""
    (tmp_path / "outside.txt").write_text("not yours")
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\n")
    return root


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../outside.txt", "has '..' in it"),
        ("src/../../outside.txt", "has '..' in it"),
        ("/etc/passwd", "outside of the working directory"),
        ("", "is not a path"),
        ("  ", "is not a path"),
        ("a\0b", "is not a path"),
        ("a\ud800", "is not a path here"),
        ("x" * 2000, "more than 1024 characters"),
    ],
    ids=["up", "up-and-down", "absolute", "empty", "blank", "nul", "surrogate", "long"],
)
def test_a_path_that_leads_out_or_is_none_is_refused(root, path, message):
    for tool in (read_file, list_files, lambda root, path: write_file(root, path, "x")):
        with pytest.raises(ToolProblem, match=message):
            tool(root, path)
    assert (root.parent / "outside.txt").read_text() == "not yours"


@pytest.mark.parametrize("way", ["file", "directory", "chain", "dangling"])
def test_a_link_that_leads_out_is_refused(root, way):
    target = {"file": "../outside.txt", "directory": "..", "chain": "second", "dangling": "../new.txt"}[way]
    (root / "link").symlink_to(target)
    (root / "second").symlink_to("/etc/hostname")
    path = "link/outside.txt" if way == "directory" else "link"
    with pytest.raises(ToolProblem, match="leads out of the working directory by a link"):
        read_file(root, path)
    with pytest.raises(ToolProblem, match="leads out of the working directory by a link"):
        write_file(root, path, "mine now")
    assert (root.parent / "outside.txt").read_text() == "not yours"
    assert not (root.parent / "new.txt").exists()


def test_a_link_that_stays_inside_is_followed(root):
    (root / "code").symlink_to("src")
    assert read_file(root, "code/main.py") == "print('hello')\n"
    write_file(root, "code/main.py", "pass\n")
    assert (root / "src" / "main.py").read_text() == "pass\n"
    assert (root / "code").is_symlink()


def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(root, monkeypatch):
    from attractor_nb.backends.llm.tools import file_tools as files

    known = files.resolved_parts

    def resolved(path, root):
        parts = known(path, root)
        (root / "src").rename(root / "old")
        (root / "src").symlink_to("..")
        return parts

    monkeypatch.setattr(files, "resolved_parts", resolved)
    with pytest.raises(ToolProblem, match="src"):
        write_file(root, "src/outside.txt", "mine now")
    assert (root.parent / "outside.txt").read_text() == "not yours"


def test_an_absolute_path_inside_is_the_same_as_a_relative_one(root):
    assert read_file(root, str(root / "src" / "main.py")) == read_file(root, "./src//main.py")
    assert parts_of(str(root), root) == ()


@pytest.mark.parametrize("path", [".attractor/runs/x/events.jsonl", "lib/.ATTRACTOR/cache/entry"])
def test_what_we_keep_is_neither_read_nor_written_nor_listed(root, path):
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text("ours")
    for use in (read_file, list_files, lambda root, path: write_file(root, path, "mine")):
        with pytest.raises(ToolProblem, match="is inside a run directory"):
            use(root, path)
    assert (root / path).read_text() == "ours"
    assert not {"entry", "runs"}.intersection(list_files(root, depth=9).split("/"))


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "lib/.GIT/config"])
def test_what_version_control_keeps_is_read_and_not_written(root, path):
    (root / path).parent.mkdir(parents=True)
    (root / path).write_text("theirs")
    assert read_file(root, path) == "theirs"
    with pytest.raises(ToolProblem, match="not written by tools"):
        write_file(root, path, "mine")
    assert (root / path).read_text() == "theirs"


def test_a_guarded_directory_is_guarded_behind_a_link(root):
    (root / ".git").mkdir()
    (root / "innocent").symlink_to(".git")
    with pytest.raises(ToolProblem, match="not written by tools"):
        write_file(root, "innocent/config", "[core] fsmonitor = ./evil")


def test_a_file_is_written_whole_in_folders_that_are_made(root):
    assert write_file(root, "docs/deep/plan.md", "Pläne\n") == "wrote 7 bytes to docs/deep/plan.md"
    assert (root / "docs" / "deep" / "plan.md").read_text("utf-8") == "Pläne\n"
    assert [path.name for path in (root / "docs" / "deep").iterdir()] == ["plan.md"]


def test_a_file_that_is_replaced_keeps_its_mode_and_its_other_name(root):
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o755)
    os.link(script, root.parent / "other-name")
    write_file(root, "run.sh", "new")
    assert (script.stat().st_mode & 0o777, script.read_text()) == (0o755, "new")
    assert (root.parent / "other-name").read_text() == "old"


@pytest.mark.parametrize("name", ["src", "pipe", "."])
def test_what_is_no_plain_file_is_neither_read_nor_written(root, name):
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolProblem):
        read_file(root, name)
    with pytest.raises(ToolProblem):
        write_file(root, name, "x")
    assert (root / "src").is_dir()


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00", b"a\0b", "é".encode("latin-1")], ids=["png", "nul", "latin"]
)
def test_a_binary_file_is_told_and_not_shown(root, data):
    (root / "picture").write_bytes(data)
    with pytest.raises(ToolProblem, match=rf"picture is not UTF-8 text \({len(data)} bytes\)"):
        read_file(root, "picture")


def test_a_missing_file_is_told(root):
    with pytest.raises(ToolProblem, match=r"there is no file src/none\.py"):
        read_file(root, "src/none.py")
    with pytest.raises(ToolProblem, match="none: no such file"):
        list_files(root, "none")


def test_a_long_file_is_read_in_pieces_that_make_the_whole(root):
    text = "".join(f"line {number} {'x' * 80}\n" for number in range(2000))
    (root / "long.txt").write_text(text)
    pieces, line = [], 1
    while True:
        piece = read_file(root, "long.txt", line)
        assert len(piece) <= MAX_RESULT_CHARACTERS + 100
        body, mark, rest = piece.partition("[… ")
        pieces.append(body)
        if not mark:
            break
        line = int(rest.rpartition("first_line=")[2].rstrip("]"))
    assert "".join(pieces) == text
    with pytest.raises(ToolProblem, match="has 2000 lines, and line 2001"):
        read_file(root, "long.txt", 2001)


def test_a_single_line_that_is_too_long_is_cut_and_says_so(root):
    (root / "one.txt").write_text("x" * (MAX_RESULT_CHARACTERS + 10) + "\nlast\n")
    piece = read_file(root, "one.txt")
    assert "the rest of this line is left out" in piece
    assert piece.endswith("[… 1 more lines; read on with first_line=2]")
    assert read_file(root, "one.txt", 2) == "last\n"


def test_too_large_files_are_refused(root):
    with pytest.raises(ToolProblem, match="bytes are more than"):
        write_file(root, "big.txt", "x" * (MAX_WRITTEN_BYTES + 1))
    assert not (root / "big.txt").exists()
    with (root / "huge.txt").open("wb") as file:
        file.truncate(9 * 1024 * 1024)
    with pytest.raises(ToolProblem, match="are more than the"):
        read_file(root, "huge.txt")


def test_an_entry_of_each_kind_is_listed_to_a_depth(root):
    (root / "link").symlink_to("..")
    (root / "a" / "b" / "c").mkdir(parents=True)
    assert list_files(root).splitlines() == ["a/", "a/b/", "link@", "src/", "src/main.py"]
    assert list_files(root, "a", 3).splitlines() == ["a/b/", "a/b/c/"]
    assert list_files(root, "a/b/c") == "(empty)"


def test_a_list_is_bounded(root):
    for number in range(MAX_LISTED + 5):
        (root / "src" / f"f{number:05}").touch()
    lines = list_files(root).splitlines()
    assert len(lines) == MAX_LISTED + 1
    assert "only the first" in lines[-1]


def test_a_secret_that_was_hidden_is_not_destroyed_by_writing_its_mark_back(root):
    learn(["hunter2-hunter2-hunter2"])
    (root / ".env").write_text("KEY=hunter2-hunter2-hunter2\nDEBUG=0\n")
    with pytest.raises(ToolProblem, match="writing that back would destroy it"):
        write_file(root, ".env", "KEY=[redacted]\nDEBUG=1\n")
    write_file(root, "notes.md", "what [redacted] means\n")
    assert "hunter2-hunter2-hunter2" in (root / ".env").read_text()


def test_what_the_disk_refuses_is_told_with_the_place_and_the_old_file_stays(root, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_tools, "replace_file", refuse)
    with pytest.raises(ToolProblem, match=r"^src/main.py: no space left on device$"):
        write_file(root, "src/main.py", "pass\n")
    assert (root / "src/main.py").read_text() == "print('hello')\n"


def test_a_name_that_the_disk_cannot_have_is_told(root):
    with pytest.raises(ToolProblem, match=r"^x+.*: file name too long$"):
        write_file(root, "x" * 300, "x")


def test_a_directory_that_cannot_be_listed_is_told(root, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(file_tools.os, "scandir", refuse)
    with pytest.raises(ToolProblem, match=r"^src: permission denied$"):
        list_files(root, "src")


def test_a_folder_that_cannot_be_looked_into_is_listed_and_the_others_are_looked_into(root, monkeypatch):
    class Closed(Disk):
        def open_directory(self, name, parent=None):
            if name == "locked":
                raise PermissionError(errno.EACCES, "Permission denied")
            return super().open_directory(name, parent)

    (root / "locked").mkdir()
    (root / "locked" / "inside").touch()
    monkeypatch.setattr(file_tools, "Disk", Closed)
    assert list_files(root).splitlines() == ["locked/", "src/", "src/main.py"]
