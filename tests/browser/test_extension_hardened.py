"""The extension in a JupyterLab that allows no inline script, and in two JupyterLabs over one folder."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# JupyterLab itself compiles the schemas of its settings, and writes styles.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'self'"
)
TEXT = """digraph there {
    start [shape=Mdiamond]
    ask   [shape=hexagon, label="Is it good?"]
    done  [shape=Msquare]
    start -> ask -> done [label="[A] Approve"]
}
"""
REFUSED = "addEventListener('securitypolicyviolation', (one) => (window.refused ??= []).push(`${one.violatedDirective} ${one.sourceFile}`))"
TRIED = """() => {
  const script = document.createElement("script");
  script.textContent = "window.wasRun = true";
  document.head.append(script);
  return window.wasRun === true;
}"""


def paused_run(root, name):
    """A run that stands still before its question."""
    place = root / ".attractor" / "runs" / name
    Pipeline(TEXT, backend="simulated").run(logs_root=place, stop_after=1, is_shown=False).result(60)


def test_without_inline_scripts_every_part_works(make_server, write_notebook, tmp_path, pictures):
    config, root = tmp_path / "config", tmp_path / "root"
    config.mkdir()
    root.mkdir()
    headers = {"headers": {"Content-Security-Policy": POLICY}}
    (config / "jupyter_server_config.json").write_text(json.dumps({"ServerApp": {"tornado_settings": headers}}))
    paused_run(root, "one")
    (root / "plan.dot").write_text(TEXT)
    write_notebook(root, "cells.ipynb", f"%%attractor\n{TEXT.replace('-> ask', '-> aks')}")
    server = make_server(root)
    server._environment["JUPYTER_CONFIG_PATH"] = str(config)
    with server, server.browser(is_new=True) as browser:
        page = browser.page
        page.add_init_script(REFUSED)
        page.set_default_timeout(90_000)
        notebook = browser.open("cells.ipynb")
        page.wait_for_function("() => document.querySelector('.cm-attractor-error')?.textContent === 'aks'")
        assert page.locator(".cm-content[data-language=attractor]").count() == 1
        notebook.command("attractor-nb:show-runs")
        page.frame_locator("#attractor-nb-runs iframe").locator("[data-run=one]").wait_for()
        page.evaluate("() => { jupyterapp.commands.execute('docmanager:open', { path: 'plan.dot' }); }")
        graph = page.frame_locator(".attractor-document-graph iframe")
        graph.locator("[data-node=ask]").wait_for()
        page.locator(".attractor-document .cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.press("Control+Home")
        page.keyboard.press("End")
        page.keyboard.insert_text(" more [prompt=more]")
        graph.locator("[data-node=more]").wait_for()
        page.screenshot(path=str(pictures / "extension-hardened.png"))
        assert page.evaluate(TRIED) is False, "the policy holds"
        ours = [one for frame in page.frames for one in frame.evaluate("() => window.refused ?? []")]
        assert [one for one in ours if "attractor" in one] == []


def test_two_labs_over_one_folder_show_the_same_questions_and_either_answers_them(make_server, tmp_path, pictures):
    paused_run(tmp_path, "shared")
    with ExitStack() as stack:
        first, second = (stack.enter_context(make_server(tmp_path)) for _ in range(2))
        here, there = (stack.enter_context(server.browser(height=800)) for server in (first, second))
        panels = []
        for server, page in ((first, here.page), (second, there.page)):
            page.set_default_timeout(90_000)
            page.goto(f"{server.url}/lab?reset&token={server.token}")
            page.wait_for_selector(".jp-LauncherCard")
            page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:show-runs'); }")
            panels.append(page.frame_locator("#attractor-nb-runs iframe"))
            panels[-1].locator("[data-run=shared]").wait_for()
        here.page.bring_to_front()
        panels[0].locator("[data-run=shared] button").click()
        tab = here.page.frame_locator(".jp-MainAreaWidget iframe")
        tab.get_by_role("button", name="Resume").first.click()
        asked = panels[0].locator(".ag-card", has_text="Is it good?")
        asked.get_by_role("button", name="Approve").wait_for()
        there.page.bring_to_front()
        card = panels[1].locator(".ag-card", has_text="Is it good?")
        card.get_by_role("button", name="Approve").wait_for()
        there.page.screenshot(path=str(pictures / "extension-second-lab.png"))
        card.get_by_role("button", name="Approve").click()  # the run works in the server of the first
        panels[1].locator("[data-run=shared]", has_text="completed").wait_for()
        card.wait_for(state="detached")
        here.page.bring_to_front()
        panels[0].locator("[data-run=shared]", has_text="completed").wait_for()
        asked.wait_for(state="detached")
        assert here.our_errors == []
        assert there.our_errors == []
