"""The runs and their questions in JupyterLab's sidebar: listed, answered in place, opened as tabs, told of."""

from __future__ import annotations

import shutil
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from attractor_nb import Pipeline

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

TEXT = """digraph NAME { start [shape=Mdiamond] plan [label="Plan the change", prompt="Plan it"]
  review [shape=hexagon, label="Is the plan good?"] done [shape=Msquare]
  start -> plan -> review -> done [label="[A] Approve"] review -> plan [label="[R] Again"] }"""
FAILING = "digraph broken { start [shape=Mdiamond] done [shape=Msquare] x [shape=parallelogram, tool_command=false] start -> x -> done }"
COUNT = "[data-attractor-count]"
BADGE = "tab => (({ content, width }) => [content, parseFloat(width)])(getComputedStyle(tab, '::before'))"


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


def test_the_list_of_runs_is_in_sight_below_questions_that_fold(panel):
    _, _, frame = panel
    frame.locator("[data-run=panel-gamma] button").wait_for()
    low = frame.locator(".ap-side").evaluate(
        """(side) => {
          const questions = side.querySelector(".ap-side-questions"), list = side.querySelector(".ap-side-runs");
          const before = [questions.hidden, list.getBoundingClientRect().top];
          const high = document.createElement("div");
          high.style.height = "3000px"; // many questions
          questions.querySelector(".ap-inbox").append(high);
          questions.hidden = false;
          const open = list.getBoundingClientRect().top;
          questions.open = false;
          const folded = list.getBoundingClientRect().top;
          questions.open = true;
          high.remove();
          questions.hidden = before[0];
          return { open, folded, height: innerHeight };
        }"""
    )
    assert low["open"] < 0.65 * low["height"], "the list begins in the upper part, whatever waits"
    assert low["folded"] < 160
    assert frame.locator("h2", has_text="Runs").is_visible()


def test_runs_are_listed_and_found_by_words(panel):
    _, _, frame = panel
    assert "completed" in frame.locator("[data-run=panel-alpha]").inner_text()
    frame.get_by_label("Filter runs").fill("gamma paused")
    frame.locator("[data-run=panel-alpha]").wait_for(state="detached")
    assert frame.locator(".ap-side-run").count() == 1
    frame.get_by_label("Filter runs").fill("no such run")
    frame.get_by_text("No run has these words.").wait_for()


@pytest.mark.kind("JupyterLab")
def test_a_question_is_counted_told_of_and_answered_in_place(panel, pictures):
    _, page, frame = panel
    others = frame.locator(".ag-card").count()  # questions that other tests left open in this Lab
    frame.locator("[data-run=panel-gamma] button").click()
    tab = page.frame_locator(".jp-MainAreaWidget iframe")
    tab.get_by_role("button", name="Resume").first.click()
    card = frame.locator(".ag-card", has_text="gamma").filter(has_text="Is the plan good?")
    card.wait_for()
    page.locator(f'.lm-TabBar-tab[data-attractor-count="{others + 1}"]').wait_for()
    content, width = page.locator(f".lm-TabBar-tab{COUNT}").evaluate(BADGE)
    assert (content, width < 30) == (f'"{others + 1}"', True)  # and the tab's icon is seen
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
    failing = Pipeline(FAILING).run(logs_root=lab.root / ".attractor" / "runs" / "panel-broken", is_shown=False)
    failing.result(60)
    told = page.locator(".Toastify__toast", has_text="broken failed")
    expect(told).to_be_visible()
    expect(frame.locator("[data-run=panel-broken]", has_text="failed")).to_be_visible()
    told.get_by_role("button", name="Show").click()
    expect(page.frame_locator(".jp-MainAreaWidget iframe").locator("[data-node=x].state-fail")).to_be_visible()


