"""The wheel carries all that the package reads at run time."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from hatch_build import MADE


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_is_in_the_wheel(names, repository_files):
    expected = {path.as_posix() for path in repository_files if path.parts[0] == "attractor_nb"}
    assert expected <= names
    assert {f"attractor_nb/labextension/static/{name}" for name in MADE} <= names


@pytest.mark.parametrize("suffix", [".lark", ".json", ".js", ".css", ".dot", "py.typed"])
def test_the_wheel_carries_data_files(names, suffix):
    assert any(name.startswith("attractor_nb/") and name.endswith(suffix) for name in names)


def test_the_wheel_holds_nothing_but_the_package_and_the_extension_of_jupyterlab(names):
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    (data,) = tops - {"attractor_nb"}
    folder = f"{data}/data/share/jupyter/labextensions/attractor-nb/"
    assert all(name.startswith(folder) for name in names if name.startswith(data))
    assert f"{folder}package.json" in names


@pytest.mark.campaign
def test_jupyterlab_finds_the_extension_of_the_wheel_enabled_and_whole(wheel, names, repository_files, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (share,) = tmp_path.glob("*.data/data/share/jupyter")
    folder = share / "labextensions" / "attractor-nb"
    source = "attractor_nb/labextension/"
    expected = {path[len(source) :] for path in map(Path.as_posix, repository_files) if path.startswith(source)}
    expected |= {f"static/{name}" for name in MADE}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == expected
    environment = {**os.environ, "JUPYTER_PATH": str(share), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "jupyter", "labextension", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stderr
    line = next(line for line in listed.splitlines() if "attractor-nb" in line)
    assert f"v{version('attractor_nb')}" in line
    assert "enabled" in line
    assert "OK" in line


def test_the_license_travels_with_the_wheel(names):
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
