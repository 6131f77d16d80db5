"""Drives a real JupyterLab or Notebook 7 in headless Chromium, for tests and for looking at our work.

    with JupyterServer(folder) as server, server.browser() as browser:
        notebook = browser.open("demo.ipynb")
        notebook.run_all()
        notebook.click("Approve")
        notebook.wait_until_idle()

What it has to work around: cells that are off-screen are not in the page (windowing is switched off),
the kernel's status can read idle while a cell waits (the ``[*]`` prompt is the truth), and the news
question lies over everything. Server, kernels and browser are ended by their own ids.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
CHROMIUM_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--force-color-profile=srgb",
]
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
START_SECONDS = 60
STEP_SECONDS = 0.05
STEP_TIMEOUT = 30_000
OPEN_ALONE = """async (path) => {
  const opened = await jupyterapp.commands.execute("docmanager:open", { path });
  for (const widget of [...jupyterapp.shell.widgets("main")]) if (widget !== opened) widget.dispose();
}"""
LIGHTEN = """async () => {
  if (document.body.dataset.jpThemeLight === "false") {
    await jupyterapp.commands.execute("apputils:change-theme", { theme: "JupyterLab Light" });
  }
}"""
TIDY = """async () => {
  if (!window.jupyterapp || document.querySelector(".jp-Dialog")) return false;
  // The panel of runs, once it was opened, tells of other tests' questions, and what is told lies over the cells.
  if (document.querySelector("#attractor-nb-runs iframe, .Toastify__toast")) return false;
  const { commands, shell } = jupyterapp;
  // A kernel that is just being restarted reports its failure later, to the next test.
  const kernels = [...shell.widgets("main")].map((widget) => widget.sessionContext?.session?.kernel).filter(Boolean);
  if (kernels.some(({ status }) => /starting|terminating|dead/.test(status))) return false;
  for (const widget of [...shell.widgets("main")]) widget.dispose();  // which asks nobody whether to save
  await commands.execute("filebrowser:go-to-path", { path: "/", dontShowBrowser: true });
  shell.collapseLeft();
  shell.collapseRight();
  return !document.querySelector(".jp-Notebook, .attractor-document");
}"""
PANEL = "[...jupyterapp.shell.widgets('main')].find(w => w.context && w.context.model && w.context.model.cells)"


def wait_until(is_true: Callable[[], Any], seconds: float, what: str) -> Any:
    """Poll until something is true and return it; raise with the reason otherwise."""
    give_up = time.monotonic() + seconds
    while True:
        if value := is_true():
            return value
        if time.monotonic() > give_up:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(STEP_SECONDS)


def thread_clock(page: Any) -> Callable[[], float]:
    """A clock of the processor time of a page's main thread: what else the machine does costs none of it."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds() -> float:
        found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        return found["ThreadTime"]

    return seconds


