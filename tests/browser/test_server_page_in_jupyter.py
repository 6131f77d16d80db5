"""The card in JupyterLab's launcher opens the page on the runs of Jupyter's root; no token is typed."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph review { graph [label="Review of one change"]
  start [shape=Mdiamond] plan [label="Plan the change", prompt="Plan it"] review [shape=hexagon, label="Good?"]
  done [shape=Msquare] start -> plan -> review -> done [label="[A] Approve"] }"""


def test_the_card_in_the_launcher_opens_the_page_on_the_runs_of_the_root(lab, pictures):
    base = lab.root / ".attractor" / "runs"
    run = Pipeline(TEXT, backend="simulated").run(logs_root=base / "one", stop_after=2, is_shown=False)
    run.result(60)
    with lab.browser() as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        page.goto(f"{lab.url}/lab?reset&token={lab.token}")
        page.wait_for_selector(".jp-LauncherCard")
        card = page.locator(".jp-LauncherCard", has_text="Attractor runs")
        card.wait_for()
        assert card.locator("svg, img").count() == 1
        card.click()
        frame = page.frame_locator("iframe[src*='attractor-nb']")
        frame.locator("tr[data-run=one]").wait_for()
        frame.locator("tr[data-run=one]").get_by_role("button", name="Resume").click()
        frame.locator(".ag-card").get_by_role("button", name="Approve").click()
        frame.locator(".al-line[data-status=success]").wait_for()
        frame.locator("[data-node=review].state-success").wait_for()
        page.screenshot(path=str(pictures / "page_in_jupyterlab.png"))
        dark = "frame => frame.contentDocument.body.dataset.jpThemeLight"
        inner = page.locator("iframe[src*='attractor-nb']")
        assert inner.evaluate(dark) == "true"
        page.evaluate("() => { document.body.dataset.jpThemeLight = 'false'; }")
        frame.locator("body[data-jp-theme-light=false]").wait_for()
        page.screenshot(path=str(pictures / "page_in_jupyterlab_dark.png"))
        page.evaluate("() => { document.body.dataset.jpThemeLight = 'true'; }")
        assert browser.our_errors == []
    with pytest.raises(urllib.error.HTTPError) as refused:  # without Jupyter's login there is no way in
        urllib.request.urlopen(urllib.request.Request(f"{lab.url}/attractor-nb/pipelines", method="POST", data=b"{}"))
    assert refused.value.code == 403
    refused.value.close()
