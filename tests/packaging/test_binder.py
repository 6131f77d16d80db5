"""The binder/ folder gives an environment in which the tour runs."""

import os
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

SAMPLE = {"01", "08", "13", "17"}
"""Of the tour: the beginning, clusters, models, and tables."""


@pytest.fixture
def requirements(repository):
    lines = (repository / "binder" / "requirements.txt").read_text().splitlines()
    stripped = [line.split("#")[0].strip() for line in lines]
    return [Requirement(line) for line in stripped if line and not line.startswith("-")]


def test_requirements_name_every_dependency_of_the_project(repository, requirements):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(line).name for line in project["dependencies"]}
    assert wanted <= {requirement.name for requirement in requirements}


def test_requirements_are_pinned_by_the_constraints(repository, requirements):
    lines = (repository / "binder" / "requirements.txt").read_text().splitlines()
    pinned = {line.split("==")[0] for line in (repository / "constraints.txt").read_text().splitlines()}
    assert "-c ../constraints.txt" in lines
    assert {requirement.name for requirement in requirements} <= pinned


def test_the_kernel_takes_clicks_while_a_cell_awaits(requirements):
    (kernel,) = [requirement for requirement in requirements if requirement.name == "ipykernel"]
    assert not kernel.specifier.contains("7.0.1")
    assert kernel.specifier.contains("7.4.0")


def test_the_package_itself_comes_from_the_checkout(repository):
    post_build = repository / "binder" / "postBuild"
    assert os.access(post_build, os.X_OK)
    assert post_build.read_text().splitlines()[-1] == "pip install --no-deps ."


def test_the_page_in_the_launcher_is_there_and_shows_the_runs_of_the_tour(repository, requirements):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(line).name for line in project["optional-dependencies"]["proxy"]}
    assert wanted <= {requirement.name for requirement in requirements}
    start = repository / "binder" / "start"
    assert os.access(start, os.X_OK)
    lines = start.read_text().splitlines()
    assert "export ATTRACTOR_RUNS_DIR=notebooks/.attractor/runs" in lines
    assert lines[-1] == 'exec "$@"'


@pytest.mark.installs
@pytest.mark.timeout(300)
def test_repo2docker_picks_the_folder_up(repository, make_environment):
    environment = make_environment()
    environment.install("jupyter-repo2docker")
    said = environment.run("jupyter-repo2docker", "--no-build", "--debug", ".", cwd=repository)
    assert "Building conda environment for python=3.12" in said
    assert "graphviz" in said
    assert 'install --no-cache-dir -r "binder/requirements.txt"' in said
    assert "RUN ./binder/postBuild" in said
    # The constraints stand outside binder/, so the whole checkout must be there before the installation.
    assert said.index("COPY --chown=0:0 src/ ${REPO_DIR}/") < said.index('-r "binder/requirements.txt"')


@pytest.mark.installs
@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_the_tour_runs_in_an_environment_made_from_binder(repository, make_environment, tmp_path):
    """`make binder` runs all of the tour; `make test` one notebook for each group of packages that it wants."""
    version = (repository / "binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    found = subprocess.run(
        [sys.executable, "-m", "uv", "python", "find", "--no-project", version],
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
    )
    # Where Binder's Python is missing, ours stands in for it.
    environment = make_environment(found.stdout.strip() or sys.executable)
    environment.install("-r", repository / "binder" / "requirements.txt")
    environment.install("--no-deps", ".")
    environment.install("-c", repository / "constraints.txt", "nbval", "pytest", "pytest-timeout")
    notebooks = repository / "notebooks"
    chosen = sorted(notebooks.glob("*.ipynb"))
    if os.environ.get("ATTRACTOR_CAMPAIGN") != "full":
        chosen = [path for path in chosen if path.name[:2] in SAMPLE]
        assert len(chosen) == len(SAMPLE)
    environment.run(
        "python", "-m", "pytest", "-q", "--nbval", "--nbval-cell-timeout", "60",
        "--nbval-sanitize-with", notebooks / "sanitize.cfg", "-p", "no:cacheprovider", "-c", os.devnull,
        "--rootdir", notebooks, *chosen, cwd=tmp_path,
        # Binder's kernels have Python's own filter; what a cluster warns of as it ends comes or not.
        warnings="",
    )  # fmt: skip
