"""The form of a new run in Chromium: written, looked at, mended, trusted, begun once, and kept over a reload."""

from __future__ import annotations

import json
import re
import urllib.request
from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

TOKEN = "s" * 43
TORN = """digraph Release {
  graph [goal="A release that installs", label="Release"]
  start  [shape=Mdiamond]
  plan   [label="Plan \U0001f600 it", prompt="Plan it: $goal"]
  build  [shape=parallelogram, tool_command="echo built \u202eX"]
  done   [shape=Msquare]
  start -> plan -> biuld
  build -> done
}"""
PLAIN = "digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }"


@pytest.fixture
def open_form(driver, serve_page, tmp_path):
    """Opens the form of a server on ``tmp_path / "runs"``, from the list of runs."""
    (tmp_path / "runs").mkdir()
    line = serve_page(tmp_path / "runs", TOKEN)

    @contextmanager
    def open_(**options):
        with driver.quiet_page(but="^(?!error)|status of 4|ERR_FAILED", **options) as page:
            page.goto(line)
            page.get_by_role("button", name="New run").click()
            page.get_by_role("heading", name="New run").wait_for()
            yield page

    return open_


def text_of(page):
    return page.get_by_label("DOT text")


def run_button(page):
    return page.get_by_role("button", name="Run", exact=True)


def selected(page):
    return text_of(page).evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)")


