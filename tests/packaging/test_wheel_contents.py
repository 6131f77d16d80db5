"""The wheel carries all that the package reads at run time."""

import zipfile

import pytest


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_package_is_in_the_wheel(names, repository_files):
    expected = {path.as_posix() for path in repository_files if path.parts[0] == "attractor_nb"}
    assert expected <= names


@pytest.mark.parametrize("suffix", [".lark", ".json", ".js", ".css", ".dot", "py.typed"])
def test_the_wheel_carries_data_files(names, suffix):
    assert any(name.startswith("attractor_nb/") and name.endswith(suffix) for name in names)


def test_the_wheel_holds_nothing_but_the_package(names):
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"attractor_nb"}


def test_the_license_travels_with_the_wheel(names):
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