def test_a_map_and_an_evaluation_open_as_tabs_with_their_rows(panel, lab):
    _, page, frame = panel
    base = lab.root / ".attractor" / "runs"
    text = 'digraph many { inputs="n" start [shape=Mdiamond] a [prompt="$n"] done [shape=Msquare] start -> a -> done }'
    pipeline = Pipeline(text, backend="simulated")
    rows = [{"n": str(number)} for number in range(3)]
    pipeline.map(rows, map_dir=base / "panel-map", wait=True)
    pipeline.evaluate(rows, {"any": lambda output: True}, map_dir=base / "panel-scored", wait=True)
    for name, words in (("panel-map", "map · 3 rows"), ("panel-scored", "evaluation · 3 rows")):
        item = frame.locator(f"[data-run={name}]", has_text=words)
        item.wait_for()
        item.get_by_role("button").click()
        element = page.locator(f"#attractor-nb-run-{name} iframe")
        assert f"#map={name}" in element.get_attribute("src")
        tab = page.frame_locator(f"#attractor-nb-run-{name} iframe")
        expect(tab.locator(".am-table tr[data-place]")).to_have_count(3)
        tab.locator(".am-table tr[data-place]").first.click()
        tab.locator(".am-beside [data-node=a].state-success").wait_for()


def test_a_run_opens_once_and_its_tab_is_named(panel):
    _, page, frame = panel
    frame.locator("[data-run=panel-alpha] button").click()
    page.frame_locator(".jp-MainAreaWidget iframe").locator("[data-node=plan].state-success").wait_for()
    frame.locator("[data-run=panel-alpha] button").click()
    assert page.locator(".lm-TabBar-tab", has_text="alpha").count() == 1


def test_the_tab_of_a_run_replays_it_and_compares_it_with_another(panel, pictures):
    _, page, frame = panel
    frame.locator("[data-run=panel-alpha] button").click()
    tab = page.frame_locator(".jp-MainAreaWidget iframe")
    tab.locator("[data-node=plan].state-success").first.wait_for()

    tab.locator("summary", has_text="Replay").click()
    replay = tab.locator(".attractor-replay")
    replay.get_by_role("slider").focus()
    page.keyboard.press("Home")
    replay.locator("[data-node=plan].state-pending").wait_for()
    page.keyboard.press("End")
    replay.locator("[data-node=plan].state-success").click()
    replay.get_by_text("Plan it", exact=True).first.wait_for()  # its prompt, which the server has
    replay.screenshot(path=str(pictures / "run-tab-replay.png"))
    tab.locator("summary", has_text="Replay").click()

    tab.locator("summary", has_text="Compare with another run").click()
    choice = tab.get_by_label("The run to compare with")
    choice.locator("option", has_text="panel-beta").wait_for(state="attached")
    assert choice.locator("option").first.inner_text() == "Choose one"
    choice.select_option("panel-beta")
    compared = tab.locator(".attractor-compared")
    compared.locator("[data-node=plan]").click()
    compared.locator(".ac-visit-title", has_text="the same in both").wait_for()
    assert tab.get_by_text("A is this run, B is panel-beta.").count() == 1
    choice.select_option("panel-gamma")
    compared.locator(".ac-run", has_text="paused").wait_for()
    for theme in ("Light", "Dark"):
        page.evaluate(
            "theme => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }", f"JupyterLab {theme}"
        )
        page.wait_for_function(
            "isLight => document.body.dataset.jpThemeLight === isLight", arg=str(theme == "Light").lower()
        )
        page.screenshot(path=str(pictures / f"run-tab-compared-{theme.lower()}.png"))
    choice.select_option("")
    compared.wait_for(state="detached")


def test_the_panel_stands_beside_a_notebook_and_answers_in_place(jupyter, open_notebook, pictures):
    """In Notebook 7 too, where a run that is opened is a page of the browser."""
    place = jupyter.root / ".attractor" / "runs" / "panel-beside"
    paused = Pipeline(TEXT.replace("NAME", "beside"), backend="simulated")
    paused.run(logs_root=place, stop_after=2, is_shown=False).result(60)
    notebook = open_notebook(jupyter, "1 + 1")
    page = notebook.page
    notebook.command("attractor-nb:show-runs")
    frame = page.frame_locator("#attractor-nb-runs iframe")
    row = frame.locator("[data-run=panel-beside]")
    expect(row).to_contain_text("paused")
    with ExitStack() as stack:
        if jupyter.app == "lab":
            row.locator("button").click()
            run = page.frame_locator(".jp-MainAreaWidget iframe")
        else:
            with page.context.expect_page() as opened:
                row.locator("button").click()
            run = opened.value
            stack.callback(run.close)
        run.get_by_role("button", name="Resume").first.click()
        card = frame.locator(".ag-card", has_text="beside")
        expect(card.get_by_role("button", name="Approve")).to_be_visible()
        page.screenshot(path=str(pictures / f"panel-beside-{jupyter.app}.png"))
        card.get_by_role("button", name="Approve").click()
        expect(row).to_contain_text("completed")
        expect(run.locator("[data-node=done].state-success")).to_be_visible()


