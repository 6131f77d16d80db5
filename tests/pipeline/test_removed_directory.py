"""The directory in which the program works is removed: paths are shown whole, and commands say what is missing."""

import os

import pytest

from attractor_nb.backends.llm.provider_backend import ProviderBackend
from attractor_nb.cassettes import recorded_commands
from attractor_nb.cli.entry import run_command_line
from attractor_nb.cli.language_server import EditorText, read
from attractor_nb.errors import StorageError
from attractor_nb.model.graph import Node
from attractor_nb.runtime.handles import handle
from attractor_nb.runtime.workspace.worktree import WorktreeIndex
from attractor_nb.studio.history.waiting_gates import shown_place


@pytest.fixture
def removed(tmp_path, monkeypatch):
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    yield place
    os.chdir(tmp_path)


def test_paths_are_whole_where_there_is_no_current_directory(removed):
    assert shown_place(removed) == removed.as_posix()
    assert recorded_commands._named(removed) == str(removed)


@pytest.mark.parametrize("arguments", [["runs"], ["watch", "run"], ["cache"]], ids=" ".join)
def test_a_command_in_a_removed_directory_says_so(arguments, removed, capfd):
    assert run_command_line(arguments) == 2
    assert "the current directory was removed" in "".join(capfd.readouterr())


def test_an_editor_whose_server_is_in_a_removed_directory_reads_so_and_what_to_do(removed):
    text = EditorText.of('digraph { a [type=pipeline, "pipeline.dotfile"="b.dot"] }')
    (found,) = read(text, None).findings
    assert (found.rule, found.severity, found.message) == ("syntax", "error", "the current directory was removed")
    assert found.fix.title.startswith("change to another")


def test_the_engine_goes_on_when_something_of_a_run_ends_the_program(caplog):
    class Loop:
        """Stands for a loop whose first callback calls sys.exit()."""

        turns = 0

        def is_closed(self):
            return self.turns == 2

        def run_forever(self):
            self.turns += 1
            if self.turns == 1:
                raise SystemExit(3)

    handle._serve(Loop())
    assert "tried to end the engine" in caplog.text


def test_what_git_refuses_without_a_lock_is_raised_at_once(tmp_path):
    class Git:
        asked = 0

        def ask(self, *_, **__):
            self.asked += 1
            raise StorageError("git said no")

    git = Git()
    with pytest.raises(StorageError, match="git said no"):
        WorktreeIndex(git, tmp_path, "main").commit_all("a message")
    assert git.asked == 1


def test_a_node_that_cannot_be_asked_adds_nothing_to_its_cache_key():
    assert ProviderBackend().cache_inputs(Node("a", {"prompt": "x"})) == {}
