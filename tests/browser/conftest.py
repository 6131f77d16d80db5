"""One JupyterLab for all browser tests, each with a notebook and a page of its own."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


def _load_driver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("attractor_browser_driver", HERE / "driver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def driver() -> ModuleType:
    module = _load_driver()
    if not Path(module.CHROMIUM).exists():
        pytest.fail(f"the browser tests need Chromium at {module.CHROMIUM}; `make test` says how to get it")
    return module


@pytest.fixture(scope="session")
def make_server(driver: ModuleType) -> Callable[..., Any]:
    """Makes a server of the wanted kind in a folder."""

    def make(folder: Path, **options: Any) -> Any:
        paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths), "ATTRACTOR_LIVE": "auto"}
        return driver.JupyterServer(folder, environment=environment, **options)

    return make


@pytest.fixture(scope="session")
def lab(make_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def write_notebook() -> Callable[..., Path]:
    """Writes a notebook of code cells."""

    def write(folder: Path, name: str, *cells: str) -> Path:
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.metadata["kernelspec"] = kernel
        path = folder / name
        nbformat.write(notebook, path)
        return path

    return write
