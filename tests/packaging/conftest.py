"""The wheel, built once per worker, and environments to install it into."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command, cwd=None, warnings="default"):
    """Run a command to its end and give its output; a failure shows everything that it said."""
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "PYTHONWARNINGS": warnings}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


class Environment:
    """A virtual environment of a test's own."""

    def __init__(self, directory, python=sys.executable):
        run(sys.executable, "-m", "uv", "venv", "--quiet", "--python", python, directory)
        self.directory = directory

    def install(self, *arguments, cwd=REPOSITORY):
        """Install packages with the pinned versions."""
        python = self.directory / "bin" / "python"
        run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *arguments, cwd=cwd)

    def run(self, program, *arguments, **options):
        """Run a program of the environment and give its output."""
        return run(self.directory / "bin" / program, *arguments, **options)


@pytest.fixture
def repository():
    return REPOSITORY


@pytest.fixture
def make_environment(tmp_path):
    return lambda python=sys.executable: Environment(tmp_path / "environment", python)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, REPOSITORY)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def repository_files():
    """All files that git knows or would take up, as paths below the repository."""
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout")
    listing = run("git", "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [Path(name) for name in listing if name and (REPOSITORY / name).is_file()]
