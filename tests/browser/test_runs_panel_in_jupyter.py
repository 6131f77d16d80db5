"""The runs and their questions in JupyterLab's sidebar: listed, answered in place, opened as tabs, told of."""

from __future__ import annotations

import shutil

import pytest

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph NAME { start [shape=Mdiamond] plan [label="Plan the change", prompt="Plan it"]
  review [shape=hexagon, label="Is the plan good?"] done [shape=Msquare]
  start -> plan -> review -> done [label="[A] Approve"] review -> plan [label="[R] Again"] }"""
FAILING = "digraph broken { start [shape=Mdiamond] done [shape=Msquare] x [shape=parallelogram, tool_command=false] start -> x -> done }"
COUNT = "[data-attractor-count]"


@pytest.fixture
def panel(lab):
    """JupyterLab with the panel of runs open, over two runs that have ended and one that was paused before its gate."""
    base = lab.root / ".attractor" / "runs"
    for old in base.glob("panel-*"):
        shutil.rmtree(old)
    for name in ("alpha", "beta"):
        Pipeline(TEXT.replace("NAME", name), backend="simulated", interviewer="auto").run(
            logs_root=base / f"panel-{name}", is_shown=False
        ).result(60)
    paused = Pipeline(TEXT.replace("NAME", "gamma"), backend="simulated")
    paused.run(logs_root=base / "panel-gamma", stop_after=2, is_shown=False).result(60)
    with lab.browser(height=800) as browser:
        page = browser.page
        page.set_default_timeout(60_000)
        page.goto(f"{lab.url}/lab?reset&token={lab.token}")
        page.wait_for_selector(".jp-LauncherCard")
        page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:show-runs'); }")
        frame = page.frame_locator("#attractor-nb-runs iframe")
        frame.locator("[data-run=panel-alpha]").wait_for()
        yield browser, page, frame
        assert browser.our_errors == []


def test_runs_are_listed_and_found_by_words(panel):
    _, _, frame = panel
    assert "completed" in frame.locator("[data-run=panel-alpha]").inner_text()
    frame.get_by_label("Filter runs").fill("gamma paused")
    frame.locator("[data-run=panel-alpha]").wait_for(state="detached")
    assert frame.locator(".ap-side-run").count() == 1
    frame.get_by_label("Filter runs").fill("no such run")
    frame.get_by_text("No run has these words.").wait_for()


def test_a_question_is_counted_told_of_and_answered_in_place(panel, pictures):
    _, page, frame = panel
    others = frame.locator(".ag-card").count()  # questions that other tests left open in this Lab
    frame.locator("[data-run=panel-gamma] button").click()
    tab = page.frame_locator(".jp-MainAreaWidget iframe")
    tab.get_by_role("button", name="Resume").first.click()
    card = frame.locator(".ag-card", has_text="Is the plan good?")
    card.wait_for()
    page.locator(f'.lm-TabBar-tab[data-attractor-count="{others + 1}"]').wait_for()
    page.locator(".Toastify__toast", has_text="gamma waits for an answer: Is the plan good?").wait_for()
    page.screenshot(path=str(pictures / "runs-panel.png"))
    card.get_by_role("button", name="Approve").click()
    tab.locator(".al-line[data-status=success]").wait_for()
    if others:
        page.locator(f'.lm-TabBar-tab[data-attractor-count="{others}"]').wait_for()
    else:
        page.locator(f".lm-TabBar-tab{COUNT}").wait_for(state="detached")
    frame.locator("[data-run=panel-gamma]", has_text="completed").wait_for()


def test_a_run_that_fails_elsewhere_is_told_of_and_shown(panel, lab):
    _, page, frame = panel
    failing = Pipeline(FAILING).run(
        logs_root=lab.root / ".attractor" / "runs" / "panel-broken", is_shown=False
    )
    failing.result(60)
    told = page.locator(".Toastify__toast", has_text="broken failed")
    told.wait_for()
    frame.locator("[data-run=panel-broken]", has_text="failed").wait_for()
    told.get_by_role("button", name="Show").click()
    page.frame_locator(".jp-MainAreaWidget iframe").locator("[data-node=x].state-fail").wait_for()


def test_a_run_opens_once_and_its_tab_is_named(panel):
    _, page, frame = panel
    frame.locator("[data-run=panel-alpha] button").click()
    page.frame_locator(".jp-MainAreaWidget iframe").locator("[data-node=plan].state-success").wait_for()
    frame.locator("[data-run=panel-alpha] button").click()
    assert page.locator(".lm-TabBar-tab", has_text="alpha").count() == 1


RECORDING = """
window.told = [];
const own = window.Notification;
window.Notification = class extends own {
  constructor(title, options) {
    super(title, options);
    window.told.push(options.body);
    window.last = this;
  }
};
"""


def wait_for_looks(page):
    """Until the runs have been looked at, and are again: what is there at the first look is no news."""
    for _ in range(2):
        with page.expect_response("**/attractor-nb/rows*"):
            pass


def test_the_browser_tells_of_a_failure_while_one_looks_elsewhere_once_it_is_allowed(lab, driver):
    base = lab.root / ".attractor" / "runs"
    for old in base.glob("notice-*"):
        shutil.rmtree(old)
    with driver.new_page(height=800) as page:
        page.set_default_timeout(60_000)
        page.add_init_script(RECORDING)
        page.goto(f"{lab.url}/lab?reset&token={lab.token}")
        page.wait_for_selector(".jp-LauncherCard")
        page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:notify'); }")
        page.locator(".Toastify__toast", has_text="blocks notifications").wait_for()

        page.context.grant_permissions(["notifications"], origin=lab.url)
        page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:notify'); }")
        page.locator(".Toastify__toast", has_text="the browser notifies you").wait_for()
        wait_for_looks(page)
        page.evaluate("() => { document.hasFocus = () => false; }")
        Pipeline(FAILING.replace("broken", "elsewhere")).run(
            logs_root=base / "notice-one", is_shown=False
        ).result(60)
        page.wait_for_function("() => window.told.includes('elsewhere failed')")
        page.evaluate("() => last.dispatchEvent(new Event('click'))")
        page.locator(".lm-TabBar-tabLabel", has_text="elsewhere").wait_for()

        page.goto(f"{lab.url}/lab?reset&token={lab.token}")  # it is remembered, and no panel is opened
        page.wait_for_selector(".jp-LauncherCard")
        page.evaluate("() => { document.hasFocus = () => false; }")
        wait_for_looks(page)
        Pipeline(FAILING.replace("broken", "again")).run(
            logs_root=base / "notice-two", is_shown=False
        ).result(60)
        page.wait_for_function("() => window.told.includes('again failed')")
        page.evaluate("() => { document.hasFocus = () => true; }")
