"""One JupyterLab for all browser tests, each with a notebook and a page of its own; and pages without Jupyter.

Whatever a view does by itself is tested in a bare page (``open_view``), which takes a second; what only
Jupyter can show, in a notebook.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

from hatch_build import make_files

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the browser tests side by side at the beginning: one Chromium serves as many as follow one another."""
    items.sort(key=lambda item: not item.path.is_relative_to(HERE))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close Chromium behind the last browser test: while it is open, no other event loop can run in this thread."""
    del item
    module = sys.modules.get("attractor_browser_driver")
    if module and not (nextitem and nextitem.path.is_relative_to(HERE)):
        module.close_chromium()


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
    make_files()  # of the extension, which stand in no checkout
    return module


@pytest.fixture(scope="session")
def make_server(driver: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Makes a server of the wanted kind in a folder; it finds the extension of this checkout."""
    jupyter = tmp_path_factory.mktemp("jupyter")
    (jupyter / "labextensions").mkdir()
    (jupyter / "labextensions" / "attractor-nb").symlink_to(REPOSITORY / "attractor_nb" / "labextension")

    def make(folder: Path, **options: Any) -> Any:
        paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {"PYTHONPATH": os.pathsep.join(paths), "JUPYTER_PATH": str(jupyter), "ATTRACTOR_LIVE": "auto"}
        return driver.JupyterServer(folder, environment=environment, **options)

    return make