def test_a_question_of_a_kernel_is_answered_in_the_panel(jupyter, open_notebook, pictures):
    text = TEXT.replace("NAME", "kernels")
    begin = "run = Pipeline(TEXT, backend='simulated').run(logs_root='.attractor/runs/panel-kernel', is_shown=False)"
    cells = (f"from attractor_nb import Pipeline\nTEXT = {text!r}\n{begin}", "(await run).status")
    notebook = open_notebook(jupyter, *cells)
    shutil.rmtree(jupyter.root / ".attractor" / "runs" / "panel-kernel", ignore_errors=True)
    notebook.command("attractor-nb:show-runs")
    notebook.run_all()
    frame = notebook.page.frame_locator("#attractor-nb-runs iframe")
    card = frame.locator(".ag-card", has_text="kernels")
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    notebook.page.screenshot(path=str(pictures / f"panel-kernel-{jupyter.app}.png"))
    card.get_by_role("button", name="Approve").click()
    expect(notebook.page.locator(".jp-Cell-outputArea").last).to_contain_text("'success'")
    expect(card).to_have_count(0)
    expect(frame.locator("[data-run=panel-kernel]", has_text="completed")).to_be_visible()


def test_panel_and_run_speak_as_the_translator_of_jupyterlab_does(panel):
    _, page, _ = panel
    assert page.evaluate("() => attractorWords.__('%1 of %2', 1, 2)") == "1 of 2"  # of the extension
    loud = "(text, ...values) => values.reduce((now, one, at) => now.replace(`%${at + 1}`, one), text.toUpperCase())"
    page.evaluate(f"() => {{ const __ = {loud}; attractorWords = {{ __, _n: (one, many, n) => __(many, n) }}; }}")
    page.evaluate("() => { document.querySelector('#attractor-nb-runs iframe').contentWindow.location.reload(); }")
    frame = page.frame_locator("#attractor-nb-runs iframe")
    frame.get_by_label("FILTER RUNS", exact=True).wait_for()
    frame.locator("[data-run=panel-alpha]", has_text="4 STAGES").wait_for()
    frame.locator("[data-run=panel-alpha] button").click()
    run = page.frame_locator("#attractor-nb-run-panel-alpha iframe")
    run.get_by_role("button", name="FORK…").wait_for()
    run.locator("[data-node=start]").first.click()
    run.get_by_role("tab", name="RESPONSE").wait_for()
    run.get_by_label("ACTIONS FOR THIS STAGE").wait_for(state="attached")


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
        expect(page.locator(".Toastify__toast", has_text="blocks notifications")).to_be_visible()

        page.context.grant_permissions(["notifications"], origin=lab.url)
        page.evaluate("() => { jupyterapp.commands.execute('attractor-nb:notify'); }")
        expect(page.locator(".Toastify__toast", has_text="the browser notifies you")).to_be_visible()
        wait_for_looks(page)
        page.evaluate("() => { document.hasFocus = () => false; }")
        Pipeline(FAILING.replace("broken", "elsewhere")).run(logs_root=base / "notice-one", is_shown=False).result(60)
        page.wait_for_function("() => window.told.includes('elsewhere failed')")
        assert page.evaluate("() => window.told").count("elsewhere failed") == 1
        page.evaluate("() => last.dispatchEvent(new Event('click'))")
        expect(page.locator(".lm-TabBar-tabLabel", has_text="elsewhere")).to_be_visible()

        page.goto(f"{lab.url}/lab?reset&token={lab.token}")  # it is remembered, and no panel is opened
        page.wait_for_selector(".jp-LauncherCard")
        page.evaluate("() => { document.hasFocus = () => false; }")
        wait_for_looks(page)
        Pipeline(FAILING.replace("broken", "again")).run(logs_root=base / "notice-two", is_shown=False).result(60)
        page.wait_for_function("() => window.told.includes('again failed')")
        assert page.evaluate("() => window.told").count("again failed") == 1
        page.evaluate("() => { document.hasFocus = () => true; }")
