"""A pipeline in JupyterLite: CPython in the browser, nothing installed, no server but one for files.

The site is made from packages alone: Pyodide from npm, wheels from the index of Python packages. Pyodide's own
distribution of wheels is elsewhere and is not reached: its lock names only what was fetched here, and MarkupSafe, which
it has as a binary, is its Python part.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import TimeoutError as TookTooLong

pytestmark = [
    pytest.mark.installs,
    pytest.mark.browser,
    pytest.mark.campaign,
    pytest.mark.timeout(900),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm brings Pyodide, and is not installed"),
]

PYODIDE = "314.0.6"
"""The version that jupyterlite-pyodide-kernel 0.8.6 is made for."""
SITE_PACKAGES = ("jupyterlite-core==0.8.6", "jupyterlite-pyodide-kernel==0.8.6", "anywidget", "jupyter-server", "pip")
OF_PYODIDE = ("micropip", "ipython", "jedi", "packaging", "traitlets", "decorator")
"""Packages that the kernel loads by Pyodide's lock, with what they need."""
PURE = (
    *("annotated-doc", "annotated-types", "anywidget", "click", "comm", "filelock", "graphviz", "ipywidgets"),
    *("jupyterlab-widgets", "lark", "markdown-it-py", "mdurl", "nest-asyncio2", "networkx", "psygnal", "pydantic"),
    *("questionary", "rich", "shellingham", "typer", "typing-extensions", "typing-inspection"),
)
BINARY = ("msgspec", "pydantic-core")
WASM = (
    *("--platform", "pyemscripten_2026_0_wasm32", "--platform", "any"),
    *("--python-version", "314", "--implementation", "cp", "--abi", "cp314"),
)
ANY = ("--platform", "any", "--python-version", "314")
CELLS = (
    "%pip install -q attractor_nb\n%load_ext attractor_nb",
    """%%attractor review
digraph review {
  start [shape=Mdiamond]
  write [prompt="Write it"]
  ok    [shape=hexagon, label="Is it good?"]
  done  [shape=Msquare]
  start -> write -> ok
  ok -> done  [label="[A] Approve"]
  ok -> write [label="[R] Revise"]
}""",
    "review.lint()",
    'run = review.run(durability="none")',
)


@pytest.fixture
def site(make_environment, wheel, repository, tmp_path):
    """A built site with one notebook, served on loopback; its address."""
    environment = make_environment()
    environment.install(*SITE_PACKAGES)
    folder = tmp_path / "lite"
    pyodide, wheels = folder / "static" / "pyodide", folder / "pypi"
    for each in (pyodide, wheels, folder / "files"):
        each.mkdir(parents=True)

    def fetch(target, *arguments):
        fixed = ("-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", target)
        environment.run("python", *fixed, *arguments, cwd=tmp_path, warnings="ignore")

    unpack_pyodide(tmp_path, pyodide)
    keep_in_lock(pyodide, fetch)
    pinned = ("-c", repository / "constraints.txt")
    fetch(wheels, *ANY, *pinned, *PURE)
    fetch(wheels, *WASM, *pinned, *BINARY)
    shutil.copy(wheel, wheels)
    write_markupsafe(wheels)
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python", "display_name": "Python"}})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    nbformat.write(notebook, folder / "files" / "review.ipynb")
    environment.run("jupyter", "lite", "build", "--contents", "files", "--output-dir", tmp_path / "site", cwd=folder)
    handler = functools.partial(QuietHandler, directory=tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *_):
        """Nothing is written."""


def unpack_pyodide(folder, target):
    """Pyodide from npm, without its wheels."""
    subprocess.run(["npm", "pack", "--silent", f"pyodide@{PYODIDE}"], cwd=folder, check=True, timeout=300)
    with tarfile.open(folder / f"pyodide-{PYODIDE}.tgz") as packed:
        packed.extractall(target, filter="data")
    for each in (target / "package").iterdir():
        each.rename(target / each.name)


def keep_in_lock(pyodide, fetch):
    """Fetch what the kernel needs of Pyodide's packages, and leave the others out of its lock."""
    path = pyodide / "pyodide-lock.json"
    lock = json.loads(path.read_text())
    needed, waiting = {}, list(OF_PYODIDE)
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name not in needed:
            needed[name] = lock["packages"][name]
            waiting += needed[name]["depends"]
    fetch(pyodide, *ANY, *(f"{each['name']}=={each['version']}" for each in needed.values()))
    for each in needed.values():
        each["sha256"] = hashlib.sha256((pyodide / each["file_name"]).read_bytes()).hexdigest()
    path.write_text(json.dumps({**lock, "packages": needed}))


def write_markupsafe(wheels):
    """The Python part of MarkupSafe as a wheel."""
    source, version = Path(find_spec("markupsafe").origin).parent, "3.0.3"
    about = f"markupsafe-{version}.dist-info"
    with zipfile.ZipFile(wheels / f"markupsafe-{version}-py3-none-any.whl", "w") as packed:
        for name in ("__init__.py", "_native.py"):
            packed.write(source / name, f"markupsafe/{name}")
        packed.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: MarkupSafe\nVersion: {version}\n")
        packed.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{about}/RECORD", "")


@pytest.fixture
def driver(repository, monkeypatch):
    monkeypatch.syspath_prepend(str(repository / "tests" / "browser"))
    import driver

    yield driver
    driver.close_chromium()
    del sys.modules["driver"]


@pytest.mark.shows("JupyterLite", "picture", "live view", "gate by click", "inspector", "lint")
def test_a_run_and_its_gate_work_in_the_browser_alone(site, driver, repository):
    pictures = repository / ".venv" / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    with driver.new_page(width=1100, height=1300) as page:
        page.goto(f"{site}/lab/index.html?path=review.ipynb")
        page.get_by_text("| Idle").wait_for(timeout=240_000)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        approve = page.get_by_role("button", name="Approve")
        try:
            approve.wait_for(timeout=150_000)
        except TookTooLong:
            pytest.fail("\n".join(page.locator(".jp-OutputArea-output").all_inner_texts()))
        page.screenshot(path=str(pictures / "jupyterlite_waiting.png"))
        approve.click()
        page.locator(".al-line", has_text="completed").wait_for(timeout=60_000)
        page.locator("[data-node=write].state-success").last.click()
        page.get_by_text("Write it", exact=True).last.wait_for(timeout=60_000)
        page.screenshot(path=str(pictures / "jupyterlite_ended.png"))
