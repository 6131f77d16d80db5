"""git as we ask it: what it refuses is told in its words, and what keeps it from being asked in ours."""

import subprocess

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.processes import git as git_module
from attractor_nb.processes.git import Git


def refusal(place):
    with pytest.raises(StorageError) as told:
        Git(place).ask("status")
    assert told.value.path == str(place)
    return told.value


def test_a_directory_that_is_gone_is_not_taken_for_a_missing_git(tmp_path):
    assert refusal(tmp_path / "gone").message == f"there is no directory {tmp_path / 'gone'}"


def test_a_missing_git_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refusal(tmp_path)
    assert (error.message, error.hint) == ("git is not installed, or not on the PATH", "install git")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (subprocess.TimeoutExpired("git", 600.0), "600.0"),
    ],
    ids=["not allowed", "too slow"],
)
def test_a_git_that_cannot_be_called_or_does_not_end_is_told_with_its_subcommand(tmp_path, monkeypatch, fault, words):
    def refuse(*_, **__):
        raise fault

    monkeypatch.setattr(git_module.subprocess, "run", refuse)
    assert refusal(tmp_path).message.startswith("git status cannot be called: ")
    assert words in refusal(tmp_path).message
