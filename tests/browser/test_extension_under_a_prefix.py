"""The extension below a prefix, as a JupyterHub has one: findings, runs and the tab of a run ask the right addresses."""

from __future__ import annotations

import json

import pytest

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PREFIX = "/user/ann@example.org/"
TEXT = "digraph there { start [shape=Mdiamond] plan [prompt=it] done [shape=Msquare] start -> plan -> done }"
CELL = f"%%attractor\n{TEXT.replace('-> plan', '-> plna')}"


@pytest.fixture
def prefixed(driver, make_server, tmp_path):
    """A server whose base URL has a name in it, as a hub gives one."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "jupyter_server_config.json").write_text(json.dumps({"ServerApp": {"base_url": PREFIX}}))
    (tmp_path / "root").mkdir()
    server = make_server(tmp_path / "root")
    server._environment["JUPYTER_CONFIG_PATH"] = str(config)
    server.prefix = PREFIX.rstrip("/")
    with server:
        yield server


def test_findings_and_runs_are_asked_for_below_the_prefix(prefixed, open_notebook):
    Pipeline(TEXT, backend="simulated").run(
        logs_root=prefixed.root / ".attractor" / "runs" / "one", is_shown=False
    ).result(60)
    notebook = open_notebook(prefixed, CELL)
    page = notebook.page
    page.set_default_timeout(90_000)
    page.wait_for_function("() => document.querySelector('.cm-attractor-error')?.textContent === 'plna'")
    notebook.command("attractor-nb:open-last-run")
    page.locator(".lm-TabBar-tabLabel", has_text="there").wait_for()
    page.frame_locator(".jp-MainAreaWidget iframe").locator("[data-node=plan].state-success").wait_for()
    notebook.command("attractor-nb:show-runs")
    page.frame_locator("#attractor-nb-runs iframe").locator("[data-run=one]").wait_for()
    assert notebook.browser.our_errors == []