@pytest.fixture(scope="session")
def lab(make_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with make_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


IS_CAMPAIGN = os.environ.get("ATTRACTOR_CAMPAIGN") == "full"
APPS = ("lab", "notebook") if IS_CAMPAIGN else ("lab",)


@pytest.fixture(scope="session", params=APPS)
def jupyter(
    request: pytest.FixtureRequest, make_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """JupyterLab, and in the campaign (`make browser`) Notebook 7 as well, for whole scenarios."""
    if request.param == "lab":
        yield request.getfixturevalue("lab")
        return
    with make_server(tmp_path_factory.mktemp("notebook"), app=request.param) as server:
        yield server


@dataclass(frozen=True)
class Look:
    """The width of a window, and the theme of Jupyter in it."""

    width: int
    is_dark: bool
    height: int = 768

    @property
    def name(self) -> str:
        """For the names of pictures."""
        return f"{self.width}-{'dark' if self.is_dark else 'light'}"

    @property
    def window(self) -> dict[str, Any]:
        """The options that open such a window."""
        return {"width": self.width, "height": self.height, "dark": self.is_dark}

    def dress(self, page: Any) -> None:
        """Give Jupyter the theme. Notebooks of one server share it."""
        theme = f"JupyterLab {'Dark' if self.is_dark else 'Light'}"
        page.evaluate("(theme) => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }", theme)
        is_light = str(not self.is_dark).lower()
        page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{is_light}'")


# Each width and each theme once; all four pairs in the campaign.
LOOKS = [Look(*pair) for pair in (product((1366, 640), (False, True)) if IS_CAMPAIGN else ((1366, False), (640, True)))]


@pytest.fixture(params=LOOKS, ids=lambda look: look.name)
def look(request: pytest.FixtureRequest) -> Look:
    """A laptop and a narrow window, light and dark."""
    return request.param


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


def folder_of_pictures() -> Path:
    """The folder that keeps pictures, for looking at."""
    folder = Path(os.environ.get("ATTRACTOR_PICTURES", REPOSITORY / ".venv" / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def pictures() -> Path:
    """The folder of artefacts."""
    return folder_of_pictures()


class ViewPage:
    """A view of the front-end in a page of its own; the test is its host.

    Attributes:
        page: Playwright's page.
        console: What its console said that is an error.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console: list[str] = []
        page.on("console", lambda said: self.console.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.console.append(f"pageerror: {error}"))

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The messages that the view has sent, in order."""
        return self.page.evaluate("() => window.sent")

    def tell(self, **message: Any) -> None:
        """Give the view a message."""
        self.page.evaluate("message => window.host.tell(message)", message)

    def set(self, name: str, value: Any) -> None:
        """Set a value anew."""
        self.page.evaluate("([name, value]) => window.host.set(name, value)", [name, value])

    def shoot(self, name: str, selector: str = "") -> None:
        """Keep a picture in the folder of artefacts, for looking at."""
        folder = folder_of_pictures()
        target = self.page.locator(selector).first if selector else self.page
        target.screenshot(path=str(folder / f"{name}.png"))


HOST = """
const values = VALUES, listeners = {}, hearers = new Set(), losers = new Set();
window.sent = [];
window.host = {
  isLive: IS_LIVE,
  get: (name) => values[name],
  on: (name, listener) => {
    (listeners[name] ||= new Set()).add(listener);
    return () => listeners[name].delete(listener);
  },
  send: (message) => window.sent.push(message),
  listen: (hearer) => { hearers.add(hearer); return () => hearers.delete(hearer); },
  onLost: (loser) => { losers.add(loser); return () => losers.delete(loser); },
  lose: () => { for (const loser of losers) loser(); },
  tell: (message) => { for (const hearer of hearers) hearer(message); },
  set: (name, value) => { values[name] = value; for (const listener of listeners[name] || []) listener(value); },
};
"""


@pytest.fixture
def open_view(driver: ModuleType, tmp_path: Path) -> Iterator[Callable[..., ViewPage]]:
    """Opens a view in a bare page: ``open_view("live_view", "showLiveRun(host, el, shareStates(host))", svg=…)``."""
    from attractor_nb.views.frontend import script, widget_styles

    with ExitStack() as stack:

        def open_(
            entry: str,
            call: str,
            *,
            is_live: bool = True,
            dark: bool = False,
            width: int = 1000,
            height: int = 800,
            scale: float = 1.5,
            **values: Any,
        ) -> ViewPage:
            host = HOST.replace("VALUES", json.dumps(values).replace("<", "\\u003c"))
            host = host.replace("IS_LIVE", json.dumps(is_live))
            body = f"{script(entry, is_widget=False)}\n{host}\nconst el = document.getElementById('view');\n"
            file = tmp_path / f"{entry}.html"
            file.write_text(
                "<!doctype html><meta charset='utf-8'><title>view</title>"
                f"<style>{widget_styles()}\nbody {{ margin: 16px; background: {'#111417' if dark else '#fff'}; }}</style>"
                f"<div id='view'></div><script type='module'>{body}window.end = {call};</script>",
                encoding="utf-8",
            )
            view = ViewPage(stack.enter_context(driver.new_page(width=width, height=height, dark=dark, scale=scale)))
            view.page.goto(file.as_uri())
            view.page.wait_for_function("() => 'end' in window")
            return view

        yield open_


@pytest.fixture
def open_notebook(write_notebook: Callable[..., Path], request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens a notebook of the given cells, on the given server, in a page of its own."""
    with ExitStack() as stack:

        def open_(server: Any, *cells: str, look: Look | None = None, **options: Any) -> Any:
            name = f"{request.node.name.partition('[')[0][:60]}.ipynb"
            path = write_notebook(server.root, name, *cells)
            browser = stack.enter_context(server.browser(**(look.window if look else {}), **options))
            notebook = browser.open(name)
            if look:
                look.dress(notebook.page)
            notebook.path, notebook.browser = path, browser
            return notebook

        yield open_


@pytest.fixture
def serve_page() -> Iterator[Callable[..., str]]:
    """Serves a runs base in a thread; the address has the token behind its ``#``, as the printed line has it."""
    from attractor_nb.server.asgi_app import Server
    from attractor_nb.server.server_settings import ServerSettings, hosts_of
    from attractor_nb.server.serving import ServerProcess, listen

    with ExitStack() as stack:

        def serve(root: Path, token: str = "s" * 43, prefix: str = "", **more: Any) -> str:
            listening = stack.enter_context(closing(listen("127.0.0.1", 0)))
            port, ready = listening.getsockname()[1], threading.Event()
            hosts = hosts_of("127.0.0.1", port)
            settings = ServerSettings(root=root, tokens={"ada": token}, hosts=hosts, prefix=prefix, **more)
            process = ServerProcess(Server(settings), ready.set)
            thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]}, daemon=True)
            thread.start()
            stack.callback(thread.join, 60)
            stack.callback(setattr, process, "should_exit", True)
            assert ready.wait(60), "the server did not start"
            return f"http://127.0.0.1:{port}{prefix}/#token={token}"

        yield serve