def free_port() -> int:
    """A port on loopback that no process uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class JupyterServer:
    """A server of our own on loopback, with a random token and folders of its own."""

    def __init__(
        self,
        root: Path,
        *,
        app: str = "lab",
        settings: dict[str, dict[str, Any]] | None = None,
        environment: dict[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        self.root = root
        self._python = python
        self.app = app
        self.port = free_port()
        self.token = secrets.token_hex(16)
        self.prefix = ""
        self._settings = {**SETTINGS, **(settings or {})}
        self._environment = environment or {}
        self._folder = Path(tempfile.mkdtemp(prefix="attractor-browser-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> JupyterServer:
        for plugin, values in self._settings.items():
            file = self._settings_file(plugin)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        folders = {
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
        }
        environment = {
            **os.environ,
            **{name: str(self._folder / folder) for name, folder in folders.items()},
            **self._environment,
        }
        command = [
            *(self._python, "-m", "jupyter", self.app, "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.root_dir={self.root}", f"--IdentityProvider.token={self.token}"),
            "--expose-app-in-browser",
        ]
        with (self._folder / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )
        try:
            wait_until(self._is_up, START_SECONDS, "the server")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _settings_file(self, plugin: str) -> Path:
        extension, _, name = plugin.partition(":")
        return self._folder / "settings" / extension / f"{name}.jupyterlab-settings"

    def forget_theme(self) -> None:
        """Pages to come are light again; the server keeps the theme that was chosen last.

        Behind the back of the page that chose it: a script in one that a test has broken may never end.
        """
        self._settings_file("@jupyterlab/apputils-extension:themes").unlink(missing_ok=True)

    def _is_up(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "server.log").read_text()[-2000:])
        try:
            with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=1):
                return True
        except OSError:
            return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def _stop(self) -> None:
        process = self._process
        if _RUNNING and (context := _RUNNING["contexts"].pop(self.port, None)):
            _RUNNING["kept"].pop(self.port, None)
            context.close()
        if process is not None and process.poll() is None:
            # Kernels live in sessions of their own: only the server can end them properly.
            request = urllib.request.Request(
                f"{self.url}/api/shutdown", method="POST", headers={"Authorization": f"token {self.token}"}
            )
            with suppress(OSError):
                urllib.request.urlopen(request, timeout=5).close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def browser(
        self, *, width: int = 1180, height: int = 1000, dark: bool = False, is_new: bool = False
    ) -> Iterator[Browser]:
        """A page on this server: the one that the last test has left tidy, if there is one, or a new one.

        JupyterLab costs five seconds of processor time to load, and next to nothing to go on in. ``is_new`` is for
        tests that change the page itself: by a script at its start, or by what it is allowed.
        """
        kept, contexts = _running()["kept"], _running()["contexts"]
        if self.port not in contexts:
            contexts[self.port] = _new_context()
        page = None if is_new else kept.pop(self.port, None)
        browser = Browser(self, page or contexts[self.port].new_page(), is_loaded=page is not None)
        page = browser.page
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_default_timeout(STEP_TIMEOUT)
        try:
            yield browser
            if not is_new and self.port not in kept and browser.tidy():
                kept[self.port] = page
        finally:
            if kept.get(self.port) is not page:
                page.close()
                self.forget_theme()


_RUNNING: dict[str, Any] = {}
"""The one Chromium of this process, and what started it; empty until a page is wanted."""


def _running() -> dict[str, Any]:
    if not _RUNNING:
        from playwright.sync_api import expect, sync_playwright

        expect.set_options(timeout=START_SECONDS * 1000)
        _RUNNING["playwright"] = sync_playwright().start()
        _RUNNING["chromium"] = _RUNNING["playwright"].chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        _RUNNING["contexts"] = {}  # by the port of their server: pages of one server share a cache
        _RUNNING["kept"] = {}  # by the port, too: pages with a loaded JupyterLab that no test uses now
    return _RUNNING


def _new_context(
    *, width: int = 1180, height: int = 1000, dark: bool = False, scale: float = 1.5, **options: Any
) -> Any:
    return _running()["chromium"].new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        device_scale_factor=scale,
        **options,
    )


@contextmanager
def new_page(*, width: int = 1180, height: int = 1000, dark: bool = False, **options: Any) -> Iterator[Any]:
    """A page of its own, with cookies and storage of its own, in the one Chromium of this process."""
    context = _new_context(width=width, height=height, dark=dark, **options)
    try:
        yield context.new_page()
    finally:
        context.close()


@contextmanager
def quiet_page(*, but: str = "", **options: Any) -> Iterator[Any]:
    """A page of its own whose console must have said nothing at its end.

    Args:
        but: A pattern of what it may say: lines begin with their kind, as ``error: `` or ``warning: ``.
        **options: Of ``new_page``.
    """
    said: list[str] = []
    with new_page(**options) as page:
        page.set_default_timeout(60_000)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        yield page
    heard = [line for line in said if not (but and re.search(but, line))]
    assert not heard, heard


def close_chromium() -> None:
    """End the Chromium of this process, if there is one."""
    if _RUNNING:
        _RUNNING.pop("kept")
        _RUNNING.pop("contexts")
        _RUNNING.pop("chromium").close()
        _RUNNING.pop("playwright").stop()


class Browser:
    """One page and what its console said."""

    def __init__(self, server: JupyterServer, page: Any, *, is_loaded: bool) -> None:
        self._server = server
        self._is_loaded = is_loaded
        self.page = page
        self.console: list[str] = []
        self._listeners = {
            "console": lambda message: self.console.append(f"{message.type}: {message.text}"),
            "pageerror": lambda error: self.console.append(f"pageerror: {error}\n{error.stack}"),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def show(self, path: str) -> None:
        """Open a file in JupyterLab with nothing else beside it, or in a page of Notebook 7."""
        server = self._server
        if self._is_loaded:
            self.page.evaluate(OPEN_ALONE, path)
        else:
            place = "lab/tree" if server.app == "lab" else "notebooks" if path.endswith(".ipynb") else "edit"
            self.page.goto(f"{server.url}/{place}/{path}?reset&token={server.token}")
        self._is_loaded = False  # a second time within a test is asked for in order to load all anew

    def open(self, path: str) -> Notebook:
        """Open a notebook and wait for its kernel."""
        self.show(path)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=START_SECONDS * 1000)
        if self._server.app == "lab":
            self.page.evaluate("() => { jupyterapp.shell.collapseLeft(); }")
        notebook = Notebook(self.page)
        wait_until(lambda: notebook.kernel_status == "idle", START_SECONDS, "the kernel")
        return notebook

    def tidy(self) -> bool:
        """Close all that is open in JupyterLab and forget what the page was told; false where that cannot be."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        if not self.page.url.startswith(f"{self._server.url}/lab"):
            return False
        try:
            self.page.evaluate(LIGHTEN)
            self.page.wait_for_function("() => document.body.dataset.jpThemeLight !== 'false'", timeout=60_000)
            self.page.unroute_all(behavior="ignoreErrors")
            return self.page.evaluate(TIDY)
        except Exception:  # noqa: BLE001 - of JupyterLab or Playwright: such a page is closed, and the test has passed
            return False

    @property
    def our_errors(self) -> list[str]:
        """Errors on the console that our code could have made."""
        return [
            line
            for line in self.console
            if line.startswith(("error", "pageerror"))
            and "Failed to load resource" not in line
            and not _is_of_notebook_7(line)
        ]


