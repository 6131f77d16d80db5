"""Kernels for the protocol tests, one for each version of ipykernel that people have."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from attractor_nb.runtime.handles import presenters

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
KERNEL_ENVIRONMENTS = REPOSITORY / ".venv-kernels"
OLD_VERSIONS = ("6.31.0", "7.0.1")


def load(name: str) -> ModuleType:
    """A helper module beside the tests."""
    spec = importlib.util.spec_from_file_location(f"attractor_tests_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def old_python(version: str) -> Path:
    """The interpreter of an environment with an older ipykernel; made when it is not there."""
    environment = KERNEL_ENVIRONMENTS / f"ipykernel-{version}"
    python = environment / "bin" / "python"
    stamp = environment / "complete"
    if not stamp.exists():
        uv = [shutil.which("uv") or sys.executable, *([] if shutil.which("uv") else ["-m", "uv"])]
        subprocess.run([*uv, "venv", "-q", "--clear", "-p", sys.executable, str(environment)], check=True)
        project = str(REPOSITORY / "pyproject.toml")
        install = [*uv, "pip", "install", "-q", "-p", str(python), f"ipykernel=={version}", "-r", project]
        subprocess.run(install, check=True)
        stamp.touch()
    return python


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    """A test that leaves its front-end registered fails itself, not the one that its worker runs next."""
    names = (
        "_presenters",
        "_waiting_rules",
        "_click_rules",
        "_namers",
        "_widget_makers",
        "_review_makers",
        "_interviewers",
    )
    registries = [getattr(presenters, name) for name in names]
    before = [registry.copy() for registry in registries]
    yield
    assert registries == before


@pytest.fixture(scope="session")
def kernel_driver() -> ModuleType:
    return load("kernel_driver")


@pytest.fixture
def kernel(kernel_driver: ModuleType, tmp_path: Path) -> Iterator[object]:
    """A kernel of the environment that runs the tests."""
    with closing(kernel_driver.Kernel(Path(sys.executable), tmp_path)) as running:
        yield running


@pytest.fixture
def cold_kernel(kernel_driver: ModuleType, tmp_path: Path) -> Iterator[object]:
    """A kernel that begins without any import, as a person's does."""
    with closing(kernel_driver.Kernel(Path(sys.executable), tmp_path, is_cold=True)) as running:
        yield running


@pytest.fixture(params=["current", *(pytest.param(version, marks=pytest.mark.old_kernels) for version in OLD_VERSIONS)])
def any_kernel(request: pytest.FixtureRequest, kernel_driver: ModuleType, tmp_path: Path) -> Iterator[object]:
    """A kernel of each version."""
    python = Path(sys.executable) if request.param == "current" else old_python(request.param)
    with closing(kernel_driver.Kernel(python, tmp_path)) as running:
        yield running


@pytest.fixture(params=[pytest.param(version, marks=pytest.mark.old_kernels) for version in OLD_VERSIONS])
def old_kernel(request: pytest.FixtureRequest, kernel_driver: ModuleType, tmp_path: Path) -> Iterator[object]:
    """A kernel of each older version."""
    with closing(kernel_driver.Kernel(old_python(request.param), tmp_path)) as running:
        yield running