def context_of(page):
    base, _, run = page.url.partition("#run=")
    request = urllib.request.Request(f"{base}pipelines/{run}/context", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["context"]


def runs_in(folder):
    return [path.name for path in (folder / "runs").iterdir() if not path.name.startswith(".")]


@pytest.mark.kind("a browser")
def test_a_text_is_written_mended_trusted_and_run(open_form, tmp_path, pictures):
    with open_form() as page:
        assert run_button(page).is_disabled()
        text_of(page).fill(TORN)
        rows = page.locator(".af-table tbody tr")
        rows.first.wait_for()
        severities = [name.split("-")[1] for name in rows.evaluate_all("all => all.map(one => one.className)")]
        assert severities == sorted(severities, key=["error", "warning", "info"].index)
        page.locator(".an-sketch [data-node=plan]").wait_for()
        assert run_button(page).is_disabled()
        slip = rows.filter(has_text="biuld").filter(has=page.get_by_role("button", name="Fix")).first
        slip.locator(".af-message").click(position={"x": 4, "y": 4})
        assert selected(page) == "biuld"
        assert "^^^^^" in slip.locator(".af-excerpt").inner_text()
        page.screenshot(path=str(pictures / "new_run_findings_light.png"), full_page=True)
        page.locator(".an-sketch [data-node=plan]").click()
        assert selected(page) == "plan"

        slip.get_by_role("button", name="Fix").click()
        page.locator(".an-commands .an-command").wait_for()
        page.wait_for_function("() => !document.querySelector('.af-error')")
        assert text_of(page).input_value() == TORN.replace("biuld", "build")
        page.keyboard.press("Control+z")  # a fix is undone as what was typed is
        assert text_of(page).input_value() == TORN
        page.keyboard.press("Control+Shift+z")
        page.wait_for_function("() => !document.querySelector('.af-error')")

        assert page.locator(".an-command").inner_text() == "echo built \\u202eX"
        assert re.search(r"ATTRACTOR_TRUST=[0-9a-f]{12} attractor-nb serve", page.locator(".an-commands").inner_text())
        assert run_button(page).is_disabled()
        tick = page.get_by_role("checkbox", name="build")
        text_of(page).press("Control+Enter")  # it leads to what is left to do
        assert tick.evaluate("one => one === document.activeElement")
        page.keyboard.press("Space")
        assert run_button(page).is_enabled()
        text_of(page).evaluate("one => one.setSelectionRange(one.value.length, one.value.length)")
        text_of(page).press("Enter")
        assert run_button(page).is_disabled()
        assert not tick.is_checked(), "another text asks again"
        page.locator(".an-state", has_text="A command is not ticked yet.").wait_for()
        tick.check()

        page.get_by_role("button", name="Add an input").click()
        page.keyboard.type("count")
        page.get_by_label("How the value is read").select_option("json")
        page.get_by_label("Value of count").fill("[1, ")
        assert run_button(page).is_disabled()
        page.get_by_label("Value of count").fill("[90071992547409931]")
        page.get_by_role("button", name="Add an input").click()
        page.get_by_label("Name of the input").nth(1).fill("version")
        page.get_by_label("Value of version").fill("1.4 <b>")
        page.get_by_label("Value of version").press("Control+Enter")
        page.locator(".al-line[data-status=success]").wait_for()
        assert "#run=" in page.url
        context = context_of(page)
        assert (context["count"], context["version"]) == ([90071992547409931], "1.4 <b>")
        assert "built" in context["tool.output"]
        assert len(runs_in(tmp_path)) == 1


def test_however_often_it_is_clicked_and_whatever_is_lost_on_the_way_one_run_begins(open_form, tmp_path):
    with open_form() as page:
        text_of(page).fill(PLAIN)
        page.locator(".an-state", has_text="Ctrl-Enter").wait_for()
        lost = []

        def lose(route):
            lost.append(route.fetch().status)
            route.abort()

        page.route("**/pipelines", lose, times=1)
        run_button(page).evaluate("one => { one.click(); one.click(); }")
        page.locator(".ap-banner", has_text="does not answer").wait_for()
        assert lost == [201]
        page.reload()  # what was asked for is kept, and that it was
        page.locator(".an-state", has_text="Ctrl-Enter").wait_for()
        full = {"status": 429, "content_type": "application/problem+json"}
        full["body"] = json.dumps({"title": "Too many runs are active", "detail": "1 run is under way"})
        page.route("**/pipelines", lambda route: route.fulfill(**full), times=1)
        run_button(page).click()
        page.locator(".an-bar .ap-said", has_text="1 run is under way").wait_for()
        run_button(page).dblclick()
        page.locator(".al-line[data-status=success]").wait_for()
        assert len(runs_in(tmp_path)) == 1
        page.go_back()
        page.locator(".an-state", has_text="Ctrl-Enter").wait_for()
        run_button(page).click()  # begun, it is another wish
        page.locator(".al-line[data-status=success]").wait_for()
        assert len(runs_in(tmp_path)) == 2


def test_what_was_typed_stays_and_a_refusal_stands_where_it_can_be_mended(open_form, tmp_path, pictures):
    with open_form(dark=True) as page:
        text_of(page).fill(TORN.replace("biuld", "build"))
        page.get_by_label("Prompts are answered by").select_option("local")
        page.get_by_label("Name of the run").fill("mine")
        page.locator(".an-bounds summary").click()
        page.get_by_label("Stages at most").fill("many")
        page.get_by_role("button", name="Add an input").click()
        page.get_by_label("Name of the input").fill("a")
        page.get_by_label("Value of a").fill("1")
        page.reload()
        page.get_by_role("checkbox").wait_for()
        assert text_of(page).input_value() == TORN.replace("biuld", "build")
        kept = page.evaluate(
            "() => JSON.stringify(Object.entries(sessionStorage).filter(([name]) => name.includes('draft')))"
        )
        assert "mine" in kept
        assert TOKEN not in kept
        assert page.get_by_label("Prompts are answered by").input_value() == "local"
        assert page.get_by_label("Name of the run").input_value() == "mine"
        assert page.get_by_label("Value of a").input_value() == "1"
        assert not page.get_by_role("checkbox").is_checked(), "a tick is not kept"

        page.get_by_role("checkbox").check()
        run_button(page).click()
        wrong = page.locator(".an-field", has_text="Stages at most").locator(".an-wrong")
        wrong.filter(has_text="integer").wait_for()
        assert page.get_by_label("Stages at most").get_attribute("aria-invalid") == "true"
        page.get_by_label("Stages at most").fill("50")
        page.get_by_label("Name of the input").fill("graph.goal")
        run_button(page).click()
        page.locator(".an-inputs .ap-said", has_text="graph.goal").wait_for()
        page.get_by_label("Name of the input").fill("a")

        def distrust(route):
            body = json.loads(route.request.post_data) | {"trust": "0" * 64}
            route.continue_(post_data=json.dumps(body))

        page.get_by_label("Prompts are answered by").select_option("")
        page.route("**/pipelines", distrust, times=1)
        run_button(page).click()
        refused = page.locator(".an-refused")
        refused.filter(has_text="ATTRACTOR_TRUST=").wait_for()
        assert run_button(page).is_disabled(), "they are to be read again"
        page.screenshot(path=str(pictures / "new_run_refused_dark.png"), full_page=True)
        assert runs_in(tmp_path) == []
        assert text_of(page).input_value() == TORN.replace("biuld", "build")


DECLARING = """digraph Triage { inputs="ticket, tone=plain" start [shape=Mdiamond] done [shape=Msquare]
  start -> done }"""


def test_ruling_34_what_the_pipeline_declares_is_asked_for_by_name(open_form, pictures):
    with open_form() as page:
        text_of(page).fill(DECLARING)
        page.get_by_label("Value of ticket").wait_for()
        assert page.get_by_label("Value of tone").get_attribute("placeholder") == "plain"
        assert run_button(page).is_disabled()
        assert page.locator(".an-input", has_text="It needs a value.").count() == 1
        assert not page.get_by_role("button", name="Add an input").is_visible()
        page.get_by_label("Value of ticket").fill("printer broken")
        page.screenshot(path=str(pictures / "new_run_declared_inputs.png"), full_page=True)
        text_of(page).fill(DECLARING.replace("ticket,", "case,"))
        page.get_by_label("Value of case").wait_for()
        page.locator(".an-input", has_text="The pipeline has no such input.").wait_for()
        assert page.get_by_label("Value of ticket").input_value() == "printer broken", "nothing typed is lost"
        text_of(page).fill(DECLARING)
        page.get_by_label("Value of case").wait_for(state="detached")
        run_button(page).click()
        page.locator(".al-line[data-status=success]").wait_for()
        assert {"ticket": "printer broken", "tone": "plain"}.items() <= context_of(page).items()


def test_files_are_read_and_what_is_too_long_is_not_sent(open_form, tmp_path, pictures):
    good, long, torn = tmp_path / "good.dot", tmp_path / "long.dot", tmp_path / "torn.dot"
    good.write_bytes(PLAIN.replace("{ start", "{\r\n start").encode())
    long.write_text("x" * 1024 * 1025)
    torn.write_bytes(b"\xff\xfe\x00")
    with open_form(width=390, height=780) as page:
        sent = []
        page.on("request", lambda asked: sent.append(asked.url) if "validate" in asked.url else None)
        said = page.locator(".an-written > .ap-said")
        for file, words in ((long, "the server accepts 1.0 MB"), (torn, "torn.dot is not text in UTF-8")):
            page.get_by_label("A file to read").set_input_files(file)
            said.filter(has_text=words).wait_for()
        text_of(page).evaluate("one => { one.value = 'x'.repeat(1024 * 1025); one.dispatchEvent(new Event('input')); }")
        said.filter(has_text="the server accepts 1.0 MB").wait_for()
        assert sent == []
        page.get_by_label("A file to read").set_input_files(good)
        page.locator(".an-state", has_text="Ctrl-Enter").wait_for()
        assert text_of(page).input_value() == PLAIN.replace("{ start", "{\n start")
        page.evaluate(
            """text => {
              const data = new DataTransfer();
              data.items.add(new File([text], "dropped.dot"));
              const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
              document.querySelector(".an-options").dispatchEvent(drop);
            }""",
            TORN,
        )
        page.locator(".an-sketch [data-node=plan]").wait_for()
        assert text_of(page).input_value() == TORN
        page.get_by_role("button", name="Undo").click()
        assert text_of(page).input_value() == PLAIN.replace("{ start", "{\n start")
        text_of(page).fill(TORN)
        page.locator(".an-sketch [data-node=plan]").wait_for()
        text_of(page).fill(TORN[:-3])
        page.locator(".an-still", has_text="the last text that could").wait_for()
        assert page.locator(".an-sketch [data-node=plan]").count() == 1
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        page.screenshot(path=str(pictures / "new_run_narrow.png"), full_page=True)
        unnamed = """() => [...document.querySelectorAll(".an-form :is(input, select, textarea, button, pre[tabindex])")].filter(
          (one) => !one.getAttribute("aria-label") && !one.textContent.trim() && !one.labels?.length
        ).map((one) => one.outerHTML)"""
        assert page.evaluate(unnamed) == []