def _is_of_notebook_7(line: str) -> bool:
    """Notebook 7 stumbles over a setting of JupyterLab that it does not have; an empty notebook shows it, too."""
    return "(reading 'schema')" in line and "/static/notebook/notebook_core" in line


class Notebook:
    """The open notebook."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def script(self, body: str) -> Any:
        """Evaluate JavaScript with ``panel`` bound to the notebook's panel; undefined reads as None."""
        return self.page.evaluate(f"() => {{ const panel = {PANEL}; return ({body}); }}")

    def command(self, name: str) -> None:
        """Run a command of the application without waiting for its promise."""
        self.page.evaluate("name => { jupyterapp.commands.execute(name); }", name)

    @property
    def kernel_status(self) -> str:
        return self.script("panel?.sessionContext?.session?.kernel?.status ?? ''")

    @property
    def busy_cells(self) -> int:
        prompts = "document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')"
        return self.script(f"[...{prompts}].filter(e => e.textContent.includes('[*]')).length")

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")

    def run_cell(self, index: int) -> None:
        self.script(f"(panel.content.activeCellIndex = {index}, panel.content.deselectAll(), 0)")
        self.command("notebook:run-cell")

    def run_cells(self, *indices: int) -> None:
        """Run cells one after another, each to its end."""
        for index in indices:
            self.run_cell(index)
            self.wait_until_idle()

    def wait_until_idle(self, seconds: float = 60) -> None:
        wait_until(lambda: self.kernel_status == "idle" and self.busy_cells == 0, seconds, "all cells to finish")

    def click(self, text: str, seconds: float = 60) -> None:
        """Click a visible button in an output by its text, once it is enabled."""
        button = self.page.locator(".jp-OutputArea button:visible", has_text=text).first
        button.click(timeout=seconds * 1000)

    def output_text(self) -> str:
        areas = "document.querySelectorAll('.jp-CodeCell .jp-Cell-outputArea')"
        return self.script(f"[...{areas}].map(e => e.innerText).join('\\n')")

    def wait_for_text(self, text: str, seconds: float = 60) -> None:
        try:
            wait_until(lambda: text in self.output_text(), seconds, repr(text))
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the outputs are:\n{self.output_text()}") from None

    def wait_for(self, selector: str, seconds: float = 60) -> Any:
        """Wait for a visible element and return its locator."""
        found = self.page.locator(selector).locator("visible=true").first
        found.wait_for(timeout=seconds * 1000)
        return found

    def save(self) -> None:
        self.command("docmanager:save")
        wait_until(lambda: not self.script("panel.context.model.dirty"), 15, "the notebook to be saved")

    def shoot(self, path: Path, selector: str = "") -> None:
        """A picture of an element, or of the whole notebook (the page grows until it fits)."""
        if selector:
            self.page.locator(selector).first.screenshot(path=str(path))
            return
        cells = "[...document.querySelectorAll('.jp-Notebook .jp-Cell')]"
        height = self.script(f"{cells}.reduce((sum, e) => sum + e.getBoundingClientRect().height + 6, 180)")
        size = self.page.viewport_size
        self.page.set_viewport_size({"width": size["width"], "height": int(min(max(height, 400), 6000))})
        self.page.screenshot(path=str(path))
